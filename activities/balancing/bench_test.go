package balancing

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// fleet has n Balancers in 100 namespaces, each over two Deployments of 3 and 7
// ready pods, and nothing to do.
func fleet(b *testing.B, n int) *Activities {
	b.Helper()
	c := newMemoryCache()
	a := &Activities{Cache: c, Events: record.NewFakeRecorder(0), Now: func() time.Time { return start }}
	for i := range n {
		namespace := fmt.Sprintf("ns-%02d", i%100)
		o := web(namespace, 10)
		o.Name = fmt.Sprintf("web-%05d", i)
		for j, k := range []int32{3, 7} {
			name := fmt.Sprintf("%s-%d", o.Name, j)
			c.deployment(namespace, name, k, k)
			o.Spec.Targets[j].ScaleTargetRef.Name = name
		}
		c.balancers = append(c.balancers, o)
	}
	s := a.look(b.Context(), c.balancers)
	for _, o := range c.balancers {
		plan := s.plan(o)
		o.Status = statusOf(o.Status, o.Generation, plan, plan.Condition(nil), start)
	}
	return a
}

// BenchmarkPlan10000 is the plan of a sweep over 10,000 Balancers, 20,000
// Deployments and 100,000 pods with nothing to do. It has to stay under 1 s.
func BenchmarkPlan10000(b *testing.B) {
	a := fleet(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		plan, err := a.PlanBalancers(b.Context(), contract.PlanBalancersInput{})
		if err != nil || plan.Looked != 10_000 || len(plan.Changes)+len(plan.Reports)+plan.Failing > 0 {
			b.Fatalf("looked at %d, %d changes, %d reports, %d failing: %v", plan.Looked, len(plan.Changes), len(plan.Reports), plan.Failing, err)
		}
	}
}
