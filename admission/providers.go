package admission

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// TypeUse is what of a ProviderType is in use: for each name who uses it.
type TypeUse struct {
	Regions, MachineClasses, StorageClasses map[string][]string
	// Zones are keyed by region/zone.
	Zones map[string][]string
}

// UseOf collects what Networks and Clusters use of their ProviderType. Those
// that belong to another one are the caller's to leave out.
func UseOf(networks iter.Seq[*v1.Network], clusters iter.Seq[*v1.Cluster]) TypeUse {
	use := TypeUse{
		Regions: map[string][]string{}, Zones: map[string][]string{},
		MachineClasses: map[string][]string{}, StorageClasses: map[string][]string{},
	}
	add := func(m map[string][]string, name, user string) {
		if name != "" && !slices.Contains(m[name], user) {
			m[name] = append(m[name], user)
		}
	}
	for n := range networks {
		user := "Network " + n.Name
		add(use.Regions, string(n.Spec.Region), user)
		for _, z := range n.Spec.Zones {
			add(use.Zones, string(n.Spec.Region)+"/"+string(z), user)
		}
		add(use.MachineClasses, string(n.Spec.SystemPool.MachineClass), user)
	}
	for c := range clusters {
		user, t := "Cluster "+c.Name, c.Spec.Topology
		for _, class := range []v1.ClassName{t.PD.MachineClass, t.TiDB.MachineClass, t.TiKV.MachineClass} {
			add(use.MachineClasses, string(class), user)
		}
		add(use.StorageClasses, string(t.PD.Storage.Class), user)
		add(use.StorageClasses, string(t.TiKV.Storage.Class), user)
		if f := t.TiFlash; f != nil && f.Replicas > 0 {
			add(use.MachineClasses, string(f.MachineClass), user)
			add(use.StorageClasses, string(f.Storage.Class), user)
		}
	}
	return use
}

// offered are the names that a ProviderType has, as in TypeUse.
func offered(pt *v1.ProviderType) (regions, zones, machines, storage map[string]bool) {
	regions, zones, machines, storage = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range pt.Spec.Regions {
		regions[string(r.Name)] = true
		for _, z := range r.Zones {
			zones[string(r.Name)+"/"+string(z)] = true
		}
	}
	for _, m := range pt.Spec.MachineClasses {
		machines[string(m.Name)] = true
	}
	for _, s := range pt.Spec.StorageClasses {
		storage[string(s.Name)] = true
	}
	return
}

// TakesAway reports whether an update removes a region, a zone or a class, so
// that somebody must look whether it is in use.
func TakesAway(old, pt *v1.ProviderType) bool {
	r0, z0, m0, s0 := offered(old)
	r1, z1, m1, s1 := offered(pt)
	for _, pair := range [][2]map[string]bool{{r0, r1}, {z0, z1}, {m0, m1}, {s0, s1}} {
		for name := range pair[0] {
			if !pair[1][name] {
				return true
			}
		}
	}
	return false
}

// CheckTypeUse refuses a ProviderType that lacks what is in use. old limits the
// check to what the update removes; nil asks for everything.
func CheckTypeUse(old, pt *v1.ProviderType, use TypeUse) []plan.Problem {
	regions, zones, machines, storage := offered(pt)
	var r0, z0, m0, s0 map[string]bool
	if old != nil {
		r0, z0, m0, s0 = offered(old)
	}
	var out []plan.Problem
	check := func(path, what string, used map[string][]string, had, has map[string]bool, wayOut string) {
		for _, name := range slices.Sorted(maps.Keys(used)) {
			if has[name] || had != nil && !had[name] {
				continue
			}
			out = append(out, plan.NewProblem(path, name, "the %s is used by %s and cannot be removed; put it back%s", what, names(used[name]), wayOut))
		}
	}
	check("spec.regions", "region", use.Regions, r0, regions, ", with deprecated: true it takes no new Networks")
	lost := maps.Clone(use.Zones)
	maps.DeleteFunc(lost, func(name string, _ []string) bool {
		region, _, _ := strings.Cut(name, "/")
		return !regions[region] // told already
	})
	check("spec.regions", "zone", lost, z0, zones, "")
	check("spec.machineClasses", "machine class", use.MachineClasses, m0, machines, "")
	check("spec.storageClasses", "storage class", use.StorageClasses, s0, storage, "")
	return out
}

// ProviderType judges a ProviderType. use counts only when the update takes
// something away; see TakesAway.
func ProviderType(old, pt *v1.ProviderType, use TypeUse) Verdict {
	list := plan.CheckProviderType(pt)
	if old != nil {
		list = append(list, CheckTypeUse(old, pt, use)...)
	}
	return Verdict{Problems: list}
}

// ProviderFacts are what a Provider refers to; nil for what does not exist.
type ProviderFacts struct {
	Type    *v1.ProviderType
	Account *v1.Account
	Options plan.Options
}

// Provider judges a Provider.
func Provider(old, p *v1.Provider, f ProviderFacts) Verdict {
	var list []plan.Problem
	if f.Type == nil {
		list = append(list, plan.Missing("spec.type", v1.KindProviderType, p.Spec.Type))
	} else {
		list = append(list, plan.CheckProvider(p, f.Type, f.Options)...)
	}
	if old == nil {
		if f.Account == nil {
			list = append(list, plan.Missing("spec.account", v1.KindAccount, p.Spec.Account))
		}
		if f.Type != nil {
			list = append(list, plan.CheckNewProvider(p, f.Type, f.Account)...)
		}
	}
	return Verdict{Problems: list}
}

// mostNames keeps messages short.
const mostNames = 10

// names lists up to ten names, and counts the rest.
func names(all []string) string {
	sorted := slices.Sorted(slices.Values(all))
	shown := sorted[:min(len(sorted), mostNames)]
	text := strings.Join(shown, ", ")
	if more := len(sorted) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// InUse warns that a deletion waits for what refers to the object.
func InUse(kind, name string, users []string) []string {
	if len(users) == 0 {
		return nil
	}
	if kind == v1.KindAccount {
		return []string{fmt.Sprintf("Account %s is still used by %s: it goes at once, and its quotas with it", name, names(users))}
	}
	return []string{fmt.Sprintf("%s %s is still used by %s: its deletion waits until these are gone (condition DeletionBlocked)", kind, name, names(users))}
}
