package aws

import (
	"context"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// adopts loses the answer to each of the operations in turn, running f until
// it works, and checks that a last run changes nothing.
func adopts[In, Out any](t *testing.T, l *lossy, f func(context.Context, In) (Out, error), in In, operations ...string) Out {
	t.Helper()
	for _, operation := range operations {
		l.lose = operation
		_, err := f(t.Context(), in)
		require.Truef(t, faults.Is(err, faults.Transient), "after the lost %s: %v", operation, err)
		require.Empty(t, l.lose, "%s was never called", operation)
	}
	_, err := f(t.Context(), in)
	require.NoError(t, err)
	l.calls = nil
	out, err := f(t.Context(), in)
	require.NoError(t, err)
	require.Empty(t, l.calls, "a repeated Ensure must change nothing")
	return out
}

func TestBucketIsAdopted(t *testing.T) {
	f := &fakeS3{buckets: map[string]*fakeBucket{}}
	a := fakeActivities(t, func(c *clients) { c.s3 = f })
	in := fakeInput("ic-1a2b3c4d-789012-data")
	adopts(t, &f.lossy, a.EnsureBucket, in,
		"CreateBucket", "PutPublicAccessBlock", "PutBucketEncryption", "PutBucketVersioning", "PutBucketLifecycleConfiguration")
	require.Len(t, f.buckets, 1)

	b := f.buckets[in.Name]
	require.Equal(t, fakeOwner.ID, identityIn(b.tags, func(x s3types.Tag) (*string, *string) { return x.Key, x.Value }))
	// Drift that matters is corrected; a user's own rule stays.
	b.block.BlockPublicPolicy = awssdk.Bool(false)
	b.versioning = s3types.BucketVersioningStatusSuspended
	b.rules = []s3types.LifecycleRule{{ID: awssdk.String("users")}}
	adopts(t, &f.lossy, a.EnsureBucket, in)
	require.True(t, *b.block.BlockPublicPolicy)
	require.Equal(t, s3types.BucketVersioningStatusEnabled, b.versioning)
	require.Len(t, b.rules, 2)
}

func TestBucketOfOthers(t *testing.T) {
	in := fakeInput("ic-1a2b3c4d-789012-data")
	object := []s3types.ObjectVersion{{Key: awssdk.String("k")}}
	id := func(v string) []s3types.Tag {
		return []s3types.Tag{{Key: awssdk.String(v1.TagID), Value: awssdk.String(v)}}
	}
	tests := []struct {
		name     string
		f        *fakeS3
		conflict bool
	}{
		{"another account's", &fakeS3{buckets: map[string]*fakeBucket{}, taken: true}, true},
		{"another identity's", &fakeS3{buckets: map[string]*fakeBucket{in.Name: {tags: id("ffffffffffffffff")}}}, true},
		{"untagged with objects", &fakeS3{buckets: map[string]*fakeBucket{in.Name: {versions: object}}}, true},
		{"untagged and empty", &fakeS3{buckets: map[string]*fakeBucket{in.Name: {}}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := fakeActivities(t, func(c *clients) { c.s3 = tt.f })
			_, err := a.EnsureBucket(t.Context(), in)
			if tt.conflict {
				requireConflict(t, err)
				require.Empty(t, tt.f.calls, "what is foreign is never touched")
				return
			}
			require.NoError(t, err)
			require.Len(t, tt.f.buckets[in.Name].tags, 4)
		})
	}
}

func keyTags(id string) []kmstypes.Tag {
	return []kmstypes.Tag{{TagKey: awssdk.String(v1.TagID), TagValue: awssdk.String(id)}}
}

func TestKeyIsAdopted(t *testing.T) {
	f := newFakeKMS()
	a := fakeActivities(t, func(c *clients) { c.kms = f })
	out := adopts(t, &f.lossy, a.EnsureKey, fakeInput("alias/ic-1a2b3c4d-data"), "CreateKey", "CreateAlias")
	require.Len(t, f.keys, 1)
	require.Equal(t, "arn:key/k1", out.Resource.ID)

	for _, operation := range []string{"ScheduleKeyDeletion", "DeleteAlias"} {
		f.lose = operation
		_, err := a.DeleteKey(t.Context(), fakeInput("alias/ic-1a2b3c4d-data"))
		require.True(t, faults.Is(err, faults.Transient), err)
	}
	gone, err := a.DeleteKey(t.Context(), fakeInput("alias/ic-1a2b3c4d-data"))
	require.NoError(t, err)
	require.Equal(t, v1.ResourceDeleting, gone.Resource.State)
	require.Empty(t, f.aliases)

	// Made again, the same key comes back, whichever answer is lost.
	out = adopts(t, &f.lossy, a.EnsureKey, fakeInput("alias/ic-1a2b3c4d-data"), "CancelKeyDeletion", "EnableKey", "CreateAlias")
	require.Equal(t, "arn:key/k1", out.Resource.ID)
	require.Len(t, f.keys, 1)
}

func TestKeyChoice(t *testing.T) {
	now := time.Now()
	f := newFakeKMS()
	f.add("dying", kmstypes.KeyStatePendingDeletion, now.Add(-9*time.Hour), keyTags(fakeOwner.ID))
	f.add("off", kmstypes.KeyStateDisabled, now.Add(-8*time.Hour), keyTags(fakeOwner.ID))
	f.add("young", kmstypes.KeyStateEnabled, now.Add(-1*time.Hour), keyTags(fakeOwner.ID))
	f.add("old", kmstypes.KeyStateEnabled, now.Add(-2*time.Hour), keyTags(fakeOwner.ID))
	f.add("foreign", kmstypes.KeyStateEnabled, now.Add(-99*time.Hour), keyTags("ffffffffffffffff"))
	// A volume is encrypted with the other living one, so it is left alone.
	disks := &fakeVolumes{volumes: []ec2types.Volume{{KmsKeyId: awssdk.String("arn:key/young")}, {KmsKeyId: awssdk.String("arn:key/off")}}}
	a := fakeActivities(t, func(c *clients) { c.kms, c.ec2 = f, disks })
	out, err := a.EnsureKey(t.Context(), fakeInput("alias/ic-1a2b3c4d-data"))
	require.NoError(t, err)
	require.Equal(t, "arn:key/old", out.Resource.ID)

	_, err = a.DeleteKey(t.Context(), fakeInput("alias/ic-1a2b3c4d-data"))
	require.NoError(t, err)
	for id, m := range f.keys {
		want := kmstypes.KeyStatePendingDeletion
		if id == "foreign" {
			want = kmstypes.KeyStateEnabled
		}
		require.Equal(t, want, m.KeyState, id)
	}

	f.aliases["alias/ic-1a2b3c4d-data"] = "foreign"
	_, err = a.EnsureKey(t.Context(), fakeInput("alias/ic-1a2b3c4d-data"))
	requireConflict(t, err)
	left, err := a.DeleteKey(t.Context(), fakeInput("alias/ic-1a2b3c4d-data"))
	require.NoError(t, err)
	require.Equal(t, v1.ResourceForeign, left.Resource.State)
}

func roleInput() contract.IdentityInput {
	return contract.IdentityInput{
		CloudResourceInput: fakeInput("ic-1a2b3c4d-db"), IssuerID: "arn:aws:iam::123456789012:oidc-provider/i.example.com",
		Issuer: "https://i.example.com", Subjects: []string{"system:serviceaccount:ns:a"}, Bucket: "b", Prefix: "p/",
	}
}

func TestRoleIsAdopted(t *testing.T) {
	f := newFakeIAM()
	f.refusePrincipal = 3 // IAM does not know the provider yet
	a := fakeActivities(t, func(c *clients) { c.iam = f })
	adopts(t, &f.lossy, a.EnsureRole, roleInput(), "CreateRole", "PutRolePolicy")
	require.Len(t, f.roles, 1)

	f.roles["ic-1a2b3c4d-db"].AssumeRolePolicyDocument = awssdk.String(`{"Version":"2012-10-17","Statement":[]}`)
	adopts(t, &f.lossy, a.EnsureRole, roleInput(), "UpdateAssumeRolePolicy")
	require.Contains(t, *f.roles["ic-1a2b3c4d-db"].AssumeRolePolicyDocument, "system:serviceaccount:ns:a")

	f.roles["ic-1a2b3c4d-db"].Tags = []iamtypes.Tag{}
	_, err := a.EnsureRole(t.Context(), roleInput())
	requireConflict(t, err)
}

func TestRolePrincipalStaysUnknown(t *testing.T) {
	f := newFakeIAM()
	f.refusePrincipal = 1 << 20
	a := fakeActivities(t, func(c *clients) { c.iam = f })
	_, err := a.EnsureRole(t.Context(), roleInput())
	require.True(t, faults.Is(err, faults.Transient), err)
}

func TestOIDCProviderIsAdopted(t *testing.T) {
	f := newFakeIAM()
	a := fakeActivities(t, func(c *clients) { c.iam = f })
	in := contract.IssuerInput{Account: fakeAccount, Owner: fakeOwner, IssuerURL: "https://i.example.com/x"}
	out := adopts(t, &f.lossy, a.EnsureOIDCProvider, in, "CreateOpenIDConnectProvider")
	require.Equal(t, "arn:aws:iam::123456789012:oidc-provider/i.example.com/x", out.Resource.ID)
	f.providers[out.Resource.ID].ClientIDList = nil
	adopts(t, &f.lossy, a.EnsureOIDCProvider, in, "AddClientIDToOpenIDConnectProvider")

	f.providers[out.Resource.ID] = &iam.GetOpenIDConnectProviderOutput{}
	_, err := a.EnsureOIDCProvider(t.Context(), in)
	requireConflict(t, err)
	in.IssuerURL = "http://i.example.com"
	_, err = a.EnsureOIDCProvider(t.Context(), in)
	require.True(t, faults.Is(err, faults.Invalid), err)
}

func TestZoneIsAdopted(t *testing.T) {
	f := newFakeDNS()
	a := fakeActivities(t, func(c *clients) { c.route53 = f })
	in := contract.ZoneInput{CloudResourceInput: fakeInput("n.example.com"), Visibility: "Private", VPCID: "vpc-1"}
	z := adopts(t, &f.lossy, a.EnsureHostedZone, in, "CreateHostedZone", "ChangeTagsForResource")
	require.Len(t, f.zones, 1)
	f.vpcs[z.ID] = nil
	adopts(t, &f.lossy, a.EnsureHostedZone, in, "AssociateVPCWithHostedZone")

	// Route 53 remembers the reference of a zone that was deleted.
	delete(f.zones, z.ID)
	again := adopts(t, &f.lossy, a.EnsureHostedZone, in, "CreateHostedZone")
	require.NotEqual(t, z.ID, again.ID)
	require.Len(t, f.zones, 1)
}

func TestZoneOfOthers(t *testing.T) {
	f := newFakeDNS()
	f.zones["Z9"] = &r53types.HostedZone{Id: awssdk.String("/hostedzone/Z9"), Name: awssdk.String("n.example.com."), CallerReference: awssdk.String("x"), Config: &r53types.HostedZoneConfig{}}
	a := fakeActivities(t, func(c *clients) { c.route53 = f })
	public := contract.ZoneInput{CloudResourceInput: fakeInput("n.example.com"), Visibility: "Public"}
	_, err := a.EnsureHostedZone(t.Context(), public)
	requireConflict(t, err)
	require.Empty(t, f.calls)
	private := contract.ZoneInput{CloudResourceInput: fakeInput("n.example.com"), Visibility: "Private", VPCID: "vpc-1"}
	z, err := a.EnsureHostedZone(t.Context(), private)
	require.NoError(t, err)
	require.NotEqual(t, "Z9", z.ID)
}

func endpointInput() contract.EndpointServiceInput {
	return contract.EndpointServiceInput{Account: fakeAccount, Owner: fakeOwner, LoadBalancerID: "arn:lb/1", AllowedPrincipals: []string{"arn:b", "arn:a"}}
}

func TestEndpointServiceIsAdopted(t *testing.T) {
	f := newFakeLink()
	a := fakeActivities(t, func(c *clients) { c.ec2 = f })
	in := endpointInput()
	s := adopts(t, &f.lossy, a.EnsureEndpointService, in, "CreateVpcEndpointServiceConfiguration", "ModifyVpcEndpointServicePermissions")
	require.Len(t, f.services, 1)

	in.LoadBalancerID = "arn:lb/2" // the Service got another load balancer
	in.AllowedPrincipals = []string{"arn:b", "arn:c"}
	same := adopts(t, &f.lossy, a.EnsureEndpointService, in, "ModifyVpcEndpointServiceConfiguration")
	require.Equal(t, s.ID, same.ID)
	require.Equal(t, []string{"arn:lb/2"}, f.services[s.ID].NetworkLoadBalancerArns)
	require.ElementsMatch(t, in.AllowedPrincipals, f.permissions[s.ID])
}

func TestEndpointServiceIsDeleted(t *testing.T) {
	f := newFakeLink()
	a := fakeActivities(t, func(c *clients) { c.ec2 = f })
	s, err := a.EnsureEndpointService(t.Context(), endpointInput())
	require.NoError(t, err)
	for endpoint, state := range map[string]ec2types.State{"vpce-1": "available", "vpce-2": ec2types.StatePendingAcceptance, "vpce-3": ec2types.StateExpired} {
		f.connections = append(f.connections, ec2types.VpcEndpointConnection{ServiceId: &s.ID, VpcEndpointId: &endpoint, VpcEndpointState: state})
	}
	for _, operation := range []string{"RejectVpcEndpointConnections", "DeleteVpcEndpointServiceConfigurations"} {
		f.lose = operation
		_, err = a.DeleteEndpointService(t.Context(), endpointInput())
		require.True(t, faults.Is(err, faults.Transient), err)
	}
	_, err = a.DeleteEndpointService(t.Context(), endpointInput())
	require.NoError(t, err)
	require.Equal(t, ec2types.ServiceStateDeleted, f.services[s.ID].ServiceState)

	// The client token of the deleted service is used up.
	again, err := a.EnsureEndpointService(t.Context(), endpointInput())
	require.NoError(t, err)
	require.NotEqual(t, s.ID, again.ID)
	require.Equal(t, "Available", again.State)
}

// TestRefusalInside200 is EC2's answer to deleting a service in use.
func TestRefusalInside200(t *testing.T) {
	f := newFakeLink()
	a := fakeActivities(t, func(c *clients) { c.ec2 = f })
	s, err := a.EnsureEndpointService(t.Context(), endpointInput())
	require.NoError(t, err)
	e, err := a.endpoint(t.Context(), endpointInput())
	require.NoError(t, err)
	f.connections = []ec2types.VpcEndpointConnection{{ServiceId: &s.ID, VpcEndpointId: awssdk.String("vpce-1"), VpcEndpointState: ec2types.StateAvailable}}
	err = e.delete(t.Context(), s.ID)
	require.True(t, faults.Is(err, faults.Dependency), err)
	require.Contains(t, err.Error(), s.ID)
}
