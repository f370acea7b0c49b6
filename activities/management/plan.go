package management

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/admission"
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
	use, err := a.typeUse(ctx, pt)
	if err != nil {
		return contract.None{}, err
	}
	return contract.None{}, plan.Refusal(v1.KindProviderType, pt, slices.Concat(admission.UserAnnotations(pt), plan.CheckProviderType(pt), admission.CheckTypeUse(pt, use)))
}

// typeUse is what of a ProviderType is in use. Networks that have nothing yet
// do not count: what they ask for may be wrong.
func (a *Activities) typeUse(ctx context.Context, pt *v1.ProviderType) (admission.TypeUse, error) {
	providers, networks, clusters, err := a.everything(ctx, pt.Namespace)
	if err != nil {
		return admission.TypeUse{}, err
	}
	of := map[string]bool{}
	for _, p := range providers {
		of[p.Name] = string(p.Spec.Type) == pt.Name
	}
	used := slices.DeleteFunc(slices.Clone(networks), func(n v1.Network) bool {
		return !of[string(n.Spec.Provider)] || n.Status.Shoot == nil
	})
	inside := slices.DeleteFunc(slices.Clone(clusters), func(c v1.Cluster) bool {
		return c.Status.ObservedGeneration == 0 || !slices.ContainsFunc(used, func(n v1.Network) bool { return n.Name == string(c.Spec.Network) })
	})
	return admission.UseOf(nil, pointers(used), pointers(inside)), nil
}

