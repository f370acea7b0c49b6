package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// Names of the indexes. Each key is namespace/value.
const (
	byAccount    = "account"
	byType       = "type"
	byProvider   = "provider"
	byRange      = "provider+region+range"
	byShoot      = "shoot"
	byNetwork    = "network"
	byCluster    = "cluster"
	byUpstream   = "upstream"
	byBackup     = "backup"
	byIdentityID = "identity"
)

// Caches hold every object of ours in one namespace, indexed by what the rules
// ask for. They are filled by Start, or by a test.
type Caches struct {
	accounts  *store[*v1.Account]
	types     *store[*v1.ProviderType]
	providers *store[*v1.Provider]
	networks  *store[*v1.Network]
	clusters  *store[*v1.Cluster]
	peers     *store[*v1.NetworkPeer]
	backups   *store[*v1.Backup]
	restores  *store[*v1.Restore]
	imports   *store[*v1.Import]
	ticdcs    *store[*v1.TiCDC]

	// tally counts Networks and Clusters.
	tally *tally

	// parts are all of the above.
	parts []part
}

// part is one kind of the caches.
type part struct {
	kind     string
	example  v1.Object
	indexers cache.Indexers
	// use puts the indexer of an informer, or of a test, in place.
	use func(cache.Indexer)
	// indexer in use.
	indexer func() cache.Indexer
	// informer that fills it; nil in a test.
	informer cache.SharedIndexInformer
	// counted reports whether the tally has heard of everything; nil when it
	// does not listen.
	counted cache.InformerSynced
}

// synced reports whether everything has been read once.
func (p *part) synced() bool {
	return p.informer == nil || p.informer.HasSynced() && (p.counted == nil || p.counted())
}

// NewCaches returns caches that are empty until something is put into them.
// live reads past them.
func NewCaches(live client.Reader) *Caches {
	c := &Caches{tally: newTally()}
	c.accounts = add(c, live, v1.KindAccount, func() *v1.Account { return &v1.Account{} }, nil)
	c.types = add(c, live, v1.KindProviderType, func() *v1.ProviderType { return &v1.ProviderType{} }, nil)
	c.providers = add(c, live, v1.KindProvider, func() *v1.Provider { return &v1.Provider{} }, cache.Indexers{
		byAccount: indexed(func(p *v1.Provider) []string { return []string{string(p.Spec.Account)} }),
		byType:    indexed(func(p *v1.Provider) []string { return []string{string(p.Spec.Type)} }),
	})
	c.networks = add(c, live, v1.KindNetwork, func() *v1.Network { return &v1.Network{} }, cache.Indexers{
		byProvider: indexed(func(n *v1.Network) []string { return []string{string(n.Spec.Provider)} }),
		byRange:    indexed(rangeKeys),
		byShoot:    indexed(func(n *v1.Network) []string { return []string{shootName(n)} }),
	})
	c.clusters = add(c, live, v1.KindCluster, func() *v1.Cluster { return &v1.Cluster{} }, cache.Indexers{
		byNetwork: indexed(func(o *v1.Cluster) []string { return []string{string(o.Spec.Network)} }),
	})
	c.peers = add(c, live, v1.KindNetworkPeer, func() *v1.NetworkPeer { return &v1.NetworkPeer{} }, cache.Indexers{
		byNetwork: indexed(func(o *v1.NetworkPeer) []string { return []string{string(o.Spec.Source), o.Spec.Target} }),
	})
	c.backups = add(c, live, v1.KindBackup, func() *v1.Backup { return &v1.Backup{} }, cache.Indexers{
		byCluster: indexed(func(o *v1.Backup) []string { return []string{string(o.Spec.ClusterName)} }),
	})
	c.restores = add(c, live, v1.KindRestore, func() *v1.Restore { return &v1.Restore{} }, cache.Indexers{
		byCluster: indexed(func(o *v1.Restore) []string { return []string{string(o.Spec.ClusterName)} }),
		byBackup:  indexed(func(o *v1.Restore) []string { return []string{string(o.Spec.BackupName)} }),
	})
	c.imports = add(c, live, v1.KindImport, func() *v1.Import { return &v1.Import{} }, cache.Indexers{
		byCluster: indexed(func(o *v1.Import) []string { return []string{string(o.Spec.ClusterName)} }),
	})
	c.ticdcs = add(c, live, v1.KindTiCDC, func() *v1.TiCDC { return &v1.TiCDC{} }, cache.Indexers{
		byNetwork:  indexed(func(o *v1.TiCDC) []string { return []string{string(o.Spec.Network)} }),
		byUpstream: indexed(func(o *v1.TiCDC) []string { return []string{string(o.Spec.Upstream.ClusterName)} }),
		byCluster: indexed(func(o *v1.TiCDC) []string {
			return []string{string(o.Spec.Upstream.ClusterName), o.Spec.Downstream.ClusterName}
		}),
	})
	return c
}

