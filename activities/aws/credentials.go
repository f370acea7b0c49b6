package aws

import (
	"context"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// VerifyAWSCredentials implements contract.AWS.VerifyCredentials. It asks STS each
// time, since a key can be revoked.
func (a *Activities) VerifyAWSCredentials(ctx context.Context, in contract.CloudAccount) (contract.CloudIdentity, error) {
	c, err := a.clients(ctx, in)
	if err != nil {
		return contract.CloudIdentity{}, err
	}
	return c.whoami(ctx, in)
}
