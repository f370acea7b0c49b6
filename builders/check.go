package builders

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	purposes    = []string{"evaluation", "testing", "development", "production"}
	windowShape = regexp.MustCompile(`^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]\+0000$`)
)

// CheckShoot applies the static rules of gardener-apiserver and of the AWS
// extension's admission (infrastructure.md 1.2, 1.7) before anything is sent,
// so that the sentence names the plan's mistake and a garden without the
// extension's webhook does not accept what it could later neither create nor
// delete. The fault is Invalid and lists every violation.
func CheckShoot(shoot *gardencorev1beta1.Shoot, project string) error {
	var bad []string
	bad = append(bad, checkName(shoot, project)...)
	bad = append(bad, checkSpec(&shoot.Spec)...)
	bad = append(bad, checkWorkers(&shoot.Spec.Provider)...)
	bad = append(bad, checkBlobs(&shoot.Spec.Provider)...)
	if len(bad) == 0 {
		return nil
	}
	return invalid("shoot "+shoot.Namespace+"/"+shoot.Name, "%s", strings.Join(bad, "; "))
}

func checkName(shoot *gardencorev1beta1.Shoot, project string) (bad []string) {
	if len(project)+len(shoot.Name) > 21 {
		bad = append(bad, "project and name together must have at most 21 characters")
	}
	if len(validation.IsDNS1123Label(shoot.Name)) > 0 || strings.Contains(shoot.Name, "--") {
		bad = append(bad, "its name must be a DNS label without two hyphens in a row")
	}
	if !strings.HasPrefix(shoot.Namespace, "garden-") && shoot.Namespace != "garden" {
		bad = append(bad, "its namespace must be garden, or start with garden-")
	}
	return bad
}

func checkSpec(s *gardencorev1beta1.ShootSpec) (bad []string) {
	if (s.CredentialsBindingName == nil) == (s.SecretBindingName == nil) {
		bad = append(bad, "exactly one of credentialsBindingName and secretBindingName is needed")
	}
	if s.SecretBindingName != nil && !olderThan(s.Kubernetes.Version, 34) {
		bad = append(bad, "secretBindingName is forbidden from Kubernetes 1.34 on")
	}
	if s.Region == "" || s.Kubernetes.Version == "" {
		bad = append(bad, "region and kubernetes.version are needed")
	}
	if s.Purpose == nil || !slices.Contains(purposes, string(*s.Purpose)) {
		bad = append(bad, "purpose must be one of "+strings.Join(purposes, ", "))
	}
	if s.Networking == nil || s.Networking.Type == nil || *s.Networking.Type == "" {
		bad = append(bad, "networking.type is needed with workers")
	}
	if m := s.Maintenance; m != nil {
		if w := m.TimeWindow; w != nil && (!windowShape.MatchString(w.Begin) || !windowShape.MatchString(w.End)) {
			bad = append(bad, "the maintenance window must look like 220000+0000")
		}
		if m.ConfineSpecUpdateRollout != nil && *m.ConfineSpecUpdateRollout {
			bad = append(bad, "confineSpecUpdateRollout breaks every wait on the generation")
		}
	}
	return bad
}

// olderThan reports whether a 1.x version has a minor below the given one.
func olderThan(version string, minor int) bool {
	v, err := resource.ParseQuantity(strings.Split(strings.TrimPrefix(version, "1."), ".")[0])
	return err == nil && v.Value() < int64(minor)
}

func checkWorkers(p *gardencorev1beta1.Provider) (bad []string) {
	seen, system := map[string]bool{}, false
	for _, w := range p.Workers {
		at := "worker pool " + w.Name + ": "
		if len(validation.IsDNS1123Label(w.Name)) > 0 || len(w.Name) > 15 {
			bad = append(bad, at+"its name must be a DNS label of at most 15 characters")
		}
		if seen[w.Name] {
			bad = append(bad, at+"there are two of that name")
		}
		seen[w.Name] = true
		if w.Minimum < 0 || w.Maximum < w.Minimum {
			bad = append(bad, at+"maximum must not be below minimum, and minimum not below 0")
		}
		if isZero(w.MaxSurge) && isZero(w.MaxUnavailable) {
			bad = append(bad, at+"maxSurge and maxUnavailable must not both be 0")
		}
		if w.Machine.Type == "" || len(w.Zones) == 0 {
			bad = append(bad, at+"machine type and zones are needed")
		}
		if w.Volume == nil || w.Volume.Type == nil || *w.Volume.Type == "" {
			bad = append(bad, at+"volume type and size are needed")
		} else if _, err := resource.ParseQuantity(w.Volume.VolumeSize); err != nil {
			bad = append(bad, at+"volume size "+w.Volume.VolumeSize+" is no quantity")
		}
		system = system || (w.SystemComponents != nil && w.SystemComponents.Allow && w.Maximum > 0)
	}
	if !system {
		bad = append(bad, "at least one worker pool must allow system components")
	}
	return bad
}

// checkBlobs decodes what gardener-apiserver stores unread.
func checkBlobs(p *gardencorev1beta1.Provider) (bad []string) {
	bad = append(bad, checkGroup(p.Type, "infrastructureConfig", "InfrastructureConfig", p.InfrastructureConfig)...)
	bad = append(bad, checkGroup(p.Type, "controlPlaneConfig", "ControlPlaneConfig", p.ControlPlaneConfig)...)
	for _, w := range p.Workers {
		if w.ProviderConfig != nil {
			bad = append(bad, checkGroup(p.Type, "worker pool "+w.Name, "WorkerConfig", w.ProviderConfig)...)
		}
	}
	if len(bad) > 0 || p.Type != providerAWS {
		return bad
	}
	var infra AWSInfrastructureConfig
	if err := json.Unmarshal(p.InfrastructureConfig.Raw, &infra); err != nil {
		return append(bad, "infrastructureConfig does not decode: "+err.Error())
	}
	if vpc := infra.Networks.VPC; (vpc.ID == nil) == (vpc.CIDR == nil) {
		bad = append(bad, "exactly one of networks.vpc.id and cidr is needed")
	}
	for _, w := range p.Workers {
		for _, z := range w.Zones {
			if !slices.ContainsFunc(infra.Networks.Zones, func(a AWSZone) bool { return a.Name == z }) {
				bad = append(bad, "worker pool "+w.Name+": zone "+z+" is not one of the Shoot's network zones")
			}
		}
	}
	return bad
}

func checkGroup(providerType, field, kind string, raw *runtime.RawExtension) []string {
	if raw == nil || len(raw.Raw) == 0 {
		return []string{field + " is needed"}
	}
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw.Raw, &meta); err != nil {
		return []string{field + " does not decode"}
	}
	if group := providerType + ".provider.extensions.gardener.cloud/"; !strings.HasPrefix(meta.APIVersion, group) || meta.Kind != kind {
		return []string{field + " is a " + meta.Kind + " of " + meta.APIVersion + ", not a " + kind + " for " + providerType}
	}
	return nil
}

func isZero(v *intstr.IntOrString) bool {
	return v == nil || v.String() == "0" || v.String() == "0%"
}
