package webhooks

import (
	"context"
	"time"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"

	"github.com/tidbcloud/infra-orchestrator/admission"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// Options of the webhooks.
type Options struct {
	// Plan holds the configuration that plans depend on: Env, DefaultProject.
	Plan plan.Options
	// Finalized says which kinds get a finalizer: those with an object workflow
	// that takes it away again. Nil means none.
	Finalized func(kind string) bool
	// Now is time.Now when nil.
	Now func() time.Time
}

func (o *Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

func (o *Options) finalizer(kind string) string {
	if o.Finalized == nil || !o.Finalized(kind) {
		return ""
	}
	return v1.Finalizer(kind)
}

// rules are what is special about a kind. old is nil for a new object.
type rules[T v1.Object] struct {
	kind  string
	fresh func() T
	// spec is compared to tell whether an update concerns the rules.
	spec func(T) any
	// defaults adds to what all kinds get.
	defaults func(ctx context.Context, c *Caches, o *Options, old, new T, d *admission.Defaults) error
	// judge is asked for new objects, and for updates of spec or our labels.
	judge func(ctx context.Context, c *Caches, o *Options, old, new T) (admission.Verdict, error)
	// warn is asked for deletions.
	warn func(c *Caches, o T) []string
}

var accounts = rules[*v1.Account]{
	kind: v1.KindAccount, fresh: func() *v1.Account { return &v1.Account{} },
	spec: func(o *v1.Account) any { return o.Spec },
	warn: func(c *Caches, o *v1.Account) []string {
		return admission.InUse(v1.KindAccount, o.Name, usersOf(v1.KindProvider, c.providers.by(byAccount, o.Namespace, o.Name), nil))
	},
}

var providerTypes = rules[*v1.ProviderType]{
	kind: v1.KindProviderType, fresh: func() *v1.ProviderType { return &v1.ProviderType{} },
	spec: func(o *v1.ProviderType) any { return o.Spec },
	defaults: func(_ context.Context, _ *Caches, _ *Options, _, pt *v1.ProviderType, d *admission.Defaults) error {
		d.ProviderType(pt)
		return nil
	},
	judge: func(_ context.Context, c *Caches, _ *Options, old, pt *v1.ProviderType) (admission.Verdict, error) {
		var use admission.TypeUse
		if old != nil {
			if part := admission.TakenAway(old, pt); part != nil {
				use = c.typeUse(pt, part)
			}
		}
		return admission.ProviderType(pt, use), nil
	},
	warn: func(c *Caches, o *v1.ProviderType) []string {
		return admission.InUse(v1.KindProviderType, o.Name, usersOf(v1.KindProvider, c.providers.by(byType, o.Namespace, o.Name), nil))
	},
}

var providers = rules[*v1.Provider]{
	kind: v1.KindProvider, fresh: func() *v1.Provider { return &v1.Provider{} },
	spec: func(o *v1.Provider) any { return o.Spec },
	defaults: func(_ context.Context, _ *Caches, o *Options, old, p *v1.Provider, d *admission.Defaults) error {
		d.Provider(old, p, o.Plan)
		return nil
	},
	judge: func(ctx context.Context, c *Caches, o *Options, old, p *v1.Provider) (_ admission.Verdict, err error) {
		f := admission.ProviderFacts{Options: o.Plan}
		if f.Type, err = c.types.get(ctx, p.Namespace, string(p.Spec.Type)); err != nil {
			return admission.Verdict{}, err
		}
		if old == nil {
			if f.Account, err = c.accounts.get(ctx, p.Namespace, string(p.Spec.Account)); err != nil {
				return admission.Verdict{}, err
			}
		}
		return admission.Provider(old, p, f), nil
	},
	warn: func(c *Caches, o *v1.Provider) []string {
		return admission.InUse(v1.KindProvider, o.Name, usersOf(v1.KindNetwork, c.networks.by(byProvider, o.Namespace, o.Name), nil))
	},
}

var networks = rules[*v1.Network]{
	kind: v1.KindNetwork, fresh: func() *v1.Network { return &v1.Network{} },
	spec: func(o *v1.Network) any { return o.Spec },
	defaults: func(ctx context.Context, c *Caches, _ *Options, old, n *v1.Network, d *admission.Defaults) error {
		var b behind
		if old == nil || admission.LabelsMissing(old, n, v1.LabelProviderType) {
			var err error
			if b, err = c.behindProvider(ctx, n.Namespace, n.Spec.Provider); err != nil {
				return err
			}
		}
		d.Network(old, n, b.provider, b.pt)
		return nil
	},
	judge: func(ctx context.Context, c *Caches, o *Options, old, n *v1.Network) (admission.Verdict, error) {
		f, err := c.networkFacts(ctx, old, n, o.Plan)
		if err != nil {
			return admission.Verdict{}, err
		}
		return admission.Network(old, n, f), nil
	},
	warn: func(c *Caches, n *v1.Network) []string {
		users := usersOf(v1.KindCluster, c.clusters.by(byNetwork, n.Namespace, n.Name), nil)
		users = append(users, usersOf(v1.KindNetworkPeer, c.peers.by(byNetwork, n.Namespace, n.Name), nil)...)
		users = append(users, usersOf(v1.KindTiCDC, c.ticdcs.by(byNetwork, n.Namespace, n.Name), nil)...)
		return admission.InUse(v1.KindNetwork, n.Name, users)
	},
}

var clusters = rules[*v1.Cluster]{
	kind: v1.KindCluster, fresh: func() *v1.Cluster { return &v1.Cluster{} },
	spec: func(o *v1.Cluster) any { return o.Spec },
	defaults: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.Cluster, d *admission.Defaults) error {
		return c.inNetwork(ctx, old, o, string(o.Spec.Network), d)
	},
	judge: func(ctx context.Context, c *Caches, opts *Options, old, o *v1.Cluster) (admission.Verdict, error) {
		f, err := c.clusterFacts(ctx, old, o, *opts)
		if err != nil {
			return admission.Verdict{}, err
		}
		return admission.Cluster(old, o, f), nil
	},
	warn: func(c *Caches, o *v1.Cluster) []string {
		return admission.InUse(v1.KindCluster, o.Name, usersOf(v1.KindTiCDC, c.ticdcs.by(byCluster, o.Namespace, o.Name), nil))
	},
}

var peers = rules[*v1.NetworkPeer]{
	kind: v1.KindNetworkPeer, fresh: func() *v1.NetworkPeer { return &v1.NetworkPeer{} },
	spec: func(o *v1.NetworkPeer) any { return o.Spec },
	defaults: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.NetworkPeer, d *admission.Defaults) error {
		return c.inNetwork(ctx, old, o, string(o.Spec.Source), d)
	},
	judge: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.NetworkPeer) (admission.Verdict, error) {
		if old != nil {
			return admission.NetworkPeer(old, o, admission.PeerFacts{}), nil
		}
		f, err := c.peerFacts(ctx, o)
		if err != nil {
			return admission.Verdict{}, err
		}
		return admission.NetworkPeer(nil, o, f), nil
	},
}

