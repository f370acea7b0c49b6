package webhooks

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// tally counts what each Provider has, so that a quota is checked without a
// look at every Network and Cluster. It follows the events of the caches; the
// references that it goes by are immutable.
type tally struct {
	mu sync.RWMutex
	// networks and clusters that exist, by namespace/name.
	networks map[string]string // provider
	clusters map[string]counted
	// inNetwork sums the Clusters of a Network, which may not be known yet.
	inNetwork map[string]plan.Usage
	// ofProvider sums the Networks of a Provider with their Clusters.
	ofProvider map[string]plan.Usage
}

// counted is what a Cluster adds.
type counted struct {
	network string
	usage   plan.Usage
}

func newTally() *tally {
	return &tally{
		networks: map[string]string{}, clusters: map[string]counted{},
		inNetwork: map[string]plan.Usage{}, ofProvider: map[string]plan.Usage{},
	}
}

func keyOf(namespace, name string) string { return namespace + "/" + name }

// of is what a Provider has.
func (t *tally) of(namespace, provider string) plan.Usage {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.ofProvider[keyOf(namespace, provider)]
}

// handler feeds the tally with the events of an informer.
func (t *tally) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    t.put,
		UpdateFunc: func(_, o any) { t.put(o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			t.remove(o)
		},
	}
}

func (t *tally) put(o any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(o)
	switch o := o.(type) {
	case *v1.Network:
		key, provider := keyOf(o.Namespace, o.Name), keyOf(o.Namespace, string(o.Spec.Provider))
		t.networks[key] = provider
		t.add(t.ofProvider, provider, plan.Usage{Networks: 1}.Plus(t.inNetwork[key]))
	case *v1.Cluster:
		c := counted{network: keyOf(o.Namespace, string(o.Spec.Network)), usage: plan.ClusterUsage(o)}
		t.clusters[keyOf(o.Namespace, o.Name)] = c
		t.count(c, c.usage)
	}
}

func (t *tally) remove(o any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(o)
}

// forget takes back what the object added before.
func (t *tally) forget(o any) {
	switch o := o.(type) {
	case *v1.Network:
		key := keyOf(o.Namespace, o.Name)
		if provider, ok := t.networks[key]; ok {
			delete(t.networks, key)
			t.add(t.ofProvider, provider, plan.Usage{}.Minus(plan.Usage{Networks: 1}.Plus(t.inNetwork[key])))
		}
	case *v1.Cluster:
		key := keyOf(o.Namespace, o.Name)
		if c, ok := t.clusters[key]; ok {
			delete(t.clusters, key)
			t.count(c, plan.Usage{}.Minus(c.usage))
		}
	}
}

// count adds what a Cluster has to its Network and, when that is known, to its
// Provider.
func (t *tally) count(c counted, usage plan.Usage) {
	t.add(t.inNetwork, c.network, usage)
	if provider, ok := t.networks[c.network]; ok {
		t.add(t.ofProvider, provider, usage)
	}
}

func (t *tally) add(to map[string]plan.Usage, key string, usage plan.Usage) {
	sum := to[key].Plus(usage)
	if sum == (plan.Usage{}) {
		delete(to, key)
		return
	}
	to[key] = sum
}
