package builders

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

func clusterPlan() contract.ClusterPlan {
	pool := func(dedicated string) (out []contract.MachinePool) {
		for _, zone := range []string{"us-west-2a", "us-west-2b", "us-west-2c"} {
			out = append(out, contract.MachinePool{Name: "p", Dedicated: dedicated, Zones: []string{zone}})
		}
		return out
	}
	return contract.ClusterPlan{
		Ref:     contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "c1", ID: "fedcba9876543210"},
		Account: contract.CloudAccount{Region: "us-west-2"},
		Cloud:   "AWS", Env: "dev", Operator: "V1", Version: "v8.5.2", Namespace: "tidb-fedcba98", Name: "db", Port: 4001,
		Components: []contract.Component{
			{Name: "pd", Replicas: 3, VCPU: 4, Memory: "16Gi", StorageSize: "20Gi", StorageClass: "standard-fedcba98", DiskType: "gp3", IOPS: 3000, Throughput: 125, Pools: pool("pd")},
			{Name: "tikv", Replicas: 3, VCPU: 8, Memory: "32Gi", StorageSize: "500Gi", StorageClass: "standard-fedcba98", DiskType: "gp3", IOPS: 3000, Throughput: 125, Pools: pool("tikv")},
			{Name: "tidb", Replicas: 2, VCPU: 8, Memory: "32Gi", Pools: pool("tidb")},
			{Name: "tiflash", Replicas: 1, VCPU: 8, Memory: "32Gi", StorageSize: "1Ti", StorageClass: "fast-fedcba98", DiskType: "io1", IOPS: 10000, Throughput: 500},
		},
		EncryptionMode: "ServiceManaged", BucketName: "ic-01234567-789012-data", RoleName: "ic-fedcba98-db",
		BackupSchedule: "Daily", BackupTimeUTC: "02:30", BackupRetainDays: 7,
	}
}

func gcpClusterPlan() contract.ClusterPlan {
	p := clusterPlan()
	p.Cloud = "GCP"
	p.Account = contract.CloudAccount{Region: "us-central1", ProjectID: "core-prod"}
	for i := range p.Components {
		switch c := &p.Components[i]; c.DiskType {
		case "gp3":
			c.DiskType = "pd-ssd"
		case "io1":
			c.DiskType = "hyperdisk-balanced"
		}
	}
	return p
}

func backupRef() contract.ObjectRef {
	return contract.ObjectRef{Kind: "Backup", Namespace: "infra", Name: "b1", ID: "0011223344556677"}
}

func restoreRef() contract.ObjectRef {
	return contract.ObjectRef{Kind: "Restore", Namespace: "infra", Name: "r1", ID: "8899aabbccddeeff"}
}

func clusterConfig() *configservice.ClusterConfig {
	return &configservice.ClusterConfig{
		Version: "v8.5.2",
		Images: configservice.Images{
			PD: "registry.example:5000/pingcap/pd:v8.5.2", TiKV: "pingcap/tikv:v8.5.2-1", TiDB: "pingcap/tidb", TiFlash: "pingcap/tiflash:v8.5.2",
			Helper: "busybox:1.36", Initializer: "tnir/mysqlclient:1.4.6", Backup: "pingcap/br:v8.5.2",
		},
		Config: configservice.ComponentConfig{TiKV: "[storage]\nreserve-space = \"5GB\"\n"},
	}
}

func field(t *testing.T, u *unstructured.Unstructured, path ...string) any {
	t.Helper()
	v, ok, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	require.NoError(t, err)
	require.True(t, ok, "%v", path)
	return v
}

func TestTidbCluster(t *testing.T) {
	u, err := TidbCluster(clusterPlan(), clusterConfig())
	require.NoError(t, err)
	requireValid(t, "tidbclusters.pingcap.com.json", u.Object)

	require.Equal(t, "Retain", field(t, u, "spec", "pvReclaimPolicy"))
	require.Equal(t, "registry.example:5000/pingcap/pd", field(t, u, "spec", "pd", "baseImage"))
	require.Equal(t, "v8.5.2-1", field(t, u, "spec", "tikv", "version"))
	require.Equal(t, "500Gi", field(t, u, "spec", "tikv", "requests", "storage"))
	require.Equal(t, "6", field(t, u, "spec", "tikv", "requests", "cpu"))
	require.Equal(t, "24Gi", field(t, u, "spec", "tikv", "requests", "memory"))
	require.Equal(t, contract.ServiceAccountDatabase, field(t, u, "spec", "tikv", "serviceAccount"))
	require.Equal(t, "tikv", field(t, u, "spec", "tikv", "nodeSelector", "dedicated"))
	require.Contains(t, field(t, u, "spec", "tikv", "config"), "reserve-space")
	require.Equal(t, int64(4001), field(t, u, "spec", "tidb", "service", "port"))
	require.Equal(t, contract.ServiceAccountDatabase, field(t, u, "spec", "tiflash", "serviceAccount"))
	claims := field(t, u, "spec", "tiflash", "storageClaims").([]any)
	require.Equal(t, map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "1Ti"}}, "storageClassName": "fast-fedcba98"}, claims[0])
	_, has, _ := unstructured.NestedString(u.Object, "spec", "tiflash", "requests", "storage")
	require.False(t, has)
}

