package garden

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const ownID, otherID = "fedcba9876543210", "fedcba0000000000" // of one prefix

// kv is a component with a pool in each of the zones a, b, c that is named.
func kv(zones string) contract.Component {
	c := contract.Component{Name: "tikv", PoolGroup: "kv-fedcba"}
	for _, z := range zones {
		c.Pools = append(c.Pools, contract.MachinePool{MachineType: "m5.xlarge", Minimum: 1, Maximum: 1, Zones: []string{"us-west-2" + string(z)},
			VolumeType: "gp3", VolumeSize: "50Gi", Labels: map[string]string{contract.LabelPoolOwner: ownID}, Dedicated: "tikv"})
	}
	return c
}

func onMachines(c contract.Component, machineType string) contract.Component {
	c.Pools = slices.Clone(c.Pools)
	for i := range c.Pools {
		c.Pools[i].MachineType = machineType
	}
	return c
}

func allocation(components ...contract.Component) contract.AllocateWorkerPoolsInput {
	return contract.AllocateWorkerPoolsInput{
		Cluster: contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "c1", ID: ownID}, Shoot: networkPlan().Shoot,
		Generation: 1, Components: components,
	}
}

// worker is a pool as it stands in the Shoot, filled in by Gardener.
func worker(t *testing.T, name string, shape contract.MachinePool) gardencorev1beta1.Worker {
	t.Helper()
	shape.Name = name
	w, err := builders.WorkerPoolOn("aws", shape)
	require.NoError(t, err)
	w.Machine.Architecture = new("amd64")
	w.Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: "gardenlinux", Version: new("1592.4.0")}
	w.CRI = &gardencorev1beta1.CRI{Name: "containerd"}
	return *w
}

// workers are pools named by the words in front, such as "old-a", in the zone of
// their last letter.
func workers(t *testing.T, c contract.Component, names ...string) (out []gardencorev1beta1.Worker) {
	for _, name := range names {
		at := slices.IndexFunc(c.Pools, func(p contract.MachinePool) bool { return strings.HasSuffix(p.Zones[0], name[len(name)-1:]) })
		out = append(out, worker(t, name, c.Pools[at]))
	}
	return out
}

func named(p contract.WorkerPools) (out []string) {
	for _, one := range p.Pools {
		out = append(out, one.Name)
	}
	return out
}

