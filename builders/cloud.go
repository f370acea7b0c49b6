package builders

import (
	"encoding/json"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Gardener's spec.provider.type of each cloud.
const (
	ProviderAWS = "aws"
	ProviderGCP = "gcp"
)

// AWS is the cloud as a type. Every provider configuration names its cloud and
// its place in a Shoot by a method, so that one of another cloud, or of another
// place, does not compile: gardener-apiserver stores these blobs unread, and a
// Shoot with a wrong one can be neither created nor deleted (gardener#2139).
// TestTheMistakeDoesNotCompile shows it.
type AWS struct{}

// GCP is the other cloud; see AWS.
type GCP struct{}

func (AWS) providerType() string { return ProviderAWS }
func (GCP) providerType() string { return ProviderGCP }

type cloud interface {
	AWS | GCP
	providerType() string
}

type infrastructureConfig[C cloud] interface{ infrastructureOf(C) }
type controlPlaneConfig[C cloud] interface{ controlPlaneOf(C) }
type workerConfig[C cloud] interface{ workerOf(C) }

// provider is the part of a Shoot that depends on its cloud.
type provider[C cloud] struct {
	infrastructure infrastructureConfig[C]
	controlPlane   controlPlaneConfig[C]
	workers        []pool[C]
}

// pool is a worker pool with its configuration.
type pool[C cloud] struct {
	shape  contract.MachinePool
	config workerConfig[C]
	// encrypted is the volume's flag; nil where disks are always encrypted.
	encrypted *bool
}

// manifest is spec.provider.
func (p provider[C]) manifest() (*gardencorev1beta1.Provider, error) {
	var c C
	out := &gardencorev1beta1.Provider{Type: c.providerType()}
	var err error
	if out.InfrastructureConfig, err = encode(p.infrastructure); err != nil {
		return nil, err
	}
	if out.ControlPlaneConfig, err = encode(p.controlPlane); err != nil {
		return nil, err
	}
	for _, w := range p.workers {
		worker, err := w.manifest()
		if err != nil {
			return nil, err
		}
		out.Workers = append(out.Workers, *worker)
	}
	return out, nil
}

// manifest is one of spec.provider.workers. Machine image, architecture and
// container runtime are left to the CloudProfile's defaults.
func (p pool[C]) manifest() (*gardencorev1beta1.Worker, error) {
	config, err := encode(p.config)
	if err != nil {
		return nil, err
	}
	w := &gardencorev1beta1.Worker{
		Name:             p.shape.Name,
		Minimum:          p.shape.Minimum,
		Maximum:          p.shape.Maximum,
		MaxSurge:         new(intstr.FromInt32(1)),
		MaxUnavailable:   new(intstr.FromInt32(0)),
		Machine:          gardencorev1beta1.Machine{Type: p.shape.MachineType},
		Volume:           &gardencorev1beta1.Volume{Type: new(p.shape.VolumeType), VolumeSize: p.shape.VolumeSize, Encrypted: p.encrypted},
		Zones:            p.shape.Zones,
		Labels:           map[string]string{},
		SystemComponents: &gardencorev1beta1.WorkerSystemComponents{Allow: p.shape.Dedicated == ""},
		ProviderConfig:   config,
	}
	for k, v := range p.shape.Labels {
		w.Labels[k] = v
	}
	if p.shape.Dedicated != "" {
		w.Labels[LabelDedicated] = p.shape.Dedicated
		w.Taints = []corev1.Taint{{Key: LabelDedicated, Value: p.shape.Dedicated, Effect: corev1.TaintEffectNoSchedule}}
	}
	return w, nil
}

// WorkerPoolOn is a worker pool of a Shoot with that spec.provider.type. On GCP
// its nodes are the service account that Gardener makes.
func WorkerPoolOn(providerType string, shape contract.MachinePool) (*gardencorev1beta1.Worker, error) {
	switch providerType {
	case ProviderAWS:
		return WorkerPool(shape)
	case ProviderGCP:
		return GCPWorkerPool(shape, "")
	}
	return nil, invalid("worker pool "+shape.Name, "there are no pools for a Shoot of provider type %q; it must be aws or gcp", providerType)
}

// encode makes the RawExtension of a provider configuration. It is the only
// place of this module that makes one; a test asserts that.
func encode(config any) (*runtime.RawExtension, error) {
	if config == nil {
		return nil, invalid("Shoot", "a provider configuration is missing; this is a mistake of its builder")
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, invalid("Shoot", "its provider configuration does not encode: %s", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}
