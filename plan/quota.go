package plan

import (
	"iter"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Usage counts what an Account has.
type Usage struct {
	Networks     int32
	Clusters     int32
	TiDBNodes    int32
	TiKVNodes    int32
	TiFlashNodes int32
}

// UsageOf counts what an Account has through its Providers, without the object
// with the UID except. Objects that are being deleted count until they are
// gone: their resources are still there.
func UsageOf(account string, providers []v1.Provider, networks []v1.Network, clusters []v1.Cluster, except string) Usage {
	return CountUsage(account, pointers(providers), pointers(networks), pointers(clusters), func(o v1.Object) bool {
		return except != "" && string(o.GetUID()) == except
	})
}

// UsageBefore counts what an Account has as the new object o finds it: without o,
// and without those that came after it and have nothing yet. Of two that want
// the last of a quota the older one gets it.
func UsageBefore(o v1.Object, account string, providers []v1.Provider, networks []v1.Network, clusters []v1.Cluster) Usage {
	return CountUsage(account, pointers(providers), pointers(networks), pointers(clusters), func(other v1.Object) bool {
		return other.GetUID() == o.GetUID() || !begun(other) && before(o, other)
	})
}

// begun reports whether an object may have something outside.
func begun(o v1.Object) bool {
	s := o.Common()
	if s.ObservedGeneration != 0 || len(s.Resources) > 0 || o.GetDeletionTimestamp() != nil {
		return true
	}
	n, ok := o.(*v1.Network)
	return ok && n.Status.Shoot != nil
}

// before orders two objects the same way in every look: by creation, then by
// name.
func before(x, y v1.Object) bool {
	tx, ty := x.GetCreationTimestamp(), y.GetCreationTimestamp()
	if !tx.Equal(&ty) {
		return tx.Before(&ty)
	}
	return x.GetNamespace()+"/"+x.GetName() < y.GetNamespace()+"/"+y.GetName()
}

// CountUsage is UsageOf for objects that are not to be copied, such as those of
// a cache. It changes none of them. Those that skip names are not counted; nil
// skips none.
func CountUsage(account string, providers iter.Seq[*v1.Provider], networks iter.Seq[*v1.Network], clusters iter.Seq[*v1.Cluster], skip func(v1.Object) bool) Usage {
	type key struct{ namespace, name string }
	mine := map[key]bool{}
	for p := range providers {
		if string(p.Spec.Account) == account {
			mine[key{p.Namespace, p.Name}] = true
		}
	}
	var u Usage
	inside := map[key]bool{}
	for n := range networks {
		if !mine[key{n.Namespace, string(n.Spec.Provider)}] {
			continue
		}
		inside[key{n.Namespace, n.Name}] = true
		if skip == nil || !skip(n) {
			u.Networks++
		}
	}
	for c := range clusters {
		if inside[key{c.Namespace, string(c.Spec.Network)}] && (skip == nil || !skip(c)) {
			u = u.Plus(ClusterUsage(c))
		}
	}
	return u
}

func pointers[T any](list []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// ClusterUsage is what one Cluster has.
func ClusterUsage(c *v1.Cluster) Usage {
	u := Usage{Clusters: 1, TiDBNodes: c.Spec.Topology.TiDB.Replicas, TiKVNodes: c.Spec.Topology.TiKV.Replicas}
	if c.Spec.Topology.TiFlash != nil {
		u.TiFlashNodes = c.Spec.Topology.TiFlash.Replicas
	}
	return u
}

// Plus adds two Usages.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Networks: u.Networks + v.Networks, Clusters: u.Clusters + v.Clusters,
		TiDBNodes: u.TiDBNodes + v.TiDBNodes, TiKVNodes: u.TiKVNodes + v.TiKVNodes, TiFlashNodes: u.TiFlashNodes + v.TiFlashNodes,
	}
}

// Minus is what u has beyond v.
func (u Usage) Minus(v Usage) Usage {
	return Usage{
		Networks: u.Networks - v.Networks, Clusters: u.Clusters - v.Clusters,
		TiDBNodes: u.TiDBNodes - v.TiDBNodes, TiKVNodes: u.TiKVNodes - v.TiKVNodes, TiFlashNodes: u.TiFlashNodes - v.TiFlashNodes,
	}
}

// CheckGrowth checks the quota of a Cluster that gets more nodes. used is what
// the Account has without the Cluster. Components that do not grow are not
// judged: a quota below what exists leaves it alone.
func CheckGrowth(old, c *v1.Cluster, account *v1.Account, used Usage) []Problem {
	was, wanted := ClusterUsage(old), ClusterUsage(c)
	wanted.Clusters = 0
	for _, f := range []struct{ was, wanted *int32 }{
		{&was.TiDBNodes, &wanted.TiDBNodes}, {&was.TiKVNodes, &wanted.TiKVNodes}, {&was.TiFlashNodes, &wanted.TiFlashNodes},
	} {
		if *f.wanted <= *f.was {
			*f.wanted = 0
		}
	}
	return checkQuota(c, account, used, wanted).list
}

// CheckPeers checks the quota of NetworkPeers for one more.
func CheckPeers(p *v1.NetworkPeer, account *v1.Account, used int32) []Problem {
	if account == nil || account.Spec.Quotas == nil || account.Spec.Quotas.Peers == nil || used < *account.Spec.Quotas.Peers {
		return nil
	}
	return []Problem{NewProblem("metadata.name", p.Name, "Account %s may have %d NetworkPeers and has %d already; remove some or raise the Account's quota",
		account.Name, *account.Spec.Quotas.Peers, used)}
}

// Suspended refuses what is new for a suspended Account, which the object refers
// to by the field at path; account may be nil.
func Suspended(path string, value any, account *v1.Account) []Problem {
	if account == nil || !account.Spec.Suspended {
		return nil
	}
	return []Problem{NewProblem(path, value, "its Account %s is suspended; nothing new is made for it", account.Name)}
}

// checkQuota checks what a new object asks for in addition to what is used.
func checkQuota(o v1.Object, account *v1.Account, used, wanted Usage) *problems {
	var p problems
	if account == nil || account.Spec.Quotas == nil {
		return &p
	}
	q := account.Spec.Quotas
	for _, l := range []struct {
		path         string
		value        any
		what         string
		limit        *int32
		used, wanted int32
	}{
		{"metadata.name", o.GetName(), "Networks", q.Networks, used.Networks, wanted.Networks},
		{"metadata.name", o.GetName(), "Clusters", q.Clusters, used.Clusters, wanted.Clusters},
		{"spec.topology.tidb.replicas", wanted.TiDBNodes, "TiDB nodes", q.TiDBNodes, used.TiDBNodes, wanted.TiDBNodes},
		{"spec.topology.tikv.replicas", wanted.TiKVNodes, "TiKV nodes", q.TiKVNodes, used.TiKVNodes, wanted.TiKVNodes},
		{"spec.topology.tiflash.replicas", wanted.TiFlashNodes, "TiFlash nodes", q.TiFlashNodes, used.TiFlashNodes, wanted.TiFlashNodes},
	} {
		if l.limit != nil && l.wanted > 0 && l.used+l.wanted > *l.limit {
			p.add(l.path, l.value, "Account %s may have %d %s and has %d already; remove some or raise the Account's quota", account.Name, *l.limit, l.what, l.used)
		}
	}
	return &p
}
