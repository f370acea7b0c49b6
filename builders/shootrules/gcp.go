package shootrules

import (
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/tidbcloud/infra-orchestrator/builders"
)

const (
	gcpNetworksPath = infraPath + ".networks"
	// scratch is the type of disks that live as long as their machine.
	scratch = "SCRATCH"
)

// onGCP runs a check on Shoots that have an InfrastructureConfig for GCP.
func onGCP(check func(s *subject, n builders.GCPNetworks, found func(string, any))) func(*subject, func(string, any)) {
	return func(s *subject, found func(string, any)) {
		if s.configs.gcpInfra != nil {
			check(s, s.configs.gcpInfra.Networks, found)
		}
	}
}

// gcp are the rules of the GCP extension's admission.
var gcp = slices.Concat([]rule{{
	id:     "gcp-workers-cidr",
	says:   "must be an IPv4 range that begins at its network address, within spec.networking.nodes",
	wayOut: "correct Network.spec.cidr.vpc",
	check: onGCP(func(s *subject, n builders.GCPNetworks, found func(string, any)) {
		nodes, _, _ := s.networking()
		if r := newNetwork(gcpNetworksPath+".workers", n.Workers); n.Workers == "" {
			found(r.path, nil)
		} else if !r.valid() || !r.within(nodes) {
			found(r.path, r.text)
		}
	}),
}, {
	id:     "gcp-worker-deprecated",
	says:   "is the deprecated name of workers",
	wayOut: "use networks.workers",
	check: onGCP(func(_ *subject, n builders.GCPNetworks, found func(string, any)) {
		if n.Worker != "" {
			found(gcpNetworksPath+".worker", n.Worker)
		}
	}),
}, {
	id:     "gcp-internal-cidr",
	says:   "must be an IPv4 range that begins at its network address and overlaps neither nodes nor workers, pods or services",
	wayOut: "choose a range apart from Network.spec.cidr",
	check: onGCP(func(s *subject, n builders.GCPNetworks, found func(string, any)) {
		if n.Internal == nil {
			return
		}
		nodes, pods, services := s.networking()
		r := newNetwork(gcpNetworksPath+".internal", *n.Internal)
		others := []network{nodes, pods, services, newNetwork(gcpNetworksPath+".workers", n.Workers)}
		if !r.valid() || slices.ContainsFunc(others, r.overlaps) {
			found(r.path, r.text)
		}
	}),
}, {
	id:     "gcp-vpc",
	says:   "an existing network needs its name and the name of its Cloud Router",
	wayOut: "give both, or neither",
	check: onGCP(func(_ *subject, n builders.GCPNetworks, found func(string, any)) {
		if v := n.VPC; v != nil && (v.Name == "" || v.CloudRouter == nil || v.CloudRouter.Name == "") {
			found(gcpNetworksPath+".vpc", v)
		}
	}),
}, {
	id:     "gcp-nat",
	says:   "addresses must have names, each used once, and ports must be at least 32",
	wayOut: "correct it, or leave it out",
	check: onGCP(func(_ *subject, n builders.GCPNetworks, found func(string, any)) {
		const smallest = 32
		if n.CloudNAT == nil {
			return
		}
		if p := n.CloudNAT.MinPortsPerVM; p != nil && *p < smallest {
			found(gcpNetworksPath+".cloudNAT.minPortsPerVM", *p)
		}
		seen := map[string]bool{"": true}
		for i, a := range n.CloudNAT.NATIPNames {
			if seen[a.Name] {
				found(item(gcpNetworksPath+".cloudNAT.natIPNames", i)+".name", a.Name)
			}
			seen[a.Name] = true
		}
	}),
}, {
	id:     "gcp-control-plane-zone",
	says:   "must be one of the worker pools' zones",
	wayOut: "use the first zone of the system pool",
	check: func(s *subject, found func(string, any)) {
		c := s.configs.gcpControl
		if c == nil {
			return
		}
		const path = controlPath + ".zone"
		if c.Zone == "" {
			found(path, nil)
		} else if !slices.ContainsFunc(s.shoot.Spec.Provider.Workers, func(w gardencorev1beta1.Worker) bool { return slices.Contains(w.Zones, c.Zone) }) {
			found(path, c.Zone)
		}
	},
}}, gcpWorkers)

var gcpWorkers = []rule{{
	id:     "gcp-worker-volume",
	says:   "type and size of the node's volume are needed, and of data volumes",
	wayOut: "choose a storage class that the ProviderType has",
	check: eachOn(builders.ProviderGCP, func(_ *subject, i int, w *gardencorev1beta1.Worker, found func(string, any)) {
		volumesNeeded(w, at(i), found)
	}),
}, {
	id:     "gcp-boot-disk",
	says:   "must not be SCRATCH: such disks do not survive their machine",
	wayOut: "use pd-balanced or pd-ssd",
	check: eachOn(builders.ProviderGCP, func(_ *subject, i int, w *gardencorev1beta1.Worker, found func(string, any)) {
		if w.Volume != nil && w.Volume.Type != nil && *w.Volume.Type == scratch {
			found(at(i)+".volume.type", scratch)
		}
	}),
}, {
	id:     "gcp-scratch-interface",
	says:   "SCRATCH data volumes need providerConfig.volume.interface, NVME or SCSI",
	wayOut: "set it to NVME",
	check: eachOn(builders.ProviderGCP, func(s *subject, i int, w *gardencorev1beta1.Worker, found func(string, any)) {
		var have string
		if c := s.configs.gcpWorkers[i]; c != nil && c.Volume != nil && c.Volume.LocalSSDInterface != nil {
			have = *c.Volume.LocalSSDInterface
		}
		for j, v := range w.DataVolumes {
			if v.Type != nil && *v.Type == scratch && have != "NVME" && have != "SCSI" {
				found(item(at(i)+".dataVolumes", j)+".type", scratch)
			}
		}
	}),
}, {
	id:     "gcp-worker-zones",
	says:   "at least one zone is needed",
	wayOut: "set Network.spec.zones",
	check: eachOn(builders.ProviderGCP, func(_ *subject, i int, w *gardencorev1beta1.Worker, found func(string, any)) {
		if len(w.Zones) == 0 {
			found(at(i)+".zones", nil)
		}
	}),
}, {
	id:     "gcp-service-account",
	says:   "needs an e-mail and at least one scope, none empty or given twice",
	wayOut: "use the scope https://www.googleapis.com/auth/cloud-platform",
	check: eachOn(builders.ProviderGCP, func(s *subject, i int, _ *gardencorev1beta1.Worker, found func(string, any)) {
		c := s.configs.gcpWorkers[i]
		if c == nil || c.ServiceAccount == nil {
			return
		}
		scopes := slices.Sorted(slices.Values(c.ServiceAccount.Scopes))
		if c.ServiceAccount.Email == "" || len(scopes) == 0 || scopes[0] == "" || len(slices.Compact(scopes)) < len(c.ServiceAccount.Scopes) {
			found(at(i)+".providerConfig.serviceAccount", c.ServiceAccount)
		}
	}),
}, {
	id:     "gcp-disk-encryption",
	says:   "needs the name of a key",
	wayOut: "name the key, or leave encryption out: disks are then encrypted with Google's key",
	check: eachOn(builders.ProviderGCP, func(s *subject, i int, _ *gardencorev1beta1.Worker, found func(string, any)) {
		if c := s.configs.gcpWorkers[i]; c != nil && c.Volume != nil && c.Volume.Encryption != nil && !set(c.Volume.Encryption.KMSKeyName) {
			found(at(i)+".providerConfig.volume.encryption", c.Volume.Encryption)
		}
	}),
}}
