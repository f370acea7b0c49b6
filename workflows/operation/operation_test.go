package operation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

func TestSpreadIsStableAndBounded(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range int32(100) {
		d := spread(10*time.Minute, "cluster/infra/c1/create/1.1", i)
		assert.Equal(t, d, spread(10*time.Minute, "cluster/infra/c1/create/1.1", i))
		assert.GreaterOrEqual(t, d, 8*time.Minute)
		assert.LessOrEqual(t, d, 12*time.Minute)
		seen[d] = true
	}
	assert.Greater(t, len(seen), 50, "attempts must not wake together")
}

func TestMarkdownOfAStall(t *testing.T) {
	at := func(s int64) *metav1.Time { m := metav1.NewTime(time.Unix(s, 0)); return &m }
	in := lifecycle.Input{Object: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}, Verb: lifecycle.Create, Generation: 2}
	op := v1.OperationStatus{Step: "EnsureShoot", Progress: 50, Steps: []v1.StepStatus{
		{Name: "Preflight", State: v1.StepSucceeded, StartedAt: at(0), FinishedAt: at(3)},
		{Name: "EnsureShoot", State: v1.StepStalled, StartedAt: at(3)},
		{Name: "WaitShootReady", State: v1.StepPending},
	}}
	last := &v1.LastError{Class: string(faults.Quota), Step: "EnsureShoot", Owner: "operator", Message: "shoot n1: too many VPCs", Hint: "raise the limit", NextRetryAt: at(1800)}
	docs := map[string]string{"Preflight": "check", "EnsureShoot": "order the Shoot", "WaitShootReady": "the Shoot to be healthy"}
	assert.Equal(t, `**Create Network infra/n1** (generation 2), 50 %

**Stalled in EnsureShoot: Quota.** shoot n1: too many VPCs

For the operator: raise the limit. Tries again by itself at 1970-01-01T00:30:00Z.

| | step | what | took |
|---|---|---|---|
| ✓ | Preflight | check | 3s |
| ✗ | EnsureShoot | order the Shoot | since 00:00:03 UTC |
| · | WaitShootReady | the Shoot to be healthy |  |
`, markdown(in, op, last, docs))
	assert.Contains(t, markdown(in, op, nil, docs), "Waits for **EnsureShoot**: order the Shoot.")
	op.State, op.StartedAt, op.FinishedAt = v1.OperationSucceeded, at(0), at(63)
	assert.Contains(t, markdown(in, op, nil, docs), "**Succeeded** after 1m3s.")
}
