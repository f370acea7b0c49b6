package management

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/admission"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// What no webhook has refused, the first step of the operation refuses, in the
// words of the webhook.

// offering is a ProviderType, with a Provider and an Account.
func offering() (*v1.ProviderType, *v1.Provider, *v1.Account) {
	meta := func(name, id string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "infra", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{v1.AnnotationID: id}}
	}
	pt := &v1.ProviderType{ObjectMeta: meta("aws", "aaaa000000000001"), Spec: v1.ProviderTypeSpec{
		Cloud: v1.CloudAWS, Gardener: v1.GardenerSettings{KubernetesVersion: "1.33"},
		Regions:        []v1.Region{{Name: "us-west-2", Zones: []v1.ZoneName{"us-west-2a", "us-west-2b", "us-west-2c"}}},
		MachineClasses: []v1.MachineClass{{Name: "4C16G", VCPU: 4, Memory: "16Gi", MachineType: "m5.xlarge"}},
		StorageClasses: []v1.StorageClass{{Name: "Standard", Type: "gp3"}},
	}}
	p := &v1.Provider{ObjectMeta: meta("core-aws", "aaaa000000000002"), Spec: v1.ProviderSpec{
		Type: "aws", Account: "acme", Project: "core", AWS: &v1.AWSAccount{AccountID: "123456789012"}, DNS: &v1.ProviderDNS{Domain: "example.com"},
		Credentials: v1.ProviderCredentials{SecretRef: &v1.SecretReference{Name: "s"}},
	}}
	return pt, p, &v1.Account{ObjectMeta: meta("acme", "")}
}

func networkNamed(name, shoot, id string, created int64) *v1.Network {
	return &v1.Network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "infra", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.Unix(created, 0), Annotations: map[string]string{v1.AnnotationID: id},
		},
		Spec: v1.NetworkSpec{Provider: "core-aws", Region: "us-west-2", ShootName: shoot},
	}
}

func refOfNetwork(n *v1.Network) contract.ObjectRef {
	return contract.ObjectRef{Kind: v1.KindNetwork, Namespace: n.Namespace, Name: n.Name, ID: n.Annotations[v1.AnnotationID]}
}

func TestPlanNetworkRefusesAShootNameThatAnOlderOneHas(t *testing.T) {
	pt, p, account := offering()
	first, second := networkNamed("n1", "same", "bbbb000000000001", 1), networkNamed("n2", "same", "bbbb000000000002", 2)
	a, _ := activities(t, interceptor.Funcs{}, pt, p, account, first, second)
	_, err := a.PlanNetwork(context.Background(), refOfNetwork(first))
	require.NoError(t, err, "the older one goes on")
	_, err = a.PlanNetwork(context.Background(), refOfNetwork(second))
	require.True(t, faults.Is(err, faults.Invalid), "%v", err)
	require.ErrorContains(t, err, `spec.shootName "same": Network n1 has the Shoot of that name in project core already; set another shootName`)
}

