package gardenlet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changePools adds a pool with a taint, and takes it away again.
func (s *stack) changePools(ctx context.Context, config *rest.Config) {
	inShoot := newClient(s.t, config)
	count := func() int {
		nodes := &corev1.NodeList{}
		check(s.t, inShoot.List(ctx, nodes, client.MatchingLabels{"worker.gardener.cloud/pool": "kv"}))
		for _, n := range nodes.Items {
			if len(n.Spec.Taints) != 1 || n.Labels[corev1.LabelInstanceTypeStable] != "m5.xlarge" {
				s.t.Errorf("node %s: labels %v, taints %v", n.Name, n.Labels, n.Spec.Taints)
			}
		}
		return len(nodes.Items)
	}
	shoot := s.shoot(ctx)
	base := shoot.DeepCopy()
	pool := *shoot.Spec.Provider.Workers[0].DeepCopy()
	pool.Name, pool.Minimum, pool.Machine.Type = "kv", 2, "m5.xlarge"
	pool.Taints = []corev1.Taint{{Key: "dedicated", Value: "tikv", Effect: corev1.TaintEffectNoSchedule}}
	shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, pool)
	check(s.t, s.client.Patch(ctx, shoot, client.MergeFrom(base)))
	s.until(ctx, "ready with another pool", ready)
	if n := count(); n != 2 {
		s.t.Errorf("the new pool has %d nodes, want 2", n)
	}
	shoot = s.shoot(ctx)
	base = shoot.DeepCopy()
	shoot.Spec.Provider.Workers = shoot.Spec.Provider.Workers[:1]
	check(s.t, s.client.Patch(ctx, shoot, client.MergeFrom(base)))
	s.until(ctx, "ready without it", ready)
	if n := count(); n != 0 {
		s.t.Errorf("the removed pool has %d nodes", n)
	}
}

// ready is the rule by which the product takes a Shoot as ready.
func ready(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	if last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded || shoot.Generation != shoot.Status.ObservedGeneration {
		return false
	}
	for _, c := range shoot.Status.Conditions {
		if c.Status != gardencorev1beta1.ConditionTrue {
			return false
		}
	}
	return len(shoot.Status.Conditions) > 0
}

func (s *stack) until(ctx context.Context, what string, ok func(*gardencorev1beta1.Shoot) bool) {
	s.t.Helper()
	begin, seen := time.Now(), ""
	s.eventually(ctx, what, func() error {
		shoot := s.shoot(ctx)
		last := shoot.Status.LastOperation
		if last != nil {
			if line := fmt.Sprintf("%s %s %d%% %s", last.Type, last.State, last.Progress, last.Description); line != seen {
				s.t.Log(line)
				seen = line
			}
		}
		if ok(shoot) {
			return nil
		}
		return fmt.Errorf("last operation %+v, conditions %+v", last, shoot.Status.Conditions)
	})
	s.t.Logf("%s after %s", what, time.Since(begin))
}

func (s *stack) eventually(ctx context.Context, what string, fn func() error) {
	s.t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for {
		err := fn()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	check(t, clientgoscheme.AddToScheme(scheme))
	check(t, gardencorev1beta1.AddToScheme(scheme))
	check(t, authenticationv1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
