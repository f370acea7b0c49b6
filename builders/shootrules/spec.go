package shootrules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/tidbcloud/infra-orchestrator/builders"
)

var (
	purposes          = []string{"evaluation", "testing", "development", "production"}
	cloudProfileKinds = []string{"CloudProfile", "NamespacedCloudProfile"}
	versionShape      = regexp.MustCompile(`^[1-9][0-9]*(\.(0|[1-9][0-9]*)){1,2}$`)
)

// Minor versions of Kubernetes 1 that Gardener 1.149 runs.
const (
	oldestMinor = 32
	newestMinor = 36
	// withoutSecretBinding is the first minor version without
	// spec.secretBindingName and spec.cloudProfileName.
	withoutSecretBinding = 34
)

// minor is the minor version of a Kubernetes 1 version, such as 33 of 1.33.2;
// false when the version has another form.
func minor(version string) (int, bool) {
	parts := strings.Split(version, ".")
	if !versionShape.MatchString(version) || parts[0] != "1" {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}

func set(s *string) bool { return s != nil && *s != "" }

// spec are the rules for a Shoot's spec, without those for worker pools.
var spec = slices.Concat([]rule{{
	id:     "cloud-profile",
	says:   "must name a CloudProfile or NamespacedCloudProfile",
	wayOut: "set ProviderType.spec.gardener.cloudProfile",
	check: func(s *subject, found func(string, any)) {
		if p := s.shoot.Spec.CloudProfile; p == nil {
			found("spec.cloudProfile", nil)
		} else if p.Name == "" || !slices.Contains(cloudProfileKinds, p.Kind) {
			found("spec.cloudProfile", p)
		}
	},
}, {
	id:     "cloud-profile-name",
	says:   "is not allowed from Kubernetes 1.34 on",
	wayOut: "use spec.cloudProfile",
	check: func(s *subject, found func(string, any)) {
		if n, ok := minor(s.shoot.Spec.Kubernetes.Version); ok && n >= withoutSecretBinding && set(s.shoot.Spec.CloudProfileName) { //nolint:staticcheck // SA1019: the rule is about the deprecated field.
			found("spec.cloudProfileName", *s.shoot.Spec.CloudProfileName) //nolint:staticcheck // SA1019: as above.
		}
	},
}, {
	id:     "region",
	says:   "is required",
	wayOut: "set Network.spec.region",
	check: func(s *subject, found func(string, any)) {
		if s.shoot.Spec.Region == "" {
			found("spec.region", nil)
		}
	},
}, {
	id:     "one-binding",
	says:   "exactly one of credentialsBindingName and secretBindingName is needed",
	wayOut: "keep one of them (ProviderType.spec.gardener.credentialsKind)",
	check: func(s *subject, found func(string, any)) {
		switch credentials, secret := set(s.shoot.Spec.CredentialsBindingName), set(s.shoot.Spec.SecretBindingName); {
		case credentials && secret:
			found("spec.secretBindingName", *s.shoot.Spec.SecretBindingName)
		case !credentials && !secret:
			found("spec.credentialsBindingName", nil)
		}
	},
}, {
	id:     "secret-binding-version",
	says:   "is not allowed from Kubernetes 1.34 on",
	wayOut: "use a CredentialsBinding (ProviderType.spec.gardener.credentialsKind), or an older Kubernetes version",
	check: func(s *subject, found func(string, any)) {
		if n, ok := minor(s.shoot.Spec.Kubernetes.Version); ok && n >= withoutSecretBinding && set(s.shoot.Spec.SecretBindingName) {
			found("spec.secretBindingName", *s.shoot.Spec.SecretBindingName)
		}
	},
}, {
	id:     "purpose",
	says:   "must be one of evaluation, testing, development, production; infrastructure in namespace garden only",
	wayOut: "choose one of them (Network.spec.purpose)",
	check: func(s *subject, found func(string, any)) {
		p := s.shoot.Spec.Purpose
		if p == nil || slices.Contains(purposes, string(*p)) || *p == gardencorev1beta1.ShootPurposeInfrastructure && s.shoot.Namespace == "garden" {
			return
		}
		found("spec.purpose", *p)
	},
}, {
	id:     "seed-name",
	says:   "must not be empty when it is given",
	wayOut: "leave the field out, or name a seed (ProviderType.spec.gardener.seedName)",
	check: func(s *subject, found func(string, any)) {
		if n := s.shoot.Spec.SeedName; n != nil && *n == "" {
			found("spec.seedName", *n)
		}
	},
}, {
	id:     "kubernetes-version",
	says:   "must be a version that this Gardener runs, 1.32 to 1.36, with or without a patch version",
	wayOut: "choose another version (Network.spec.kubernetesVersion)",
	check: func(s *subject, found func(string, any)) {
		version := s.shoot.Spec.Kubernetes.Version
		if version == "" {
			found("spec.kubernetes.version", nil)
		} else if n, ok := minor(version); !ok || n < oldestMinor || n > newestMinor {
			found("spec.kubernetes.version", version)
		}
	},
}, {
	id:     "hibernation-schedules",
	says:   "must be empty: schedules would toggle the same field as this control plane, which hibernates idle Networks",
	wayOut: "remove the schedules; Network.spec.hibernation says when a Network sleeps",
	check: func(s *subject, found func(string, any)) {
		if h := s.shoot.Spec.Hibernation; h != nil && len(h.Schedules) > 0 {
			found("spec.hibernation.schedules", h.Schedules)
		}
	},
}, {
	id:     "provider-type",
	says:   "must be aws or gcp",
	wayOut: "use a ProviderType of one of these clouds",
	check: func(s *subject, found func(string, any)) {
		if t := s.shoot.Spec.Provider.Type; t != builders.ProviderAWS && t != builders.ProviderGCP {
			found("spec.provider.type", t)
		}
	},
}}, networking, maintenance)

var networking = []rule{{
	id:     "networking-type",
	says:   "is required with worker pools",
	wayOut: "set ProviderType.spec.gardener.networkingType to calico or cilium",
	check: func(s *subject, found func(string, any)) {
		if n := s.shoot.Spec.Networking; n == nil || !set(n.Type) {
			found("spec.networking.type", nil)
		}
	},
}, {
	id:     "networking-nodes",
	says:   "is required on AWS and GCP",
	wayOut: "set Network.spec.cidr.vpc",
	check: func(s *subject, found func(string, any)) {
		if n := s.shoot.Spec.Networking; n == nil || n.Nodes == nil {
			found("spec.networking.nodes", nil)
		}
	},
}, {
	id:     "networking-cidr",
	says:   "must be an IPv4 range that begins at its network address, such as 10.250.0.0/16",
	wayOut: "correct Network.spec.cidr",
	check: func(s *subject, found func(string, any)) {
		nodes, pods, services := s.networking()
		for _, n := range []network{nodes, pods, services} {
			if n.path != "" && !n.valid() {
				found(n.path, n.text)
			}
		}
	},
}, {
	id:     "networking-overlap",
	says:   "nodes, pods and services must not overlap",
	wayOut: "choose ranges apart from each other (Network.spec.cidr)",
	check: func(s *subject, found func(string, any)) {
		nodes, pods, services := s.networking()
		overlapping([]network{nodes, pods, services}, found)
	},
}}

var maintenance = []rule{{
	id:     "maintenance-window",
	says:   "begin and end must look like 220000+0000",
	wayOut: "correct Network.spec.maintenanceWindow",
	check: func(s *subject, found func(string, any)) {
		if w := window(s.shoot); w != nil {
			if _, ok := windowLength(w); !ok {
				found("spec.maintenance.timeWindow", w)
			}
		}
	},
}, {
	id:     "maintenance-window-length",
	says:   "must be between 30 minutes and 6 hours long",
	wayOut: "move begin or end (Network.spec.maintenanceWindow)",
	check: func(s *subject, found func(string, any)) {
		if w := window(s.shoot); w != nil {
			if length, ok := windowLength(w); ok && (length < 30*time.Minute || length > 6*time.Hour) {
				found("spec.maintenance.timeWindow", w)
			}
		}
	},
}, {
	id:     "confine-spec-update-rollout",
	says:   "must not be true: metadata.generation would not grow with the spec, and every wait for a change would end at once",
	wayOut: "remove the field",
	check: func(s *subject, found func(string, any)) {
		if m := s.shoot.Spec.Maintenance; m != nil && m.ConfineSpecUpdateRollout != nil && *m.ConfineSpecUpdateRollout {
			found("spec.maintenance.confineSpecUpdateRollout", true)
		}
	},
}}

func window(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.MaintenanceTimeWindow {
	if shoot.Spec.Maintenance == nil {
		return nil
	}
	return shoot.Spec.Maintenance.TimeWindow
}

// windowLength is the time from begin to end, over midnight if need be.
func windowLength(w *gardencorev1beta1.MaintenanceTimeWindow) (time.Duration, bool) {
	const layout, day = "150405-0700", 24 * time.Hour
	begin, err1 := time.Parse(layout, w.Begin)
	end, err2 := time.Parse(layout, w.End)
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return ((end.Sub(begin) % day) + day) % day, true
}

// patch is the patch version of a Kubernetes version, if it has one.
func patch(version string) (int, bool) {
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return 0, false
	}
	n, err := strconv.Atoi(parts[2])
	return n, err == nil
}
