package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// TestTwoClusters makes two Clusters of one Network at once, and gives one of
// them other machines: their worker pools never get into each other's way, and
// old pools go only when the new ones have taken over.
func TestTwoClusters(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	samples, err := stack.MarkedSamples(marker)
	require.NoError(t, err)
	c2 := &v1.Cluster{ObjectMeta: named("c2")}
	second := secondCluster(t, samples)
	require.NoError(t, world.Apply(ctx, append(samples, second)...))
	follow(ctx, t, network(), &v1.NetworkList{}, isReady)
	watch := watchPools(ctx, t)

	follow(ctx, t, cluster(), &v1.ClusterList{}, isReady)
	follow(ctx, t, c2, &v1.ClusterList{}, isReady)
	first, other := poolsTold(ctx, t, "c1"), poolsTold(ctx, t, "c2")
	require.Len(t, first, 5, "one of PD and TiDB, three of TiKV")
	require.Len(t, other, 5)
	requireInShoot(t, watch, first, other)

	changeMachines(ctx, t)
	changed := poolsTold(ctx, t, "c1")
	requireReplaced(t, first, changed)
	require.Equal(t, other, poolsTold(ctx, t, "c2"), "the other Cluster's pools are the same")
	requireInShoot(t, watch, changed, other)
	watch.requireBlueGreen(t, first, changed)
	watch.requireNeverLost(t, other)
	requireNodes(ctx, t, slices.Concat(changed, other))

	t.Log("what is asked for again changes nothing")
	rename(ctx, t, "orders-again")
	follow(ctx, t, cluster(), &v1.ClusterList{}, isReady)
	require.Equal(t, changed, poolsTold(ctx, t, "c1"))

	t.Log("both go, and the Shoot has none of their pools")
	remove(ctx, t, cluster(), c2)
	requireInShoot(t, watch)
	remove(ctx, t, network(), provider(), providerType())
}

// remove deletes objects at once and waits until they are gone.
func remove(ctx context.Context, t *testing.T, objects ...v1.Object) {
	t.Helper()
	for _, o := range objects {
		require.NoError(t, world.Kube.Delete(ctx, o))
	}
	for _, o := range objects {
		eventually(t, 3*time.Minute, o.GetName()+" goes", func() error {
			err := world.Kube.Get(ctx, client.ObjectKeyFromObject(o), o)
			if client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("still there: %v, %s", err, describe(o))
			}
			return nil
		})
	}
}

// secondCluster is the sample once more, as c2.
func secondCluster(t *testing.T, samples []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	at := slices.IndexFunc(samples, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Cluster" })
	require.GreaterOrEqual(t, at, 0)
	c := samples[at].DeepCopy()
	c.SetName("c2")
	require.NoError(t, unstructured.SetNestedField(c.Object, "invoices", "spec", "displayName"))
	return c
}

// changeMachines gives the class of TiDB's and TiKV's machines another machine
// type, and has c1 follow. The worker is killed when the new pools are on their
// way.
func changeMachines(ctx context.Context, t *testing.T) {
	t.Helper()
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/machineClasses/1/name","value":"4C16G"},
		{"op":"replace","path":"/spec/machineClasses/1/machineType","value":"r5.2xlarge"}]`))
	require.NoError(t, world.Kube.Patch(ctx, providerType(), patch))
	follow(ctx, t, providerType(), &v1.ProviderTypeList{}, isReady)
	rename(ctx, t, "orders-larger")
	follow(ctx, t, cluster(), &v1.ClusterList{}, atStep("WaitWorkerPools"))
	killWorker(ctx, t, "UpdateCluster")
	seen := follow(ctx, t, cluster(), &v1.ClusterList{}, isReady)
	require.Contains(t, seen.steps, "RetireWorkerPools")
}

// rename has c1 reconciled for a new generation.
func rename(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"displayName":"`+name+`"}}`))
	require.NoError(t, world.Kube.Patch(ctx, cluster(), patch))
}

// poolsTold are the pools that a Cluster's status names, by name.
func poolsTold(ctx context.Context, t *testing.T, name string) []v1.WorkerPool {
	t.Helper()
	c := &v1.Cluster{ObjectMeta: named(name)}
	require.NoError(t, world.Kube.Get(ctx, client.ObjectKeyFromObject(c), c))
	for _, p := range c.Status.Pools {
		require.False(t, p.Retiring, "%s is to go and has not gone", p.Name)
	}
	slices.SortFunc(c.Status.Pools, func(a, b v1.WorkerPool) int { return strings.Compare(a.Name, b.Name) })
	return c.Status.Pools
}

// requireReplaced: TiDB and TiKV have new pools in the zones of the old ones,
// PD has its own still.
func requireReplaced(t *testing.T, before, after []v1.WorkerPool) {
	t.Helper()
	places := func(pools []v1.WorkerPool) (out []string) {
		for _, p := range pools {
			out = append(out, p.Component+" "+p.Zone)
		}
		slices.Sort(out)
		return out
	}
	require.Equal(t, places(before), places(after))
	for _, p := range after {
		kept := slices.ContainsFunc(before, func(b v1.WorkerPool) bool { return b.Name == p.Name })
		require.Equal(t, p.Component == "pd", kept, "%+v", p)
		if p.Component != "pd" {
			require.Equal(t, "r5.2xlarge", p.MachineType)
		}
	}
}

// shootPool is one of a Shoot's worker pools.
type shootPool struct {
	component, zone string
	retiring        bool
}

// poolWatch keeps every list of pools that the Network's Shoot ever had.
type poolWatch struct {
	mu    sync.Mutex
	lists []map[string]shootPool
}

