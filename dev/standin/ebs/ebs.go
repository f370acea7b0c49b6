// Package ebs stands in for the AWS EBS CSI driver that Gardener runs for a
// shoot: each PersistentVolume is a volume in the emulator, with the driver's
// tags, and goes with it.
//
// Tags: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/tagging.md
package ebs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
	"github.com/tidbcloud/infra-orchestrator/dev/kube"
)

// clientName is how the calls appear in the proxy's records.
const clientName = "ebs-csi-driver"

// driverName is the driver's, as StorageClasses name it.
const driverName = "ebs.csi.aws.com"

// Config gives an SDK configuration with the credentials of a Shoot;
// awsinfra.Infrastructure.ConfigFor.
type Config func(ctx context.Context, namespace, shoot, clientName string) (aws.Config, error)

// Volumes is for gardenlet.Options.Volumes.
func Volumes(config Config) func(gardenlet.ShootInfo) kube.VolumeBackend {
	return func(shoot gardenlet.ShootInfo) kube.VolumeBackend { return &driver{config, shoot} }
}

type driver struct {
	config Config
	shoot  gardenlet.ShootInfo
}

func (d *driver) client(ctx context.Context) (*ec2.Client, error) {
	cfg, err := d.config(ctx, d.shoot.Namespace, d.shoot.Name, clientName)
	if err != nil {
		return nil, err
	}
	return ec2.NewFromConfig(cfg), nil
}

// Create implements kube.VolumeBackend. The client token follows from the name,
// as in the driver, so that a second call gives the first one's volume.
func (d *driver) Create(ctx context.Context, req kube.VolumeRequest) (string, error) {
	if req.Driver != driverName {
		return "", fmt.Errorf("no driver %s runs in shoot %s", req.Driver, d.shoot.TechnicalID)
	}
	c, err := d.client(ctx)
	if err != nil {
		return "", err
	}
	const gib = 1 << 30
	sum := sha256.Sum256([]byte(req.Name))
	in := &ec2.CreateVolumeInput{
		AvailabilityZone: aws.String(req.Zone), Size: aws.Int32(int32(max(1, (req.Bytes+gib-1)/gib))),
		ClientToken:       aws.String(hex.EncodeToString(sum[:])),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeVolume, Tags: d.tags(req)}},
	}
	if req.Zone == "" && len(d.shoot.Zones) > 0 {
		in.AvailabilityZone = aws.String(d.shoot.Zones[0])
	}
	if kind := req.Parameters["type"]; kind != "" {
		in.VolumeType = types.VolumeType(kind)
	}
	if n, err := strconv.Atoi(req.Parameters["iops"]); err == nil {
		in.Iops = aws.Int32(int32(n))
	}
	if n, err := strconv.Atoi(req.Parameters["throughput"]); err == nil {
		in.Throughput = aws.Int32(int32(n))
	}
	if key := req.Parameters["kmsKeyId"]; key != "" {
		in.Encrypted, in.KmsKeyId = aws.Bool(true), aws.String(key)
	}
	out, err := c.CreateVolume(ctx, in)
	if err != nil {
		return "", fmt.Errorf("create volume %s: %w", req.Name, err)
	}
	return aws.ToString(out.VolumeId), nil
}

// tags are the driver's own and those of the class' tagSpecification_<n>.
func (d *driver) tags(req kube.VolumeRequest) []types.Tag {
	namespace, claim, _ := strings.Cut(req.Claim, "/")
	all := map[string]string{
		"CSIVolumeName":           req.Name,
		"ebs.csi.aws.com/cluster": "true",
		"Name":                    d.shoot.TechnicalID + "-dynamic-" + req.Name,
		"KubernetesCluster":       d.shoot.TechnicalID,
		"kubernetes.io/cluster/" + d.shoot.TechnicalID: "owned",
		"kubernetes.io/created-for/pvc/namespace":      namespace,
		"kubernetes.io/created-for/pvc/name":           claim,
		"kubernetes.io/created-for/pv/name":            req.Name,
	}
	for parameter, value := range req.Parameters {
		if key, value, ok := strings.Cut(value, "="); ok && strings.HasPrefix(parameter, "tagSpecification_") {
			all[key] = value
		}
	}
	var tags []types.Tag
	for _, key := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, types.Tag{Key: aws.String(key), Value: aws.String(all[key])})
	}
	return tags
}

// Delete implements kube.VolumeBackend.
func (d *driver) Delete(ctx context.Context, _, handle string) error {
	c, err := d.client(ctx)
	if err != nil {
		return err
	}
	_, err = c.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: aws.String(handle)})
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "InvalidVolume.NotFound" {
		return nil
	}
	return err
}
