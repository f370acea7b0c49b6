package e2e

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// TestBalancingAtScale measures sweeps over BALANCING_SCALE Balancers (such as
// 10000): with nothing to do, and with 100 that change at once. The figures are
// in docs/balancing.md. It takes minutes, so it runs on request only.
func TestBalancingAtScale(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("BALANCING_SCALE"))
	if err != nil {
		t.Skip("BALANCING_SCALE is not set")
	}
	const changing = 100
	s := newShop(t, "scale")
	s.deployment("a", 0)
	s.deployment("b", 0)
	began := time.Now()
	s.many(n-changing, func(i int) []client.Object { return []client.Object{idleBalancer(s.namespace, i)} })
	s.many(changing, func(i int) []client.Object { return changingBalancer(s, i) })
	t.Logf("%d Balancers created in %s", n, time.Since(began).Round(time.Second))

	eventually(t, 10*time.Minute, "all have a status", func() error {
		var list v1alpha1.BalancerList
		if err := s.kube.List(within(t, time.Minute), &list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		without := 0
		for _, b := range list.Items {
			if b.Status.ObservedGeneration != b.Generation {
				without++
			}
		}
		if without > 0 {
			return fmt.Errorf("%d of %d have none", without, len(list.Items))
		}
		return nil
	})
	t.Logf("all have a status %s after the first was created", time.Since(began).Round(time.Second))
	s.idleSweeps(n)

	began = time.Now()
	s.many(changing, func(i int) []client.Object {
		b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("changing-%03d", i)}}
		require.NoError(t, s.kube.Patch(within(t, time.Minute), b, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":10}}`))))
		return nil
	})
	patched := time.Since(began)
	eventually(t, 5*time.Minute, "all targets are scaled", func() error {
		var list appsv1.DeploymentList
		if err := s.kube.List(within(t, time.Minute), &list, client.InNamespace(s.namespace), client.MatchingLabels{"changing": "yes"}); err != nil {
			return err
		}
		sum := int32(0)
		for _, d := range list.Items {
			sum += *d.Spec.Replicas
		}
		if sum != 10*changing {
			return fmt.Errorf("%d of %d replicas", sum, 10*changing)
		}
		return nil
	})
	t.Logf("%d changed Balancers: patched in %s, all 200 targets scaled %s after the first patch", changing,
		patched.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
}

func idleBalancer(namespace string, i int) client.Object {
	return scaleBalancer(namespace, fmt.Sprintf("idle-%05d", i))
}

func scaleBalancer(namespace, name string) *v1alpha1.Balancer {
	none := int32(0)
	b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec = v1alpha1.BalancerSpec{Replicas: &none, Policy: proportions(70, 30)}
	for _, target := range []string{"a", "b"} {
		t := v1alpha1.BalancerTarget{Name: target}
		t.ScaleTargetRef.APIVersion, t.ScaleTargetRef.Kind, t.ScaleTargetRef.Name = "apps/v1", "Deployment", target
		b.Spec.Targets = append(b.Spec.Targets, t)
	}
	return b
}

// changingBalancer has two Deployments of its own, whose pods nobody can run.
func changingBalancer(s *shop, i int) []client.Object {
	b := scaleBalancer(s.namespace, fmt.Sprintf("changing-%03d", i))
	list := []client.Object{b}
	for j := range b.Spec.Targets {
		none, name := int32(0), fmt.Sprintf("%s-%d", b.Name, j)
		b.Spec.Targets[j].ScaleTargetRef.Name = name
		list = append(list, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{"changing": "yes"}},
			Spec: appsv1.DeploymentSpec{
				Replicas: &none, Template: s.pods(name), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"workload": name}},
			},
		})
	}
	return list
}

// many creates objects, some at a time.
func (s *shop) many(n int, objects func(i int) []client.Object) {
	s.t.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for _, o := range objects(i) {
				if err := s.kube.Create(within(s.t, time.Minute), o); err != nil {
					s.t.Errorf("create %s: %v", o.GetName(), err)
				}
			}
		})
	}
	wg.Wait()
}

// idleSweeps tells how long sweeps with nothing to do take, and their events.
func (s *shop) idleSweeps(n int) {
	s.t.Helper()
	since := time.Now()
	eventually(s.t, 2*time.Minute, "five sweeps with nothing to do", func() error {
		ctx := within(s.t, time.Minute)
		list, err := world.Workflows(ctx, fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Completed' AND StartTime > %q",
			temporal.WorkflowBalanceReplicas, since.UTC().Format(time.RFC3339Nano)))
		if err != nil {
			return err
		}
		if len(list) < 5 {
			return fmt.Errorf("%d since", len(list))
		}
		for _, w := range list {
			h, err := world.History(ctx, w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId())
			if err != nil {
				return err
			}
			took := h.Events[len(h.Events)-1].GetEventTime().AsTime().Sub(h.Events[0].GetEventTime().AsTime())
			s.t.Logf("a sweep over %d Balancers: %s, %d events", n, took.Round(time.Millisecond), len(h.Events))
			require.Less(s.t, len(h.Events), 15)
		}
		return nil
	})
}
