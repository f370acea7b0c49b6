package shootrules

import (
	"regexp"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/tidbcloud/infra-orchestrator/builders"
)

const (
	awsNetworksPath = infraPath + ".networks"
	awsZonesPath    = awsNetworksPath + ".zones"
	awsVPCPath      = awsNetworksPath + ".vpc"
	// mostDataVolumes is what a machine on AWS can have beside its own disk.
	mostDataVolumes = 11
	// mostHops is the largest hop limit of the instance metadata service.
	mostHops = 64
)

var gatewayEndpoint = regexp.MustCompile(`^\w+(\.\w+)*$`)

// onAWS runs a check on Shoots that have an InfrastructureConfig for AWS.
func onAWS(check func(s *subject, n builders.AWSNetworks, found func(string, any))) func(*subject, func(string, any)) {
	return func(s *subject, found func(string, any)) {
		if s.configs.awsInfra != nil {
			check(s, s.configs.awsInfra.Networks, found)
		}
	}
}

// eachOn runs a check for every worker pool of Shoots on one cloud.
func eachOn(provider string, check func(s *subject, i int, w *gardencorev1beta1.Worker, found func(string, any))) func(*subject, func(string, any)) {
	return func(s *subject, found func(string, any)) {
		for i := range s.shoot.Spec.Provider.Workers {
			if s.shoot.Spec.Provider.Type == provider {
				check(s, i, &s.shoot.Spec.Provider.Workers[i], found)
			}
		}
	}
}

// awsRanges are the subnets of all zones that are given as ranges.
func awsRanges(n builders.AWSNetworks) []network {
	var out []network
	for i, z := range n.Zones {
		at := item(awsZonesPath, i)
		for _, r := range []struct {
			name, cidr string
			subnet     *string
		}{{".workers", z.Workers, z.WorkersSubnetID}, {".public", z.Public, z.PublicSubnetID}, {".internal", z.Internal, z.InternalSubnetID}} {
			if r.cidr != "" || r.subnet == nil {
				out = append(out, newNetwork(at+r.name, r.cidr))
			}
		}
	}
	return out
}