func pointers[T any](list []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// PlanProvider validates a Provider with what it refers to, and hashes its
// credentials.
func (a *Activities) PlanProvider(ctx context.Context, ref contract.ObjectRef) (contract.ProviderPlan, error) {
	p := &v1.Provider{}
	if err := a.load(ctx, ref, p); err != nil {
		return contract.ProviderPlan{}, err
	}
	return surely(a, func(refs client.Reader) (contract.ProviderPlan, error) { return a.planProvider(ctx, refs, p) })
}

func (a *Activities) planProvider(ctx context.Context, refs client.Reader, p *v1.Provider) (contract.ProviderPlan, error) {
	pt, account, err := behind(ctx, refs, p)
	if err != nil {
		return contract.ProviderPlan{}, err
	}
	if account == nil && p.DeletionTimestamp == nil && p.Status.ObservedGeneration == 0 {
		return contract.ProviderPlan{}, missing(p, &v1.Account{}, string(p.Spec.Account))
	}
	out, err := plan.Provider(p, pt, account, plan.Options{Env: a.Env, DefaultProject: a.DefaultProject, Problems: admission.UserAnnotations(p)})
	if err != nil || p.DeletionTimestamp != nil {
		return out, err
	}
	out.CredentialsHash, err = credentialsHash(ctx, refs, p)
	return out, err
}

// PlanNetwork validates a Network and resolves every default.
func (a *Activities) PlanNetwork(ctx context.Context, ref contract.ObjectRef) (contract.NetworkPlan, error) {
	n := &v1.Network{}
	if err := a.load(ctx, ref, n); err != nil {
		return contract.NetworkPlan{}, err
	}
	return surely(a, func(refs client.Reader) (contract.NetworkPlan, error) { return a.planNetwork(ctx, refs, n) })
}

func (a *Activities) planNetwork(ctx context.Context, refs client.Reader, n *v1.Network) (contract.NetworkPlan, error) {
	p, err := refer(ctx, refs, n, n.Spec.Provider, &v1.Provider{})
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	pt, account, err := behind(ctx, refs, p)
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	options, err := a.options(ctx, n, account)
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	if options.ShootHolders, err = a.shootHolders(ctx, refs, n, p, options); err != nil {
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
	return surely(a, func(refs client.Reader) (contract.ClusterPlan, error) { return a.planCluster(ctx, refs, c) })
}

func (a *Activities) planCluster(ctx context.Context, refs client.Reader, c *v1.Cluster) (contract.ClusterPlan, error) {
	n, err := refer(ctx, refs, c, c.Spec.Network, &v1.Network{})
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	p, err := refer(ctx, refs, c, n.Spec.Provider, &v1.Provider{})
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	pt, account, err := behind(ctx, refs, p)
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	options, err := a.options(ctx, c, account)
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	return plan.Cluster(c, n, p, pt, account, options)
}

// surely plans with what the cache has and, before that is refused, once more
// with what the API server has. A cache may lag behind what was written a moment
// ago, such as a reference, or that a Network is Ready. refs reads what the
// object refers to.
func surely[T any](a *Activities, plan func(refs client.Reader) (T, error)) (T, error) {
	out, err := plan(a.Client)
	if f := faults.As(err); f == nil || f.Class.Retryable() {
		return out, err
	}
	return plan(a.Live)
}

// shootHolders are the older Networks that have the name of n's Shoot: of those
// in the cache, the ones that refs still has.
func (a *Activities) shootHolders(ctx context.Context, refs client.Reader, n *v1.Network, p *v1.Provider, o plan.Options) ([]string, error) {
	if n.Status.Shoot != nil {
		return nil, nil // it has its Shoot
	}
	providers, networks, _, err := a.everything(ctx, n.Namespace)
	if err != nil {
		return nil, err
	}
	providerOf := func(other *v1.Network) *v1.Provider {
		at := slices.IndexFunc(providers, func(p v1.Provider) bool { return p.Name == string(other.Spec.Provider) })
		if at < 0 {
			return nil
		}
		return &providers[at]
	}
	holders := admission.ShootHolders(n, p, o, pointers(networks), providerOf, true)
	var still []v1.Network
	for _, name := range holders {
		holder, err := get(ctx, refs, n.Namespace, name, &v1.Network{})
		switch {
		case err == nil:
			still = append(still, *holder)
		case !faults.Is(err, faults.Gone):
			return nil, err
		}
	}
	return admission.ShootHolders(n, p, o, pointers(still), providerOf, true), nil
}

// everything lists Providers, Networks and Clusters from the cache. They are
// the cache's own, not copies, which would cost milliseconds for each thousand:
// to be read only.
func (a *Activities) everything(ctx context.Context, namespace string) ([]v1.Provider, []v1.Network, []v1.Cluster, error) {
	var providers v1.ProviderList
	var networks v1.NetworkList
	var clusters v1.ClusterList
	for _, list := range []client.ObjectList{&providers, &networks, &clusters} {
		if err := a.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, nil, faults.FromKubernetes(err, "list of what is in namespace "+namespace)
		}
	}
	return providers.Items, networks.Items, clusters.Items, nil
}

// load reads the object to plan, live, and makes sure of its identity.
func (a *Activities) load(ctx context.Context, ref contract.ObjectRef, into v1.Object) error {
	if _, err := get(ctx, a.Live, ref.Namespace, ref.Name, into); err != nil {
		if faults.Is(err, faults.Gone) { // of the object itself, not of what it refers to
			return faults.New(faults.Gone, "NotFound", ref.String(), "it does not exist any more")
		}
		return err
	}
	if id := into.GetAnnotations()[v1.AnnotationID]; id != ref.ID {
		return faults.New(faults.Gone, "Replaced", ref.String(), "another object has its name now, with identity %q", id)
	}
	return a.refuseCopy(ctx, ref, into)
}

// refuseCopy refuses an object whose identity an older one holds, such as one
// made from a copied manifest. Deleting it is refused too: what carries the
// identity in the cloud belongs to the other. Whether there is another is asked
// live before: one that was restored had its identity before, in the cache.
func (a *Activities) refuseCopy(ctx context.Context, ref contract.ObjectRef, o client.Object) error {
	list, err := newList(ref.Kind)
	if err != nil {
		return err
	}
	if err := a.Client.List(ctx, list, client.MatchingFields{indexIdentity: ref.ID}, client.UnsafeDisableDeepCopy); err != nil {
		return faults.FromKubernetes(err, "list of "+ref.Kind)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		other, ok := item.(client.Object)
		if !ok || other.GetUID() == o.GetUID() || other.GetAnnotations()[v1.AnnotationID] != ref.ID || !older(other, o) {
			return nil
		}
		now, err := newObject(ref.Kind)
		if err != nil {
			return err
		}
		_, err = get(ctx, a.Live, other.GetNamespace(), other.GetName(), now)
		if faults.Is(err, faults.Gone) || err == nil && (now.GetUID() != other.GetUID() || now.GetAnnotations()[v1.AnnotationID] != ref.ID) {
			return nil
		}
		if err != nil {
			return err
		}
		return faults.New(faults.Conflict, "IdentityTaken", ref.String(),
			"%s", plan.IdentityTaken(ref.Kind+" "+other.GetNamespace()+"/"+other.GetName(), ref.ID)).
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
func refer[T client.Object, N ~string](ctx context.Context, refs client.Reader, from client.Object, name N, into T) (T, error) {
	_, err := get(ctx, refs, from.GetNamespace(), string(name), into)
	if faults.Is(err, faults.Gone) {
		err = missing(from, into, string(name))
	}
	return into, err
}

// missing is the fault of a reference to nothing, in the words of the webhook
// that would have refused it.
func missing(from, to client.Object, name string) error {
	resource := describe(to, from.GetNamespace(), name)
	text := fmt.Sprintf("it does not exist, but %s refers to it", describe(from, from.GetNamespace(), from.GetName()))
	if path, kind := referenceOf(from, to); path != "" {
		text = plan.Missing(path, kind, name).String()
	}
	return faults.New(faults.Dependency, "ReferenceNotFound", resource, "%s", text).
		WithHint(faults.OwnerUser, "create it, or correct the reference; the operation goes on by itself")
}

// referenceOf is the field by which one object refers to another, and the
// latter's kind; "" when something is in between.
func referenceOf(from, to client.Object) (path, kind string) {
	k, _ := v1.KindOfObject(from)
	other, _ := v1.KindOfObject(to)
	for _, r := range k.References {
		if r.Kind == other.Name {
			return r.Field, r.Kind
		}
	}
	return "", ""
}

// behind reads what a Provider refers to. The Account may be missing while
// the Provider is being deleted.
func behind(ctx context.Context, refs client.Reader, p *v1.Provider) (*v1.ProviderType, *v1.Account, error) {
	pt, err := refer(ctx, refs, p, p.Spec.Type, &v1.ProviderType{})
	if err != nil {
		return nil, nil, err
	}
	account, err := refer(ctx, refs, p, p.Spec.Account, &v1.Account{})
	if faults.Is(err, faults.Dependency) {
		return pt, nil, nil // plan says it, where it matters
	}
	return pt, account, err
}

// options asks the rules of the object's annotations, and counts the Account's
// usage as the object finds it; see plan.UsageBefore.
func (a *Activities) options(ctx context.Context, o v1.Object, account *v1.Account) (plan.Options, error) {
	out := plan.Options{Env: a.Env, DefaultProject: a.DefaultProject, Problems: admission.UserAnnotations(o)}
	if account == nil {
		return out, nil
	}
	providers, networks, clusters, err := a.everything(ctx, o.GetNamespace())
	if err != nil {
		return out, err
	}
	out.Usage = plan.UsageBefore(o, account.Name, providers, networks, clusters)
	return out, nil
}
