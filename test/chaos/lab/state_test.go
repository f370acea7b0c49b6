package lab

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// pool is a pool of TiKV that the owner has in a zone.
func pool(name, owner, zone string, retiring bool) invariants.Pool {
	return invariants.Pool{Shoot: "garden-core/n1", Name: name, Owner: owner, Component: "tikv", Zones: zone, MachineType: "m5.xlarge", Minimum: 1, Maximum: 1, Retiring: retiring}
}

func clusterWith(id string, pools ...string) *v1.Cluster {
	c := &v1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationID: id}}}
	for _, name := range pools {
		c.Status.Pools = append(c.Status.Pools, v1.WorkerPool{Name: name, Component: "tikv", Zone: "a", MachineType: "m5.xlarge", Nodes: 1})
	}
	return c
}

func TestStateKnowsPools(t *testing.T) {
	state := func(c *v1.Cluster, pools ...invariants.Pool) string {
		lines, err := described(c, Look{Pools: pools})
		require.NoError(t, err)
		return strings.Join(lines, "\n")
	}
	want := state(clusterWith("c1", "kv-1"), pool("kv-1", "c1", "a", false), pool("kv-2", "other", "a", false))
	require.Equal(t, want, state(clusterWith("c9", "kv-7"), pool("kv-7", "c9", "a", false)), "names do not count, nor do others' pools")
	for name, other := range map[string]string{
		"one too many":      state(clusterWith("c1", "kv-1"), pool("kv-1", "c1", "a", false), pool("kv-2", "c1", "a", false)),
		"none in the Shoot": state(clusterWith("c1", "kv-1")),
		"none told":         state(clusterWith("c1"), pool("kv-1", "c1", "a", false)),
		"another zone":      state(clusterWith("c1", "kv-1"), pool("kv-1", "c1", "b", false)),
		"it still retires":  state(clusterWith("c1", "kv-1"), pool("kv-1", "c1", "a", true)),
	} {
		require.NotEqual(t, want, other, name)
	}
}

func TestTwice(t *testing.T) {
	look := Look{
		Cloud: []stack.Resource{{Type: "s3/bucket", ID: "a", Owner: "c1"}, {Type: "s3/bucket", ID: "b", Owner: "c1"}},
		Pools: []invariants.Pool{pool("kv-1", "c1", "a", false), pool("kv-2", "c1", "a", false), pool("kv-3", "c2", "a", true), pool("kv-4", "c2", "a", false)},
	}
	require.Len(t, Twice(look, "c1"), 2)
	require.Empty(t, Twice(look, "c2"), "one of the two retires")
}

func TestHindered(t *testing.T) {
	const path = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-core/shoots/n1"
	shoot := shootSpec(Garden, httptest.NewRequest(http.MethodPatch, path, nil))
	require.Equal(t, "garden-core/n1", shoot)
	require.Empty(t, shootSpec(Garden, httptest.NewRequest(http.MethodPatch, path+"/status", nil)))
	version := func(n string) []byte { return []byte(`{"metadata":{"resourceVersion":"` + n + `"}}`) }
	write := func(g *Gate, from string, status int, made string) {
		g.begins(shoot)
		g.ends(shoot, version(from), &http.Response{StatusCode: status}, version(made))
	}
	fresh := func() *Gate { return &Gate{writes: shootWrites{flying: map[string]int{}, last: map[string]uint64{}}} }

	g := fresh()
	write(g, "4", 200, "5")
	write(g, "5", 409, "")
	require.Empty(t, g.Hindered(), "gardenlet has come in between")
	require.Equal(t, 1, g.Conflicts())
	write(g, "4", 409, "")
	require.Len(t, g.Hindered(), 1, "version 5 is ours")

	g = fresh()
	g.begins(shoot)
	g.begins(shoot)
	require.Len(t, g.Hindered(), 1, "both are in flight")
}
