package balancing

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

const (
	// liveReads is how many scales are read at a time.
	liveReads = 16
	// prefetchTimeout bounds all live reads of a plan together: kinds whose API
	// hangs must not keep the others waiting. What is not read by then is the
	// failure of its Balancers.
	prefetchTimeout = 10 * time.Second
)

// targetKey names an object over all namespaces.
type targetKey struct {
	namespace string
	ref       autoscalingv2.CrossVersionObjectReference
}

// targetReader finds the scales of targets: in the cache, else among those that
// were read live.
type targetReader struct {
	cache Cache
	live  map[targetKey]liveScale
}

type liveScale struct {
	scale Scale
	err   error
}

// prefetch reads the scales live that the cache does not have, each once, some
// at a time.
func (r *targetReader) prefetch(ctx context.Context, scales Scales, balancers []*v1alpha1.Balancer) {
	missing := map[targetKey]struct{}{}
	for _, b := range balancers {
		for _, t := range b.Spec.Targets {
			if r.workload(b.Namespace, t.ScaleTargetRef) == nil {
				missing[targetKey{b.Namespace, t.ScaleTargetRef}] = struct{}{}
			}
		}
	}
	keys := make([]targetKey, 0, len(missing))
	for k := range missing {
		keys = append(keys, k)
	}
	read := make([]liveScale, len(keys))
	var wg sync.WaitGroup
	slots := make(chan struct{}, liveReads)
	for i, k := range keys {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			read[i] = readLive(ctx, scales, k)
		})
	}
	wg.Wait()
	r.live = make(map[targetKey]liveScale, len(keys))
	for i, k := range keys {
		r.live[k] = read[i]
	}
}

// readLive reads one scale; a panic becomes the error of this one.
func readLive(ctx context.Context, scales Scales, k targetKey) (l liveScale) {
	defer func() {
		if cause := recover(); cause != nil {
			l.err = fmt.Errorf("this is a defect of the balancer, report it: %v", cause)
		}
	}()
	l.scale, l.err = scales.Get(ctx, k.namespace, k.ref)
	return l
}

// read returns what a round needs to know of a target.
func (r *targetReader) read(namespace string, ref autoscalingv2.CrossVersionObjectReference) round.Target {
	if l, ok := r.live[targetKey{namespace, ref}]; ok {
		return l.target(ref)
	}
	t, ok := r.cached(namespace, ref)
	if !ok { // it went between two looks; the next round finds it missing
		t.ScaleError = fmt.Errorf("%s %s/%s is gone", ref.Kind, namespace, ref.Name)
	}
	return t
}

// target returns what a round needs to know of a scale that was read live.
func (l liveScale) target(ref autoscalingv2.CrossVersionObjectReference) round.Target {
	if l.err != nil {
		return round.Target{ScaleError: l.err}
	}
	kind := l.scale.Kind.GroupKind()
	return round.Target{
		Replicas: l.scale.Spec.Replicas, Selector: l.scale.Status.Selector, Owner: key(kind, ref.Name),
		Ordered: isCached(kind) && kind.Kind == kindStatefulSet, Object: string(l.scale.UID),
	}
}

// cached reads a target of group apps from the cache. What is not there may
// have been created a moment ago.
func (r *targetReader) cached(namespace string, ref autoscalingv2.CrossVersionObjectReference) (round.Target, bool) {
	o := r.workload(namespace, ref)
	if o == nil {
		return round.Target{}, false
	}
	kind := groupKind(ref.APIVersion, ref.Kind)
	t := round.Target{Owner: key(kind, ref.Name), Ordered: kind.Kind == kindStatefulSet, Object: string(o.GetUID())}
	switch w := o.(type) {
	case *appsv1.Deployment:
		t.Replicas, t.Selector = replicasOf(w.Spec.Replicas), selectorOf(w.Spec.Selector)
	case *appsv1.StatefulSet:
		t.Replicas, t.Selector = replicasOf(w.Spec.Replicas), selectorOf(w.Spec.Selector)
	case *appsv1.ReplicaSet:
		t.Replicas, t.Selector = replicasOf(w.Spec.Replicas), selectorOf(w.Spec.Selector)
	}
	return t, true
}

// workload is the cached object of a reference, nil if there is none.
func (r *targetReader) workload(namespace string, ref autoscalingv2.CrossVersionObjectReference) client.Object {
	kind := groupKind(ref.APIVersion, ref.Kind)
	if !isCached(kind) {
		return nil
	}
	return r.cache.Workload(kind.Kind, namespace, ref.Name)
}

// replicasOf is spec.replicas of a workload; the API server fills it with 1.
func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// selectorOf prints a selector as the API server does in status.selector of a
// scale. It has validated it.
func selectorOf(s *metav1.LabelSelector) string {
	if s != nil && len(s.MatchExpressions) == 0 && len(s.MatchLabels) == 1 { // most are so
		for k, v := range s.MatchLabels {
			return k + "=" + v
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return ""
	}
	return selector.String()
}
