package aws

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"go.temporal.io/sdk/activity"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// roleAPI is what is called of IAM for roles.
type roleAPI interface {
	CreateRole(context.Context, *iam.CreateRoleInput, ...func(*iam.Options)) (*iam.CreateRoleOutput, error)
	GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
	DeleteRole(context.Context, *iam.DeleteRoleInput, ...func(*iam.Options)) (*iam.DeleteRoleOutput, error)
	UpdateAssumeRolePolicy(context.Context, *iam.UpdateAssumeRolePolicyInput, ...func(*iam.Options)) (*iam.UpdateAssumeRolePolicyOutput, error)
	GetRolePolicy(context.Context, *iam.GetRolePolicyInput, ...func(*iam.Options)) (*iam.GetRolePolicyOutput, error)
	PutRolePolicy(context.Context, *iam.PutRolePolicyInput, ...func(*iam.Options)) (*iam.PutRolePolicyOutput, error)
	DeleteRolePolicy(context.Context, *iam.DeleteRolePolicyInput, ...func(*iam.Options)) (*iam.DeleteRolePolicyOutput, error)
	ListRolePolicies(context.Context, *iam.ListRolePoliciesInput, ...func(*iam.Options)) (*iam.ListRolePoliciesOutput, error)
	ListAttachedRolePolicies(context.Context, *iam.ListAttachedRolePoliciesInput, ...func(*iam.Options)) (*iam.ListAttachedRolePoliciesOutput, error)
	DetachRolePolicy(context.Context, *iam.DetachRolePolicyInput, ...func(*iam.Options)) (*iam.DetachRolePolicyOutput, error)
	ListInstanceProfilesForRole(context.Context, *iam.ListInstanceProfilesForRoleInput, ...func(*iam.Options)) (*iam.ListInstanceProfilesForRoleOutput, error)
	RemoveRoleFromInstanceProfile(context.Context, *iam.RemoveRoleFromInstanceProfileInput, ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error)
}

const (
	// rolePolicy is the name of the one inline policy that we write.
	rolePolicy = "data-access"
	// principalGrace is how long IAM may call a new provider an invalid
	// principal, see
	// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_general.html#troubleshoot_general_eventual-consistency.
	principalGrace = 60 * time.Second
)

// role is the IAM role of an owner, in one activity call.
type role struct {
	a    *Activities
	c    *clients
	iam  roleAPI
	in   contract.CloudResourceInput
	name *string
}

func (a *Activities) role(ctx context.Context, in contract.CloudResourceInput) (*role, error) {
	if err := needIdentity(in.Owner); err != nil {
		return nil, err
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return nil, err
	}
	return &role{a: a, c: c, iam: c.iam, in: in, name: &in.Name}, nil
}

func (r *role) resource() string { return "IAM role " + r.in.Name }

func (r *role) fault(err error) error { return faults.FromAWS(err, r.resource()) }

// EnsureRole implements contract.AWS.EnsureIdentity. The ledger entry's ID is the
// role's ARN.
func (a *Activities) EnsureRole(ctx context.Context, in contract.IdentityInput) (contract.Outcome, error) {
	r, err := a.role(ctx, in.CloudResourceInput)
	if err != nil {
		return contract.Outcome{}, err
	}
	if in.IssuerID == "" || in.Issuer == "" || len(in.Subjects) == 0 {
		return contract.Outcome{}, faults.New(faults.Invalid, "NoTrust", r.resource(),
			"the role would trust nobody: issuer, provider and subjects must be known")
	}
	in.Subjects = slices.Sorted(slices.Values(in.Subjects))
	have, note, err := r.exist(ctx, trustPolicy(in))
	if err != nil {
		return contract.Outcome{}, err
	}
	err = a.steady(ctx, r.resource(), func() error {
		if err := r.trust(ctx, have, trustPolicy(in)); err != nil {
			return err
		}
		return r.grant(ctx, accessPolicy(r.c.partition(), in))
	})
	if err != nil {
		return contract.Outcome{}, err
	}
	return contract.Outcome{Resource: ledger(r.c, typeRole, awssdk.ToString(have.Arn)), Note: note}, nil
}

// trust makes the role trust whom it should.
func (r *role) trust(ctx context.Context, have *iamtypes.Role, want policy) error {
	if samePolicy(awssdk.ToString(have.AssumeRolePolicyDocument), want) {
		return nil
	}
	_, err := r.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
		RoleName: r.name, PolicyDocument: awssdk.String(want.String()),
	})
	return r.policyFault(ctx, err)
}

// exist returns our role, made if need be.
func (r *role) exist(ctx context.Context, trust policy) (have *iamtypes.Role, note string, err error) {
	have, err = r.get(ctx)
	if err == nil {
		return have, "", nil
	}
	if !faults.Is(err, faults.Gone) {
		return nil, "", err
	}
	err = r.a.settle(ctx, r.resource(), "creatable", func() (bool, error) {
		_, err := r.iam.CreateRole(ctx, &iam.CreateRoleInput{
			RoleName: r.name, AssumeRolePolicyDocument: awssdk.String(trust.String()),
			Description: awssdk.String(fmt.Sprintf("Database of %s", r.in.Owner)),
			Tags:        tagsAs(identityTags(r.in.Owner, r.in.Env), func(k, v *string) iamtypes.Tag { return iamtypes.Tag{Key: k, Value: v} }),
		})
		f := faults.As(r.fault(err))
		if f != nil && f.Code == "EntityAlreadyExists" {
			return true, nil // by an earlier call; get says whose it is
		}
		if invalidPrincipal(f) && r.age(ctx) < principalGrace {
			return false, nil
		}
		return err == nil, r.fault(err)
	})
	if err != nil {
		return nil, "", err
	}
	err = r.a.settle(ctx, r.resource(), "created", func() (done bool, err error) {
		have, err = r.get(ctx)
		return err == nil, err
	})
	return have, fmt.Sprintf("created IAM role %s", r.in.Name), err
}

