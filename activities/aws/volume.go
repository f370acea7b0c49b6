package aws

import (
	"context"
	"fmt"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// volumeAPI is what is called of EC2 for disks.
type volumeAPI interface {
	ec2.DescribeVolumesAPIClient
	DeleteVolume(context.Context, *ec2.DeleteVolumeInput, ...func(*ec2.Options)) (*ec2.DeleteVolumeOutput, error)
}

// volumesOf lists volumes by a filter, without those that are on their way out.
func volumesOf(ctx context.Context, c *clients, by ec2types.Filter) ([]ec2types.Volume, error) {
	var found []ec2types.Volume
	pages := ec2.NewDescribeVolumesPaginator(c.ec2, &ec2.DescribeVolumesInput{Filters: []ec2types.Filter{by}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, faults.FromAWS(err, "EBS volumes")
		}
		for _, v := range page.Volumes {
			if v.State != ec2types.VolumeStateDeleting && v.State != ec2types.VolumeStateDeleted {
				found = append(found, v)
			}
		}
	}
	return found, nil
}

// volumes are those of the owner: the storage driver tags each with the
// identity, from the parameters of its StorageClass.
func (s *sweep) volumes(ctx context.Context) error {
	all, err := volumesOf(ctx, s.c, filter("tag:"+v1.TagID, s.in.Owner.ID))
	for _, v := range all {
		s.found(typeVolume, awssdk.ToString(v.VolumeId))
	}
	return err
}

// DeleteVolumes implements contract.AWS.DeleteVolumes. A volume in use is left: its
// machine is still there, and the sweep after this names it.
func (a *Activities) DeleteVolumes(ctx context.Context, in contract.SweepInput) (contract.Outcome, error) {
	if err := needIdentity(in.Owner); err != nil {
		return contract.Outcome{}, err
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return contract.Outcome{}, err
	}
	all, err := volumesOf(ctx, c, filter("tag:"+v1.TagID, in.Owner.ID))
	if err != nil {
		return contract.Outcome{}, err
	}
	var out contract.Outcome
	var deleted []string
	for _, v := range all {
		if v.State != ec2types.VolumeStateAvailable || identityIn(v.Tags, ec2Tag) != in.Owner.ID {
			continue
		}
		id := awssdk.ToString(v.VolumeId)
		going := ledger(c, typeVolume, id)
		going.State = v1.ResourceDeleting
		err := audited.Change(ctx, going, func() error {
			_, err := c.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id})
			return faults.IgnoreGone(faults.FromAWS(err, "EBS volume "+id))
		})
		if err != nil {
			return contract.Outcome{}, err
		}
		out.Resource, deleted = going, append(deleted, id)
	}
	if len(deleted) > 0 {
		out.Note = fmt.Sprintf("deleted %d EBS volumes that the Shoot had left: %s", len(deleted), wait.Missing(deleted, 5))
	}
	return out, nil
}
