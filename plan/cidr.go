package plan

import (
	"net/netip"
	"strings"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const notCanonical = "must be an IPv4 range that begins at its network address, such as 10.250.0.0/16"

// On AWS a VPC is between /16 and /28; below /23 there is no room for the three
// subnets of each zone, and a /23 has room for four zones.
const (
	awsLargestVPC   = 16
	awsSmallestVPC  = 23
	smallestVPCHold = 4
)

func parseCIDR(c v1.CIDR) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(string(c))
	return p, err == nil && p.Addr().Is4() && p == p.Masked()
}

// checkCIDRs checks the ranges of a Network with so many zones.
func checkCIDRs(c v1.NetworkCIDR, limits v1.NetworkLimits, pt string, zones int) *problems {
	var p problems
	names := []string{"spec.cidr.vpc", "spec.cidr.pods", "spec.cidr.services"}
	values := []v1.CIDR{c.VPC, c.Pods, c.Services}
	parsed := make([]netip.Prefix, len(values))
	for i, v := range values {
		var ok bool
		if parsed[i], ok = parseCIDR(v); !ok {
			p.add(names[i], v, notCanonical)
			continue
		}
		for j := range i {
			if parsed[j].IsValid() && parsed[j].Overlaps(parsed[i]) {
				p.add(names[i], v, "must not overlap %s, %s; choose another range", names[j], values[j])
			}
		}
	}
	if vpc := parsed[0]; vpc.IsValid() {
		p.merge(checkVPC(vpc, limits, pt, zones))
	}
	return &p
}

func checkVPC(vpc netip.Prefix, limits v1.NetworkLimits, pt string, zones int) *problems {
	const path = "spec.cidr.vpc"
	var p problems
	low, high := max(int(limits.MinPrefix), awsLargestVPC), min(int(limits.MaxPrefix), awsSmallestVPC)
	if vpc.Bits() < low || vpc.Bits() > high {
		p.add(path, vpc, "the prefix length must be between /%d and /%d", low, high)
	}
	if vpc.Bits() == awsSmallestVPC && zones > smallestVPCHold {
		p.add(path, vpc, "a /%d has room for %d zones, not %d; choose a larger range or fewer zones", awsSmallestVPC, smallestVPCHold, zones)
	}
	var allowed []string
	for _, c := range limits.VPCCIDRs {
		outer, ok := parseCIDR(c)
		if ok && outer.Bits() <= vpc.Bits() && outer.Contains(vpc.Addr()) {
			return &p
		}
		allowed = append(allowed, string(c))
	}
	p.add(path, vpc, "must lie in one of the ranges of ProviderType %s: %s", pt, strings.Join(allowed, ", "))
	return &p
}
