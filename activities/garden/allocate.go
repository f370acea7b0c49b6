package garden

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/scaling/topology"
	"github.com/tidbcloud/infra-orchestrator/scaling/tracker"
	"github.com/tidbcloud/infra-orchestrator/scaling/updater"
)

const (
	// longestPoolName is Gardener's limit for names of worker pools.
	longestPoolName = 15
	// poolSuffix is what the limit leaves beside a group such as kv-0f3a9c.
	poolSuffix = 5
	// Revisions of pools for the updater: a pool either fits its template or not.
	wantedRevision, otherRevision = "wanted", "other"
)

// told is the availability of pools: whether their machines are ready is what
// the steps before have waited for.
var told = updater.Availability{MinReady: -1}

// AllocateWorkerPools decides on what the Shoot has now.
func (a *Activities) AllocateWorkerPools(ctx context.Context, in contract.AllocateWorkerPoolsInput) (contract.WorkerPools, error) {
	shoot, err := read(ctx, a.Live, in.Shoot)
	if err != nil {
		return contract.WorkerPools{}, err
	}
	if shoot == nil || shoot.DeletionTimestamp != nil {
		return contract.WorkerPools{}, noShoot(in.Shoot)
	}
	return allocatePools(in, shoot.Spec.Provider)
}

// allocatePools is pure: the pools of a component are the instances of a group,
// one a zone, which the updater replaces blue/green.
func allocatePools(in contract.AllocateWorkerPoolsInput, provider gardencorev1beta1.Provider) (contract.WorkerPools, error) {
	var out contract.WorkerPools
	for _, c := range in.Components {
		g := poolGroup{in: in, component: c, workers: provider.Workers}
		if err := g.observe(provider.Type); err != nil {
			return contract.WorkerPools{}, err
		}
		pools, err := g.pools()
		if err != nil {
			return contract.WorkerPools{}, err
		}
		out.Pools = append(out.Pools, pools...)
	}
	for _, w := range provider.Workers {
		if !ownsPool(in.Cluster, w) {
			continue
		}
		at := slices.IndexFunc(out.Pools, func(p contract.MachinePool) bool { return p.Name == w.Name })
		if at < 0 {
			out.Retire = append(out.Retire, w.Name)
		} else if w.Minimum > out.Pools[at].Minimum || w.Maximum > out.Pools[at].Maximum {
			out.Shrinks = true
		}
	}
	out.Shrinks = out.Shrinks || len(out.Retire) > 0
	return out, nil
}

// poolGroup is one component's pools.
type poolGroup struct {
	in        contract.AllocateWorkerPoolsInput
	component contract.Component
	workers   []gardencorev1beta1.Worker // of the whole Shoot
	instances []updater.Instance
}

// observe lists the instances: what the Shoot has, then what was named and has
// not come into the Shoot. One pool in each zone is at the wanted revision, at
// most: one that was named before goes first.
func (g *poolGroup) observe(providerType string) error {
	served := map[string]bool{}
	for _, w := range g.observed() {
		i := updater.Instance{Name: w.Name, Zone: zoneOf(w), Revision: otherRevision, Ready: true, UpToDate: true, Priority: updater.LowestPriority}
		if template, ok := g.template(i.Zone); ok && !served[i.Zone] {
			want, err := builders.WorkerPoolOn(providerType, template)
			if err != nil {
				return err
			}
			if fits(w, *want) {
				i.Revision, served[i.Zone] = wantedRevision, true
			}
		}
		g.instances = append(g.instances, i)
	}
	for _, k := range g.in.Known {
		if _, ok := g.template(k.Zone); !ok || served[k.Zone] || k.Component != g.component.Name || k.Retiring || g.inShoot(k.Name) {
			continue
		}
		served[k.Zone] = true
		g.instances = append(g.instances, updater.Instance{Name: k.Name, Zone: k.Zone, Revision: wantedRevision, Priority: updater.LowestPriority})
	}
	return nil
}