// aws are the rules of the AWS extension's admission.
var aws = slices.Concat([]rule{{
	id:     "aws-vpc",
	says:   "exactly one of id and cidr is needed",
	wayOut: "name an existing VPC, or give the range of a new one",
	check: onAWS(func(_ *subject, n builders.AWSNetworks, found func(string, any)) {
		if set(n.VPC.ID) == set(n.VPC.CIDR) {
			found(awsVPCPath, n.VPC)
		}
	}),
}, {
	id:     "aws-vpc-cidr",
	says:   "must be an IPv4 range that begins at its network address and holds spec.networking.nodes",
	wayOut: "correct Network.spec.cidr.vpc",
	check: onAWS(func(s *subject, n builders.AWSNetworks, found func(string, any)) {
		if !set(n.VPC.CIDR) {
			return
		}
		nodes, _, _ := s.networking()
		if vpc := newNetwork(awsVPCPath+".cidr", *n.VPC.CIDR); !vpc.valid() || !nodes.within(vpc) {
			found(vpc.path, vpc.text)
		}
	}),
}, {
	id:     "aws-gateway-endpoints",
	says:   "must be names of services, such as s3",
	wayOut: "correct it",
	check: onAWS(func(_ *subject, n builders.AWSNetworks, found func(string, any)) {
		for i, e := range n.VPC.GatewayEndpoints {
			if !gatewayEndpoint.MatchString(e) {
				found(item(awsVPCPath+".gatewayEndpoints", i), e)
			}
		}
	}),
}, {
	id:     "aws-zones",
	says:   "at least one zone is needed",
	wayOut: "set Network.spec.zones",
	check: onAWS(func(_ *subject, n builders.AWSNetworks, found func(string, any)) {
		if len(n.Zones) == 0 {
			found(awsZonesPath, nil)
		}
	}),
}, {
	id:     "aws-zone-name",
	says:   "must be given, once",
	wayOut: "name each zone once (Network.spec.zones)",
	check: onAWS(func(_ *subject, n builders.AWSNetworks, found func(string, any)) {
		seen := map[string]bool{"": true}
		for i, z := range n.Zones {
			if seen[z.Name] {
				found(item(awsZonesPath, i)+".name", z.Name)
			}
			seen[z.Name] = true
		}
	}),
}, {
	id:     "aws-zone-cidr",
	says:   "must be an IPv4 range that begins at its network address",
	wayOut: "choose another Network.spec.cidr.vpc; the zones' subnets are carved from it",
	check: onAWS(func(_ *subject, n builders.AWSNetworks, found func(string, any)) {
		for _, r := range awsRanges(n) {
			if !r.valid() {
				found(r.path, r.text)
			}
		}
	}),
}, {
	id:     "aws-zone-within",
	says:   "the zones' subnets must lie in the VPC, and those of workers in spec.networking.nodes",
	wayOut: "use a larger Network.spec.cidr.vpc, or fewer zones",
	check: onAWS(func(s *subject, n builders.AWSNetworks, found func(string, any)) {
		nodes, _, _ := s.networking()
		var vpc network
		if set(n.VPC.CIDR) {
			vpc = newNetwork(awsVPCPath+".cidr", *n.VPC.CIDR)
		}
		for _, r := range awsRanges(n) {
			if !r.within(vpc) || strings.HasSuffix(r.path, ".workers") && !r.within(nodes) {
				found(r.path, r.text)
			}
		}
	}),
}, {
	id:     "aws-disjoint",
	says:   "the zones' subnets must not overlap each other, nor pods or services; nor may the VPC overlap pods or services",
	wayOut: "choose ranges apart from each other (Network.spec.cidr)",
	check: onAWS(func(s *subject, n builders.AWSNetworks, found func(string, any)) {
		_, pods, services := s.networking()
		ranges := awsRanges(n)
		overlapping(ranges, found)
		if set(n.VPC.CIDR) {
			ranges = append(ranges, newNetwork(awsVPCPath+".cidr", *n.VPC.CIDR))
		}
		for _, r := range ranges {
			for _, other := range []network{pods, services} {
				if r.overlaps(other) {
					found(r.path, r.text+", "+other.path+" "+other.text)
				}
			}
		}
	}),
}, {
	id:     "aws-existing-subnets",
	says:   "subnets by id need the id of their VPC",
	wayOut: "set networks.vpc.id, or give ranges",
	check: onAWS(func(_ *subject, n builders.AWSNetworks, found func(string, any)) {
		for i, z := range n.Zones {
			if !set(n.VPC.ID) && (z.WorkersSubnetID != nil || z.PublicSubnetID != nil || z.InternalSubnetID != nil) {
				found(item(awsZonesPath, i), z)
			}
		}
	}),
}, {
	id:     "aws-elastic-ip",
	says:   "must begin with eipalloc-, and serve one zone only",
	wayOut: "allocate an address for each zone",
	check: onAWS(func(_ *subject, n builders.AWSNetworks, found func(string, any)) {
		seen := map[string]bool{}
		for i, z := range n.Zones {
			if id := z.ElasticIPAllocationID; id != nil {
				if seen[*id] || !strings.HasPrefix(*id, "eipalloc-") {
					found(item(awsZonesPath, i)+".elasticIPAllocationID", *id)
				}
				seen[*id] = true
			}
		}
	}),
}, {
	id:     "aws-ignore-tags",
	says:   "must not be empty, nor take in Gardener's own tags: Name, kubernetes.io…, gardener.cloud…",
	wayOut: "ignore fewer tags",
	check: func(s *subject, found func(string, any)) {
		if s.configs.awsInfra == nil || s.configs.awsInfra.IgnoreTags == nil {
			return
		}
		tags := s.configs.awsInfra.IgnoreTags
		for i, k := range tags.Keys {
			if k == "" || k == "Name" || strings.HasPrefix(k, "kubernetes.io") || strings.HasPrefix(k, "gardener.cloud") {
				found(item(infraPath+".ignoreTags.keys", i), k)
			}
		}
		for i, p := range tags.KeyPrefixes {
			if p == "" || touches(p, "Name") || touches(p, "kubernetes.io") || touches(p, "gardener.cloud") {
				found(item(infraPath+".ignoreTags.keyPrefixes", i), p)
			}
		}
	},
}}, awsWorkers)

// touches reports whether tags with the prefix include reserved ones.
func touches(prefix, reserved string) bool {
	return strings.HasPrefix(reserved, prefix) || reserved != "Name" && strings.HasPrefix(prefix, reserved)
}