var backups = rules[*v1.Backup]{
	kind: v1.KindBackup, fresh: func() *v1.Backup { return &v1.Backup{} },
	spec: func(o *v1.Backup) any { return o.Spec },
	defaults: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.Backup, d *admission.Defaults) error {
		return c.ofCluster(ctx, old, o, string(o.Spec.ClusterName), d)
	},
	judge: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.Backup) (_ admission.Verdict, err error) {
		var f admission.JobFacts
		if old == nil && !admission.Migrated(o) {
			if f, err = c.jobFacts(ctx, o.Namespace, o.Spec.ClusterName); err != nil {
				return admission.Verdict{}, err
			}
		}
		return admission.Backup(old, o, f), nil
	},
	warn: func(c *Caches, o *v1.Backup) []string {
		return admission.InUse(v1.KindBackup, o.Name, usersOf(v1.KindRestore, c.restores.by(byBackup, o.Namespace, o.Name),
			admission.Reads))
	},
}

var restores = rules[*v1.Restore]{
	kind: v1.KindRestore, fresh: func() *v1.Restore { return &v1.Restore{} },
	spec: func(o *v1.Restore) any { return o.Spec },
	defaults: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.Restore, d *admission.Defaults) error {
		return c.ofCluster(ctx, old, o, string(o.Spec.ClusterName), d)
	},
	judge: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.Restore) (_ admission.Verdict, err error) {
		var f admission.RestoreFacts
		if old == nil {
			if f, err = c.restoreFacts(ctx, o); err != nil {
				return admission.Verdict{}, err
			}
		}
		return admission.Restore(old, o, f), nil
	},
}

var imports = rules[*v1.Import]{
	kind: v1.KindImport, fresh: func() *v1.Import { return &v1.Import{} },
	spec: func(o *v1.Import) any { return o.Spec },
	defaults: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.Import, d *admission.Defaults) error {
		if admission.Migrated(o) {
			d.OfCluster(o, string(o.Spec.ClusterName), nil) // a record: nothing is looked up
			return nil
		}
		return c.ofCluster(ctx, old, o, string(o.Spec.ClusterName), d)
	},
	judge: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.Import) (_ admission.Verdict, err error) {
		var f admission.JobFacts
		if old == nil && !admission.Migrated(o) {
			if f, err = c.jobFacts(ctx, o.Namespace, o.Spec.ClusterName); err != nil {
				return admission.Verdict{}, err
			}
		}
		return admission.Import(old, o, f), nil
	},
}

var ticdcs = rules[*v1.TiCDC]{
	kind: v1.KindTiCDC, fresh: func() *v1.TiCDC { return &v1.TiCDC{} },
	spec: func(o *v1.TiCDC) any { return o.Spec },
	defaults: func(ctx context.Context, c *Caches, _ *Options, old, o *v1.TiCDC, d *admission.Defaults) error {
		return c.inNetwork(ctx, old, o, string(o.Spec.Network), d)
	},
	judge: func(_ context.Context, c *Caches, _ *Options, old, o *v1.TiCDC) (admission.Verdict, error) {
		var f admission.TiCDCFacts
		if old == nil {
			f = c.ticdcFacts(o)
		}
		return admission.TiCDC(old, o, f), nil
	},
}

// inNetwork fills in the labels of an object in a Network, which it looks up
// when one is missing.
func (c *Caches) inNetwork(ctx context.Context, old, o v1.Object, name string, d *admission.Defaults) error {
	if !admission.LabelsMissing(present(old), o, v1.LabelNetwork, v1.LabelProvider, v1.LabelProviderType) {
		return nil
	}
	n, err := c.networks.get(ctx, o.GetNamespace(), name)
	if err != nil {
		return err
	}
	d.InNetwork(o, name, n)
	return nil
}

// ofCluster fills in the labels of an object that refers to a Cluster.
func (c *Caches) ofCluster(ctx context.Context, old, o v1.Object, name string, d *admission.Defaults) error {
	if !admission.LabelsMissing(present(old), o, v1.LabelCluster, v1.LabelNetwork, v1.LabelProvider, v1.LabelProviderType) {
		return nil
	}
	cluster, err := c.clusters.get(ctx, o.GetNamespace(), name)
	if err != nil {
		return err
	}
	d.OfCluster(o, name, cluster)
	return nil
}
