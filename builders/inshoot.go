package builders

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// AnnotationRoleARN lets Pods of a service account assume an IAM role.
const AnnotationRoleARN = "eks.amazonaws.com/role-arn"

// Namespace is the cluster's namespace in the shoot.
func Namespace(plan contract.ClusterPlan) (*unstructured.Unstructured, error) {
	u, err := object(plan, "v1", "Namespace", plan.Namespace, nil)
	if err == nil {
		u.SetNamespace("")
	}
	return u, err
}

// ResourceQuota bounds what a mistake in the namespace can cost: one load
// balancer, and twice the claims that the plan needs, for failover.
func ResourceQuota(plan contract.ClusterPlan) (*unstructured.Unstructured, error) {
	claims := int32(0)
	for _, c := range plan.Components {
		if c.StorageSize != "" {
			claims += c.Replicas
		}
	}
	return object(plan, "v1", "ResourceQuota", "cluster", map[string]any{"spec": map[string]any{"hard": map[string]any{
		"services.loadbalancers": "1",
		"persistentvolumeclaims": strconv.Itoa(int(2*claims) + 8),
	}}})
}

// ServiceAccounts are those that may assume the cluster's IAM role.
func ServiceAccounts(plan contract.ClusterPlan, roleARN string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, name := range []string{contract.ServiceAccountDatabase, contract.ServiceAccountBackup} {
		u, err := object(plan, "v1", "ServiceAccount", name, nil)
		if err != nil {
			return nil, err
		}
		if roleARN != "" {
			a := u.GetAnnotations()
			a[AnnotationRoleARN] = roleARN
			u.SetAnnotations(a)
		}
		out = append(out, u)
	}
	return out, nil
}

// StorageClasses are the cluster's own, with its KMS key; one for each name
// that the components ask for. New volumes go with their claim; those of the
// database are set to Retain by the operator.
func StorageClasses(plan contract.ClusterPlan, keyARN string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	var seen []string
	for _, c := range plan.Components {
		if c.StorageClass == "" || slices.Contains(seen, c.StorageClass) {
			continue
		}
		seen = append(seen, c.StorageClass)
		parameters, err := volumeParameters(plan, c, keyARN)
		if err != nil {
			return nil, err
		}
		u, err := object(plan, "storage.k8s.io/v1", "StorageClass", c.StorageClass, map[string]any{
			"provisioner":          "ebs.csi.aws.com",
			"parameters":           parameters,
			"reclaimPolicy":        string(corev1.PersistentVolumeReclaimDelete),
			"volumeBindingMode":    "WaitForFirstConsumer",
			"allowVolumeExpansion": true,
		})
		if err != nil {
			return nil, err
		}
		u.SetNamespace("")
		out = append(out, u)
	}
	return out, nil
}

func volumeParameters(plan contract.ClusterPlan, c contract.Component, keyARN string) (map[string]string, error) {
	p := map[string]string{"type": c.DiskType, "tagSpecification_1": v1.TagID + "=" + plan.Ref.ID}
	if c.IOPS > 0 {
		p["iops"] = strconv.Itoa(int(c.IOPS))
	}
	if c.Throughput > 0 && c.DiskType == "gp3" {
		p["throughput"] = strconv.Itoa(int(c.Throughput))
	}
	if plan.EncryptionMode == "None" {
		return p, nil
	}
	if keyARN == "" {
		return nil, invalid(plan.Ref.String(), "storage class %s has no KMS key, but the encryption mode is %s", c.StorageClass, plan.EncryptionMode)
	}
	p["encrypted"], p["kmsKeyId"] = "true", keyARN
	return p, nil
}

// RootPasswordSecret is the copy of the root password in the shoot.
func RootPasswordSecret(plan contract.ClusterPlan, password []byte) (*unstructured.Unstructured, error) {
	return object(plan, "v1", "Secret", RootPasswordName, map[string]any{
		"type": string(corev1.SecretTypeOpaque),
		"data": map[string][]byte{KeyRoot: password},
	})
}

// TidbInitializer sets the root password once.
func TidbInitializer(plan contract.ClusterPlan, config *configservice.ClusterConfig) (*unstructured.Unstructured, error) {
	if config.Images.Initializer == "" {
		return nil, invalid(plan.Ref.String(), "the configuration has no initializer image, which a root password needs")
	}
	return object(plan, pingcapAPIVersion, "TidbInitializer", InitializerName, map[string]any{"spec": map[string]any{
		"image":          config.Images.Initializer,
		"cluster":        map[string]any{"name": plan.Name, "namespace": plan.Namespace},
		"passwordSecret": RootPasswordName,
	}})
}

