package admission

import (
	"fmt"
	"iter"
	"net/netip"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// NetworkFacts are what the rules of a Network look at; nil for what does not
// exist. What only new Networks are asked for counts for these only.
type NetworkFacts struct {
	Provider *v1.Provider
	Type     *v1.ProviderType
	// Account of the Provider.
	Account *v1.Account
	// Options hold the Account's usage and the holders of the Shoot's name.
	Options plan.Options
	// Neighbours are the other Networks of the same Provider and region.
	Neighbours iter.Seq[*v1.Network]
}

// Network judges a Network. old is nil for a new one.
func Network(old, n *v1.Network, f NetworkFacts) Verdict {
	if f.Provider == nil {
		return Verdict{Problems: []plan.Problem{plan.Missing("spec.provider", v1.KindProvider, n.Spec.Provider)}}
	}
	if f.Type == nil {
		return allowed // the Provider waits for it; the Network's first step looks again
	}
	v := Verdict{Problems: plan.CheckNetwork(n, f.Provider, f.Type, f.Options)}
	if old != nil {
		return v
	}
	v.Problems = append(v.Problems, plan.CheckNewNetwork(n, f.Provider, f.Type, f.Account, f.Options)...)
	if f.Neighbours != nil {
		v.Warnings = overlaps(n, f.Neighbours)
	}
	return v
}

// overlaps warns of Networks that could never be peered with n.
func overlaps(n *v1.Network, neighbours iter.Seq[*v1.Network]) []string {
	vpc, ok := parse(string(n.Spec.CIDR.VPC))
	if !ok {
		return nil
	}
	var found []string
	for other := range neighbours {
		if p, ok := parse(string(other.Spec.CIDR.VPC)); ok && p.Overlaps(vpc) && other.Name != n.Name {
			found = append(found, other.Name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("spec.cidr.vpc %q overlaps that of Network %s: they can never be peered with each other; choose another range if they shall be", n.Spec.CIDR.VPC, names(found))}
}

func parse(cidr string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(cidr)
	return p, err == nil
}

// ShootHolders are the Networks that have the name of n's Shoot in the same
// Gardener project, whatever the region. candidates are Networks with that name
// of a Shoot; providerOf returns the Provider of a Network, nil when there is
// none. With olderOnly, two that collide are not both refused.
func ShootHolders(n *v1.Network, provider *v1.Provider, o plan.Options, candidates iter.Seq[*v1.Network], providerOf func(*v1.Network) *v1.Provider, olderOnly bool) []string {
	want := plan.ShootKey(n, provider, o)
	var out []string
	for other := range candidates {
		if other.Namespace == n.Namespace && other.Name == n.Name {
			continue
		}
		p := providerOf(other)
		if p == nil || plan.ShootKey(other, p, o) != want || olderOnly && !older(other, n) {
			continue
		}
		out = append(out, other.Name)
	}
	return out
}

// older orders two objects the same way in every look: by creation, then by uid.
func older(x, y v1.Object) bool {
	tx, ty := x.GetCreationTimestamp(), y.GetCreationTimestamp()
	if !tx.Equal(&ty) {
		return tx.Before(&ty)
	}
	return x.GetUID() < y.GetUID()
}

// PeerFacts are what the rules of a new NetworkPeer look at; nil for what does
// not exist.
type PeerFacts struct {
	Source, Target *v1.Network
	// SourceCloud and TargetCloud are those of the Networks' ProviderTypes; ""
	// when unknown.
	SourceCloud, TargetCloud v1.Cloud
	// Account of the source's Provider.
	Account *v1.Account
	// Used counts the Account's NetworkPeers.
	Used int32
	// Ranges are what the source, and the target if there is one, are connected
	// with already, by the name of the NetworkPeer.
	Ranges []PeerRange
}

// PeerRange is a range that a Network is connected with.
type PeerRange struct {
	Peer, Network, CIDR string
}

// NetworkPeer judges a NetworkPeer. What can change later breaks no rule.
func NetworkPeer(old, p *v1.NetworkPeer, f PeerFacts) Verdict {
	if old != nil {
		return allowed
	}
	var list []plan.Problem
	list = append(list, peerEnd("spec.source", string(p.Spec.Source), f.Source)...)
	list = append(list, ofNetwork(p, f.Source)...)
	if p.Spec.Target != "" {
		list = append(list, peerEnd("spec.target", p.Spec.Target, f.Target)...)
		if f.SourceCloud != "" && f.TargetCloud != "" && f.SourceCloud != f.TargetCloud {
			list = append(list, plan.NewProblem("spec.target", p.Spec.Target, "is on %s and the source on %s; only Networks of one cloud can be peered, choose another target", f.TargetCloud, f.SourceCloud))
		}
	}
	if e := p.Spec.External; e != nil && f.SourceCloud != "" {
		list = append(list, externalFits(e, f.SourceCloud)...)
	}
	list = append(list, peerRanges(p, f)...)
	list = append(list, plan.Suspended("spec.source", p.Spec.Source, f.Account)...)
	list = append(list, plan.CheckPeers(p, f.Account, f.Used)...)
	return Verdict{Problems: list}
}

func peerEnd(path, name string, n *v1.Network) []plan.Problem {
	switch {
	case n == nil:
		return []plan.Problem{plan.Missing(path, v1.KindNetwork, name)}
	case n.DeletionTimestamp != nil:
		return []plan.Problem{plan.NewProblem(path, name, "the Network is being deleted; choose another one")}
	}
	return nil
}

func externalFits(e *v1.ExternalVPC, cloud v1.Cloud) []plan.Problem {
	switch {
	case cloud == v1.CloudAWS && e.GCP != nil:
		return []plan.Problem{plan.NewProblem("spec.external.gcp", e.GCP.Network, "the source Network is on AWS, which cannot be peered with a network on GCP; give spec.external.aws")}
	case cloud == v1.CloudGCP && e.AWS != nil:
		return []plan.Problem{plan.NewProblem("spec.external.aws", e.AWS.VPCID, "the source Network is on GCP, which cannot be peered with a VPC on AWS; give spec.external.gcp")}
	}
	return nil
}

// PeerCIDRs are the ranges behind a NetworkPeer as seen from its source; target
// may be nil.
func PeerCIDRs(p *v1.NetworkPeer, target *v1.Network) []string {
	switch {
	case p.Spec.External != nil && p.Spec.External.AWS != nil:
		out := make([]string, 0, len(p.Spec.External.AWS.CIDRs))
		for _, c := range p.Spec.External.AWS.CIDRs {
			out = append(out, string(c))
		}
		return out
	case target != nil:
		return []string{string(target.Spec.CIDR.VPC)}
	}
	return nil // the networks of GCP tell their ranges when they are connected
}

// peerRanges refuses ranges that the source, or the target, routes elsewhere
// already. A cloud would make the peering all the same, and traffic would take
// the wrong way.
func peerRanges(p *v1.NetworkPeer, f PeerFacts) []plan.Problem {
	var list []plan.Problem
	path := "spec.target"
	if p.Spec.External != nil {
		path = "spec.external.aws.cidrs"
	}
	clash := func(cidr, of, with string) {
		a, ok1 := parse(cidr)
		b, ok2 := parse(with)
		if ok1 && ok2 && a.Overlaps(b) {
			list = append(list, plan.NewProblem(path, cidr, "overlaps %s, %s; peered ranges must not overlap, use a VPC with another range", of, with))
		}
	}
	for _, cidr := range PeerCIDRs(p, f.Target) {
		if s := f.Source; s != nil {
			clash(cidr, "spec.cidr.vpc of Network "+s.Name, string(s.Spec.CIDR.VPC))
			clash(cidr, "spec.cidr.pods of Network "+s.Name, string(s.Spec.CIDR.Pods))
			clash(cidr, "spec.cidr.services of Network "+s.Name, string(s.Spec.CIDR.Services))
		}
		for _, r := range f.Ranges {
			if r.Network == string(p.Spec.Source) {
				clash(cidr, fmt.Sprintf("what NetworkPeer %s connects Network %s with", r.Peer, r.Network), r.CIDR)
			}
		}
	}
	if t, s := f.Target, f.Source; t != nil && s != nil {
		clash(string(s.Spec.CIDR.VPC), "spec.cidr.pods of Network "+t.Name, string(t.Spec.CIDR.Pods))
		clash(string(s.Spec.CIDR.VPC), "spec.cidr.services of Network "+t.Name, string(t.Spec.CIDR.Services))
		for _, r := range f.Ranges {
			if r.Network == t.Name {
				clash(string(s.Spec.CIDR.VPC), fmt.Sprintf("what NetworkPeer %s connects Network %s with", r.Peer, r.Network), r.CIDR)
			}
		}
	}
	return list
}