// add makes the store of one kind, with the indexes of all kinds beside its own.
func add[T v1.Object](c *Caches, live client.Reader, kind string, fresh func() T, indexers cache.Indexers) *store[T] {
	if indexers == nil {
		indexers = cache.Indexers{}
	}
	indexers[byIdentityID] = indexed(func(o T) []string { return []string{o.GetAnnotations()[v1.AnnotationID]} })
	s := &store[T]{live: live, fresh: fresh, indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)}
	c.parts = append(c.parts, part{
		kind: kind, example: fresh(), indexers: indexers,
		use:     func(i cache.Indexer) { s.indexer = i },
		indexer: func() cache.Indexer { return s.indexer },
	})
	return s
}

// rangeKeys are the blocks of 65,536 addresses that a Network's VPC has a part
// of. Those larger than a /8 are refused elsewhere.
func rangeKeys(n *v1.Network) []string {
	vpc, err := netip.ParsePrefix(string(n.Spec.CIDR.VPC))
	if err != nil || !vpc.Addr().Is4() || vpc.Bits() < 8 {
		return nil
	}
	first := vpc.Masked().Addr().As4()
	var keys []string
	for i := range 1 << max(0, 16-vpc.Bits()) {
		block := int(first[0])<<8 + int(first[1]) + i
		keys = append(keys, fmt.Sprintf("%s/%s/%d", n.Spec.Provider, n.Spec.Region, block))
	}
	return keys
}

// shootName is the name of the Shoot that exists, or of the one to make.
func shootName(n *v1.Network) string {
	if s := n.Status.Shoot; s != nil && s.Name != "" {
		return s.Name
	}
	return plan.ShootName(n)
}

// Watch makes the informers that fill the caches with what is in a namespace.
// They run from Start on.
func (c *Caches) Watch(cfg *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, namespace string) error {
	codecs := serializer.NewCodecFactory(scheme)
	rc, err := apiutil.RESTClientForGVK(v1.GroupVersion.WithKind(v1.KindAccount), false, false, cfg, codecs, httpClient)
	if err != nil {
		return err
	}
	for i := range c.parts {
		p := &c.parts[i]
		lw := cache.NewListWatchFromClient(rc, plural(p.kind), namespace, fields.Everything())
		p.informer = cache.NewSharedIndexInformer(lw, p.example, 0, p.indexers)
		if err := p.informer.SetTransform(slim); err != nil {
			return err
		}
		p.use(p.informer.GetIndexer())
		if p.kind != v1.KindNetwork && p.kind != v1.KindCluster {
			continue
		}
		registration, err := p.informer.AddEventHandler(c.tally.handler())
		if err != nil {
			return err
		}
		p.counted = registration.HasSynced
	}
	return nil
}

// plural is the name of a kind in URLs.
func plural(kind string) string {
	k, _ := v1.KindOf(kind)
	return k.Plural
}

// slim drops what no rule reads, which is more than half of an object.
func slim(item any) (any, error) {
	o, ok := item.(v1.Object)
	if !ok {
		return item, nil
	}
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations["kubectl.kubernetes.io/last-applied-configuration"] != "" {
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		o.SetAnnotations(annotations)
	}
	status := o.Common()
	status.Operation, status.LastError, status.Resources = nil, nil, nil
	return o, nil
}

// Start fills the caches until ctx ends; it is a manager.Runnable.
func (c *Caches) Start(ctx context.Context) error {
	done := make(chan struct{}, len(c.parts))
	for _, p := range c.parts {
		if p.informer == nil {
			return errors.New("webhooks: Start without Watch")
		}
		go func() {
			p.informer.RunWithContext(ctx)
			done <- struct{}{}
		}()
	}
	for range c.parts {
		<-done
	}
	return nil
}

// NeedLeaderElection tells the manager to start it on the standby, too: it
// serves webhooks like the leader.
func (c *Caches) NeedLeaderElection() bool { return false }

// Synced reports whether every kind has been read once.
func (c *Caches) Synced() bool {
	for _, p := range c.parts {
		if !p.synced() {
			return false
		}
	}
	return true
}

// WaitForSync returns once Synced does, or when ctx ends.
func (c *Caches) WaitForSync(ctx context.Context) error {
	for _, p := range c.parts {
		if !cache.WaitForCacheSync(ctx.Done(), p.synced) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// holder names a living object that has an identity, "" for none. except is the
// object that asks.
func (c *Caches) holder(identity string, except v1.Object, kind string) string {
	for _, p := range c.parts {
		items, err := p.indexer().ByIndex(byIdentityID, except.GetNamespace()+"/"+identity)
		if err != nil {
			panic(err) // every part has the index
		}
		for _, item := range items {
			o, ok := item.(v1.Object)
			if !ok || p.kind == kind && o.GetName() == except.GetName() {
				continue
			}
			return p.kind + " " + o.GetNamespace() + "/" + o.GetName()
		}
	}
	return ""
}