func TestPlanSaysWhichReferenceIsMissing(t *testing.T) {
	pt, p, account := offering()
	n := networkNamed("n1", "x", "bbbb000000000001", 1)
	providerRef := contract.ObjectRef{Kind: v1.KindProvider, Namespace: "infra", Name: p.Name, ID: p.Annotations[v1.AnnotationID]}
	for name, c := range map[string]struct {
		objects []client.Object
		plan    func(*Activities) error
		says    string
	}{
		"Provider of a Network": {[]client.Object{pt, account, n}, func(a *Activities) error {
			_, err := a.PlanNetwork(context.Background(), refOfNetwork(n))
			return err
		}, `spec.provider "core-aws": there is no such Provider in this namespace`},
		"type of a Provider": {[]client.Object{p, account}, func(a *Activities) error {
			_, err := a.PlanProvider(context.Background(), providerRef)
			return err
		}, `spec.type "aws": there is no such ProviderType in this namespace`},
		"Account of a Provider": {[]client.Object{p, pt}, func(a *Activities) error {
			_, err := a.PlanProvider(context.Background(), providerRef)
			return err
		}, `spec.account "acme": there is no such Account in this namespace; create it first, or correct the name`},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := activities(t, interceptor.Funcs{}, c.objects...)
			err := c.plan(a)
			require.True(t, faults.Is(err, faults.Dependency), "it may come: %v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestPlanProviderTypeKeepsWhatIsInUse(t *testing.T) {
	pt, p, account := offering()
	n := networkNamed("n1", "x", "bbbb000000000001", 1)
	n.Spec.Region = "eu-west-1"
	ref := contract.ObjectRef{Kind: v1.KindProviderType, Namespace: "infra", Name: pt.Name, ID: pt.Annotations[v1.AnnotationID]}
	a, _ := activities(t, interceptor.Funcs{}, pt, p, account, n)
	_, err := a.PlanProviderType(context.Background(), ref)
	require.NoError(t, err, "a Network that has nothing yet may be wrong itself")
	n.Status.Shoot = &v1.NetworkShootStatus{Namespace: "garden-core", Name: "x"}
	a, _ = activities(t, interceptor.Funcs{}, pt, p, account, n)
	_, err = a.PlanProviderType(context.Background(), ref)
	require.ErrorContains(t, err, `spec.regions "eu-west-1": the region is used by Network n1 and cannot be removed; put it back`)
}

// Two that are created at once for the last of a quota do not both stall.
func TestPlanGivesTheLastOfAQuotaToTheOlder(t *testing.T) {
	ctx := context.Background()
	pt, p, account := offering()
	account.Spec.Quotas = &v1.AccountQuotas{Networks: new(int32)}
	*account.Spec.Quotas.Networks = 1
	const says = `metadata.name "%s": Account acme may have 1 Networks and has 1 already`
	for name, c := range map[string]struct {
		first, second int64
		begun         func(second *v1.Network)
		refused       string
	}{
		"by creation":            {first: 1, second: 2, refused: "n2"},
		"by name":                {first: 1, second: 1, refused: "n2"},
		"the younger is there":   {1, 2, func(n *v1.Network) { n.Status.ObservedGeneration = 1 }, "n1"},
		"the younger has a part": {1, 2, func(n *v1.Network) { n.Status.Resources = []v1.Resource{{Key: "vpc"}} }, "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := networkNamed("n1", "a", "bbbb000000000001", c.first), networkNamed("n2", "b", "bbbb000000000002", c.second)
			if c.begun != nil {
				c.begun(second)
			}
			a, _ := activities(t, interceptor.Funcs{}, pt, p, account, first, second)
			for _, n := range []*v1.Network{first, second} {
				_, err := a.PlanNetwork(ctx, refOfNetwork(n))
				if n.Name != c.refused && n.Status.ObservedGeneration == 0 && len(n.Status.Resources) == 0 {
					require.NoError(t, err, n.Name)
				}
				if n.Name == c.refused {
					require.ErrorContains(t, err, fmt.Sprintf(says, n.Name))
				}
			}
		})
	}
}

func TestPlanRefusesAnnotationsThatWouldBeIgnored(t *testing.T) {
	ctx := context.Background()
	pt, p, account := offering()
	n := networkNamed("n1", "x", "bbbb000000000001", 1)
	c := cluster("c1", "n1")
	c.UID, c.Annotations = "uid-c1", map[string]string{v1.AnnotationID: "cccc000000000001"}
	ref := func(kind string, o client.Object) contract.ObjectRef {
		return contract.ObjectRef{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), ID: o.GetAnnotations()[v1.AnnotationID]}
	}
	for kind, one := range map[string]struct {
		object v1.Object
		plan   func(*Activities, contract.ObjectRef) error
	}{
		v1.KindProviderType: {pt, func(a *Activities, r contract.ObjectRef) error { _, err := a.PlanProviderType(ctx, r); return err }},
		v1.KindProvider:     {p, func(a *Activities, r contract.ObjectRef) error { _, err := a.PlanProvider(ctx, r); return err }},
		v1.KindNetwork:      {n, func(a *Activities, r contract.ObjectRef) error { _, err := a.PlanNetwork(ctx, r); return err }},
		v1.KindCluster:      {c, func(a *Activities, r contract.ObjectRef) error { _, err := a.PlanCluster(ctx, r); return err }},
	} {
		for key, value := range map[string]string{v1.AnnotationPaused: "yes", v1.AnnotationMigrated: "True", v1.AnnotationForceDelete: "uid-other", v1.AnnotationOperation: "nonsense"} {
			one.object.GetAnnotations()[key] = value
			a, _ := activities(t, interceptor.Funcs{}, pt, p, account, n, c)
			err := one.plan(a, ref(kind, one.object))
			refused := admission.Metadata(nil, one.object, "")
			require.Len(t, refused, 1, "by the webhook")
			if key == v1.AnnotationOperation {
				require.NotContains(t, fmt.Sprint(err), refused[0].String(), "%s: the verb is answered elsewhere", kind)
			} else {
				require.True(t, faults.Is(err, faults.Invalid), "%s %s: %v", kind, key, err)
				require.ErrorContains(t, err, refused[0].String(), "in the same words")
			}
			delete(one.object.GetAnnotations(), key)
		}
	}
}