// Service is where applications reach the database: an NLB, internal unless
// the plan is public.
func Service(plan contract.ClusterPlan) (*unstructured.Unstructured, error) {
	spec := map[string]any{
		"type": string(corev1.ServiceTypeLoadBalancer),
		// Local keeps the client's address; the NLB's health check then leaves
		// out nodes without TiDB.
		"externalTrafficPolicy": string(corev1.ServiceExternalTrafficPolicyLocal),
		"selector": map[string]string{
			"app.kubernetes.io/name": "tidb-cluster", "app.kubernetes.io/managed-by": "tidb-operator",
			"app.kubernetes.io/instance": plan.Name, "app.kubernetes.io/component": "tidb",
		},
		"ports": []map[string]any{{"name": "mysql", "protocol": "TCP", "port": plan.Port, "targetPort": tidbPort}},
	}
	scheme := "internal"
	if plan.Public {
		scheme = "internet-facing"
		if len(plan.PublicCIDRs) > 0 {
			spec["loadBalancerSourceRanges"] = plan.PublicCIDRs
		}
	}
	u, err := object(plan, "v1", "Service", ServiceName, map[string]any{"spec": spec})
	if err != nil {
		return nil, err
	}
	const prefix = "service.beta.kubernetes.io/aws-load-balancer-"
	a := u.GetAnnotations()
	tags := make([]string, 0, len(a))
	for _, k := range []string{v1.TagID, v1.TagKind, v1.TagName, v1.TagEnv} {
		tags = append(tags, k+"="+a[k])
	}
	a[prefix+"type"] = "external" // handled by the AWS Load Balancer Controller, as an NLB
	a[prefix+"nlb-target-type"] = "instance"
	a[prefix+"scheme"] = scheme
	a[prefix+"cross-zone-load-balancing-enabled"] = "true"
	a[prefix+"additional-resource-tags"] = strings.Join(tags, ",")
	u.SetAnnotations(a)
	return u, nil
}

// BackupSchedule takes snapshots of the whole cluster into the Network's
// bucket, and deletes those that are older than the policy keeps them.
func BackupSchedule(plan contract.ClusterPlan, config *configservice.ClusterConfig) (*unstructured.Unstructured, error) {
	cron, err := cronOf(plan)
	if err != nil {
		return nil, err
	}
	if config.Images.Backup == "" {
		return nil, invalid(plan.Ref.String(), "the configuration has no backup image, which a backup schedule needs")
	}
	template := map[string]any{
		"backupMode": "snapshot",
		"toolImage":  config.Images.Backup,
		// The role of the service account, on both sides: no key leaves it.
		"serviceAccount": contract.ServiceAccountBackup,
		"br":             map[string]any{"cluster": plan.Name, "clusterNamespace": plan.Namespace, "sendCredToTikv": false},
		"s3": map[string]any{
			"provider": "aws", "region": plan.Account.Region, "bucket": plan.BucketName, "prefix": plan.BackupPrefix() + "/automatic",
		},
		"cleanPolicy": "Delete",
	}
	spec := map[string]any{"schedule": cron, "backupTemplate": template}
	if plan.BackupRetainDays > 0 {
		spec["maxReservedTime"] = (time.Duration(plan.BackupRetainDays) * 24 * time.Hour).String()
	}
	return object(plan, pingcapAPIVersion, "BackupSchedule", BackupScheduleName, map[string]any{"spec": spec})
}

// cronOf is the schedule in UTC; Weekly is on Sundays.
func cronOf(plan contract.ClusterPlan) (string, error) {
	at, err := time.Parse("15:04", plan.BackupTimeUTC)
	if err != nil {
		return "", invalid(plan.Ref.String(), "backup time %q does not look like 02:00", plan.BackupTimeUTC)
	}
	switch plan.BackupSchedule {
	case "Daily":
		return fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()), nil
	case "Weekly":
		return fmt.Sprintf("%d %d * * 0", at.Minute(), at.Hour()), nil
	}
	return "", invalid(plan.Ref.String(), "backup schedule %q is neither Daily nor Weekly", plan.BackupSchedule)
}

// RetainBackupPatch makes the operator keep a backup's files when its custom
// resource goes.
func RetainBackupPatch() []byte {
	b, _ := json.Marshal(map[string]any{"spec": map[string]any{"cleanPolicy": "Retain"}})
	return b
}
