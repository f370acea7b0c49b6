package invariants

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
)

const clusterID = "00c1000000000000"

// worker is a pool of TiKV in one zone, as a Shoot has it.
func worker(name string, taints ...any) any {
	return map[string]any{
		"name": name, "minimum": int64(1), "maximum": int64(2), "zones": []any{"a"}, "machine": map[string]any{"type": "m5.xlarge"},
		"labels": map[string]any{contract.LabelPoolOwner: clusterID, builders.LabelDedicated: "tikv"}, "taints": taints,
	}
}

func shootWith(workers ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "garden-core", "name": "n1"},
		"spec":     map[string]any{"provider": map[string]any{"workers": workers}},
	}}
}

func TestPoolsOf(t *testing.T) {
	require.Equal(t, []Pool{{Shoot: "garden-core/n1", Owner: clusterID, Name: "kv-1", Component: "tikv", Zones: "a", MachineType: "m5.xlarge", Minimum: 1, Maximum: 2}},
		PoolsOf(shootWith(worker("kv-1"))))
	require.True(t, PoolsOf(shootWith(worker("kv-1", map[string]any{"key": contract.TaintRetiring})))[0].Retiring)
}

func TestPoolsTwice(t *testing.T) {
	retiring := map[string]any{"key": contract.TaintRetiring}
	other := Pool{Owner: "other", Component: "tikv", Zones: "a", Name: "kv-3"}
	require.Empty(t, PoolsTwice(append(PoolsOf(shootWith(worker("kv-1", retiring), worker("kv-2"))), other)))
	require.Empty(t, PoolsTwice([]Pool{{Name: "system"}, {Name: "system-2"}}))
	require.Len(t, PoolsTwice(PoolsOf(shootWith(worker("kv-1"), worker("kv-2")))), 1)
}

// cluster is one that is Ready with two pools, changed.
func cluster(change func(*v1.Cluster)) *v1.Cluster {
	c := &v1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "c1", Generation: 2, Annotations: map[string]string{v1.AnnotationID: clusterID}}}
	c.Spec.Network = "n1"
	c.Status.ObservedGeneration, c.Status.Pools = 2, []v1.WorkerPool{{Name: "kv-1"}, {Name: "kv-2"}}
	c.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
	c.Status.Operation = &v1.OperationStatus{ID: "o", State: v1.OperationSucceeded}
	if change != nil {
		change(c)
	}
	return c
}

func TestPoolsAreTrue(t *testing.T) {
	both, one := PoolsOf(shootWith(worker("kv-1"), worker("kv-2"))), PoolsOf(shootWith(worker("kv-1")))
	foreign := append(PoolsOf(shootWith(worker("kv-1"))), Pool{Shoot: "garden-core/n1", Owner: "other", Name: "kv-2"})
	for name, tc := range map[string]struct {
		before, after func(*v1.Cluster)
		pools         []Pool
		want          string
	}{
		"all are there":             {pools: both},
		"one is not there":          {pools: one, want: "5:"},
		"one is another's":          {pools: foreign, want: "5:"},
		"its operation runs":        {pools: one, before: func(c *v1.Cluster) { c.Status.Operation.State = v1.OperationRunning }},
		"another operation has run": {pools: one, after: func(c *v1.Cluster) { c.Status.Operation.ID = "p" }},
		"it was not Ready":          {pools: one, before: func(c *v1.Cluster) { c.Status.Conditions = nil }},
		"it has other pools now":    {pools: one, after: func(c *v1.Cluster) { c.Status.Pools = c.Status.Pools[:1] }},
		"it goes":                   {pools: one, after: func(c *v1.Cluster) { c.DeletionTimestamp = new(metav1.Now()) }},
	} {
		t.Run(name, func(t *testing.T) {
			n := network(func(n *v1.Network) { n.Status.Shoot = &v1.NetworkShootStatus{Namespace: "garden-core", Name: "n1"} })
			before := owners{objects: map[string]v1.Object{"n": n, clusterID: cluster(tc.before)}, pools: tc.pools}
			after := owners{objects: map[string]v1.Object{"n": n, clusterID: cluster(tc.after)}}
			requireViolation(t, tc.want, poolsAreTrue(before, after))
		})
	}
}
