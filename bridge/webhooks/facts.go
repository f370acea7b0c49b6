package webhooks

import (
	"context"
	"iter"
	"slices"

	"github.com/tidbcloud/infra-orchestrator/admission"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
	"github.com/tidbcloud/infra-orchestrator/plan/exclusion"
)

// usage is what an Account has. An Account without quotas is not counted.
func (c *Caches) usage(account *v1.Account) plan.Usage {
	var sum plan.Usage
	if account == nil || account.Spec.Quotas == nil {
		return sum
	}
	for p := range c.providers.by(byAccount, account.Namespace, account.Name) {
		sum = sum.Plus(c.tally.of(account.Namespace, p.Name))
	}
	return sum
}

// behind are the objects behind a Network; nil for what does not exist.
type behind struct {
	provider *v1.Provider
	pt       *v1.ProviderType
	account  *v1.Account
}

func (c *Caches) behindNetwork(ctx context.Context, n *v1.Network) (behind, error) {
	if n == nil {
		return behind{}, nil
	}
	return c.behindProvider(ctx, n.Namespace, n.Spec.Provider)
}

func (c *Caches) behindProvider(ctx context.Context, ns string, name v1.ReferenceName) (b behind, err error) {
	if b.provider, err = c.providers.get(ctx, ns, string(name)); err != nil || b.provider == nil {
		return b, err
	}
	if b.pt, err = c.types.get(ctx, ns, string(b.provider.Spec.Type)); err != nil {
		return b, err
	}
	b.account, err = c.accounts.get(ctx, ns, string(b.provider.Spec.Account))
	return b, err
}

func (b behind) cloud() v1.Cloud {
	if b.pt == nil {
		return ""
	}
	return b.pt.Spec.Cloud
}

// running lists what runs on a Cluster.
func (c *Caches) running(cluster *v1.Cluster) []exclusion.Running {
	if cluster == nil {
		return nil
	}
	ns, name := cluster.Namespace, cluster.Name
	return admission.RunningOn(cluster, admission.Jobs{
		Imports:  c.imports.by(byCluster, ns, name),
		Backups:  c.backups.by(byCluster, ns, name),
		Restores: c.restores.by(byCluster, ns, name),
		Readers:  c.readers(ns, name),
		TiCDCs:   c.ticdcs.by(byCluster, ns, name),
	})
}

// readers are the Restores into other Clusters that read a Cluster's backups.
func (c *Caches) readers(namespace, cluster string) iter.Seq[*v1.Restore] {
	return func(yield func(*v1.Restore) bool) {
		for backup := range c.backups.by(byCluster, namespace, cluster) {
			for r := range c.restores.by(byBackup, namespace, backup.Name) {
				if string(r.Spec.ClusterName) != cluster && !yield(r) {
					return
				}
			}
		}
	}
}

func (c *Caches) networkFacts(ctx context.Context, old, n *v1.Network, o plan.Options) (f admission.NetworkFacts, err error) {
	b, err := c.behindProvider(ctx, n.Namespace, n.Spec.Provider)
	if err != nil {
		return f, err
	}
	f = admission.NetworkFacts{Provider: b.provider, Type: b.pt, Account: b.account, Options: o}
	if old != nil || b.provider == nil {
		return f, nil
	}
	f.Options.Usage = c.usage(b.account)
	f.Options.ShootHolders = admission.ShootHolders(n, b.provider, o, c.networks.by(byShoot, n.Namespace, shootName(n)),
		func(other *v1.Network) *v1.Provider {
			p, _ := c.providers.cached(other.Namespace, string(other.Spec.Provider))
			return p
		}, false)
	f.Neighbours = c.neighbours(n)
	return f, nil
}

// neighbours are the Networks of the same Provider and region whose range may
// overlap that of n.
func (c *Caches) neighbours(n *v1.Network) iter.Seq[*v1.Network] {
	return func(yield func(*v1.Network) bool) {
		seen := map[string]bool{}
		for _, key := range rangeKeys(n) {
			for other := range c.networks.by(byRange, n.Namespace, key) {
				if !seen[other.Name] && !yield(other) {
					return
				}
				seen[other.Name] = true
			}
		}
	}
}

