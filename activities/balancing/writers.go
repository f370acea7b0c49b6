package balancing

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

// Writers tells who else scales an object.
type Writers interface {
	// Managers returns the managed fields of the object behind a scale.
	Managers(ctx context.Context, scale Scale) ([]metav1.ManagedFieldsEntry, error)
	// Autoscalers returns the HorizontalPodAutoscalers of a namespace.
	Autoscalers(ctx context.Context, namespace string) ([]autoscalingv2.HorizontalPodAutoscaler, error)
}

// LiveWriters asks the API server. It is asked about targets that are contested
// only.
type LiveWriters struct {
	// Client must not read from a cache.
	Client client.Client
}

var _ Writers = LiveWriters{}

// Managers implements Writers.
func (l LiveWriters) Managers(ctx context.Context, scale Scale) ([]metav1.ManagedFieldsEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(scale.Kind)
	err := l.Client.Get(ctx, client.ObjectKey{Namespace: scale.Namespace, Name: scale.Name}, o)
	return o.ManagedFields, err
}

// Autoscalers implements Writers.
func (l LiveWriters) Autoscalers(ctx context.Context, namespace string) ([]autoscalingv2.HorizontalPodAutoscaler, error) {
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	var list autoscalingv2.HorizontalPodAutoscalerList
	err := l.Client.List(ctx, &list, client.InNamespace(namespace))
	return list.Items, err
}

// managerPrefix begins the field managers under which Balancers scale. Each has
// one of its own: two over one target are two writers, too.
const managerPrefix = "infra-balancer/"

// maxManager is the longest name of a field manager.
const maxManager = 128

// managerOf is the field manager under which a Balancer scales.
func managerOf(balancer string) string {
	m := managerPrefix + balancer
	if len(m) <= maxManager {
		return m
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(balancer)) // never fails
	return fmt.Sprintf("%s-%016x", m[:maxManager-17], h.Sum64())
}

// contested tells whether it matters who wrote the scale of a target last.
func contested(t v1alpha1.BalancerTargetStatus, s Scale) bool {
	return t.Contest != nil || t.LastSet != nil && t.LastSet.Replicas != s.Spec.Replicas
}

// writersOf finds who wrote the scales that are not as the Balancer had set
// them. What cannot be found out stays unknown.
func (a *Activities) writersOf(ctx context.Context, b *v1alpha1.Balancer, scales []liveScale) []round.Writer {
	out := make([]round.Writer, len(scales))
	if a.Writers == nil {
		return out
	}
	autoscalers := sync.OnceValues(func() ([]autoscalingv2.HorizontalPodAutoscaler, error) {
		return a.Writers.Autoscalers(ctx, b.Namespace)
	})
	var wg sync.WaitGroup
	for i, t := range b.Spec.Targets {
		if scales[i].err != nil || !contested(statusOfTarget(b, t.Name), scales[i].scale) {
			continue
		}
		wg.Go(func() {
			managers, err := a.Writers.Managers(ctx, scales[i].scale)
			if err == nil {
				out[i] = lastWriter(managers, managerOf(b.Name))
			}
			all, err := autoscalers()
			refer(&out[i], all, err, t.ScaleTargetRef)
		})
	}
	wg.Wait()
	return out
}

// lastWriter is the manager that owns spec.replicas, the last one of several.
func lastWriter(managers []metav1.ManagedFieldsEntry, ours string) (w round.Writer) {
	var last *metav1.ManagedFieldsEntry
	for i, m := range managers {
		if !ownsReplicas(m) {
			continue
		}
		if m.Manager == ours {
			return round.Writer{Ours: true}
		}
		if last == nil || last.Time.Before(m.Time) {
			last = &managers[i]
		}
	}
	if last == nil {
		return w
	}
	if other, is := strings.CutPrefix(last.Manager, managerPrefix); is {
		return round.Writer{Name: "Balancer " + other}
	}
	return round.Writer{Name: fmt.Sprintf("field manager %q", last.Manager)}
}

// ownsReplicas tells whether a manager owns the number of replicas. Kinds may
// have it elsewhere than in spec.replicas; who wrote by their scale owns it.
func ownsReplicas(m metav1.ManagedFieldsEntry) bool {
	if m.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	_, replicas := fields.Spec["f:replicas"]
	return replicas || m.Subresource == "scale" && len(fields.Spec) > 0
}

// refer notes which autoscaler refers to a target.
func refer(w *round.Writer, all []autoscalingv2.HorizontalPodAutoscaler, err error, ref autoscalingv2.CrossVersionObjectReference) {
	if err != nil {
		return
	}
	for _, h := range all {
		to := h.Spec.ScaleTargetRef
		if to.Name == ref.Name && groupKind(to.APIVersion, to.Kind) == groupKind(ref.APIVersion, ref.Kind) && h.DeletionTimestamp == nil {
			w.Autoscaler = h.Name
			return
		}
	}
	w.NoAutoscaler = true
}

// autoscalerList is what was found when a namespace's autoscalers were listed.
type autoscalerList struct {
	all []autoscalingv2.HorizontalPodAutoscaler
	err error
}

// autoscalersOf lists the autoscalers of each namespace in which a target is
// left alone: it goes on when they are gone.
func (a *Activities) autoscalersOf(ctx context.Context, balancers []*v1alpha1.Balancer) map[string]autoscalerList {
	out := map[string]autoscalerList{}
	if a.Writers == nil {
		return out
	}
	for _, b := range balancers {
		if slices.ContainsFunc(b.Status.Targets, leftAlone) {
			out[b.Namespace] = autoscalerList{}
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, liveReads)
	for _, namespace := range slices.Collect(maps.Keys(out)) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			all, err := a.Writers.Autoscalers(ctx, namespace)
			mu.Lock()
			defer mu.Unlock()
			out[namespace] = autoscalerList{all, err}
		})
	}
	wg.Wait()
	return out
}

func leftAlone(t v1alpha1.BalancerTargetStatus) bool { return t.Contest != nil && t.Contest.LeftAlone }

// statusOfTarget is what the status tells of a target.
func statusOfTarget(b *v1alpha1.Balancer, name string) v1alpha1.BalancerTargetStatus {
	for _, t := range b.Status.Targets {
		if t.Name == name {
			return t
		}
	}
	return v1alpha1.BalancerTargetStatus{}
}
