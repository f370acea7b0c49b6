package operation

import (
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// CloudOf is the cloud that a plan names. A plan of one that nothing can be made
// in stalls the step as Invalid.
func CloudOf(name string) (contract.Cloud, error) {
	c, known := contract.CloudOf(name)
	if !known {
		return c, faults.ToTemporal(faults.New(faults.Invalid, "CloudUnsupported", "cloud "+name, "nothing can be made there").
			WithHint(faults.OwnerUser, "name a Provider of a supported cloud"))
	}
	return c, nil
}
