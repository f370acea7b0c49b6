package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// TestNotKnownEverywhereYet: what was just made, or just seen, is unknown to
// the call after. Nobody notices, and nothing is made twice.
func TestNotKnownEverywhereYet(t *testing.T) {
	s3, kms, iam, dns, link := &fakeS3{buckets: map[string]*fakeBucket{}}, newFakeKMS(), newFakeIAM(), newFakeDNS(), newFakeLink()
	a := fakeActivities(t, func(c *clients) { c.s3, c.kms, c.iam, c.route53, c.ec2 = s3, kms, iam, dns, link })
	zone := contract.ZoneInput{CloudResourceInput: fakeInput("n.example.com"), Visibility: "Private", VPCID: "vpc-1"}
	provider := contract.IssuerInput{Account: fakeAccount, Owner: fakeOwner, IssuerURL: "https://i.example.com"}
	tests := []struct {
		operation string
		service   *lossy
		before    func() // makes the operation necessary
		ensure    func(context.Context) error
	}{
		{"PutPublicAccessBlock", &s3.lossy, nil, ensures(a.EnsureBucket, fakeInput("ic-1a2b3c4d-data"))},
		{"GetBucketVersioning", &s3.lossy, nil, ensures(a.EnsureBucket, fakeInput("ic-1a2b3c4d-data"))},
		{"PutBucketTagging", &s3.lossy, func() { s3.buckets["ic-1a2b3c4d-data"].tags = nil }, ensures(a.EnsureBucket, fakeInput("ic-1a2b3c4d-data"))},
		{"CreateAlias", &kms.lossy, nil, ensures(a.EnsureKey, fakeInput("alias/ic-1a2b3c4d-data"))},
		{"ListResourceTags", &kms.lossy, nil, ensures(a.EnsureKey, fakeInput("alias/ic-1a2b3c4d-data"))},
		{"PutRolePolicy", &iam.lossy, nil, ensures(a.EnsureRole, roleInput())},
		{"UpdateAssumeRolePolicy", &iam.lossy, func() { iam.roles["ic-1a2b3c4d-db"].AssumeRolePolicyDocument = nil }, ensures(a.EnsureRole, roleInput())},
		{"AddClientIDToOpenIDConnectProvider", &iam.lossy, func() {
			_, _ = a.EnsureOIDCProvider(t.Context(), provider)
			iam.providers[arnOf(provider.IssuerURL)].ClientIDList = nil
		}, ensures(a.EnsureOIDCProvider, provider)},
		{"GetHostedZone", &dns.lossy, nil, ensures(a.EnsureHostedZone, zone)},
		{"AssociateVPCWithHostedZone", &dns.lossy, func() { clear(dns.vpcs) }, ensures(a.EnsureHostedZone, zone)},
		{"ListTagsForResource", &dns.lossy, nil, ensures(a.EnsureHostedZone, zone)},
		{"ChangeTagsForResource", &dns.lossy, func() { clear(dns.tags) }, ensures(a.EnsureHostedZone, zone)},
		{"DescribeVpcEndpointServicePermissions", &link.lossy, nil, ensures(a.EnsureEndpointService, endpointInput())},
		{"ModifyVpcEndpointServicePermissions", &link.lossy, func() { clear(link.permissions) }, ensures(a.EnsureEndpointService, endpointInput())},
		{"ModifyVpcEndpointServiceConfiguration", &link.lossy, func() {
			for _, s := range link.services {
				s.AcceptanceRequired = awssdk.Bool(false)
			}
		}, ensures(a.EnsureEndpointService, endpointInput())},
	}
	for _, tt := range tests {
		t.Run(tt.operation, func(t *testing.T) {
			if tt.before != nil {
				tt.before()
			}
			tt.service.late = map[string]int{tt.operation: 2}
			require.NoError(t, tt.ensure(t.Context()))
			require.Zero(t, tt.service.late[tt.operation], "it was never called")
		})
	}
	require.Equal(t, []int{1, 1, 1, 1, 1, 1}, []int{len(s3.buckets), len(kms.keys), len(iam.roles), len(iam.providers), len(dns.zones), len(link.services)})
}

func ensures[In, Out any](f func(context.Context, In) (Out, error), in In) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := f(ctx, in)
		return err
	}
}

// TestEndpointGoesBeforeItIsRejected: the call is refused as a whole, and the
// connection that is left is rejected all the same.
func TestEndpointGoesBeforeItIsRejected(t *testing.T) {
	f := newFakeLink()
	a := fakeActivities(t, func(c *clients) { c.ec2 = f })
	s, err := a.EnsureEndpointService(t.Context(), endpointInput())
	require.NoError(t, err)
	f.connections = []ec2types.VpcEndpointConnection{{ServiceId: &s.ID, VpcEndpointId: awssdk.String("vpce-1"), VpcEndpointState: ec2types.StateAvailable}}
	f.late = map[string]int{"RejectVpcEndpointConnections": 1}
	_, err = a.DeleteEndpointService(t.Context(), endpointInput())
	require.NoError(t, err)
	require.Equal(t, ec2types.ServiceStateDeleted, f.services[s.ID].ServiceState)
}

// fakeELB lists load balancers of which some have gone when their tags are
// asked for: DescribeTags then fails for all that it was asked.
type fakeELB struct {
	tags  map[string]string // ARN to identity
	gone  []string          // listed, and gone at the next call
	calls int
}

func (f *fakeELB) DescribeLoadBalancers(context.Context, *elb.DescribeLoadBalancersInput, ...func(*elb.Options)) (*elb.DescribeLoadBalancersOutput, error) {
	out := &elb.DescribeLoadBalancersOutput{}
	for arn := range f.tags {
		out.LoadBalancers = append(out.LoadBalancers, elbtypes.LoadBalancer{LoadBalancerArn: &arn})
	}
	return out, nil
}

func (f *fakeELB) DescribeTags(_ context.Context, in *elb.DescribeTagsInput, _ ...func(*elb.Options)) (*elb.DescribeTagsOutput, error) {
	f.calls++
	out := &elb.DescribeTagsOutput{}
	for _, arn := range in.ResourceArns {
		if slices.Contains(f.gone, arn) {
			return nil, apiErr("LoadBalancerNotFound")
		}
		out.TagDescriptions = append(out.TagDescriptions, elbtypes.TagDescription{ResourceArn: &arn,
			Tags: []elbtypes.Tag{{Key: awssdk.String(v1.TagID), Value: awssdk.String(f.tags[arn])}}})
	}
	return out, nil
}

func TestLoadBalancersThatGoAfterTheyWereListed(t *testing.T) {
	f := &fakeELB{tags: map[string]string{}}
	for i := range 45 {
		f.tags[fmt.Sprintf("arn:lb/%d", i)] = "ffffffffffffffff"
	}
	f.tags["arn:lb/ours"] = fakeOwner.ID
	f.tags["arn:lb/ours-gone"] = fakeOwner.ID
	f.gone = []string{"arn:lb/7", "arn:lb/ours-gone"}
	found, err := loadBalancersTagged(t.Context(), f, slices.Sorted(maps.Keys(f.tags)), func(tags []elbtypes.Tag) bool { return identityIn(tags, elbTag) == fakeOwner.ID })
	require.NoError(t, err)
	require.Equal(t, []string{"arn:lb/ours"}, found)
}
