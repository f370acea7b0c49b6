package balancing

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidbcloud/infra-orchestrator/balancing"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

// maxOwners bounds the way up from a pod; a Deployment's takes two.
const maxOwners = 4

// podIndex finds the pods of a scalable object by owner.
//
// Pods of Deployments, StatefulSets and ReplicaSets always have a controller,
// and the way up is in the cache: what is not found under such an object is
// not its pod, whatever its labels are. Of other kinds we do not know how they
// own pods; labels then decide among the pods that nobody else owns.
type podIndex struct {
	// owned are pods by the key of each owner on the way up that is a target.
	owned map[string][]round.Pod
	// early are pods whose way up is not in the cache yet, or no longer.
	early []loosePod
	// foreign are pods without a controller, or under one of another kind.
	foreign []loosePod
}

// loosePod is a pod of which the way up is known in part.
type loosePod struct {
	round.Pod
	way way
}

// indexPods indexes the pods of a namespace for the targets with these keys;
// with selectors, only the pods that one of them matches. Other pods are nobody's
// replicas anyway; leaving them out makes it cheap to look for one Balancer in a
// namespace with many pods.
func indexPods(c Cache, namespace string, targets []string, selectors ...labels.Selector) *podIndex {
	x := &podIndex{owned: make(map[string][]round.Pod, len(targets))}
	for _, key := range targets {
		x.owned[key] = nil
	}
	ways := map[string]way{} // of ReplicaSets and StatefulSets: many pods share one
	for _, p := range c.Pods(namespace) {
		if len(selectors) == 0 || slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(p.Labels)) }) {
			x.add(c, p, ways)
		}
	}
	return x
}

// way is the way up from a controller: its own key and those of its owners.
type way struct {
	keys []string
	// known tells that the way ends at an object without a controller, early
	// that it ends at one that is not in the cache.
	known, early bool
	// end is the kind at which the way ends because it is not cached.
	end          schema.GroupKind
	firstOrdinal int32 // -1: not a StatefulSet
}

func (x *podIndex) add(c Cache, p *corev1.Pod, ways map[string]way) {
	pod := podOf(p)
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		x.foreign = append(x.foreign, loosePod{Pod: pod})
		return
	}
	w, seen := ways[string(owner.UID)]
	if !seen {
		w = climb(c, p.Namespace, owner)
		ways[string(owner.UID)] = w
	}
	if w.firstOrdinal >= 0 {
		pod.Ordinal = ordinal(p.Name, w.firstOrdinal)
	}
	for _, key := range w.keys {
		if pods, isTarget := x.owned[key]; isTarget {
			pod.Owner = key
			x.owned[key] = append(pods, pod)
		}
	}
	pod.Owner = ""
	switch {
	case w.early:
		x.early = append(x.early, loosePod{pod, w})
	case !w.known:
		x.foreign = append(x.foreign, loosePod{pod, w})
	}
}

func climb(c Cache, namespace string, owner *metav1.OwnerReference) way {
	w := way{firstOrdinal: -1}
	for step := 0; owner != nil && step < maxOwners; step++ {
		kind := groupKind(owner.APIVersion, owner.Kind)
		if !isCached(kind) {
			w.keys, w.end = append(w.keys, key(kind, owner.Name)), kind
			return w
		}
		o := c.Workload(kind.Kind, namespace, owner.Name)
		if o == nil || o.GetUID() != owner.UID {
			w.early = true
			return w
		}
		w.keys = append(w.keys, key(kind, owner.Name))
		if set, ok := o.(*appsv1.StatefulSet); ok && step == 0 {
			w.firstOrdinal = 0
			if set.Spec.Ordinals != nil {
				w.firstOrdinal = set.Spec.Ordinals.Start
			}
		}
		owner = metav1.GetControllerOfNoCopy(o)
	}
	w.known = owner == nil
	return w
}

// of returns the pods that may belong to the targets with these keys.
func (x *podIndex) of(kinds []schema.GroupKind, keys []string) []round.Pod {
	n, allCached := len(x.early), true
	for i, k := range keys {
		n += len(x.owned[k])
		allCached = allCached && isCached(kinds[i])
	}
	pods := make([]round.Pod, 0, n)
	for _, k := range keys {
		pods = append(pods, x.owned[k]...)
	}
	loose := x.early
	if !allCached {
		loose = slices.Concat(x.early, x.foreign)
	}
	for _, p := range loose {
		// By now it is clear whose pod it is if its way passes a target, or ends
		// at another object of a target's kind.
		if !slices.ContainsFunc(p.way.keys, func(k string) bool { return slices.Contains(keys, k) }) && !slices.Contains(kinds, p.way.end) {
			pods = append(pods, p.Pod)
		}
	}
	return pods
}

func isCached(kind schema.GroupKind) bool {
	if kind.Group != appsv1.GroupName {
		return false
	}
	switch kind.Kind {
	case kindDeployment, kindStatefulSet, kindReplicaSet:
		return true
	}
	return false
}

func groupKind(apiVersion, kind string) schema.GroupKind {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	return schema.GroupKind{Group: group, Kind: kind}
}

// key identifies a scalable object in its namespace, in the way of kubectl:
// "Deployment.apps/web".
func key(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// keyOf is the key of a target.
func keyOf(ref autoscalingv2.CrossVersionObjectReference) string {
	return key(groupKind(ref.APIVersion, ref.Kind), ref.Name)
}

func podOf(p *corev1.Pod) round.Pod {
	out := round.Pod{Labels: p.Labels, Pod: balancing.Pod{
		Phase: balancing.PodPhase(p.Status.Phase), Created: p.CreationTimestamp.Time,
		Terminating: p.DeletionTimestamp != nil, Ordinal: -1,
	}}
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodReady {
			continue
		}
		out.Ready = c.Status == corev1.ConditionTrue
		if !out.Ready {
			out.NotReadySince = c.LastTransitionTime.Time
		}
	}
	return out
}

// ordinal is the number at the end of the name of a StatefulSet's pod, counted
// from 0 whatever the first one is.
func ordinal(name string, first int32) int32 {
	n, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 32)
	if err != nil || int32(n) < first {
		return -1
	}
	return int32(n) - first
}
