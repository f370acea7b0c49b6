package builders_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/builders/shootrules"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// cluster is a Cluster in the world's Network, which it makes Ready.
func (w world) cluster(r *rand.Rand) *v1.Cluster {
	w.pt.Spec.MachineClasses = append(w.pt.Spec.MachineClasses, v1.MachineClass{
		Name: "8C32G", VCPU: 8, Memory: "32Gi", MachineType: "m5.2xlarge",
		Components: []v1.ComponentName{v1.ComponentPD, v1.ComponentTiKV, v1.ComponentTiDB, v1.ComponentTiFlash},
	})
	w.network.Status = v1.NetworkStatus{
		Shoot: &v1.NetworkShootStatus{TechnicalID: "shoot--core--n1"}, VPC: &v1.NetworkVPCStatus{ID: "vpc-1"},
		OIDC: &v1.NetworkOIDCStatus{ProviderARN: "arn:aws:iam::123456789012:oidc-provider/issuer"}, Bucket: &v1.NetworkBucketStatus{Name: "bucket"},
		DNSZone: &v1.NetworkDNSZoneStatus{ID: "Z1", Name: "n1.clusters.example.com"},
	}
	class := func() v1.ClassName { return pick(r, w.pt.Spec.StorageClasses...).Name }
	size := func() v1.StorageSize { return pick[v1.StorageSize](r, "20Gi", "500Gi", "1Ti", "1536Gi") }
	c := &v1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "infra", Name: "c1", Annotations: map[string]string{v1.AnnotationID: fmt.Sprintf("%016x", r.Uint64())},
	}}
	c.Spec = v1.ClusterSpec{
		Network: "n1", Version: "v8.5.2", Operator: pick(r, "V1", "V2"), Port: 4000 + int32(r.IntN(100)),
		Topology: v1.Topology{
			PD:   v1.PDTopology{Replicas: pick[int32](r, 1, 3, 5), MachineClass: "8C32G", Storage: v1.Storage{Size: "20Gi", Class: class()}},
			TiKV: v1.TiKVTopology{Replicas: 3 * int32(1+r.IntN(4)), MachineClass: "8C32G", Storage: v1.Storage{Size: size(), Class: class()}},
			TiDB: v1.TiDBTopology{Replicas: 1 + int32(r.IntN(5)), MachineClass: "8C32G"},
		},
		Encryption:   v1.Encryption{Mode: pick(r, v1.EncryptionNone, v1.EncryptionServiceManaged)},
		BackupPolicy: v1.BackupPolicy{Schedule: pick(r, v1.BackupDaily, v1.BackupWeekly), RetentionDays: int32(r.IntN(30))},
	}
	if pick(r, true, false) {
		c.Spec.Topology.TiFlash = &v1.TiFlashTopology{Replicas: int32(r.IntN(3)), MachineClass: "8C32G", Storage: v1.Storage{Size: size(), Class: class()}}
	}
	return c
}

// manifests are all that has a schema, of a cluster for either operator.
func manifests(t *testing.T, p contract.ClusterPlan) map[string][]*unstructured.Unstructured {
	t.Helper()
	config := &configservice.ClusterConfig{Images: configservice.Images{
		PD: "pingcap/pd:v8.5.2", TiKV: "pingcap/tikv:v8.5.2", TiDB: "pingcap/tidb:v8.5.2", TiFlash: "pingcap/tiflash:v8.5.2",
		Initializer: "mysqlclient:1", Backup: "pingcap/br:v8.5.2",
	}}
	out := map[string][]*unstructured.Unstructured{}
	add := func(schema string, u *unstructured.Unstructured, err error) {
		require.NoError(t, err)
		out[schema] = append(out[schema], u)
	}
	group := ".pingcap.com.json"
	if p.Operator == builders.OperatorV2 {
		group = ".br.pingcap.com.json"
		u, err := builders.Cluster(p, false)
		add("clusters.core.pingcap.com.json", u, err)
		groups, err := builders.Groups(p, config)
		require.NoError(t, err)
		for _, u := range groups {
			add(u.GetName()+"groups.core.pingcap.com.json", u, nil)
		}
	} else {
		u, err := builders.TidbCluster(p, config)
		add("tidbclusters.pingcap.com.json", u, err)
		u, err = builders.TidbInitializer(p, config)
		add("tidbinitializers.pingcap.com.json", u, err)
	}
	owner := contract.ObjectRef{Kind: "Backup", Namespace: "infra", Name: "b1", ID: "0011223344556677"}
	u, err := builders.BackupSchedule(p, config)
	add("backupschedules"+group, u, err)
	u, err = builders.Backup(p, config, builders.BackupJob{Owner: owner, Name: "b-00112233", Prefix: p.BackupPrefix() + "/b1", KeyARN: "arn"})
	add("backups"+group, u, err)
	u, err = builders.LogBackup(p, config)
	add("backups"+group, u, err)
	u, err = builders.Restore(p, config, builders.RestoreJob{Owner: owner, Name: "r-00112233", Source: builders.BackupLocation{Bucket: "b", Prefix: "p"}})
	add("restores"+group, u, err)
	return out
}

// Whatever Cluster the plan accepts, the operators' schemas admit its
// manifests, and Gardener takes its worker pools.
func TestAnyValidClusterFitsItsSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	accepted, byOperator := 0, map[string]int{}
	for range *worlds / 5 {
		w := random(r, v1.CloudAWS)
		network, err := w.plan()
		if err != nil {
			continue
		}
		p, err := plan.Cluster(w.cluster(r), w.network, w.provider, w.pt, nil, plan.Options{})
		if err != nil {
			continue
		}
		accepted++
		byOperator[p.Operator]++
		for schema, objects := range manifests(t, p) {
			for _, u := range objects {
				builders.RequireValid(t, schema, u.Object)
			}
		}
		shoot, err := builders.Shoot(network)
		require.NoError(t, err)
		larger := shoot.DeepCopy()
		for _, c := range p.Components {
			for i, shape := range c.Pools {
				shape.Name = fmt.Sprintf("%s-%05d", c.PoolGroup, i) // as long as they are
				pool, err := builders.WorkerPoolOn(shoot.Spec.Provider.Type, shape)
				require.NoError(t, err)
				larger.Spec.Provider.Workers = append(larger.Spec.Provider.Workers, *pool)
			}
		}
		require.Greater(t, len(larger.Spec.Provider.Workers), 3)
		require.Empty(t, shootrules.CheckUpdate(shoot, larger, network.Project))
	}
	t.Logf("%d of %d worlds have a valid Cluster: %v", accepted, *worlds/5, byOperator)
	require.Greater(t, accepted, *worlds/100)
	require.Len(t, byOperator, 2)
}
