package shootrules

import (
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/tidbcloud/infra-orchestrator/builders"
)

// update are the rules for a change, beside the static ones.
var update = slices.Concat([]rule{{
	id:     "update-while-deleting",
	says:   "the spec of a Shoot that is being deleted cannot change",
	wayOut: "wait until it is gone, then create another",
	check: func(s *subject, found func(string, any)) {
		if s.old.DeletionTimestamp != nil && !apiequality.Semantic.DeepEqual(s.old.Spec, s.shoot.Spec) {
			found("spec", s.old.DeletionTimestamp)
		}
	},
}, {
	id:     "update-region",
	says:   "is immutable",
	wayOut: "create another Network",
	check: func(s *subject, found func(string, any)) {
		if s.old.Spec.Region != s.shoot.Spec.Region {
			found("spec.region", s.shoot.Spec.Region)
		}
	},
}, {
	id:     "update-provider-type",
	says:   "is immutable",
	wayOut: "create another Network",
	check: func(s *subject, found func(string, any)) {
		if s.old.Spec.Provider.Type != s.shoot.Spec.Provider.Type {
			found("spec.provider.type", s.shoot.Spec.Provider.Type)
		}
	},
}, {
	id:     "update-networking",
	says:   "type, pods and services are immutable once they are set",
	wayOut: "create another Network",
	check: func(s *subject, found func(string, any)) {
		old, now := s.old.Spec.Networking, s.shoot.Spec.Networking
		if old == nil {
			return
		}
		if now == nil {
			now = &gardencorev1beta1.Networking{}
		}
		for _, f := range []struct {
			name     string
			old, now *string
		}{{"type", old.Type, now.Type}, {"pods", old.Pods, now.Pods}, {"services", old.Services, now.Services}} {
			if f.old != nil && (f.now == nil || *f.old != *f.now) {
				found("spec.networking."+f.name, f.now)
			}
		}
	},
}, {
	id:     "update-seed",
	says:   "changes only through the binding subresource once it is set",
	wayOut: "ask Gardener's operators to move the control plane",
	check: func(s *subject, found func(string, any)) {
		if old := s.old.Spec.SeedName; old != nil && (s.shoot.Spec.SeedName == nil || *s.shoot.Spec.SeedName != *old) {
			found("spec.seedName", s.shoot.Spec.SeedName)
		}
	},
}, {
	id:     "update-version-down",
	says:   "cannot go down",
	wayOut: "choose the present version or a newer one (Network.spec.kubernetesVersion)",
	check: func(s *subject, found func(string, any)) {
		if older(s.shoot.Spec.Kubernetes.Version, s.old.Spec.Kubernetes.Version) {
			found("spec.kubernetes.version", s.shoot.Spec.Kubernetes.Version)
		}
	},
}, {
	id:     "update-version-skip",
	says:   "cannot skip a minor version",
	wayOut: "go up one minor version at a time (Network.spec.kubernetesVersion)",
	check: func(s *subject, found func(string, any)) {
		old, ok1 := minor(s.old.Spec.Kubernetes.Version)
		now, ok2 := minor(s.shoot.Spec.Kubernetes.Version)
		if ok1 && ok2 && now > old+1 {
			found("spec.kubernetes.version", s.shoot.Spec.Kubernetes.Version)
		}
	},
}, {
	id:     "update-secret-binding",
	says:   "is immutable, except that a credentialsBindingName may take its place",
	wayOut: "restore it, or set credentialsBindingName in the same update",
	check: func(s *subject, found func(string, any)) {
		old, now := s.old.Spec.SecretBindingName, s.shoot.Spec.SecretBindingName
		migrated := set(old) && now == nil && set(s.shoot.Spec.CredentialsBindingName)
		if !migrated && !apiequality.Semantic.DeepEqual(old, now) {
			found("spec.secretBindingName", now)
		}
	},
}, {
	id:     "update-credentials-binding",
	says:   "cannot be removed",
	wayOut: "restore it, or name another binding",
	check: func(s *subject, found func(string, any)) {
		if set(s.old.Spec.CredentialsBindingName) && !set(s.shoot.Spec.CredentialsBindingName) {
			found("spec.credentialsBindingName", nil)
		}
	},
}, {
	id:     "update-workers",
	says:   "pools cannot be added to a Shoot without any, and the last one cannot be removed",
	wayOut: "keep the system pool",
	check: func(s *subject, found func(string, any)) {
		if old, now := len(s.old.Spec.Provider.Workers), len(s.shoot.Spec.Provider.Workers); (old == 0) != (now == 0) {
			found(workersPath, now)
		}
	},
}, {
	id:     "update-worker-zones",
	says:   "the zones of a pool are immutable",
	wayOut: "add another pool for other zones, then remove this one",
	check: func(s *subject, found func(string, any)) {
		for i, w := range s.shoot.Spec.Provider.Workers {
			j := slices.IndexFunc(s.old.Spec.Provider.Workers, func(o gardencorev1beta1.Worker) bool { return o.Name == w.Name })
			if j >= 0 && !slices.Equal(w.Zones, s.old.Spec.Provider.Workers[j].Zones) {
				found(at(i)+".zones", w.Zones)
			}
		}
	},
}, {
	id:     "update-dns-domain",
	says:   "is immutable once it is set",
	wayOut: "create another Network",
	check: func(s *subject, found func(string, any)) {
		if s.old.Spec.DNS == nil || s.old.Spec.DNS.Domain == nil {
			return
		}
		if s.shoot.Spec.DNS == nil || s.shoot.Spec.DNS.Domain == nil || *s.shoot.Spec.DNS.Domain != *s.old.Spec.DNS.Domain {
			found("spec.dns.domain", s.shoot.Spec.DNS)
		}
	},
}, {
	id:     "update-issuer",
	says:   "the managed issuer cannot be turned off: roles in the cloud trust it",
	wayOut: "restore the annotation",
	check: func(s *subject, found func(string, any)) {
		const key = constants.AnnotationAuthenticationIssuer
		if old := s.old.Annotations[key]; old == constants.AnnotationAuthenticationIssuerManaged && s.shoot.Annotations[key] != old {
			found("metadata.annotations["+key+"]", s.shoot.Annotations[key])
		}
	},
}}, updateOfClouds)