func (c *Caches) clusterFacts(ctx context.Context, old, o *v1.Cluster, opts Options) (f admission.ClusterFacts, err error) {
	f = admission.ClusterFacts{Options: opts.Plan, Now: opts.now()}
	if f.Network, err = c.networks.get(ctx, o.Namespace, string(o.Spec.Network)); err != nil {
		return f, err
	}
	b, err := c.behindNetwork(ctx, f.Network)
	if err != nil {
		return f, err
	}
	f.Provider, f.Type, f.Account = b.provider, b.pt, b.account
	switch {
	case old == nil:
		f.Options.Usage = c.usage(b.account)
	case admission.Grows(old, o):
		f.Options.Usage = c.usage(b.account).Minus(plan.ClusterUsage(old))
	}
	if old != nil && admission.Disturbs(old, o) {
		f.Running = c.running(old)
	}
	return f, nil
}

func (c *Caches) peerFacts(ctx context.Context, p *v1.NetworkPeer) (f admission.PeerFacts, err error) {
	ns := p.Namespace
	if f.Source, err = c.networks.get(ctx, ns, string(p.Spec.Source)); err != nil {
		return f, err
	}
	if f.Target, err = c.networks.get(ctx, ns, p.Spec.Target); err != nil {
		return f, err
	}
	source, err := c.behindNetwork(ctx, f.Source)
	if err != nil {
		return f, err
	}
	target, err := c.behindNetwork(ctx, f.Target)
	if err != nil {
		return f, err
	}
	f.SourceCloud, f.TargetCloud, f.Account = source.cloud(), target.cloud(), source.account
	f.Used = c.peersOf(f.Account, p.Name)
	for _, n := range []*v1.Network{f.Source, f.Target} {
		if n != nil {
			f.Ranges = append(f.Ranges, c.peerRanges(n, p.Name)...)
		}
	}
	return f, nil
}

// peersOf counts an Account's NetworkPeers, if it has a quota of them.
func (c *Caches) peersOf(account *v1.Account, except string) int32 {
	if account == nil || account.Spec.Quotas == nil || account.Spec.Quotas.Peers == nil {
		return 0
	}
	var count int32
	for p := range c.peers.all() {
		n, ok := c.networks.cached(p.Namespace, string(p.Spec.Source))
		if !ok || p.Name == except {
			continue
		}
		if provider, ok := c.providers.cached(n.Namespace, string(n.Spec.Provider)); ok && string(provider.Spec.Account) == account.Name {
			count++
		}
	}
	return count
}

// peerRanges are the ranges that a Network is connected with, from either end.
func (c *Caches) peerRanges(n *v1.Network, except string) []admission.PeerRange {
	var out []admission.PeerRange
	for p := range c.peers.by(byNetwork, n.Namespace, n.Name) {
		if p.Name == except {
			continue
		}
		far := p.Spec.Target // seen from the source
		if p.Spec.Target == n.Name {
			far = string(p.Spec.Source)
		}
		other, _ := c.networks.cached(n.Namespace, far)
		var cidrs []string
		if p.Spec.External != nil {
			cidrs = admission.PeerCIDRs(p, nil)
		} else if other != nil {
			cidrs = []string{string(other.Spec.CIDR.VPC)}
		}
		for _, cidr := range cidrs {
			out = append(out, admission.PeerRange{Peer: p.Name, Network: n.Name, CIDR: cidr})
		}
	}
	slices.SortFunc(out, func(a, b admission.PeerRange) int {
		return slices.Compare([]string{a.Peer, a.CIDR}, []string{b.Peer, b.CIDR})
	})
	return out
}

// jobFacts are about a Cluster by name.
func (c *Caches) jobFacts(ctx context.Context, ns string, name v1.ReferenceName) (f admission.JobFacts, err error) {
	if f.Cluster, err = c.clusters.get(ctx, ns, string(name)); err != nil || f.Cluster == nil {
		return f, err
	}
	if f.Network, err = c.networks.get(ctx, ns, string(f.Cluster.Spec.Network)); err != nil {
		return f, err
	}
	b, err := c.behindNetwork(ctx, f.Network)
	if err != nil {
		return f, err
	}
	f.Account, f.Cloud, f.Running = b.account, b.cloud(), c.running(f.Cluster)
	return f, nil
}

