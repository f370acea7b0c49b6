package builders

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

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

// StorageClasses are the cluster's own, with its KMS key (on AWS an ARN, on GCP
// a resource name); one for each name that the components ask for. New volumes
// go with their claim; those of the database are set to Retain by the operator.
func StorageClasses(plan contract.ClusterPlan, key string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	var seen []string
	for _, c := range plan.Components {
		if c.StorageClass == "" || slices.Contains(seen, c.StorageClass) {
			continue
		}
		seen = append(seen, c.StorageClass)
		provisioner, parameters, err := volumeDriver(plan, c, key)
		if err != nil {
			return nil, err
		}
		u, err := object(plan, "storage.k8s.io/v1", "StorageClass", c.StorageClass, map[string]any{
			"provisioner":          provisioner,
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

// volumeDriver is the cloud's provisioner with its parameters.
func volumeDriver(plan contract.ClusterPlan, c contract.Component, key string) (provisioner string, parameters map[string]string, err error) {
	if plan.EncryptionMode != "None" && key == "" {
		return "", nil, invalid(plan.Ref.String(), "storage class %s has no KMS key, but the encryption mode is %s", c.StorageClass, plan.EncryptionMode)
	}
	if plan.EncryptionMode == "None" {
		key = ""
	}
	switch providerType(plan.Cloud) {
	case ProviderAWS:
		return "ebs.csi.aws.com", ebsParameters(plan, c, key), nil
	case ProviderGCP:
		return "pd.csi.storage.gke.io", pdParameters(c, key), nil
	}
	return "", nil, invalid(plan.Ref.String(), "there are no volumes on cloud %q; use AWS or GCP", plan.Cloud)
}

func ebsParameters(plan contract.ClusterPlan, c contract.Component, keyARN string) map[string]string {
	p := map[string]string{"type": c.DiskType, "tagSpecification_1": v1.TagID + "=" + plan.Ref.ID}
	if c.IOPS > 0 {
		p["iops"] = strconv.Itoa(int(c.IOPS))
	}
	if c.Throughput > 0 && c.DiskType == "gp3" {
		p["throughput"] = strconv.Itoa(int(c.Throughput))
	}
	if keyARN != "" {
		p["encrypted"], p["kmsKeyId"] = "true", keyARN
	}
	return p
}

// pdParameters provision performance for Hyperdisks only: that of a persistent
// disk follows its size.
func pdParameters(c contract.Component, key string) map[string]string {
	p := map[string]string{"type": c.DiskType}
	if strings.HasPrefix(c.DiskType, "hyperdisk-") {
		if c.IOPS > 0 {
			p["provisioned-iops-on-create"] = strconv.Itoa(int(c.IOPS))
		}
		if c.Throughput > 0 {
			p["provisioned-throughput-on-create"] = strconv.Itoa(int(c.Throughput)) + "Mi"
		}
	}
	if key != "" {
		p["disk-encryption-kms-key"] = key
	}
	return p
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

// Service is where applications reach the database: an NLB on AWS, a
// passthrough load balancer on GCP; internal unless the plan is public.
func Service(plan contract.ClusterPlan) (*unstructured.Unstructured, error) {
	spec := map[string]any{
		"type": string(corev1.ServiceTypeLoadBalancer),
		// Local keeps the client's address; the load balancer's health check
		// then leaves out nodes without TiDB.
		"externalTrafficPolicy": string(corev1.ServiceExternalTrafficPolicyLocal),
		"selector":              tidbSelector(plan),
		"ports":                 []map[string]any{{"name": "mysql", "protocol": "TCP", "port": plan.Port, "targetPort": tidbPort}},
	}
	if plan.Public && len(plan.PublicCIDRs) > 0 {
		spec["loadBalancerSourceRanges"] = plan.PublicCIDRs
	}
	u, err := object(plan, "v1", "Service", ServiceName, map[string]any{"spec": spec})
	if err != nil {
		return nil, err
	}
	a := u.GetAnnotations()
	if providerType(plan.Cloud) == ProviderGCP {
		if !plan.Public {
			a["networking.gke.io/load-balancer-type"] = "Internal"
		}
	} else {
		annotateNLB(a, plan.Public)
	}
	u.SetAnnotations(a)
	return u, nil
}

// annotateNLB says what the AWS Load Balancer Controller is to make.
func annotateNLB(a map[string]string, public bool) {
	const prefix = "service.beta.kubernetes.io/aws-load-balancer-"
	tags := make([]string, 0, len(a))
	for _, k := range []string{v1.TagID, v1.TagKind, v1.TagName, v1.TagEnv} {
		tags = append(tags, k+"="+a[k])
	}
	scheme := "internal"
	if public {
		scheme = "internet-facing"
	}
	a[prefix+"type"] = "external" // handled by the AWS Load Balancer Controller, as an NLB
	a[prefix+"nlb-target-type"] = "instance"
	a[prefix+"scheme"] = scheme
	a[prefix+"cross-zone-load-balancing-enabled"] = "true"
	a[prefix+"additional-resource-tags"] = strings.Join(tags, ",")
}

// tidbSelector finds the cluster's TiDB Pods, which each operator labels in
// its own way.
func tidbSelector(plan contract.ClusterPlan) map[string]string {
	if plan.Operator == OperatorV2 {
		return map[string]string{
			"pingcap.com/managed-by": "tidb-operator", "pingcap.com/cluster": plan.Name, "pingcap.com/component": "tidb",
		}
	}
	return map[string]string{
		"app.kubernetes.io/name": "tidb-cluster", "app.kubernetes.io/managed-by": "tidb-operator",
		"app.kubernetes.io/instance": plan.Name, "app.kubernetes.io/component": "tidb",
	}
}

// RetainBackupPatch makes the operator keep a backup's files when its custom
// resource goes.
func RetainBackupPatch() []byte {
	b, _ := json.Marshal(map[string]any{"spec": map[string]any{"cleanPolicy": "Retain"}})
	return b
}