func watchPools(ctx context.Context, t *testing.T) *poolWatch {
	t.Helper()
	shoots := &unstructured.UnstructuredList{}
	shoots.SetAPIVersion("core.gardener.cloud/v1beta1")
	shoots.SetKind("ShootList")
	w, err := world.Kube.Watch(ctx, shoots, client.InNamespace("garden-core"))
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	p := &poolWatch{}
	go func() {
		for e := range w.ResultChan() {
			if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != "DELETED" {
				p.note(u)
			}
		}
	}()
	return p
}

func (p *poolWatch) note(shoot *unstructured.Unstructured) {
	list := map[string]shootPool{}
	workers, _, _ := unstructured.NestedSlice(shoot.Object, "spec", "provider", "workers")
	for _, w := range workers {
		one := w.(map[string]any)
		name, _, _ := unstructured.NestedString(one, "name")
		component, _, _ := unstructured.NestedString(one, "labels", "dedicated")
		zones, _, _ := unstructured.NestedStringSlice(one, "zones")
		taints, _, _ := unstructured.NestedSlice(one, "taints")
		if component != "" {
			list[name] = shootPool{component: component, zone: strings.Join(zones, ","), retiring: len(taints) > 1}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.lists); n == 0 || !maps.Equal(p.lists[n-1], list) {
		p.lists = append(p.lists, list)
	}
}

func (p *poolWatch) seen() []map[string]shootPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lists)
}

// requireInShoot: the Shoot ends with exactly these pools.
func requireInShoot(t *testing.T, w *poolWatch, pools ...[]v1.WorkerPool) {
	t.Helper()
	want := map[string]shootPool{}
	for _, p := range slices.Concat(pools...) {
		require.LessOrEqual(t, len(p.Name), 15)
		want[p.Name] = shootPool{component: p.Component, zone: p.Zone}
	}
	eventually(t, 20*time.Second, "the Shoot's pools", func() error {
		lists := w.seen()
		if last := lists[len(lists)-1]; !maps.Equal(want, last) {
			return fmt.Errorf("it has %v, not %v", last, want)
		}
		return nil
	})
}

// requireNeverLost: once all the pools were there, no change of the Shoot was
// without one of them.
func (p *poolWatch) requireNeverLost(t *testing.T, pools []v1.WorkerPool) {
	t.Helper()
	complete := false
	for _, list := range p.seen() {
		here := 0
		for _, one := range pools {
			if got, ok := list[one.Name]; ok {
				require.False(t, got.retiring, one.Name)
				here++
			}
		}
		require.True(t, here == len(pools) || here == 0 && !complete, "%d of %v are in %v", here, pools, list)
		complete = complete || here == len(pools)
	}
	require.True(t, complete)
}

// requireBlueGreen: old and new pools were there together, the old ones marked,
// and each component had a pool in each of its zones all the time.
func (p *poolWatch) requireBlueGreen(t *testing.T, before, after []v1.WorkerPool) {
	t.Helper()
	p.requireNeverLost(t, keptOf(before, after))
	together, begun := false, false
	for _, list := range p.seen() {
		places, old, fresh := map[string]bool{}, 0, 0
		for _, one := range before {
			if got, ok := list[one.Name]; ok {
				places[one.Component+one.Zone] = true
				if got.retiring {
					old++
				}
			}
		}
		for _, one := range after {
			if _, ok := list[one.Name]; ok {
				places[one.Component+one.Zone] = true
				fresh++
			}
		}
		begun = begun || len(places) == len(before)
		require.True(t, !begun || len(places) == len(before), "a place without a pool in %v", list)
		together = together || old == 4 && fresh == len(after)
	}
	require.True(t, together, "old and new were never there together: %v", p.seen())
}

func keptOf(before, after []v1.WorkerPool) []v1.WorkerPool {
	return slices.DeleteFunc(slices.Clone(before), func(b v1.WorkerPool) bool {
		return !slices.ContainsFunc(after, func(a v1.WorkerPool) bool { return a.Name == b.Name })
	})
}

// requireNodes: the shoot has nodes of these pools and of no other, and every
// Pod of the databases runs on one.
func requireNodes(ctx context.Context, t *testing.T, pools []v1.WorkerPool) {
	t.Helper()
	n := network()
	require.NoError(t, world.Kube.Get(ctx, client.ObjectKeyFromObject(n), n))
	rc, err := clientcmd.BuildConfigFromFlags("", filepath.Join(world.State.DataDir, "shoots", n.Status.Shoot.TechnicalID, "kubeconfig"))
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	shoot, err := client.New(rc, client.Options{Scheme: scheme})
	require.NoError(t, err)

	var nodes corev1.NodeList
	require.NoError(t, shoot.List(ctx, &nodes))
	want, have, onPool := map[string]int32{}, map[string]int32{}, map[string]bool{}
	for _, p := range pools {
		want[p.Name] = p.Nodes
	}
	for _, node := range nodes.Items {
		if name := node.Labels["worker.gardener.cloud/pool"]; node.Labels["dedicated"] != "" {
			have[name]++
			onPool[node.Name] = true
		}
	}
	require.Equal(t, want, have)
	var pods corev1.PodList
	require.NoError(t, shoot.List(ctx, &pods, client.HasLabels{"app.kubernetes.io/component"}, client.MatchingLabels{"app.kubernetes.io/managed-by": "tidb-operator"}))
	require.NotEmpty(t, pods.Items)
	for _, pod := range pods.Items {
		if metav1.GetControllerOf(&pod) == nil || metav1.GetControllerOf(&pod).Kind != "StatefulSet" {
			continue
		}
		require.True(t, onPool[pod.Spec.NodeName], "%s/%s is on node %q", pod.Namespace, pod.Name, pod.Spec.NodeName)
	}
}
