package invariants

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
)

// Pool is a worker pool in the spec of a Shoot.
type Pool struct {
	Shoot string // namespace/name
	// Owner is the identity of the Cluster that has it; empty for the Network's.
	Owner string
	Name  string
	// Component and Zones say where it belongs.
	Component, Zones string
	MachineType      string
	Minimum, Maximum int64
	// Retiring says that another has taken its place.
	Retiring bool
}

// PoolsOf lists the worker pools of a Shoot.
func PoolsOf(shoot *unstructured.Unstructured) (out []Pool) {
	workers, _, _ := unstructured.NestedSlice(shoot.Object, "spec", "provider", "workers")
	for _, one := range workers {
		w, _ := one.(map[string]any)
		p := Pool{Shoot: shoot.GetNamespace() + "/" + shoot.GetName()}
		labels, _, _ := unstructured.NestedStringMap(w, "labels")
		zones, _, _ := unstructured.NestedStringSlice(w, "zones")
		taints, _, _ := unstructured.NestedSlice(w, "taints")
		p.Owner, p.Component, p.Zones = labels[contract.LabelPoolOwner], labels[builders.LabelDedicated], strings.Join(zones, ",")
		p.Name, _, _ = unstructured.NestedString(w, "name")
		p.MachineType, _, _ = unstructured.NestedString(w, "machine", "type")
		p.Minimum, _, _ = unstructured.NestedInt64(w, "minimum")
		p.Maximum, _, _ = unstructured.NestedInt64(w, "maximum")
		p.Retiring = slices.ContainsFunc(taints, func(t any) bool {
			taint, _ := t.(map[string]any)
			return taint["key"] == contract.TaintRetiring
		})
		out = append(out, p)
	}
	return out
}

// PoolsTwice lists the places that have more than one pool, those that retire
// left out. Pools without an owner are Gardener's and the Network's business.
func PoolsTwice(pools []Pool) (out []string) {
	have := map[string][]string{}
	for _, p := range pools {
		if p.Owner != "" && !p.Retiring {
			place := fmt.Sprintf("%s in %s of %s", p.Component, p.Zones, p.Owner)
			have[place] = append(have[place], p.Name)
		}
	}
	for place, names := range have {
		if len(names) > 1 {
			slices.Sort(names)
			out = append(out, fmt.Sprintf("worker pool for %s exists %d times: %s", place, len(names), strings.Join(names, ", ")))
		}
	}
	slices.Sort(out)
	return out
}

// poolsAreTrue: a Cluster that is Ready, and was so all through the look with
// the same pools, has each of them in its Shoot. The Shoots were listed between
// the two looks at the objects.
func poolsAreTrue(before, after owners) (bad []string) {
	for id, o := range before.objects {
		cluster, ok := o.(*v1.Cluster)
		now, stays := after.objects[id].(*v1.Cluster)
		if !ok || !stays || !settled(cluster) || !settled(now) || now.Generation != cluster.Generation ||
			now.Status.Operation.ID != cluster.Status.Operation.ID || !slices.Equal(cluster.Status.Pools, now.Status.Pools) {
			continue
		}
		network, _ := before.named(Key{Kind: v1.KindNetwork, Namespace: cluster.Namespace, Name: string(cluster.Spec.Network)}).(*v1.Network)
		if network == nil || network.Status.Shoot == nil {
			continue
		}
		shoot := network.Status.Shoot.Namespace + "/" + network.Status.Shoot.Name
		for _, p := range cluster.Status.Pools {
			if !slices.ContainsFunc(before.pools, func(s Pool) bool { return s.Shoot == shoot && s.Name == p.Name && s.Owner == id }) {
				bad = append(bad, fmt.Sprintf("5: %s is Ready, but its worker pool %s is not in the Shoot %s", KeyOf(cluster), p.Name, shoot))
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// settled says that an object is Ready and that nobody is at work on it: names
// of pools are told before the pools are made.
func settled(o v1.Object) bool {
	op := o.Common().Operation
	return IsReady(o) && o.GetDeletionTimestamp() == nil && op != nil && ended(op.State)
}

// named is an object by its key; nil when there is none.
func (o owners) named(key Key) v1.Object {
	for _, object := range o.objects {
		if KeyOf(object) == key {
			return object
		}
	}
	return nil
}

// goesAndStalls says whether two conditions hold that exclude each other.
func goesAndStalls(conditions []metav1.Condition) bool {
	return apimeta.IsStatusConditionTrue(conditions, v1.ConditionProgressing) && apimeta.IsStatusConditionTrue(conditions, v1.ConditionStalled)
}