var awsWorkers = []rule{{
	id:     "aws-worker-volume",
	says:   "type and size of the node's volume are needed, and of data volumes",
	wayOut: "choose a storage class that the ProviderType has",
	check: eachOn(builders.ProviderAWS, func(_ *subject, i int, w *gardencorev1beta1.Worker, found func(string, any)) {
		volumesNeeded(w, at(i), found)
	}),
}, {
	id:     "aws-worker-iops",
	says:   "volumes of type io1 or io2 need providerConfig.volume.iops, and figures must be positive",
	wayOut: "use gp3, or give the IOPS",
	check: eachOn(builders.ProviderAWS, func(s *subject, i int, w *gardencorev1beta1.Worker, found func(string, any)) {
		var v builders.AWSVolume
		if c := s.configs.awsWorkers[i]; c != nil && c.Volume != nil {
			v = *c.Volume
		}
		provisioned := w.Volume != nil && w.Volume.Type != nil && (*w.Volume.Type == "io1" || *w.Volume.Type == "io2")
		if provisioned && v.IOPS == nil {
			found(at(i)+".volume.type", *w.Volume.Type)
		}
		if v.IOPS != nil && *v.IOPS <= 0 {
			found(at(i)+".providerConfig.volume.iops", *v.IOPS)
		}
		if v.Throughput != nil && *v.Throughput <= 0 {
			found(at(i)+".providerConfig.volume.throughput", *v.Throughput)
		}
	}),
}, {
	id:     "aws-data-volumes",
	says:   "must be at most 11",
	wayOut: "use fewer",
	check: eachOn(builders.ProviderAWS, func(_ *subject, i int, w *gardencorev1beta1.Worker, found func(string, any)) {
		if n := len(w.DataVolumes); n > mostDataVolumes {
			found(at(i)+".dataVolumes", n)
		}
	}),
}, {
	id:     "aws-worker-zones",
	says:   "at least one zone is needed, and each must be one of infrastructureConfig.networks.zones",
	wayOut: "use zones of the Network, or add the zone to Network.spec.zones",
	check: eachOn(builders.ProviderAWS, func(s *subject, i int, w *gardencorev1beta1.Worker, found func(string, any)) {
		if len(w.Zones) == 0 {
			found(at(i)+".zones", nil)
		}
		for j, zone := range w.Zones {
			if c := s.configs.awsInfra; c != nil && !slices.ContainsFunc(c.Networks.Zones, func(z builders.AWSZone) bool { return z.Name == zone }) {
				found(item(at(i)+".zones", j), zone)
			}
		}
	}),
}, {
	id:     "aws-instance-metadata",
	says:   "httpTokens must be required or optional, and the hop limit between 1 and 64",
	wayOut: "use required and 2",
	check: eachOn(builders.ProviderAWS, func(s *subject, i int, _ *gardencorev1beta1.Worker, found func(string, any)) {
		c := s.configs.awsWorkers[i]
		if c == nil || c.InstanceMetadataOptions == nil {
			return
		}
		at := at(i) + ".providerConfig.instanceMetadataOptions"
		if o := c.InstanceMetadataOptions; o.HTTPTokens != "" && o.HTTPTokens != "required" && o.HTTPTokens != "optional" {
			found(at+".httpTokens", o.HTTPTokens)
		}
		if o := c.InstanceMetadataOptions; o.HTTPPutResponseHopLimit < 0 || o.HTTPPutResponseHopLimit > mostHops {
			found(at+".httpPutResponseHopLimit", o.HTTPPutResponseHopLimit)
		}
	}),
}, {
	id:     "aws-instance-profile",
	says:   "exactly one of name and arn is needed",
	wayOut: "keep one of them",
	check: eachOn(builders.ProviderAWS, func(s *subject, i int, _ *gardencorev1beta1.Worker, found func(string, any)) {
		if c := s.configs.awsWorkers[i]; c != nil && c.IAMInstanceProfile != nil && set(c.IAMInstanceProfile.Name) == set(c.IAMInstanceProfile.ARN) {
			found(at(i)+".providerConfig.iamInstanceProfile", c.IAMInstanceProfile)
		}
	}),
}}

// volumesNeeded asks for type and size of all volumes of a pool. That a given
// size has the right form is another rule.
func volumesNeeded(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
	if w.Volume == nil {
		found(path+".volume", nil)
	} else if !set(w.Volume.Type) {
		found(path+".volume.type", nil)
	}
	for i, v := range w.DataVolumes {
		if !set(v.Type) {
			found(item(path+".dataVolumes", i)+".type", nil)
		}
	}
}