// What there is, what is wanted: which pools stay (by name), which are new (by
// a letter for their zone), which go.
func TestAllocatePools(t *testing.T) {
	large := onMachines(kv("abc"), "m5.2xlarge")
	system := worker(t, "system", networkPlan().SystemPool)
	foreign := func(name string) gardencorev1beta1.Worker {
		w := worker(t, name, kv("a").Pools[0])
		w.Labels[contract.LabelPoolOwner] = otherID
		return w
	}
	known := func(names ...string) (out []v1.WorkerPool) {
		for _, n := range names {
			out = append(out, v1.WorkerPool{Name: n, Component: "tikv", Zone: "us-west-2" + n[len(n)-1:]})
		}
		return out
	}
	volume := kv("abc")
	volume.Pools[1].VolumeSize = "80Gi"
	retiring := known("old-a", "old-b", "old-c")
	for i := range retiring {
		retiring[i].Retiring = true
	}
	for name, c := range map[string]struct {
		have    []gardencorev1beta1.Worker
		known   []v1.WorkerPool
		wanted  []contract.Component
		stay    string // a space for each zone's pool: its name, or + for a new one
		retire  []string
		shrinks bool
	}{
		"nothing exists":                    {wanted: []contract.Component{kv("abc")}, stay: "+ + +"},
		"all up to date":                    {have: workers(t, kv("abc"), "old-a", "old-b", "old-c"), wanted: []contract.Component{kv("abc")}, stay: "old-a old-b old-c"},
		"the skeleton's names stay":         {have: workers(t, kv("abc"), "kv-fedcba-a", "kv-fedcba-b", "kv-fedcba-c"), wanted: []contract.Component{kv("abc")}, stay: "kv-fedcba-a kv-fedcba-b kv-fedcba-c"},
		"machine class changed":             {have: workers(t, kv("abc"), "old-a", "old-b", "old-c"), wanted: []contract.Component{large}, stay: "+ + +", retire: []string{"old-a", "old-b", "old-c"}},
		"one pool's volume changed":         {have: workers(t, kv("abc"), "old-a", "old-b", "old-c"), wanted: []contract.Component{volume}, stay: "old-a + old-c", retire: []string{"old-b"}},
		"a zone more":                       {have: workers(t, kv("ab"), "old-a", "old-b"), wanted: []contract.Component{kv("abc")}, stay: "old-a old-b +"},
		"a zone less":                       {have: workers(t, kv("abc"), "old-a", "old-b", "old-c"), wanted: []contract.Component{kv("ab")}, stay: "old-a old-b", retire: []string{"old-c"}},
		"another zone":                      {have: workers(t, kv("ab"), "old-a", "old-b"), wanted: []contract.Component{kv("bc")}, stay: "old-b +", retire: []string{"old-a"}},
		"interrupted, both present":         {have: slices.Concat(workers(t, kv("abc"), "old-a", "old-b", "old-c"), workers(t, large, "new-a", "new-b", "new-c")), wanted: []contract.Component{large}, stay: "new-a new-b new-c", retire: []string{"old-a", "old-b", "old-c"}},
		"interrupted, and changed back":     {have: slices.Concat(workers(t, kv("abc"), "old-a", "old-b", "old-c"), workers(t, large, "new-a", "new-b", "new-c")), known: append(known("new-a", "new-b", "new-c"), retiring...), wanted: []contract.Component{kv("abc")}, stay: "old-a old-b old-c", retire: []string{"new-a", "new-b", "new-c"}},
		"interrupted, some new ones there":  {have: slices.Concat(workers(t, kv("abc"), "old-a", "old-b", "old-c"), workers(t, large, "new-b")), wanted: []contract.Component{large}, stay: "+ new-b +", retire: []string{"old-a", "old-b", "old-c"}},
		"named, none in the Shoot yet":      {known: known("new-a", "new-b", "new-c"), wanted: []contract.Component{kv("abc")}, stay: "new-a new-b new-c"},
		"named, next to the old":            {have: workers(t, kv("abc"), "old-a", "old-b", "old-c"), known: append(known("new-a", "new-b", "new-c"), retiring...), wanted: []contract.Component{large}, stay: "new-a new-b new-c", retire: []string{"old-a", "old-b", "old-c"}},
		"named, but somebody took the name": {have: []gardencorev1beta1.Worker{foreign("new-a")}, known: known("new-a", "new-b", "new-c"), wanted: []contract.Component{kv("abc")}, stay: "+ new-b new-c"},
		"named and gone by now":             {known: retiring, wanted: []contract.Component{kv("abc")}, stay: "+ + +"},
		"twice in one zone":                 {have: workers(t, kv("abc"), "one-a", "two-a", "old-b", "old-c"), wanted: []contract.Component{kv("abc")}, stay: "one-a old-b old-c", retire: []string{"two-a"}},
		"twice, the known one stays":        {have: workers(t, kv("abc"), "one-a", "two-a", "old-b", "old-c"), known: known("two-a"), wanted: []contract.Component{kv("abc")}, stay: "two-a old-b old-c", retire: []string{"one-a"}},
		"a component less":                  {have: workers(t, kv("a"), "old-a"), retire: []string{"old-a"}},
		"others' pools are no concern":      {have: []gardencorev1beta1.Worker{system, foreign("x-a")}, wanted: []contract.Component{kv("a")}, stay: "+"},
		"larger than it is to be":           {have: func() []gardencorev1beta1.Worker { w := workers(t, kv("a"), "old-a"); w[0].Maximum = 3; return w }(), wanted: []contract.Component{kv("a")}, stay: "old-a", shrinks: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := allocation(c.wanted...)
			in.Known = c.known
			got, err := allocatePools(in, gardencorev1beta1.Provider{Type: "aws", Workers: c.have})
			require.NoError(t, err)
			stay := strings.Fields(c.stay)
			require.Len(t, got.Pools, len(stay))
			names := map[string]bool{}
			for _, w := range c.have {
				names[w.Name] = true
			}
			for i, p := range got.Pools {
				want := c.wanted[0].Pools[i]
				want.Name = p.Name
				require.Equal(t, want, p, "the plan decides everything but the name")
				if stay[i] != "+" {
					require.Equal(t, stay[i], p.Name)
					continue
				}
				require.False(t, names[p.Name], "%s is a new name", p.Name)
				require.Regexp(t, `^kv-fedcba-[a-z0-9]{5}$`, p.Name)
				names[p.Name] = true
			}
			require.ElementsMatch(t, c.retire, got.Retire)
			require.Equal(t, c.shrinks || len(c.retire) > 0, got.Shrinks)

			again, err := allocatePools(in, gardencorev1beta1.Provider{Type: "aws", Workers: c.have})
			require.NoError(t, err)
			require.Equal(t, got, again, "a retry gives the same names")
		})
	}
}

