package balancing

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

// scaled is somebody else who scales web-b, and a sweep a little later: what it
// plans from the cache is done live.
func (w *world) scaled(t *testing.T, by string, n int32) {
	t.Helper()
	setReplicas(w, "web-b", n)
	w.scales.managers["default/web-b"] = by
	w.sweep(t)
}

func (w *world) sweep(t *testing.T) {
	t.Helper()
	w.at = w.at.Add(15 * time.Second)
	w.sync(t)
	plan := w.planned(t)
	for _, c := range plan.Changes {
		_, err := w.EnsureBalanced(t.Context(), c.BalancerRef)
		require.NoError(t, err)
	}
	if len(plan.Reports) > 0 {
		_, err := w.ApplyBalancerStatuses(t.Context(), contract.BalancerStatusesInput{Balancers: plan.Reports})
		require.NoError(t, err)
	}
	for name, s := range w.scales.scales { // the cache catches up
		w.cache.workloads["Deployment/"+name].(*appsv1.Deployment).Spec.Replicas = &s.Spec.Replicas
	}
	w.sync(t)
}

func condition(b *v1alpha1.Balancer, name string) metav1.Condition {
	if c := meta.FindStatusCondition(b.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func autoscaler(name, target string) autoscalingv2.HorizontalPodAutoscaler {
	h := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named("default", name)}
	h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	return h
}

// An autoscaler with a minimum of 12 on a target that should have 7: it is set
// back three times, then left alone for as long as the autoscaler is there.
func TestAutoscalerOnATarget(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	w.sweep(t)
	w.scales.writes, w.scales.scalers = nil, []autoscalingv2.HorizontalPodAutoscaler{autoscaler("other", "web-x"), autoscaler("web", "web-b")}
	w.told()
	for range 10 {
		w.scaled(t, "kube-controller-manager", 12)
	}
	require.Equal(t, []string{"web-b 7", "web-b 7", "web-b 7"}, w.scales.writes)
	b := w.balancer(t)
	c := condition(b, "Balancing")
	require.Equal(t, "TargetContested", c.Reason)
	require.Contains(t, c.Message, `by field manager "kube-controller-manager", and HorizontalPodAutoscaler web refers to it, 4 times in a row`)
	require.Equal(t, "LeftAlone", condition(b, "Contested").Reason)
	told := strings.Join(w.told(), "\n")
	require.Equal(t, 4, strings.Count(told, "Warning TargetContested target b was scaled from 7 to 12 by"), told)
	require.NotContains(t, told, "UnableToBalance", "an object may have so many Events only")
	require.Equal(t, 1, w.planned(t).Failing)

	// The others go on, and it is looked for whether the autoscaler is there.
	w.at = w.at.Add(24 * time.Hour)
	setSpec(t, w, 20)
	w.sweep(t)
	require.Equal(t, "web-a 6", w.scales.writes[3])
	require.Len(t, w.scales.writes, 4)
	w.scales.scalers, w.scales.unlisted = nil, errors.New("timeout")
	w.sweep(t)
	require.Len(t, w.scales.writes, 4, "it is not known whether it is gone")
	w.scales.unlisted = nil
	w.sweep(t)
	require.Equal(t, "web-b 14", w.scales.writes[4])
	b = w.balancer(t)
	require.EqualValues(t, "True", condition(b, "Balancing").Status)
	require.Equal(t, "Settled", condition(b, "Contested").Reason)
	require.Contains(t, w.told(), "Normal TargetContested target b is balanced again")
	lists := w.scales.lists
	w.sweep(t)
	require.Equal(t, lists, w.scales.lists, "no autoscaler matters any more")
}

// A tool that writes its manifest again and again is answered less and less
// often, by any process: the memory is in the status.
func TestPausesGrow(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	w.sweep(t)
	w.scales.writes = nil
	var at []time.Duration
	for range 8 * 60 * 4 {
		before := len(w.scales.writes)
		w.scaled(t, "argocd-controller", 12)
		if len(w.scales.writes) > before {
			at = append(at, w.at.Sub(start).Round(time.Minute))
		}
	}
	require.Len(t, at, 10, "in eight hours: %v", at)
	require.Contains(t, condition(w.balancer(t), "Contested").Message, `field manager "argocd-controller"`)
	require.Equal(t, round.LongestPause, w.balancer(t).Status.Targets[1].Contest.Until.Sub(w.balancer(t).Status.Targets[1].Contest.LastTime.Time))
	// It has stopped: the next try stands, and an hour later it is over.
	for range 6 * 60 * 4 {
		w.sweep(t)
	}
	require.Equal(t, "Settled", condition(w.balancer(t), "Contested").Reason)
	require.EqualValues(t, "True", condition(w.balancer(t), "Balancing").Status)
}

// Its own changes, a change by hand now and then, and a Deployment that is made
// anew are no contest.
func TestNoContest(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	w.sweep(t)
	for i := range 6 {
		setSpec(t, w, int32(10+i))
		w.sweep(t)
	}
	require.Empty(t, condition(w.balancer(t), "Contested").Reason)
	for i := range 6 {
		w.at = w.at.Add(2 * time.Hour)
		w.scaled(t, "kubectl", 50)
		require.Equal(t, "Overruled", condition(w.balancer(t), "Contested").Reason, i)
	}
	require.EqualValues(t, "True", condition(w.balancer(t), "Balancing").Status)
}

// Two Balancers over one target are two writers, too.
func TestManagers(t *testing.T) {
	long := strings.Repeat("x", 200)
	require.Equal(t, "infra-balancer/web", managerOf("web"))
	require.Len(t, managerOf(long), maxManager)
	require.NotEqual(t, managerOf(long+"1"), managerOf(long+"2"))
	entry := func(manager, sub, fields string, at int64) metav1.ManagedFieldsEntry {
		when := metav1.Unix(at, 0)
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: sub, FieldsV1: metav1.NewFieldsV1(fields), Time: &when}
	}
	const replicas, template = `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:template":{}}}`
	for name, c := range map[string]struct {
		managers []metav1.ManagedFieldsEntry
		want     round.Writer
	}{
		"nobody":                               {nil, round.Writer{}},
		"ours":                                 {[]metav1.ManagedFieldsEntry{entry("x", "", replicas, 9), entry(managerOf("web"), "scale", replicas, 1)}, round.Writer{Ours: true}},
		"another Balancer":                     {[]metav1.ManagedFieldsEntry{entry(managerOf("two"), "scale", replicas, 1)}, round.Writer{Name: "Balancer two"}},
		"the last one":                         {[]metav1.ManagedFieldsEntry{entry("x", "", replicas, 1), entry("y", "", replicas, 2), entry("z", "", template, 3)}, round.Writer{Name: `field manager "y"`}},
		"by a scale whose number is elsewhere": {[]metav1.ManagedFieldsEntry{entry("x", "scale", `{"f:spec":{"f:size":{}}}`, 1)}, round.Writer{Name: `field manager "x"`}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, lastWriter(c.managers, managerOf("web"))) })
	}
}

func setSpec(t *testing.T, w *world, replicas int32) {
	t.Helper()
	b := w.balancer(t)
	b.Spec.Replicas = &replicas
	require.NoError(t, w.client.Update(t.Context(), b), fmt.Sprint(replicas))
}
