package management

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// lagging has a cache that shows what was, beside an API server that has what is.
func lagging(t *testing.T, was, is []client.Object) *Activities {
	t.Helper()
	cached, _ := activities(t, interceptor.Funcs{}, was...)
	live, _ := activities(t, interceptor.Funcs{}, is...)
	cached.Live = live.Client
	return cached
}

func with(some []client.Object, more ...client.Object) []client.Object {
	return append(append([]client.Object{}, some...), more...)
}

// readyNetwork has published all that a Cluster needs.
func readyNetwork(n *v1.Network) *v1.Network {
	n = n.DeepCopy()
	n.Status.Shoot = &v1.NetworkShootStatus{Namespace: "garden-core", Name: "x", TechnicalID: "shoot--core--x"}
	n.Status.VPC = &v1.NetworkVPCStatus{ID: "vpc-1"}
	n.Status.OIDC = &v1.NetworkOIDCStatus{Issuer: "https://issuer", ProviderARN: "arn:oidc"}
	n.Status.DNSZone = &v1.NetworkDNSZoneStatus{ID: "Z1", Name: "x.example.com"}
	n.Status.Bucket = &v1.NetworkBucketStatus{Name: "b"}
	n.Status.ObservedGeneration = n.Generation
	n.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: n.Generation}}
	return n
}

// Nothing is refused for what a cache does not have yet, or still has.
func TestALaggingCacheRefusesNothing(t *testing.T) {
	ctx := context.Background()
	pt, p, account := offering()
	pt.Spec.MachineClasses[0].Components = []v1.ComponentName{v1.ComponentPD, v1.ComponentTiDB, v1.ComponentTiKV}
	n := networkNamed("n1", "x", "bbbb000000000001", 1)
	c := cluster("c1", "n1")
	c.UID, c.Annotations = "uid-c1", map[string]string{v1.AnnotationID: "cccc000000000001"}
	c.Spec.Version, c.Spec.Topology = "v8.5.2", v1.Topology{
		PD:   v1.PDTopology{Replicas: 3, MachineClass: "4C16G", Storage: v1.Storage{Class: "Standard", Size: "20Gi"}},
		TiDB: v1.TiDBTopology{Replicas: 2, MachineClass: "4C16G"},
		TiKV: v1.TiKVTopology{Replicas: 3, MachineClass: "4C16G", Storage: v1.Storage{Class: "Standard", Size: "100Gi"}},
	}
	of := func(kind string, o client.Object) contract.ObjectRef {
		return contract.ObjectRef{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), ID: o.GetAnnotations()[v1.AnnotationID]}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "s"}, Data: map[string][]byte{"accessKeyID": []byte("AK"), "secretAccessKey": []byte("SK")}}
	noKey := secret.DeepCopy()
	delete(noKey.Data, "secretAccessKey")
	planCluster := func(a *Activities) error { _, err := a.PlanCluster(ctx, of(v1.KindCluster, c)); return err }
	planNetwork := func(a *Activities) error { _, err := a.PlanNetwork(ctx, of(v1.KindNetwork, n)); return err }
	planProvider := func(a *Activities) error { _, err := a.PlanProvider(ctx, of(v1.KindProvider, p)); return err }
	key := func(a *Activities) error { _, _, _, err := Credentials{a}.AWS(ctx, "infra", "core-aws"); return err }
	wait := func(a *Activities) error { _, err := a.WaitNetworkReady(ctx, of(v1.KindCluster, c)); return err }
	all := []client.Object{pt, p, account, secret}
	older := networkNamed("n0", "x", "bbbb000000000000", 0)
	restored := n.DeepCopy()
	restored.UID, restored.CreationTimestamp = "uid-before", metav1.Unix(0, 0)
	going := n.DeepCopy()
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"x"}
	for name, tc := range map[string]struct {
		was, is []client.Object
		do      func(*Activities) error
		class   faults.Class // where it is so indeed
	}{
		"a Network is not Ready":           {with(all, c, n), with(all, c, readyNetwork(n)), planCluster, faults.Dependency},
		"a Network is missing":             {with(all, c), with(all, c, readyNetwork(n)), planCluster, faults.Dependency},
		"a Network is missing to wait for": {with(all, c), with(all, c, readyNetwork(n)), wait, faults.Dependency},
		"a Network goes":                   {with(all, c, going), with(all, c, readyNetwork(n)), wait, faults.Dependency},
		"a Provider is missing":            {with([]client.Object{pt, account}, n), with(all, n), planNetwork, faults.Dependency},
		"a ProviderType is missing":        {with([]client.Object{p, account}, n), with(all, n), planNetwork, faults.Dependency},
		"an Account is missing":            {with([]client.Object{pt, p, secret}), all, planProvider, faults.Dependency},
		"a Secret is missing":              {[]client.Object{pt, p, account}, all, planProvider, faults.Auth},
		"a Secret has no key":              {[]client.Object{pt, p, account, noKey}, all, key, faults.Auth},
		"a Provider is missing for a key":  {[]client.Object{secret}, all, key, faults.Gone},
		"a Shoot's name is taken":          {with(all, older, n), with(all, n), planNetwork, faults.Invalid},
		"an identity is taken":             {with(all, restored), with(all, n), planNetwork, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, tc.do(lagging(t, tc.was, tc.is)))
			if tc.class != "" {
				err := tc.do(lagging(t, tc.was, tc.was))
				require.True(t, faults.Is(err, tc.class), "%v", err)
			}
		})
	}
}
