package plan

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const (
	// defaultPSCNATCIDR is the schema's default of spec.gcp.pscNATCIDR on GCP.
	defaultPSCNATCIDR = v1.CIDR("10.251.0.0/20")
	// Private Service Connect takes subnets of these prefix lengths here; what
	// they have room for is in PSCConnections.
	pscLargest  = 16
	pscSmallest = 20
	// GCP has subnets from /8 to /29, each with four addresses of its own.
	gcpLargestSubnet  = 8
	gcpSmallestSubnet = 29
)

// GCPNetwork is Network for GCP: a Network there has a subnet of nodes instead
// of a VPC range, and one more for Private Service Connect. Network refuses GCP
// until its lifecycle exists, and then begins here.
func GCPNetwork(n *v1.Network, provider *v1.Provider, pt *v1.ProviderType, account *v1.Account, o Options) (contract.NetworkPlan, error) {
	ref, err := refOf(v1.KindNetwork, n)
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	providerRef, err := refOf(v1.KindProvider, provider)
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	spec := defaultedNetwork(n)
	spec.Zones = networkZones(n, pt)

	p := problems{list: CheckGCPNetwork(n, provider, pt, o)}
	if creating(n) {
		p.list = append(p.list, CheckNewNetwork(n, provider, pt, account, o)...)
	}
	plan := buildNetwork(n, spec, ref, providerRef, provider, pt, o)
	plan.Account.AccountID, plan.Account.ProjectID = "", gcpProject(provider)
	plan.BucketName = gcpBucketName(ref, plan.Account.ProjectID)
	plan.SystemPool.VolumeType = gcpNodeDisk(pt)
	nat := pscNATCIDR(n)
	plan.GCP = &contract.GCPNetworkPlan{PSCNATCIDR: string(nat), PSCConnections: PSCConnections(nat)}
	return plan, p.fault(v1.KindNetwork, n)
}

// CheckGCPNetwork holds the rules for every Network on GCP.
func CheckGCPNetwork(n *v1.Network, provider *v1.Provider, pt *v1.ProviderType, o Options) []Problem {
	spec := defaultedNetwork(n)
	spec.Zones = networkZones(n, pt)
	var p problems
	p.merge(checkGCPReferences(n, provider, pt))
	p.merge(checkRegion(spec, pt))
	p.merge(checkGCPRanges(n, spec.CIDR, networkLimits(pt), pt.Name))
	p.merge(checkWindow(spec.MaintenanceWindow))
	p.merge(checkSystemPool(spec, pt))
	p.merge(checkNetworkNames(n, spec, provider, o))
	return p.list
}

func checkGCPReferences(n *v1.Network, provider *v1.Provider, pt *v1.ProviderType) *problems {
	p := checkNetworkReferences(n, provider)
	if pt.Spec.Cloud != v1.CloudGCP {
		p.add("spec.provider", n.Spec.Provider, "is of ProviderType %s, which is of cloud %s; choose a Provider on GCP", pt.Name, pt.Spec.Cloud)
	}
	if provider.Spec.GCP == nil {
		p.add("spec.provider", n.Spec.Provider, "Provider %s names no GCP project; set its spec.gcp.projectID", provider.Name)
	}
	if gcpNodeDisk(pt) == "" {
		p.add("spec.provider", n.Spec.Provider, "ProviderType %s has no storage class of type pd-standard, pd-balanced or pd-ssd for the nodes' own disks; add one there", pt.Name)
	}
	if v := n.Spec.ExistingVPC; v != nil {
		p.add("spec.existingVPC", or(v.Name, v.ID), "Gardener needs the network's Cloud Router beside it, which a Network cannot name; remove existingVPC, so that the Network gets its own")
	}
	return p
}

// checkGCPRanges checks the ranges of a Network on GCP against each other and
// against the ProviderType.
func checkGCPRanges(n *v1.Network, c v1.NetworkCIDR, limits v1.NetworkLimits, pt string) *problems {
	const natPath = "spec.gcp.pscNATCIDR"
	nat := pscNATCIDR(n)
	parsed, p := apart([]string{vpcPath, "spec.cidr.pods", "spec.cidr.services", natPath}, []v1.CIDR{c.VPC, c.Pods, c.Services, nat})
	if nodes := parsed[0]; nodes.IsValid() {
		p.merge(checkSize(nodes, limits, pt, gcpLargestSubnet, gcpSmallestSubnet))
	}
	if r := parsed[3]; r.IsValid() && (r.Bits() < pscLargest || r.Bits() > pscSmallest) {
		p.add(natPath, nat, "the prefix length must be between /%d and /%d, for %d to %d connections", pscLargest, pscSmallest,
			PSCConnections("10.0.0.0/16"), PSCConnections("10.0.0.0/20"))
	}
	return p
}

// PSCConnections is how many Private Service Connect connections the subnet
// has room for: one for each 256 addresses, less nine; 7 for a /20, 247 for a
// /16. It is 0 for other sizes.
func PSCConnections(nat v1.CIDR) int32 {
	p, ok := parseCIDR(nat)
	if !ok || p.Bits() < pscLargest || p.Bits() > pscSmallest {
		return 0
	}
	const reserved = 9
	return 1<<(24-p.Bits()) - reserved
}

// pscNATCIDR is the range of Private Service Connect, with its default.
func pscNATCIDR(n *v1.Network) v1.CIDR {
	if n.Spec.GCP == nil {
		return defaultPSCNATCIDR
	}
	return or(n.Spec.GCP.PSCNATCIDR, defaultPSCNATCIDR)
}

func gcpProject(provider *v1.Provider) string {
	if provider.Spec.GCP == nil {
		return ""
	}
	return provider.Spec.GCP.ProjectID
}

// gcpBucketName is globally unique, as bucket names are shared by all of GCP;
// the project's hash keeps a copied identity in another project apart.
func gcpBucketName(network contract.ObjectRef, projectID string) string {
	sum := sha256.Sum256([]byte(projectID))
	return "ic-" + network.ID8() + "-" + hex.EncodeToString(sum[:])[:6] + "-data"
}

// gcpNodeDisk is the type of the nodes' own disks: the first persistent disk
// whose performance needs no figure.
func gcpNodeDisk(pt *v1.ProviderType) string {
	for _, s := range pt.Spec.StorageClasses {
		switch s.Type {
		case "pd-standard", "pd-balanced", "pd-ssd":
			return s.Type
		}
	}
	return ""
}