// Names that are in use, whoever uses them, are drawn past; another generation
// and another cluster of the same prefix have names of their own.
func TestPoolNamesAreUnique(t *testing.T) {
	in := allocation(kv("abc"))
	first, err := allocatePools(in, gardencorev1beta1.Provider{Type: "aws"})
	require.NoError(t, err)

	taken := worker(t, first.Pools[1].Name, kv("a").Pools[0])
	taken.Labels[contract.LabelPoolOwner] = otherID
	second, err := allocatePools(in, gardencorev1beta1.Provider{Type: "aws", Workers: []gardencorev1beta1.Worker{taken}})
	require.NoError(t, err)
	require.NotContains(t, named(second), taken.Name)

	seen := map[string]bool{}
	for generation := range int64(50) {
		for _, id := range []string{ownID, otherID} {
			in.Generation, in.Cluster.ID = generation, id
			p, err := allocatePools(in, gardencorev1beta1.Provider{Type: "aws"})
			require.NoError(t, err)
			for _, name := range named(p) {
				require.LessOrEqual(t, len(name), longestPoolName)
				require.False(t, seen[name], name)
				seen[name] = true
			}
		}
	}
	in.Components[0].PoolGroup = "toolong-fedcba"
	_, err = allocatePools(in, gardencorev1beta1.Provider{Type: "aws"})
	require.True(t, faults.Is(err, faults.Invalid), "%v", err)
}

// A change of the machine class from the first look to the last: at no moment is
// there a component without a pool in one of its zones, and one who stops after
// any of the steps and begins again ends with the same pools.
func TestBlueGreenSurvivesStops(t *testing.T) {
	ctx := context.Background()
	old, large := kv("abc"), onMachines(kv("abc"), "m5.2xlarge")
	for stop := range 4 { // the number of steps done before somebody begins anew
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
			a := activities(t, interceptor.Funcs{}, &gardencorev1beta1.Shoot{
				ObjectMeta: metav1.ObjectMeta{Namespace: networkPlan().Shoot.Namespace, Name: networkPlan().Shoot.Name},
				Spec: gardencorev1beta1.ShootSpec{Provider: gardencorev1beta1.Provider{Type: "aws",
					Workers: append(workers(t, old, "old-a", "old-b", "old-c"), worker(t, "system", networkPlan().SystemPool))}},
			})
			in := allocation(large)
			in.Generation = 2
			var first contract.WorkerPools
			operation := func(steps int) (p contract.WorkerPools) {
				var err error
				run := func(step func(context.Context, contract.WorkerPoolsInput) (contract.Outcome, error)) {
					if steps--; steps >= 0 && err == nil {
						_, err = step(ctx, contract.WorkerPoolsInput{Cluster: in.Cluster, Shoot: in.Shoot, Pools: p.Pools, Retire: p.Retire})
					}
					requireServed(t, a, in)
				}
				if steps--; steps >= 0 {
					p, err = a.AllocateWorkerPools(ctx, in)
				}
				run(a.EnsureWorkerPools)
				run(a.RetireWorkerPools)
				require.NoError(t, err)
				return p
			}
			first = operation(stop)
			second := operation(3)
			if stop > 0 {
				require.Equal(t, named(first), named(second))
			}
			shoot, err := read(ctx, a.Live, in.Shoot)
			require.NoError(t, err)
			var left []string
			for _, w := range shoot.Spec.Provider.Workers {
				left = append(left, w.Name)
			}
			require.ElementsMatch(t, append(named(second), "system"), left)
		})
	}
}