func (c *Caches) restoreFacts(ctx context.Context, r *v1.Restore) (f admission.RestoreFacts, err error) {
	ns := r.Namespace
	if f.Backup, err = c.backups.get(ctx, ns, string(r.Spec.BackupName)); err != nil {
		return f, err
	}
	if admission.Migrated(r) {
		return f, nil
	}
	target, err := c.jobFacts(ctx, ns, r.Spec.ClusterName)
	if err != nil {
		return f, err
	}
	f.Cluster, f.Network, f.Cloud, f.Running = target.Cluster, target.Network, target.Cloud, target.Running
	f.Others = slices.Collect(c.restores.by(byCluster, ns, string(r.Spec.ClusterName)))
	if f.Backup != nil {
		f.Source, _ = c.clusters.cached(ns, string(f.Backup.Spec.ClusterName))
		f.BackupCloud = c.cloudOf(f.Backup)
	}
	return f, nil
}

// cloudOf is the cloud of a Backup's data, by its label: its Cluster may be gone.
func (c *Caches) cloudOf(b *v1.Backup) v1.Cloud {
	pt, ok := c.types.cached(b.Namespace, b.Labels[v1.LabelProviderType])
	if !ok {
		return ""
	}
	return pt.Spec.Cloud
}

// ticdcFacts come from the caches alone: no rule of a TiCDC calls a reference
// missing.
func (c *Caches) ticdcFacts(t *v1.TiCDC) (f admission.TiCDCFacts) {
	ns := t.Namespace
	if n, ok := c.networks.cached(ns, string(t.Spec.Network)); ok {
		f.Network = n
		if p, ok := c.providers.cached(ns, string(n.Spec.Provider)); ok {
			f.Type, _ = c.types.cached(ns, string(p.Spec.Type))
			f.Account, _ = c.accounts.cached(ns, string(p.Spec.Account))
		}
	}
	f.Upstream, _ = c.clusters.cached(ns, string(t.Spec.Upstream.ClusterName))
	f.Downstream, _ = c.clusters.cached(ns, t.Spec.Downstream.ClusterName)
	f.Peered = map[string]bool{}
	for p := range c.peers.by(byNetwork, ns, string(t.Spec.Network)) {
		f.Peered[string(p.Spec.Source)], f.Peered[p.Spec.Target] = true, true
	}
	f.OnUpstream = c.replicating(f.Upstream, byUpstream)
	f.OnDownstream = c.replicating(f.Downstream, byCluster)
	return f
}

// replicating is what runs on an end of a TiCDC; only the TiCDCs that read the
// Cluster count against their largest number.
func (c *Caches) replicating(cluster *v1.Cluster, index string) []exclusion.Running {
	if cluster == nil {
		return nil
	}
	ns, name := cluster.Namespace, cluster.Name
	jobs := admission.Jobs{
		Imports:  c.imports.by(byCluster, ns, name),
		Restores: c.restores.by(byCluster, ns, name),
	}
	if index == byUpstream {
		jobs.TiCDCs = c.ticdcs.by(byUpstream, ns, name)
	}
	return admission.RunningOn(cluster, jobs)
}

// typeUse is what Networks and Clusters use of a part of a ProviderType.
func (c *Caches) typeUse(pt *v1.ProviderType, part *admission.Offer) admission.TypeUse {
	ns := pt.Namespace
	var mine []*v1.Network
	inside := map[string]bool{}
	for p := range c.providers.by(byType, ns, pt.Name) {
		for n := range c.networks.by(byProvider, ns, p.Name) {
			mine, inside[n.Name] = append(mine, n), true
		}
	}
	clusters := func(yield func(*v1.Cluster) bool) {
		// One pass over all Clusters costs less than one look-up for each Network.
		for o := range c.clusters.all() {
			if inside[string(o.Spec.Network)] && !yield(o) {
				return
			}
		}
	}
	return admission.UseOf(part, slices.Values(mine), clusters)
}

// usersOf lists what refers to an object that is to be deleted, by kind and
// name.
func usersOf[T v1.Object](kind string, objects iter.Seq[T], counts func(T) bool) []string {
	var out []string
	for o := range objects {
		if counts == nil || counts(o) {
			out = append(out, kind+" "+o.GetName())
		}
	}
	return out
}
