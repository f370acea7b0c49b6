package faults

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Texts are of the form that Gardener's AWS and GCP extensions report.
func TestFromShoot(t *testing.T) {
	e := func(text string, codes ...string) []ShootError {
		return []ShootError{{Description: text, Codes: codes}}
	}
	for _, tc := range []struct {
		name, operation, state string
		errs                   []ShootError
		class                  Class
		owner                  Owner
		code                   string
	}{
		{"quota", "Create", "Failed", e(`task "Waiting until shoot infrastructure has been reconciled" failed: Error while waiting for Infrastructure shoot--core--n-1/n-1: failed to create VPC: VpcLimitExceeded: The maximum number of VPCs has been reached.`, "ERR_INFRA_QUOTA_EXCEEDED"), Quota, OwnerOperator, "ERR_INFRA_QUOTA_EXCEEDED"},
		{"bad credentials", "Create", "Failed", e("AuthFailure: AWS was not able to validate the provided access credentials", "ERR_INFRA_UNAUTHENTICATED"), Auth, OwnerOperator, "ERR_INFRA_UNAUTHENTICATED"},
		{"no permission", "Reconcile", "Failed", e("UnauthorizedOperation: You are not authorized to perform: ec2:CreateNatGateway", "ERR_INFRA_UNAUTHORIZED"), Auth, OwnerOperator, "ERR_INFRA_UNAUTHORIZED"},
		{"dependents", "Delete", "Failed", e("DependencyViolation: The vpc 'vpc-0a1' has dependencies and cannot be deleted.", "ERR_INFRA_DEPENDENCIES"), Dependency, OwnerOperator, "ERR_INFRA_DEPENDENCIES"},
		{"wrong cloud", "Create", "Failed", e(`no kind "InfrastructureConfig" is registered for version "aws.provider.extensions.gardener.cloud/v1alpha1"`, "ERR_CONFIGURATION_PROBLEM"), Invalid, OwnerUser, "ERR_CONFIGURATION_PROBLEM"},
		{"no capacity", "Reconcile", "Error", e("InsufficientInstanceCapacity: We currently do not have sufficient m5.2xlarge capacity in us-west-2a", "ERR_INFRA_RESOURCES_DEPLETED"), Capacity, OwnerProvider, "ERR_INFRA_RESOURCES_DEPLETED"},
		{"throttled is never quota", "Create", "Failed", e("RequestLimitExceeded: Request limit exceeded.", "ERR_INFRA_RATE_LIMITS_EXCEEDED"), Throttled, OwnerProvider, "ERR_INFRA_RATE_LIMITS_EXCEEDED"},
		{"stuck cleanup", "Delete", "Error", e("remaining resources are being deleted: persistentvolumeclaims", "ERR_CLEANUP_CLUSTER_RESOURCES"), Dependency, OwnerOperator, "ERR_CLEANUP_CLUSTER_RESOURCES"},
		{"webhook", "Reconcile", "Failed", e(`webhook "block-all" matches leases in kube-system`, "ERR_PROBLEMATIC_WEBHOOK"), Dependency, OwnerOperator, "ERR_PROBLEMATIC_WEBHOOK"},
		{"retryable while retrying", "Create", "Error", e("subnet is in use", "ERR_RETRYABLE_INFRA_DEPENDENCIES"), Transient, OwnerProvider, "ERR_RETRYABLE_INFRA_DEPENDENCIES"},
		{"retryable given up", "Create", "Failed", e("pdb does not allow", "ERR_RETRYABLE_CONFIGURATION_PROBLEM"), Dependency, OwnerOperator, "ERR_RETRYABLE_CONFIGURATION_PROBLEM"},
		{"unknown while retrying", "Create", "Error", e("context deadline exceeded"), Transient, OwnerProvider, ""},
		{"unknown given up", "Create", "Failed", nil, Dependency, OwnerOperator, "SHOOT_FAILED"},
		{"needs a person first", "Create", "Failed", append(e("slow down", "ERR_INFRA_RATE_LIMITS_EXCEEDED"), e("quota of vCPUs", "ERR_INFRA_QUOTA_EXCEEDED")...), Quota, OwnerOperator, "ERR_INFRA_QUOTA_EXCEEDED"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := FromShoot(ShootFailure{Resource: "shoot garden-core/n-1", Operation: tc.operation, State: tc.state, Description: "flow failed", Errors: tc.errs})
			require.NotNil(t, f)
			require.Equal(t, tc.class, f.Class)
			require.Equal(t, tc.owner, f.Owner)
			require.Equal(t, tc.code, f.Code)
			require.NotEmpty(t, f.Hint)
			require.True(t, strings.HasPrefix(f.Message, tc.operation+" "), f.Message)
		})
	}
	for _, state := range []string{"", "Processing", "Pending", "Succeeded", "Aborted"} {
		require.Nil(t, FromShoot(ShootFailure{State: state, Errors: e("x", "ERR_INFRA_QUOTA_EXCEEDED")}), state)
	}
}

func TestEveryShootRuleStandsForItself(t *testing.T) {
	for _, r := range shootRules {
		f := FromShoot(ShootFailure{State: "Error", Errors: []ShootError{{Description: "d", Codes: []string{r.code}}}})
		require.Equal(t, r.class, f.Class, r.code)
		require.Contains(t, f.Human(), r.hint)
	}
}

func TestRedact(t *testing.T) {
	require.Equal(t, "key <access key> is bad", redact("key AKIAIOSFODNN7EXAMPLE\n  is bad.\n"))
	long := redact(strings.Repeat("é", maxMessage))
	require.LessOrEqual(t, len(long), maxMessage+len(" …"))
}