// observed are the component's pools in the Shoot: those to have first, by name.
func (g *poolGroup) observed() []gardencorev1beta1.Worker {
	var own []gardencorev1beta1.Worker
	for _, w := range g.workers {
		if g.owns(w) {
			own = append(own, w)
		}
	}
	rank := func(w gardencorev1beta1.Worker) int {
		if slices.ContainsFunc(g.in.Known, func(k v1.WorkerPool) bool { return k.Name == w.Name && !k.Retiring }) {
			return 0
		}
		return 1
	}
	slices.SortFunc(own, func(a, b gardencorev1beta1.Worker) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	return own
}

func (g *poolGroup) owns(w gardencorev1beta1.Worker) bool {
	return ownsPool(g.in.Cluster, w) && w.Labels[builders.LabelDedicated] == g.component.Name
}

func (g *poolGroup) inShoot(name string) bool {
	return slices.ContainsFunc(g.workers, func(w gardencorev1beta1.Worker) bool { return w.Name == name })
}

// template is the pool that the component is to have in a zone.
func (g *poolGroup) template(zone string) (contract.MachinePool, bool) {
	at := slices.IndexFunc(g.component.Pools, func(p contract.MachinePool) bool { return slices.Equal(p.Zones, []string{zone}) })
	if at < 0 {
		return contract.MachinePool{}, false
	}
	return g.component.Pools[at], true
}

// pools has the updater plan the group, and returns the pools to have in the
// order of their zones.
func (g *poolGroup) pools() ([]contract.MachinePool, error) {
	names := &naming{FallibleAllocator: g.allocator()}
	sets := updater.Split(g.instances, wantedRevision)
	steps, _, err := updater.Plan(sets,
		updater.Counts{Desired: len(g.component.Pools), MaxSurge: len(sets.Outdated)}, // all new ones next to the old
		updater.Config{Names: names, Availability: told, NextZone: g.nextZone, NoInPlace: true}, updater.Options{})
	if err != nil {
		return nil, faults.New(faults.Conflict, "NoPoolName", shootName(g.in.Shoot), "no worker pool for %s: %s", g.component.Name, cmp.Or(names.err, err)).
			WithHint(faults.OwnerOperator, "look at the names of the Shoot's worker pools; those that begin with "+g.component.PoolGroup+" should be few")
	}
	byZone := map[string]string{}
	for _, i := range sets.Updated {
		byZone[i.Zone] = i.Name
	}
	for _, s := range steps {
		if s.Verb == updater.Create {
			byZone[s.Zone] = s.Instance
		}
	}
	out := make([]contract.MachinePool, 0, len(g.component.Pools))
	for _, p := range g.component.Pools {
		if p.Name = byZone[p.Zones[0]]; p.Name == "" || len(p.Name) > longestPoolName {
			return nil, faults.New(faults.Invalid, "PoolName", shootName(g.in.Shoot), "worker pool %q for %s in %s: the name must have 1 to %d characters", p.Name, g.component.Name, p.Zones[0], longestPoolName)
		}
		out = append(out, p)
	}
	return out, nil
}

// nextZone is the one that has no pool at the wanted revision: what else is in
// it will go.
func (g *poolGroup) nextZone(_, updated []updater.Instance) (string, error) {
	zones := make([]topology.Zone, 0, len(g.component.Pools))
	for _, p := range g.component.Pools {
		zones = append(zones, topology.Zone{Name: p.Zones[0]})
	}
	s, err := topology.New(zones...)
	if err != nil {
		return "", err
	}
	for _, i := range updated {
		s.Add(i.Name, i.Zone)
	}
	return topology.Choose(s, s)
}

// allocator names new pools. The state of the tracker is made of what is
// recorded elsewhere, the Shoot and the cluster's status, and its names follow
// from the cluster, its generation and the component: who runs it again on the
// same Shoot gets the same names.
func (g *poolGroup) allocator() tracker.FallibleAllocator {
	kind, shoot, group := g.component.Name, g.in.Shoot.String(), g.component.PoolGroup
	seed := fmt.Sprintf("%s/%d/%s", g.in.Cluster.ID, g.in.Generation, kind)
	f := tracker.NewWithSuffix(tracker.Derived(seed, poolSuffix))
	for _, w := range g.workers {
		if g.owns(w) {
			f.Tracker(kind).Track(shoot, w.Name, group)
		} else {
			f.Tracker(kind).Track(shoot, w.Name, "") // somebody else's, but no name is free twice
		}
	}
	var names []string
	for _, i := range g.instances {
		f.Tracker(kind).Track(shoot, i.Name, group)
		names = append(names, i.Name)
	}
	return f.AllocateFactory(kind).New(shoot, group, names...).(tracker.FallibleAllocator)
}

// naming keeps why there was no name.
type naming struct {
	tracker.FallibleAllocator
	err error
}

// Allocate implements updater.Naming.
func (n *naming) Allocate(index int) (name string) {
	name, n.err = n.TryAllocate(index)
	return name
}

// zoneOf is the zone of a pool; empty for one that has not exactly one.
func zoneOf(w gardencorev1beta1.Worker) string {
	if len(w.Zones) != 1 {
		return ""
	}
	return w.Zones[0]
}

// fits says whether a pool has the machines that are wanted. The fields are
// those of which Gardener makes new machines, as far as we decide on them.
func fits(have, want gardencorev1beta1.Worker) bool {
	if have.Machine.Type != want.Machine.Type || !agrees(have.Machine.Architecture, want.Machine.Architecture) {
		return false
	}
	h, w := have.Volume, want.Volume
	if h == nil || w == nil {
		return h == w
	}
	return agrees(h.Type, w.Type) && agrees(h.Encrypted, w.Encrypted) && sameSize(h.VolumeSize, w.VolumeSize)
}

// agrees is true for what the template leaves to Gardener.
func agrees[T comparable](have, want *T) bool {
	return want == nil || have != nil && *have == *want
}

func sameSize(a, b string) bool {
	x, errX := quantity.ParseQuantity(a)
	y, errY := quantity.ParseQuantity(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x.Cmp(y) == 0
}

// retirePools removes the cluster's pools that are not wanted, as the updater
// plans it once all wanted ones are there and available.
func retirePools(in contract.WorkerPoolsInput, have []gardencorev1beta1.Worker) ([]gardencorev1beta1.Worker, error) {
	var instances []updater.Instance
	wanted := map[string]contract.MachinePool{}
	for _, p := range in.Pools {
		wanted[p.Name] = p
	}
	for _, w := range have {
		if !ownsPool(in.Cluster, w) {
			continue
		}
		i := updater.Instance{Name: w.Name, Zone: zoneOf(w), Revision: otherRevision, Ready: true, UpToDate: true, Priority: updater.LowestPriority}
		if _, ok := wanted[w.Name]; ok {
			i.Revision = wantedRevision
		}
		instances = append(instances, i)
	}
	sets := updater.Split(instances, wantedRevision)
	if len(sets.Updated) < len(wanted) {
		return nil, faults.New(faults.Conflict, "PoolMissing", shootName(in.Shoot), "only %d of %d worker pools of this Cluster are there, so those that they replace were kept", len(sets.Updated), len(wanted)).
			WithHint(faults.OwnerOperator, "find out who removed them; cancel this operation and reconcile the Cluster to add them again")
	}
	steps, _, err := updater.Plan(sets, updater.Counts{Desired: len(wanted), MaxSurge: len(sets.Outdated)},
		updater.Config{Availability: told, NoInPlace: true}, updater.Options{})
	if err != nil {
		return nil, err
	}
	out := make([]gardencorev1beta1.Worker, 0, len(have))
	for _, w := range have {
		if slices.Contains(steps, updater.Step{Verb: updater.Delete, Instance: w.Name, Zone: zoneOf(w)}) {
			continue
		}
		w = *w.DeepCopy()
		if p, ok := wanted[w.Name]; ok && ownsPool(in.Cluster, w) {
			w.Minimum, w.Maximum = p.Minimum, p.Maximum
		}
		out = append(out, w)
	}
	return out, nil
}
