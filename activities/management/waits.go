package management

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// pollEvery is the fallback for lost events; waits are woken by the cache.
const pollEvery = 15 * time.Second

// WaitNetworkReady waits until the Network of the Cluster ref is Ready.
func (a *Activities) WaitNetworkReady(ctx context.Context, ref contract.ObjectRef) (contract.None, error) {
	// The Network of a Cluster is immutable; without a Cluster the look says so.
	c, err := get(ctx, a.Client, ref.Namespace, ref.Name, &v1.Cluster{})
	if faults.IgnoreGone(err) != nil {
		return contract.None{}, err
	}
	woken, stop := a.Wake.Subscribe(wake.Key{Kind: v1.KindNetwork, Namespace: ref.Namespace, Name: string(c.Spec.Network)},
		wake.Key{Kind: v1.KindCluster, Namespace: ref.Namespace, Name: ref.Name})
	defer stop()
	return contract.None{}, wait.For(ctx, ref, pollEvery, woken, func(ctx context.Context) (bool, string, error) {
		n, err := surely(a, func(refs client.Reader) (*v1.Network, error) {
			c, err := get(ctx, refs, ref.Namespace, ref.Name, &v1.Cluster{})
			if err != nil {
				return nil, err
			}
			n, err := refer(ctx, refs, c, c.Spec.Network, &v1.Network{})
			if err == nil {
				_, _, err = networkReady(n)
			}
			return n, err
		})
		if err != nil {
			return false, "", err
		}
		return networkReady(n)
	})
}

// networkReady decides whether a Cluster may be built in the Network, and says
// what it still does otherwise.
func networkReady(n *v1.Network) (done bool, sentence string, err error) {
	name := describe(n, n.Namespace, n.Name)
	if n.DeletionTimestamp != nil {
		return false, "", faults.New(faults.Dependency, "NetworkDeleting", name, "it is being deleted").
			WithHint(faults.OwnerUser, "delete this Cluster, or create it in another Network")
	}
	if ready(n) {
		return true, "", nil
	}
	sentence = name + " is not ready yet"
	if n.Status.Phase != "" {
		sentence = fmt.Sprintf("%s is %s", name, n.Status.Phase)
	}
	if op := n.Status.Operation; op != nil && op.Step != "" {
		sentence += ", step " + op.Step
		if op.WaitingFor != "" {
			sentence += ": " + op.WaitingFor
		}
	}
	return false, sentence, nil
}

// WaitUnused waits until nothing refers to the object any more. The last look
// is past the cache: what was created a moment ago must count.
func (a *Activities) WaitUnused(ctx context.Context, ref contract.ObjectRef) (contract.None, error) {
	woken, stop := a.Wake.Subscribe(wake.Key{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Users: true})
	defer stop()
	told := []string(nil)
	err := wait.For(ctx, ref, pollEvery, woken, func(ctx context.Context) (bool, string, error) {
		users, err := a.usersOf(ctx, ref)
		if err != nil {
			return false, "", err
		}
		if len(users) > 0 && !slices.Equal(users, told) {
			if err := a.tellUsers(ctx, ref, users); err != nil {
				return false, "", err
			}
			told = users
		}
		return len(users) == 0, "used by " + wait.Missing(users, 10), nil
	})
	if err != nil {
		return contract.None{}, err
	}
	return contract.None{}, a.tellUsers(ctx, ref, nil)
}

// usersOf lists what refers to the object, from the cache, and live when the
// cache knows of nothing.
func (a *Activities) usersOf(ctx context.Context, ref contract.ObjectRef) ([]string, error) {
	users, err := a.cachedUsers(ctx, ref)
	if err != nil || len(users) > 0 {
		return users, err
	}
	return listUsers(ctx, a.Live, ref, v1.KeptBy(ref.Kind))
}

// cachedUsers lists what refers to the object as far as the cache knows.
func (a *Activities) cachedUsers(ctx context.Context, ref contract.ObjectRef) ([]string, error) {
	return listUsers(ctx, a.Client, ref, v1.KeptBy(ref.Kind), byReference(ref)...)
}

// byReference selects in the cache what refers to an object.
func byReference(ref contract.ObjectRef) []client.ListOption {
	return []client.ListOption{client.MatchingFields{indexReference: ref.Kind + "/" + ref.Name}, client.UnsafeDisableDeepCopy}
}

// listUsers lists what of some kinds refers to the object.
func listUsers(ctx context.Context, r client.Reader, ref contract.ObjectRef, kinds []string, options ...client.ListOption) ([]string, error) {
	options = append(slices.Clip(options), client.InNamespace(ref.Namespace))
	var users []string
	for _, kind := range kinds {
		list, err := newList(kind)
		if err != nil {
			return nil, err
		}
		if err := r.List(ctx, list, options...); err != nil {
			return nil, faults.FromKubernetes(err, "list of what refers to "+ref.String())
		}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			if slices.Contains(refersTo(ref.Kind, o), ref.Name) {
				users = append(users, kind+" "+o.(client.Object).GetName())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(users)
	return users, nil
}

// References are the keys of what makes an object a user of others, for the
// Hub of this package's activities.
func References(o client.Object) (keys []wake.Key) {
	k, ours := v1.KindOfObject(o)
	if !ours {
		return nil
	}
	for _, r := range k.References {
		if name := r.Name(o.(v1.Object)); r.Keeps && name != "" {
			keys = append(keys, wake.Key{Kind: r.Kind, Namespace: o.GetNamespace(), Name: name, Users: true})
		}
	}
	return keys
}

// refersTo are the names of objects of a kind that an object keeps from being
// deleted.
func refersTo(kind string, o runtime.Object) []string {
	own, ours := o.(v1.Object)
	if !ours {
		return nil
	}
	k, _ := v1.KindOfObject(own)
	return k.Names(own, kind)
}

// tellUsers keeps the condition DeletionBlocked; without users it is taken
// away. It owns nothing else.
func (a *Activities) tellUsers(ctx context.Context, ref contract.ObjectRef, users []string) error {
	o, err := newObject(ref.Kind)
	if err != nil {
		return err
	}
	if _, err := get(ctx, a.Client, ref.Namespace, ref.Name, o); err != nil {
		return faults.IgnoreGone(err)
	}
	if o.GetAnnotations()[v1.AnnotationID] != ref.ID {
		return nil
	}
	status := map[string]any{}
	if len(users) > 0 {
		status["conditions"] = []metav1.Condition{blocked(o, users)}
	}
	return a.applyStatus(ctx, ref, string(o.GetUID()), ownerUnused, status, nil)
}

// blocked is the condition DeletionBlocked.
func blocked(o v1.Object, users []string) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionDeletionBlocked, Status: metav1.ConditionTrue, Reason: "InUse",
		Message: "waits until these are deleted: " + wait.Missing(users, 10), ObservedGeneration: o.GetGeneration(), LastTransitionTime: metav1.Now()}
	if was := meta.FindStatusCondition(o.Common().Conditions, c.Type); was != nil && was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c
}
