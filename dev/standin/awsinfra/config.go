package awsinfra

import (
	"bytes"
	"encoding/json"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// networksConfig is the part of InfrastructureConfig
// (aws.provider.extensions.gardener.cloud/v1alpha1) that is acted upon. The
// extension's API is not published as a module of its own.
type networksConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Networks   struct {
		VPC struct {
			ID   *string `json:"id"`
			CIDR *string `json:"cidr"`
		} `json:"vpc"`
		Zones []zone `json:"zones"`
	} `json:"networks"`
}

// zone has the three subnets of an availability zone.
type zone struct {
	Name     string `json:"name"`
	Workers  string `json:"workers"`
	Public   string `json:"public"`
	Internal string `json:"internal"`
}

// decodeConfig refuses what the extension's admission would have refused: the
// garden API server does not look into provider blobs.
func decodeConfig(shoot *gardencorev1beta1.Shoot) (*networksConfig, error) {
	problem := func(format string, args ...any) error {
		return &gardenlet.InfraError{
			Code:    string(gardencorev1beta1.ErrorConfigurationProblem),
			Message: "infrastructureConfig: " + fmt.Sprintf(format, args...),
		}
	}
	raw := shoot.Spec.Provider.InfrastructureConfig
	if raw == nil || len(raw.Raw) == 0 {
		return nil, problem("is missing")
	}
	var c networksConfig
	if err := json.NewDecoder(bytes.NewReader(raw.Raw)).Decode(&c); err != nil {
		return nil, problem("%v", err)
	}
	switch {
	case c.APIVersion != "aws.provider.extensions.gardener.cloud/v1alpha1" || c.Kind != "InfrastructureConfig":
		return nil, problem("no kind %q is registered for version %q", c.Kind, c.APIVersion)
	case c.Networks.VPC.ID == nil && c.Networks.VPC.CIDR == nil, c.Networks.VPC.ID != nil && c.Networks.VPC.CIDR != nil:
		return nil, problem("networks.vpc must specify either a vpc id or a cidr")
	case len(c.Networks.Zones) == 0:
		return nil, problem("networks.zones must specify at least the networks for one zone")
	}
	for _, z := range c.Networks.Zones {
		if z.Name == "" || z.Workers == "" || z.Public == "" || z.Internal == "" {
			return nil, problem("networks.zones: zone %q needs name, workers, public and internal", z.Name)
		}
	}
	return &c, nil
}