var updateOfClouds = []rule{{
	id:     "update-aws-vpc",
	says:   "id and cidr are immutable",
	wayOut: "create another Network",
	check: func(s *subject, found func(string, any)) {
		if old, now := s.oldConfigs.awsInfra, s.configs.awsInfra; old != nil && now != nil {
			if o, n := old.Networks.VPC, now.Networks.VPC; !apiequality.Semantic.DeepEqual([]*string{o.ID, o.CIDR}, []*string{n.ID, n.CIDR}) {
				found(awsVPCPath, n)
			}
		}
	},
}, {
	id:     "update-aws-zones",
	says:   "a zone's name and ranges are immutable, and zones can only be added at the end",
	wayOut: "append new zones to Network.spec.zones, and keep the others as they are",
	check: func(s *subject, found func(string, any)) {
		if s.oldConfigs.awsInfra == nil || s.configs.awsInfra == nil {
			return
		}
		old, now := s.oldConfigs.awsInfra.Networks.Zones, s.configs.awsInfra.Networks.Zones
		for i, z := range old {
			if i >= len(now) {
				found(awsZonesPath, z.Name)
			} else if n := now[i]; n.Name != z.Name || n.Workers != z.Workers || n.Public != z.Public || n.Internal != z.Internal {
				found(item(awsZonesPath, i), n)
			}
		}
	},
}, {
	id:     "update-gcp-vpc",
	says:   "is immutable, and with it the internal range",
	wayOut: "create another Network",
	check: func(s *subject, found func(string, any)) {
		if s.oldConfigs.gcpInfra == nil || s.configs.gcpInfra == nil {
			return
		}
		old, now := s.oldConfigs.gcpInfra.Networks, s.configs.gcpInfra.Networks
		if !apiequality.Semantic.DeepEqual(old.VPC, now.VPC) || old.VPC != nil && !apiequality.Semantic.DeepEqual(old.Internal, now.Internal) {
			found(gcpNetworksPath+".vpc", now.VPC)
		}
	},
}, {
	id:     "update-gcp-workers-cidr",
	says:   "can only grow",
	wayOut: "choose a range that holds the present one",
	check: func(s *subject, found func(string, any)) {
		if s.oldConfigs.gcpInfra == nil || s.configs.gcpInfra == nil {
			return
		}
		old := newNetwork("", gcpWorkersCIDR(s.oldConfigs.gcpInfra))
		if now := newNetwork(gcpNetworksPath+".workers", gcpWorkersCIDR(s.configs.gcpInfra)); !old.within(now) {
			found(now.path, now.text)
		}
	},
}, {
	id:     "update-gcp-control-plane-zone",
	says:   "is immutable",
	wayOut: "restore it; the zones of the system pool never change",
	check: func(s *subject, found func(string, any)) {
		if old, now := s.oldConfigs.gcpControl, s.configs.gcpControl; old != nil && now != nil && old.Zone != now.Zone {
			found(controlPath+".zone", now.Zone)
		}
	},
}}

func gcpWorkersCIDR(c *builders.GCPInfrastructureConfig) string {
	if c.Networks.Workers != "" {
		return c.Networks.Workers
	}
	return c.Networks.Worker
}

// older reports whether Kubernetes version a is below b. A version without a
// patch version stands for any of its minor version.
func older(a, b string) bool {
	x, ok1 := minor(a)
	y, ok2 := minor(b)
	if !ok1 || !ok2 || x != y {
		return ok1 && ok2 && x < y
	}
	p, ok1 := patch(a)
	q, ok2 := patch(b)
	return ok1 && ok2 && p < q
}
