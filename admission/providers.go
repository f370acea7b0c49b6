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

// Offer is what a ProviderType has, or a part of it. Zones are named
// region/zone.
type Offer struct {
	Regions, Zones, MachineClasses, StorageClasses map[string]bool
}

func offerOf(pt *v1.ProviderType) Offer {
	o := Offer{Regions: map[string]bool{}, Zones: map[string]bool{}, MachineClasses: map[string]bool{}, StorageClasses: map[string]bool{}}
	for _, r := range pt.Spec.Regions {
		o.Regions[string(r.Name)] = true
		for _, z := range r.Zones {
			o.Zones[string(r.Name)+"/"+string(z)] = true
		}
	}
	for _, m := range pt.Spec.MachineClasses {
		o.MachineClasses[string(m.Name)] = true
	}
	for _, s := range pt.Spec.StorageClasses {
		o.StorageClasses[string(s.Name)] = true
	}
	return o
}

// TakenAway is what an update removes; nil when it removes nothing, and nobody
// has to look whether it is in use.
func TakenAway(old, pt *v1.ProviderType) *Offer {
	had, has := offerOf(old), offerOf(pt)
	count := 0
	for _, pair := range [][2]map[string]bool{
		{had.Regions, has.Regions}, {had.Zones, has.Zones}, {had.MachineClasses, has.MachineClasses}, {had.StorageClasses, has.StorageClasses},
	} {
		maps.DeleteFunc(pair[0], func(name string, _ bool) bool { return pair[1][name] })
		count += len(pair[0])
	}
	if count == 0 {
		return nil
	}
	return &had
}

// UseOf collects what Networks and Clusters use of their ProviderType: of a part
// of it, or of everything when that is nil. Objects that belong to another
// ProviderType are the caller's to leave out.
func UseOf(part *Offer, networks iter.Seq[*v1.Network], clusters iter.Seq[*v1.Cluster]) TypeUse {
	use := TypeUse{
		Regions: map[string][]string{}, Zones: map[string][]string{},
		MachineClasses: map[string][]string{}, StorageClasses: map[string][]string{},
	}
	var only Offer
	if part != nil {
		only = *part
	}
	add := func(m map[string][]string, of map[string]bool, name, kind, user string) {
		if name == "" || part != nil && !of[name] {
			return
		}
		// Each user adds all of its own at once, so that only the last can be it.
		if users := m[name]; len(users) == 0 || users[len(users)-1] != kind+user {
			m[name] = append(users, kind+user)
		}
	}
	for n := range networks {
		const kind = "Network "
		add(use.Regions, only.Regions, string(n.Spec.Region), kind, n.Name)
		for _, z := range n.Spec.Zones {
			add(use.Zones, only.Zones, string(n.Spec.Region)+"/"+string(z), kind, n.Name)
		}
		add(use.MachineClasses, only.MachineClasses, string(n.Spec.SystemPool.MachineClass), kind, n.Name)
	}
	for c := range clusters {
		const kind = "Cluster "
		t := c.Spec.Topology
		machines := []v1.ClassName{t.PD.MachineClass, t.TiDB.MachineClass, t.TiKV.MachineClass}
		volumes := []v1.ClassName{t.PD.Storage.Class, t.TiKV.Storage.Class}
		if f := t.TiFlash; f != nil && f.Replicas > 0 {
			machines, volumes = append(machines, f.MachineClass), append(volumes, f.Storage.Class)
		}
		for _, class := range machines {
			add(use.MachineClasses, only.MachineClasses, string(class), kind, c.Name)
		}
		for _, class := range volumes {
			add(use.StorageClasses, only.StorageClasses, string(class), kind, c.Name)
		}
	}
	return use
}

// CheckTypeUse refuses a ProviderType that lacks what is in use.
func CheckTypeUse(pt *v1.ProviderType, use TypeUse) []plan.Problem {
	has := offerOf(pt)
	var out []plan.Problem
	check := func(path, what string, used map[string][]string, has map[string]bool, wayOut string) {
		for _, name := range slices.Sorted(maps.Keys(used)) {
			if !has[name] {
				out = append(out, plan.NewProblem(path, name, "the %s is used by %s and cannot be removed; put it back%s", what, names(used[name]), wayOut))
			}
		}
	}
	check("spec.regions", "region", use.Regions, has.Regions, ", with deprecated: true it takes no new Networks")
	lost := maps.Clone(use.Zones)
	maps.DeleteFunc(lost, func(name string, _ []string) bool {
		region, _, _ := strings.Cut(name, "/")
		return !has.Regions[region] // told already
	})
	check("spec.regions", "zone", lost, has.Zones, "")
	check("spec.machineClasses", "machine class", use.MachineClasses, has.MachineClasses, "")
	check("spec.storageClasses", "storage class", use.StorageClasses, has.StorageClasses, "")
	return out
}

// ProviderType judges a ProviderType. use is that of what the update takes away;
// see TakenAway.
func ProviderType(pt *v1.ProviderType, use TypeUse) Verdict {
	return Verdict{Problems: append(plan.CheckProviderType(pt), CheckTypeUse(pt, use)...)}
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

// InUse warns of what refers to an object that is to be deleted. The deletion
// waits for it where the operation does; Accounts and Backups have none.
func InUse(kind, name string, users []string) []string {
	if len(users) == 0 {
		return nil
	}
	switch kind {
	case v1.KindAccount:
		return []string{fmt.Sprintf("Account %s is still used by %s: it goes at once, and its quotas with it", name, names(users))}
	case v1.KindBackup:
		return []string{fmt.Sprintf("Backup %s is still used by %s: it goes at once, as its deletion does not wait yet", name, names(users))}
	}
	return []string{fmt.Sprintf("%s %s is still used by %s: its deletion waits until these are gone (condition DeletionBlocked)", kind, name, names(users))}
}
