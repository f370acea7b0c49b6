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
	parsed, p := apart([]string{"spec.cidr.vpc", "spec.cidr.pods", "spec.cidr.services"}, []v1.CIDR{c.VPC, c.Pods, c.Services})
	if vpc := parsed[0]; vpc.IsValid() {
		p.merge(checkVPC(vpc, limits, pt, zones))
	}
	return p
}

// apart parses ranges and makes sure that none overlaps another. The prefixes
// of those that do not parse stay invalid.
func apart(names []string, values []v1.CIDR) ([]netip.Prefix, *problems) {
	var p problems
	parsed := make([]netip.Prefix, len(values))
	for i, v := range values {
		prefix, ok := parseCIDR(v)
		if !ok {
			p.add(names[i], v, notCanonical)
			continue
		}
		parsed[i] = prefix
		for j := range i {
			if parsed[j].IsValid() && parsed[j].Overlaps(prefix) {
				p.add(names[i], v, "must not overlap %s, %s; choose another range", names[j], values[j])
			}
		}
	}
	return parsed, &p
}

func checkVPC(vpc netip.Prefix, limits v1.NetworkLimits, pt string, zones int) *problems {
	p := checkSize(vpc, limits, pt, awsLargestVPC, awsSmallestVPC)
	if vpc.Bits() == awsSmallestVPC && zones > smallestVPCHold {
		p.add(vpcPath, vpc, "a /%d has room for %d zones, not %d; choose a larger range or fewer zones", awsSmallestVPC, smallestVPCHold, zones)
	}
	return p
}

const vpcPath = "spec.cidr.vpc"

// checkSize checks a VPC's range against the ProviderType, whose limits count
// within those of the cloud.
func checkSize(vpc netip.Prefix, limits v1.NetworkLimits, pt string, largest, smallest int) *problems {
	var p problems
	low, high := max(int(limits.MinPrefix), largest), min(int(limits.MaxPrefix), smallest)
	if vpc.Bits() < low || vpc.Bits() > high {
		p.add(vpcPath, vpc, "the prefix length must be between /%d and /%d", low, high)
	}
	var allowed []string
	for _, c := range limits.VPCCIDRs {
		outer, ok := parseCIDR(c)
		if ok && outer.Bits() <= vpc.Bits() && outer.Contains(vpc.Addr()) {
			return &p
		}
		allowed = append(allowed, string(c))
	}
	p.add(vpcPath, vpc, "must lie in one of the ranges of ProviderType %s: %s", pt, strings.Join(allowed, ", "))
	return &p
}
