package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Whatever is wrong with an object, it can be deleted: names are resolved.
func TestDeletingIsNotJudged(t *testing.T) {
	w := samples(t)
	w.network.DeletionTimestamp, w.cluster.DeletionTimestamp, w.provider.DeletionTimestamp = deleted(), deleted(), deleted()
	w.network.Spec.Region, w.network.Spec.CIDR.VPC = "nowhere", "x"
	w.network.Spec.SystemPool.MachineClass, w.network.Spec.MaintenanceWindow.Begin = "x", "x"
	w.cluster.Spec.Topology.TiKV = v1.TiKVTopology{Replicas: 3, MachineClass: "x", Storage: v1.Storage{Size: "x", Class: "x"}}
	w.pt.Spec = v1.ProviderTypeSpec{}

	_, err := Provider(w.provider, w.pt, nil, options)
	require.NoError(t, err)
	n, err := Network(w.network, w.provider, w.pt, nil, options)
	require.NoError(t, err)
	require.Equal(t, "ic-01234567-789012-data", n.BucketName)
	require.Equal(t, contract.ShootRef{Namespace: "garden-core", Name: ShootName(w.network)}, n.Shoot)
	require.Equal(t, "acme", n.Tenant)
	c, err := Cluster(w.cluster, w.network, w.provider, w.pt, nil, options)
	require.NoError(t, err)
	require.Equal(t, "ic-fedcba98-db", c.RoleName)
	require.Equal(t, "tidb-fedcba98", c.Namespace)
}

func TestIdentityIsRequired(t *testing.T) {
	for name, id := range map[string]string{"none": "", "short": "0123", "upper case": "0123456789ABCDEF"} {
		w := samples(t).ready()
		w.cluster.Annotations[v1.AnnotationID] = id
		_, err := Cluster(w.cluster, w.network, w.provider, w.pt, w.account, options)
		f := faults.As(err)
		require.NotNil(t, f, name)
		require.Equal(t, "NoIdentity", f.Code)
		require.Equal(t, faults.OwnerOperator, f.Owner)
	}
}

func TestClusterWaitsForItsNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		forget func(*v1.NetworkStatus)
		says   string
	}{
		"nothing yet": {func(s *v1.NetworkStatus) { *s = v1.NetworkStatus{} }, "shoot.technicalID, vpc.id, oidc.providerARN, bucket.name, dnsZone.id"},
		"VPC":         {func(s *v1.NetworkStatus) { s.VPC = nil }, "Network n1 has not published vpc.id in its status yet; it must be Ready first"},
		"zone":        {func(s *v1.NetworkStatus) { s.DNSZone = nil }, "dnsZone.id"},
	} {
		t.Run(name, func(t *testing.T) {
			w := samples(t).ready()
			c.forget(&w.network.Status)
			err := planCluster(w, options)
			require.True(t, faults.Is(err, faults.Dependency), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
	w := samples(t).ready()
	w.network.Spec.DNS.Visibility, w.network.Status.DNSZone = v1.DNSNone, nil
	require.NoError(t, planCluster(w, options), "a Network without a zone publishes none")
}

// What a Network has published does not follow its references.
func TestPublishedFactsStay(t *testing.T) {
	w := samples(t).ready()
	w.network.Status.VPC.Zones = []string{"us-west-2b", "us-west-2a"}
	w.network.Status.Shoot = &v1.NetworkShootStatus{Namespace: "garden-old", Name: "n-old"}
	w.network.Status.DNSZone.Name = "n-old.old.example.com"
	w.provider.Spec.Project = ""
	n, err := Network(w.network, w.provider, w.pt, w.account, Options{DefaultProject: "new"})
	require.NoError(t, err)
	require.Equal(t, contract.ShootRef{Namespace: "garden-old", Name: "n-old"}, n.Shoot)
	require.Equal(t, "old", n.Project)
	require.Equal(t, "n-old.old.example.com", n.DNSZoneName)
	require.Equal(t, []string{"us-west-2a", "us-west-2b"}, n.Zones, "in the region's order, without the zone that came later")
}

func TestShootName(t *testing.T) {
	n := &v1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "n1"}}
	require.Equal(t, "n-6c77861", ShootName(n)) // printf infra/n1 | sha256sum
	n.Spec.ShootName = "chosen"
	require.Equal(t, "chosen", ShootName(n))
}

func TestPoolsSpreadReplicasOverThreeZones(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int32
		zones    []v1.ZoneName
		want     map[string]int32
	}{
		"one":              {1, []v1.ZoneName{"us-west-2a", "us-west-2b", "us-west-2c"}, map[string]int32{"us-west-2a": 1}},
		"two":              {2, []v1.ZoneName{"us-west-2a", "us-west-2b", "us-west-2c"}, map[string]int32{"us-west-2a": 1, "us-west-2b": 1}},
		"five":             {5, []v1.ZoneName{"us-west-2a", "us-west-2b", "us-west-2c"}, map[string]int32{"us-west-2a": 2, "us-west-2b": 2, "us-west-2c": 1}},
		"in one zone":      {3, []v1.ZoneName{"us-west-2c"}, map[string]int32{"us-west-2c": 3}},
		"not in the forth": {6, firstZones([]v1.ZoneName{"us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"}), map[string]int32{"us-west-2a": 2, "us-west-2b": 2, "us-west-2c": 2}},
		"no zone":          {3, nil, map[string]int32{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := component{name: "tikv", prefix: "kv", replicas: c.replicas}
			got := map[string]int32{}
			for _, p := range w.pools(contract.ObjectRef{ID: "fedcba9876543210"}, c.zones, "m5.xlarge", "gp3") {
				require.Empty(t, p.Name, "names are allocated where it is known which pools exist")
				require.Len(t, p.Zones, 1)
				require.Equal(t, "tikv", p.Dedicated)
				require.Equal(t, "fedcba9876543210", p.Labels[contract.LabelPoolOwner])
				require.Equal(t, p.Minimum, p.Maximum, "each node holds one Pod")
				got[p.Zones[0]] = p.Minimum
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestUsageOf(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "infra", Name: name, UID: types.UID("uid-" + name)}
	}
	provider := func(name, account string) v1.Provider {
		return v1.Provider{ObjectMeta: meta(name), Spec: v1.ProviderSpec{Account: v1.ReferenceName(account)}}
	}
	network := func(name, provider string) v1.Network {
		return v1.Network{ObjectMeta: meta(name), Spec: v1.NetworkSpec{Provider: v1.ReferenceName(provider)}}
	}
	cluster := func(name, network string, tidb, tikv int32, flash *v1.TiFlashTopology) v1.Cluster {
		return v1.Cluster{ObjectMeta: meta(name), Spec: v1.ClusterSpec{Network: v1.ReferenceName(network), Topology: v1.Topology{
			TiDB: v1.TiDBTopology{Replicas: tidb}, TiKV: v1.TiKVTopology{Replicas: tikv}, TiFlash: flash,
		}}}
	}
	providers := []v1.Provider{provider("p1", "acme"), provider("p2", "acme"), provider("p3", "other")}
	networks := []v1.Network{network("n1", "p1"), network("n2", "p2"), network("n3", "p3"), network("n4", "gone")}
	clusters := []v1.Cluster{
		cluster("c1", "n1", 1, 3, nil), cluster("c2", "n2", 2, 6, &v1.TiFlashTopology{Replicas: 2}), cluster("c3", "n3", 9, 9, nil), cluster("c4", "gone", 9, 9, nil),
	}
	require.Equal(t, Usage{Networks: 2, Clusters: 2, TiDBNodes: 3, TiKVNodes: 9, TiFlashNodes: 2}, UsageOf("acme", providers, networks, clusters, ""))
	require.Equal(t, Usage{Networks: 2, Clusters: 1, TiDBNodes: 1, TiKVNodes: 3}, UsageOf("acme", providers, networks, clusters, "uid-c2"))
	require.Equal(t, Usage{Networks: 1, Clusters: 2, TiDBNodes: 3, TiKVNodes: 9, TiFlashNodes: 2}, UsageOf("acme", providers, networks, clusters, "uid-n1"))
	require.Equal(t, Usage{}, UsageOf("nobody", providers, networks, clusters, ""))
}

func TestQuotaCountsWhatIsUsed(t *testing.T) {
	w := samples(t).ready()
	o := options
	o.Usage = Usage{TiKVNodes: 27}
	require.NoError(t, planCluster(w, o), "30 of 30")
	o.Usage.TiKVNodes = 28
	require.ErrorContains(t, planCluster(w, o), "may have 30 TiKV nodes and has 28 already")
	w.cluster.Status.ObservedGeneration = 1
	require.NoError(t, planCluster(w, o), "a Cluster that exists is left alone")
}
