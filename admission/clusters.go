package admission

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
	"github.com/tidbcloud/infra-orchestrator/plan/exclusion"
)

// ClusterFacts are what the rules of a Cluster look at; nil for what does not
// exist.
type ClusterFacts struct {
	Network  *v1.Network
	Provider *v1.Provider
	Type     *v1.ProviderType
	Account  *v1.Account
	// Options hold the Account's usage without the Cluster. It counts for new
	// Clusters and for those that grow; see Grows.
	Options plan.Options
	// Running is what runs on the Cluster. It counts when the update pauses,
	// scales or upgrades it; see Disturbs.
	Running []exclusion.Running
	// Now is the time of the request.
	Now time.Time
}

// Cluster judges a Cluster. old is nil for a new one.
func Cluster(old, c *v1.Cluster, f ClusterFacts) Verdict {
	if f.Network == nil {
		return Verdict{Problems: []plan.Problem{plan.Missing("spec.network", v1.KindNetwork, c.Spec.Network)}}
	}
	if f.Provider == nil || f.Type == nil {
		return allowed // the Network waits for them; the Cluster's first step looks again
	}
	v := Verdict{Problems: plan.CheckCluster(c, f.Network, f.Provider, f.Type)}
	if old == nil {
		v.Problems = append(v.Problems, plan.CheckNewCluster(c, f.Network, f.Account, f.Options)...)
		return v
	}
	if Grows(old, c) {
		v.Problems = append(v.Problems, plan.CheckGrowth(old, c, f.Account, f.Options.Usage)...)
	}
	v.Problems = append(v.Problems, checkDisturbance(old, c, f.Running)...)
	v.Warnings = cooldown(old, c, f.Type, f.Now)
	return v
}

// Grows reports whether a Cluster gets more nodes of some component.
func Grows(old, c *v1.Cluster) bool {
	was, now := old.Spec.Topology, c.Spec.Topology
	return now.TiDB.Replicas > was.TiDB.Replicas || now.TiKV.Replicas > was.TiKV.Replicas || flashes(now) > flashes(was)
}

func flashes(t v1.Topology) int32 {
	if t.TiFlash == nil {
		return 0
	}
	return t.TiFlash.Replicas
}

// Disturbs reports whether an update pauses, scales or upgrades the Cluster, so
// that somebody must look what runs on it.
func Disturbs(old, c *v1.Cluster) bool { return len(disturbances(old, c)) > 0 }

// disturbance is what an update starts, and the field that asks for it.
type disturbance struct {
	want  exclusion.Want
	path  string
	value any
}

func disturbances(old, c *v1.Cluster) []disturbance {
	var out []disturbance
	if c.Spec.Paused && !old.Spec.Paused {
		out = append(out, disturbance{exclusion.WantPause, "spec.paused", true})
	}
	if scales(old.Spec.Topology, c.Spec.Topology) {
		out = append(out, disturbance{exclusion.WantScale, "spec.topology", ""})
	}
	if c.Spec.Version != old.Spec.Version {
		out = append(out, disturbance{exclusion.WantUpgrade, "spec.version", c.Spec.Version})
	}
	return out
}

func scales(was, now v1.Topology) bool {
	if (was.TiFlash == nil) != (now.TiFlash == nil) || was.TiFlash != nil && *was.TiFlash != *now.TiFlash {
		return true
	}
	return was.PD != now.PD || was.TiDB != now.TiDB || was.TiKV != now.TiKV
}

func checkDisturbance(old, c *v1.Cluster, running []exclusion.Running) []plan.Problem {
	var list []plan.Problem
	for _, d := range disturbances(old, c) {
		refused := excluded(d.path, d.value, exclusion.Request{Want: d.want}, running)
		if d.want == exclusion.WantPause && len(refused) == 0 {
			refused = pausable(old)
		}
		list = append(list, refused...)
	}
	return list
}

// excluded are the problems of a request beside what runs.
func excluded(path string, value any, r exclusion.Request, running []exclusion.Running) []plan.Problem {
	var list []plan.Problem
	for _, o := range exclusion.Rejections(r, running...) {
		list = append(list, plan.NewProblem(path, value, "%s", o.Message))
	}
	return list
}

// pausable refuses to pause a Cluster that does not run.
func pausable(c *v1.Cluster) []plan.Problem {
	switch c.Status.Phase {
	case v1.PhaseAvailable, v1.PhaseModifying, v1.PhaseUpgrading, v1.PhasePausing, v1.PhasePaused:
		return nil
	}
	return []plan.Problem{plan.NewProblem("spec.paused", true, "the Cluster is %s; pause it when it is %s", phase(c), v1.PhaseAvailable)}
}

func phase(c *v1.Cluster) string {
	if c.DeletionTimestamp != nil {
		return string(v1.PhaseDeleting)
	}
	if c.Status.Phase == "" {
		return string(v1.PhasePending)
	}
	return string(c.Status.Phase)
}

// defaultCooldown is the default of a storage class's resizeCooldown.
const defaultCooldown = 6 * time.Hour

// cooldown warns that volumes grow later, as they have changed a short while
// ago: AWS refuses a second change within six hours.
func cooldown(old, c *v1.Cluster, pt *v1.ProviderType, now time.Time) []string {
	changed := c.Status.LastStorageChangeAt
	if changed == nil {
		changed = old.Status.LastStorageChangeAt
	}
	if changed == nil {
		return nil
	}
	var out []string
	warn := func(component string, was, is v1.Storage, at *metav1.Time) {
		if at == nil || !larger(is.Size, was.Size) {
			return
		}
		rest := defaultCooldown
		for _, s := range pt.Spec.StorageClasses {
			if s.Name == is.Class {
				if d, err := time.ParseDuration(string(s.ResizeCooldown)); err == nil {
					rest = d
				}
			}
		}
		if due := at.Add(rest); now.Before(due) {
			out = append(out, fmt.Sprintf("spec.topology.%s.storage.size %q: the volumes changed at %s and may change every %s; they grow at %s by themselves",
				component, is.Size, at.UTC().Format(time.RFC3339), rest, due.UTC().Format(time.RFC3339)))
		}
	}
	was, is := old.Spec.Topology, c.Spec.Topology
	warn("tikv", was.TiKV.Storage, is.TiKV.Storage, changed.TiKV)
	if was.TiFlash != nil && is.TiFlash != nil {
		warn("tiflash", was.TiFlash.Storage, is.TiFlash.Storage, changed.TiFlash)
	}
	return out
}

func larger(a, b v1.StorageSize) bool {
	x, err1 := resource.ParseQuantity(string(a))
	y, err2 := resource.ParseQuantity(string(b))
	return err1 == nil && err2 == nil && x.Cmp(y) > 0
}