func TestTidbClusterRefusals(t *testing.T) {
	p := clusterPlan()
	p.Components = p.Components[:2]
	_, err := TidbCluster(p, clusterConfig())
	require.ErrorContains(t, err, "at least one replica")

	c := clusterConfig()
	c.Images.TiKV = ""
	_, err = TidbCluster(clusterPlan(), c)
	require.True(t, faults.Is(err, faults.Invalid))
	c.Images.TiKV = "pingcap/tikv@sha256:00"
	_, err = TidbCluster(clusterPlan(), c)
	require.ErrorContains(t, err, "digest")
}

func TestWantedImage(t *testing.T) {
	require.Equal(t, "pingcap/tidb:v8.5.2", WantedImage(clusterPlan(), clusterConfig(), "tidb"), "the version fills in for a tag")
	require.Equal(t, "registry.example:5000/pingcap/pd:v8.5.2", WantedImage(clusterPlan(), clusterConfig(), "pd"))
}

func TestOthersFitTheirSchemas(t *testing.T) {
	u, err := TidbInitializer(clusterPlan(), clusterConfig())
	require.NoError(t, err)
	requireValid(t, "tidbinitializers.pingcap.com.json", u.Object)

	u, err = BackupSchedule(clusterPlan(), clusterConfig())
	require.NoError(t, err)
	requireValid(t, "backupschedules.pingcap.com.json", u.Object)
	require.Equal(t, "30 2 * * *", field(t, u, "spec", "schedule"))
	require.Equal(t, "168h0m0s", field(t, u, "spec", "maxReservedTime"))
	require.Equal(t, "clusters/fedcba9876543210/automatic", field(t, u, "spec", "backupTemplate", "s3", "prefix"))

	p := clusterPlan()
	p.BackupSchedule = "Weekly"
	u, err = BackupSchedule(p, clusterConfig())
	require.NoError(t, err)
	require.Equal(t, "30 2 * * 0", field(t, u, "spec", "schedule"))
	p.BackupTimeUTC = "2 am"
	_, err = BackupSchedule(p, clusterConfig())
	require.True(t, faults.Is(err, faults.Invalid))
}

func TestStorageClasses(t *testing.T) {
	classes, err := StorageClasses(clusterPlan(), "arn:aws:kms:us-west-2:123456789012:key/k")
	require.NoError(t, err)
	require.Len(t, classes, 2, "one for each name")
	require.Empty(t, classes[0].GetNamespace())
	require.Equal(t, "arn:aws:kms:us-west-2:123456789012:key/k", field(t, classes[0], "parameters", "kmsKeyId"))
	require.Equal(t, "125", field(t, classes[0], "parameters", "throughput"))
	_, has, _ := unstructured.NestedString(classes[1].Object, "parameters", "throughput")
	require.False(t, has, "io1 has no throughput")

	_, err = StorageClasses(clusterPlan(), "")
	require.True(t, faults.Is(err, faults.Invalid), "no key, no unencrypted volume by accident")
	p := clusterPlan()
	p.EncryptionMode = "None"
	classes, err = StorageClasses(p, "")
	require.NoError(t, err)
	_, has, _ = unstructured.NestedString(classes[0].Object, "parameters", "encrypted")
	require.False(t, has)
}

func TestService(t *testing.T) {
	u, err := Service(clusterPlan())
	require.NoError(t, err)
	a := u.GetAnnotations()
	require.Equal(t, "internal", a["service.beta.kubernetes.io/aws-load-balancer-scheme"])
	require.Contains(t, a["service.beta.kubernetes.io/aws-load-balancer-additional-resource-tags"], "infra.cloud.pingcap.com/id=fedcba9876543210,")
	port := field(t, u, "spec", "ports").([]any)[0].(map[string]any)
	require.Equal(t, int64(4001), port["port"])
	require.Equal(t, int64(4000), port["targetPort"])

	p := clusterPlan()
	p.Public, p.PublicCIDRs = true, []string{"203.0.113.0/24"}
	u, err = Service(p)
	require.NoError(t, err)
	require.Equal(t, "internet-facing", u.GetAnnotations()["service.beta.kubernetes.io/aws-load-balancer-scheme"])
	require.Equal(t, []any{"203.0.113.0/24"}, field(t, u, "spec", "loadBalancerSourceRanges"))
}

func TestNamespaceObjects(t *testing.T) {
	ns, err := Namespace(clusterPlan())
	require.NoError(t, err)
	require.Equal(t, "tidb-fedcba98", ns.GetName())
	require.Empty(t, ns.GetNamespace())
	sas, err := ServiceAccounts(clusterPlan(), "arn:aws:iam::123456789012:role/ic-fedcba98-db")
	require.NoError(t, err)
	require.Len(t, sas, 2)
	require.Equal(t, "arn:aws:iam::123456789012:role/ic-fedcba98-db", sas[0].GetAnnotations()[AnnotationRoleARN])
	q, err := ResourceQuota(clusterPlan())
	require.NoError(t, err)
	require.Equal(t, "22", field(t, q, "spec", "hard", "persistentvolumeclaims"))
	s, err := RootPasswordSecret(clusterPlan(), []byte("secret"))
	require.NoError(t, err)
	require.Equal(t, "c2VjcmV0", field(t, s, "data", "root"))
}
