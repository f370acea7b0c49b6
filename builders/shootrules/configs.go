package shootrules

import (
	"bytes"
	"encoding/json"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidbcloud/infra-orchestrator/builders"
)

// configs are the provider configurations of a Shoot, as far as they are of
// its cloud and decode strictly. The fields of the other cloud stay nil.
type configs struct {
	wrong []problem

	awsInfra   *builders.AWSInfrastructureConfig
	awsControl *builders.AWSControlPlaneConfig
	awsWorkers map[int]*builders.AWSWorkerConfig

	gcpInfra   *builders.GCPInfrastructureConfig
	gcpControl *builders.GCPControlPlaneConfig
	gcpWorkers map[int]*builders.GCPWorkerConfig
}

// problem is why a configuration could not be decoded.
type problem struct {
	// foreign: it is of another cloud or kind; else it has unknown fields.
	foreign bool
	path    string
	value   any
}

const (
	providerPath = "spec.provider"
	infraPath    = providerPath + ".infrastructureConfig"
	controlPath  = providerPath + ".controlPlaneConfig"
	workersPath  = providerPath + ".workers"
)

// decode reads the provider configurations of a Shoot.
func decode(shoot *gardencorev1beta1.Shoot) configs {
	var c configs
	p := shoot.Spec.Provider
	switch p.Type {
	case builders.ProviderAWS:
		c.awsInfra = config[builders.AWSInfrastructureConfig](&c, p.InfrastructureConfig, infraPath, builders.AWSAPIVersion, "InfrastructureConfig")
		c.awsControl = config[builders.AWSControlPlaneConfig](&c, p.ControlPlaneConfig, controlPath, builders.AWSAPIVersion, "ControlPlaneConfig")
		c.awsWorkers = workerConfigs[builders.AWSWorkerConfig](&c, p.Workers, builders.AWSAPIVersion)
	case builders.ProviderGCP:
		c.gcpInfra = config[builders.GCPInfrastructureConfig](&c, p.InfrastructureConfig, infraPath, builders.GCPAPIVersion, "InfrastructureConfig")
		c.gcpControl = config[builders.GCPControlPlaneConfig](&c, p.ControlPlaneConfig, controlPath, builders.GCPAPIVersion, "ControlPlaneConfig")
		c.gcpWorkers = workerConfigs[builders.GCPWorkerConfig](&c, p.Workers, builders.GCPAPIVersion)
	}
	return c
}

// workerConfigs are those of the pools that have one, by position.
func workerConfigs[T any](c *configs, pools []gardencorev1beta1.Worker, apiVersion string) map[int]*T {
	out := map[int]*T{}
	for i, w := range pools {
		if w.ProviderConfig == nil {
			continue
		}
		if v := config[T](c, w.ProviderConfig, at(i)+".providerConfig", apiVersion, "WorkerConfig"); v != nil {
			out[i] = v
		}
	}
	return out
}

func config[T any](c *configs, raw *runtime.RawExtension, path, apiVersion, kind string) *T {
	if raw == nil || len(raw.Raw) == 0 {
		c.wrong = append(c.wrong, problem{foreign: true, path: path})
		return nil
	}
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw.Raw, &meta); err != nil || meta.APIVersion != apiVersion || meta.Kind != kind {
		c.wrong = append(c.wrong, problem{foreign: true, path: path, value: strings.Trim(meta.APIVersion+"/"+meta.Kind, "/")})
		return nil
	}
	out := new(T)
	decoder := json.NewDecoder(bytes.NewReader(raw.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		c.wrong = append(c.wrong, problem{path: path, value: strings.TrimPrefix(err.Error(), "json: ")})
		return nil
	}
	return out
}

// blobs are the rules for the provider configurations as such.
var blobs = []rule{{
	id:     "config-of-the-cloud",
	says:   "must be a configuration of this place and of the cloud of spec.provider.type",
	wayOut: "build it with package builders, whose types do not allow another cloud's",
	check: func(s *subject, found func(string, any)) {
		for _, p := range s.configs.wrong {
			if p.foreign {
				found(p.path, p.value)
			}
		}
	},
}, {
	id:     "config-fields",
	says:   "must have only fields that Gardener's extension knows, with values of their types",
	wayOut: "remove or correct the field, or add it to the types of package builders",
	check: func(s *subject, found func(string, any)) {
		for _, p := range s.configs.wrong {
			if !p.foreign {
				found(p.path, p.value)
			}
		}
	},
}}
