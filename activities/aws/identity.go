package aws

import (
	"context"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Types of ledger entries, in CloudFormation's terms.
const (
	typeBucket    = "S3::Bucket"
	typeKey       = "KMS::Key"
	typeAlias     = "KMS::Alias"
	typeRole      = "IAM::Role"
	typeOIDC      = "IAM::OIDCProvider"
	typeZone      = "Route53::HostedZone"
	typeRecordSet = "Route53::RecordSet"
	typeEndpoint  = "EC2::VPCEndpointService"
	typeLB        = "ElasticLoadBalancingV2::LoadBalancer"
	typeTargets   = "ElasticLoadBalancingV2::TargetGroup"
	typeVolume    = "EC2::Volume"
	typeVPC       = "EC2::VPC"
	typeNAT       = "EC2::NatGateway"
	typeAddress   = "EC2::EIP"
	typeInstance  = "EC2::Instance"
	typeGroup     = "EC2::SecurityGroup"
	typeInterface = "EC2::NetworkInterface"
)

// tag is a tag in no service's terms; each service's SDK has a type of its own.
type tag struct{ key, value string }

// identityTags are what every resource of an owner carries.
func identityTags(owner contract.ObjectRef, env string) []tag {
	tags := []tag{
		{v1.TagID, owner.ID},
		{v1.TagKind, owner.Kind},
		{v1.TagName, owner.Namespace + "/" + owner.Name},
	}
	if env != "" {
		tags = append(tags, tag{v1.TagEnv, env})
	}
	return tags
}

// tagsAs turns tags into a service's own type.
func tagsAs[T any](tags []tag, one func(key, value *string) T) []T {
	out := make([]T, 0, len(tags))
	for _, t := range tags {
		out = append(out, one(awssdk.String(t.key), awssdk.String(t.value)))
	}
	return out
}

// identityIn returns the value of our identity tag, "" when there is none.
func identityIn[T any](tags []T, pair func(T) (key, value *string)) string {
	return tagValue(tags, v1.TagID, pair)
}

func tagValue[T any](tags []T, key string, pair func(T) (key, value *string)) string {
	for _, t := range tags {
		if k, v := pair(t); awssdk.ToString(k) == key {
			return awssdk.ToString(v)
		}
	}
	return ""
}

// foreign is the fault of a name that something else has.
func foreign(resource, identity string, owner contract.ObjectRef) *faults.Fault {
	who := "it carries no identity of this control plane"
	if identity != "" {
		who = "it belongs to the identity " + identity
	}
	return faults.New(faults.Conflict, "ForeignResource", resource,
		"exists, but is not of %s: %s", owner, who).
		WithHint(faults.OwnerOperator, "it is left untouched; delete or rename it, or re-create the object, then retry")
}

// needIdentity refuses an owner without an identity: everything would look
// ours, or nothing.
func needIdentity(owner contract.ObjectRef) error {
	if len(owner.ID) < 8 {
		return faults.New(faults.Invalid, "NoIdentity", owner.String(), "the object has no identity annotation yet").
			WithHint(faults.OwnerOperator, "see whether the bridge runs; it mints the identity")
	}
	return nil
}

// ledger is the ledger entry of a resource that is there.
func ledger(c *clients, kind, id string) v1.Resource {
	return v1.Resource{Provider: "aws", Region: c.region, Type: kind, ID: id, State: v1.ResourcePresent}
}

// partition of the region, the second part of every ARN.
func (c *clients) partition() string {
	switch {
	case strings.HasPrefix(c.region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(c.region, "us-gov-"):
		return "aws-us-gov"
	default:
		return "aws"
	}
}

// codeNotSettled is the code of settle's own fault.
const codeNotSettled = "NotSettled"

// settle looks until the thing is as it was just made, for AWS shows a change
// late at times. look returns a Gone fault, or
// done=false, while it is not. After Options.Settle the answer is Transient,
// so that Temporal looks again later.
func (a *Activities) settle(ctx context.Context, resource, what string, look func() (done bool, err error)) error {
	limit := time.NewTimer(a.options.Settle)
	defer limit.Stop()
	for {
		done, err := look()
		if done && err == nil {
			return nil
		}
		if err = faults.IgnoreGone(err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return faults.FromAWS(ctx.Err(), resource)
		case <-limit.C:
			return faults.New(faults.Transient, codeNotSettled, resource, "AWS has not yet shown that it is %s", what)
		case <-time.After(a.options.SettlePoll):
		}
	}
}

// steady does f again while it answers Gone about what was just made or seen:
// what one of AWS's servers has shown another may not know for some seconds. One
// that is gone indeed is Transient in the end, and the next attempt finds that
// out.
func (a *Activities) steady(ctx context.Context, resource string, f func() error) error {
	return a.settle(ctx, resource, "there", func() (bool, error) {
		err := f()
		return err == nil, err
	})
}

// goneAsDone is for settle when absence is awaited: Gone means done.
func goneAsDone(err error) (bool, error) {
	if faults.Is(err, faults.Gone) {
		return true, nil
	}
	return false, err
}