// get returns our role, a Gone fault, or a Conflict when it is foreign.
func (r *role) get(ctx context.Context) (*iamtypes.Role, error) {
	out, err := r.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: r.name})
	if err != nil {
		return nil, r.fault(err)
	}
	identity := identityIn(out.Role.Tags, iamTag)
	if identity != r.in.Owner.ID {
		return nil, foreign(r.resource(), identity, r.in.Owner)
	}
	return out.Role, nil
}

func iamTag(t iamtypes.Tag) (*string, *string) { return t.Key, t.Value }

// grant makes the inline policy say what it should, or removes it when there
// is nothing to grant.
func (r *role) grant(ctx context.Context, want policy) error {
	policyName := awssdk.String(rolePolicy)
	have, err := r.iam.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: r.name, PolicyName: policyName})
	if err := faults.IgnoreGone(r.fault(err)); err != nil {
		return err
	}
	exists := err == nil
	switch {
	case len(want.Statement) == 0 && !exists:
		return nil
	case len(want.Statement) == 0:
		_, err := r.iam.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: r.name, PolicyName: policyName})
		return faults.IgnoreGone(r.fault(err))
	case exists && samePolicy(awssdk.ToString(have.PolicyDocument), want):
		return nil
	}
	_, err = r.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: r.name, PolicyName: policyName, PolicyDocument: awssdk.String(want.String()),
	})
	return r.policyFault(ctx, err)
}

// policyFault makes the refusal of a principal that IAM does not know yet
// Transient for a while.
func (r *role) policyFault(ctx context.Context, err error) error {
	f := faults.As(r.fault(err))
	if invalidPrincipal(f) && r.age(ctx) < principalGrace {
		f.Class, f.Owner = faults.Transient, ""
		f.Hint = "nothing yet, IAM takes up to a minute to know a new principal; the call is repeated"
		return f
	}
	return r.fault(err)
}

func invalidPrincipal(f *faults.Fault) bool {
	return f != nil && strings.HasPrefix(f.Code, "MalformedPolicy") && strings.Contains(strings.ToLower(f.Message), "principal")
}

// age is how long this activity has been tried, over all its attempts.
func (r *role) age(ctx context.Context) time.Duration {
	if !activity.IsActivity(ctx) {
		return 0
	}
	return time.Since(activity.GetInfo(ctx).ScheduledTime)
}

// DeleteRole implements contract.AWS.DeleteIdentity.
func (a *Activities) DeleteRole(ctx context.Context, in contract.CloudResourceInput) (contract.None, error) {
	r, err := a.role(ctx, in)
	if err != nil {
		return contract.None{}, err
	}
	_, err = r.get(ctx)
	switch {
	case faults.Is(err, faults.Gone):
		return contract.None{}, nil
	case faults.Is(err, faults.Conflict):
		slog.WarnContext(ctx, "not deleted, since it is not ours", "resource", r.resource(), "owner", in.Owner.String())
		return contract.None{}, nil
	case err != nil:
		return contract.None{}, err
	}
	if err := faults.IgnoreGone(r.strip(ctx)); err != nil {
		return contract.None{}, err
	}
	_, err = r.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: r.name})
	if err := faults.IgnoreGone(r.fault(err)); err != nil {
		return contract.None{}, err
	}
	return contract.None{}, a.settle(ctx, r.resource(), "deleted", func() (bool, error) {
		_, err := r.get(ctx)
		return goneAsDone(err)
	})
}

// strip removes what keeps a role from being deleted, also what others added:
// attached and inline policies, and memberships in instance profiles.
func (r *role) strip(ctx context.Context) error {
	attached := iam.NewListAttachedRolePoliciesPaginator(r.iam, &iam.ListAttachedRolePoliciesInput{RoleName: r.name})
	for attached.HasMorePages() {
		page, err := attached.NextPage(ctx)
		if err != nil {
			return r.fault(err)
		}
		for _, p := range page.AttachedPolicies {
			_, err := r.iam.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: r.name, PolicyArn: p.PolicyArn})
			if err := faults.IgnoreGone(r.fault(err)); err != nil {
				return err
			}
		}
	}
	inline := iam.NewListRolePoliciesPaginator(r.iam, &iam.ListRolePoliciesInput{RoleName: r.name})
	for inline.HasMorePages() {
		page, err := inline.NextPage(ctx)
		if err != nil {
			return r.fault(err)
		}
		for i := range page.PolicyNames {
			_, err := r.iam.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: r.name, PolicyName: &page.PolicyNames[i]})
			if err := faults.IgnoreGone(r.fault(err)); err != nil {
				return err
			}
		}
	}
	return r.leaveProfiles(ctx)
}

func (r *role) leaveProfiles(ctx context.Context) error {
	profiles := iam.NewListInstanceProfilesForRolePaginator(r.iam, &iam.ListInstanceProfilesForRoleInput{RoleName: r.name})
	for profiles.HasMorePages() {
		page, err := profiles.NextPage(ctx)
		if err != nil {
			return r.fault(err)
		}
		for _, p := range page.InstanceProfiles {
			_, err := r.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{RoleName: r.name, InstanceProfileName: p.InstanceProfileName})
			if err := faults.IgnoreGone(r.fault(err)); err != nil {
				return err
			}
		}
	}
	return nil
}
