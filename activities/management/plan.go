package management

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// PlanProviderType validates a ProviderType.
func (a *Activities) PlanProviderType(ctx context.Context, ref contract.ObjectRef) (contract.None, error) {
	pt := &v1.ProviderType{}
	if err := a.load(ctx, ref, pt); err != nil {
		return contract.None{}, err
	}
	return contract.None{}, plan.ProviderType(pt)
}

// PlanProvider validates a Provider with what it refers to, and hashes its
// credentials.
func (a *Activities) PlanProvider(ctx context.Context, ref contract.ObjectRef) (contract.ProviderPlan, error) {
	p := &v1.Provider{}
	if err := a.load(ctx, ref, p); err != nil {
		return contract.ProviderPlan{}, err
	}
	pt, account, err := a.behind(ctx, p)
	if err != nil {
		return contract.ProviderPlan{}, err
	}
	out, err := plan.Provider(p, pt, account, plan.Options{Env: a.Env, DefaultProject: a.DefaultProject})
	if err != nil || p.DeletionTimestamp != nil {
		return out, err
	}
	out.CredentialsHash, err = a.credentialsHash(ctx, p)
	return out, err
}

// PlanNetwork validates a Network and resolves every default.
func (a *Activities) PlanNetwork(ctx context.Context, ref contract.ObjectRef) (contract.NetworkPlan, error) {
	n := &v1.Network{}
	if err := a.load(ctx, ref, n); err != nil {
		return contract.NetworkPlan{}, err
	}
	p, err := refer(ctx, a, n, n.Spec.Provider, &v1.Provider{})
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	pt, account, err := a.behind(ctx, p)
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	options, err := a.options(ctx, n, account)
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	return plan.Network(n, p, pt, account, options)
}

// PlanCluster validates a Cluster and resolves every default, given its
// Network is Ready.
func (a *Activities) PlanCluster(ctx context.Context, ref contract.ObjectRef) (contract.ClusterPlan, error) {
	c := &v1.Cluster{}
	if err := a.load(ctx, ref, c); err != nil {
		return contract.ClusterPlan{}, err
	}
	n, err := refer(ctx, a, c, c.Spec.Network, &v1.Network{})
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	p, err := refer(ctx, a, c, n.Spec.Provider, &v1.Provider{})
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	pt, account, err := a.behind(ctx, p)
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	options, err := a.options(ctx, c, account)
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	return plan.Cluster(c, n, p, pt, account, options)
}

// load reads the object to plan, live, and makes sure of its identity.
func (a *Activities) load(ctx context.Context, ref contract.ObjectRef, into v1.Object) error {
	if _, err := get(ctx, a.Live, ref.Namespace, ref.Name, into); err != nil {
		return err
	}
	if id := into.GetAnnotations()[v1.AnnotationID]; id != ref.ID {
		return faults.New(faults.Gone, "Replaced", ref.String(), "another object has its name now, with identity %q", id)
	}
	return a.refuseCopy(ctx, ref, into)
}

// refuseCopy refuses an object whose identity an older one holds, such as one
// made from a copied manifest. Deleting it is refused too: what carries the
// identity in the cloud belongs to the other.
func (a *Activities) refuseCopy(ctx context.Context, ref contract.ObjectRef, o client.Object) error {
	list, err := newList(ref.Kind)
	if err != nil {
		return err
	}
	if err := a.Client.List(ctx, list); err != nil {
		return faults.FromKubernetes(err, "list of "+ref.Kind)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		other, ok := item.(client.Object)
		if !ok || other.GetUID() == o.GetUID() || other.GetAnnotations()[v1.AnnotationID] != ref.ID || !older(other, o) {
			return nil
		}
		return faults.New(faults.Conflict, "IdentityTaken", ref.String(),
			"%s %s/%s holds the identity %s already; this one looks like a copy of its manifest", ref.Kind, other.GetNamespace(), other.GetName(), ref.ID).
			WithHint(faults.OwnerUser, "remove the finalizer and delete this object, and apply the manifest again without the annotation "+v1.AnnotationID)
	})
}

// older orders two objects that share an identity, the same way in every
// look: by creation, then by uid.
func older(x, y client.Object) bool {
	tx, ty := x.GetCreationTimestamp(), y.GetCreationTimestamp()
	if !tx.Equal(&ty) {
		return tx.Before(&ty)
	}
	return x.GetUID() < y.GetUID()
}

// refer reads what an object refers to. One that is missing is a Dependency:
// it may come.
func refer[T client.Object, N ~string](ctx context.Context, a *Activities, from client.Object, name N, into T) (T, error) {
	_, err := get(ctx, a.Client, from.GetNamespace(), string(name), into)
	if faults.Is(err, faults.Gone) {
		err = faults.New(faults.Dependency, "ReferenceNotFound", describe(into, from.GetNamespace(), string(name)),
			"it does not exist, but %s refers to it", describe(from, from.GetNamespace(), from.GetName())).
			WithHint(faults.OwnerUser, "create it, or correct the reference; the operation goes on by itself")
	}
	return into, err
}

// behind reads what a Provider refers to. The Account may be missing while
// the Provider is being deleted.
func (a *Activities) behind(ctx context.Context, p *v1.Provider) (*v1.ProviderType, *v1.Account, error) {
	pt, err := refer(ctx, a, p, p.Spec.Type, &v1.ProviderType{})
	if err != nil {
		return nil, nil, err
	}
	account, err := refer(ctx, a, p, p.Spec.Account, &v1.Account{})
	if faults.Is(err, faults.Dependency) {
		return pt, nil, nil // plan says it, where it matters
	}
	return pt, account, err
}

// options counts the Account's usage, except for the object itself.
func (a *Activities) options(ctx context.Context, o client.Object, account *v1.Account) (plan.Options, error) {
	out := plan.Options{Env: a.Env, DefaultProject: a.DefaultProject}
	if account == nil {
		return out, nil
	}
	var providers v1.ProviderList
	var networks v1.NetworkList
	var clusters v1.ClusterList
	for _, list := range []client.ObjectList{&providers, &networks, &clusters} {
		if err := a.Client.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil {
			return out, faults.FromKubernetes(err, "usage of account "+account.Name)
		}
	}
	out.Usage = plan.UsageOf(account.Name, providers.Items, networks.Items, clusters.Items, string(o.GetUID()))
	return out, nil
}