// requireServed asserts a pool of the component in each zone that takes new Pods.
func requireServed(t *testing.T, a *Activities, in contract.AllocateWorkerPoolsInput) {
	t.Helper()
	shoot, err := read(context.Background(), a.Live, in.Shoot)
	require.NoError(t, err)
	zones := map[string]bool{}
	for _, w := range shoot.Spec.Provider.Workers {
		if ownsPool(in.Cluster, w) && !slices.ContainsFunc(w.Taints, retiring) {
			zones[zoneOf(w)] = true
		}
	}
	require.Len(t, zones, 3)
}

func TestMergePools(t *testing.T) {
	in := contract.WorkerPoolsInput{Cluster: contract.ObjectRef{ID: ownID}, Retire: []string{"old-a", "foreign"}}
	have := workers(t, kv("ab"), "old-a", "stay-b")
	foreign := worker(t, "foreign", kv("a").Pools[0])
	foreign.Labels[contract.LabelPoolOwner] = otherID
	have[1].Minimum, have[1].Maximum = 3, 3
	have[1].Taints = append(have[1].Taints, corev1.Taint{Key: contract.TaintRetiring, Effect: corev1.TaintEffectPreferNoSchedule})
	have = append(have, foreign)
	larger := onMachines(kv("b"), "m5.2xlarge")
	want := workers(t, larger, "stay-b", "new-b")
	out, err := mergePools(in, have, want)
	require.NoError(t, err)
	require.Len(t, out, 4)
	require.Contains(t, out[0].Taints, corev1.Taint{Key: contract.TaintRetiring, Effect: corev1.TaintEffectPreferNoSchedule})
	require.Equal(t, "m5.xlarge", out[1].Machine.Type, "machines are never changed under a pool")
	require.Equal(t, have[1].Machine.Image, out[1].Machine.Image, "what Gardener filled in stays")
	require.Equal(t, int32(3), out[1].Minimum, "nothing shrinks here")
	require.Equal(t, want[0].Taints, out[1].Taints, "wanted again")
	require.Equal(t, foreign, out[2])
	require.Equal(t, "new-b", out[3].Name)
	require.Len(t, have[0].Taints, 1, "the input is not changed")

	again, err := mergePools(in, out, want)
	require.NoError(t, err)
	require.Equal(t, out, again)

	want = append(want, worker(t, "foreign", kv("a").Pools[0]))
	_, err = mergePools(in, have, want)
	require.True(t, faults.Is(err, faults.Conflict), "%v", err)
}

func TestRetirePools(t *testing.T) {
	in := contract.WorkerPoolsInput{Cluster: contract.ObjectRef{ID: ownID}, Shoot: networkPlan().Shoot}
	for _, p := range kv("ab").Pools {
		p.Name = "new-" + p.Zones[0][len(p.Zones[0])-1:]
		in.Pools = append(in.Pools, p)
	}
	foreign := worker(t, "foreign", kv("a").Pools[0])
	foreign.Labels[contract.LabelPoolOwner] = otherID
	have := append(workers(t, kv("abc"), "old-a", "new-a", "new-b", "old-c"), foreign)
	have[2].Minimum, have[2].Maximum = 3, 3
	out, err := retirePools(in, have)
	require.NoError(t, err)
	require.Len(t, out, 3)
	for i, name := range []string{"new-a", "new-b", "foreign"} {
		require.Equal(t, name, out[i].Name)
	}
	require.Equal(t, int32(1), out[1].Minimum, "and what stays gets its size")
	again, err := retirePools(in, out)
	require.NoError(t, err)
	require.Equal(t, out, again)

	_, err = retirePools(in, slices.Delete(slices.Clone(have), 1, 2))
	require.True(t, faults.Is(err, faults.Conflict), "without its successor no pool goes: %v", err)

	in.Pools = nil
	out, err = retirePools(in, have)
	require.NoError(t, err)
	require.Equal(t, []gardencorev1beta1.Worker{foreign}, out)
}

func TestAllocateWorkerPoolsNeedsAShoot(t *testing.T) {
	_, err := activities(t, interceptor.Funcs{}).AllocateWorkerPools(context.Background(), allocation(kv("a")))
	require.True(t, faults.Is(err, faults.Dependency), "%v", err)
}
