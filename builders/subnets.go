package builders

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// ZoneSubnets are the three subnets that Gardener wants in each zone on AWS.
type ZoneSubnets struct {
	Zone     string
	Workers  string // nodes and pods' load balancers; the bulk
	Public   string // NAT gateway, internet-facing load balancers
	Internal string // internal load balancers
}

const (
	// smallestVPC has 512 addresses; AWS subnets have at least 16 (/28).
	smallestVPC = 23
	largestVPC  = 16
)

// CarveSubnets divides a VPC's CIDR (/16 to /23) between its zones, by their
// position: a zone that is appended later gets the next free part, and the
// subnets of the earlier ones never move (Gardener forbids it).
//
// /16 to /22 hold up to 6 zones: of eight equal parts, the first six are the
// zones' workers, the seventh is divided into eight public subnets and the
// eighth into eight internal ones. In 10.250.0.0/16 the first zone gets
// 10.250.0.0/19, 10.250.192.0/22 and 10.250.224.0/22. A /23 is too small for
// that; it holds up to 4 zones of a quarter each: half of it for workers, a
// quarter each for public and internal.
func CarveSubnets(vpcCIDR string, zones []string) ([]ZoneSubnets, error) {
	vpc, err := netip.ParsePrefix(vpcCIDR)
	if err != nil || !vpc.Addr().Is4() || vpc != vpc.Masked() {
		return nil, invalid("VPC "+vpcCIDR, "that is no IPv4 network address with a prefix length")
	}
	if vpc.Bits() < largestVPC || vpc.Bits() > smallestVPC {
		return nil, invalid("VPC "+vpcCIDR, "its prefix length must be between /%d and /%d", largestVPC, smallestVPC)
	}
	most := 6
	if vpc.Bits() == smallestVPC {
		most = 4
	}
	if len(zones) == 0 || len(zones) > most {
		return nil, invalid("VPC "+vpcCIDR, "it holds between 1 and %d zones, not %d", most, len(zones))
	}
	out := make([]ZoneSubnets, 0, len(zones))
	for i, zone := range zones {
		out = append(out, zoneSubnets(vpc, zone, i))
	}
	return out, nil
}

func zoneSubnets(vpc netip.Prefix, zone string, i int) ZoneSubnets {
	if vpc.Bits() == smallestVPC {
		quarter := part(vpc, 2, i)
		return ZoneSubnets{
			Zone:     zone,
			Workers:  part(quarter, 1, 0).String(),
			Public:   part(quarter, 2, 2).String(),
			Internal: part(quarter, 2, 3).String(),
		}
	}
	return ZoneSubnets{
		Zone:     zone,
		Workers:  part(vpc, 3, i).String(),
		Public:   part(part(vpc, 3, 6), 3, i).String(),
		Internal: part(part(vpc, 3, 7), 3, i).String(),
	}
}

// part is the i-th of the 2^bits equal parts of p.
func part(p netip.Prefix, bits, i int) netip.Prefix {
	length := p.Bits() + bits
	base := p.Addr().As4()
	at := binary.BigEndian.Uint32(base[:]) + uint32(i)<<(32-length)
	binary.BigEndian.PutUint32(base[:], at)
	return netip.PrefixFrom(netip.AddrFrom4(base), length)
}

// invalid is a fault of the spec's author.
func invalid(resource, format string, args ...any) error {
	return faults.New(faults.Invalid, "InvalidSpec", resource, format, args...)
}
