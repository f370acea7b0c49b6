package aws

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/ratelimit"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// emulator is the activities against the emulator at AWS_ENDPOINT_URL, over a
// wire that loses answers, and clients to make what Gardener and users make.
type emulator struct {
	*Activities
	wire    *wire
	ec2     *ec2.Client
	elb     *elb.Client
	s3      *s3.Client
	account contract.CloudAccount
	owner   contract.ObjectRef
}

type staticKey struct{}

func (staticKey) AWS(context.Context, string, string) (string, string, string, error) {
	return "AKIAEXAMPLE000000000", "secret", "1", nil
}

// newEmulator skips the test without an emulator. Each test has an identity of
// its own, so that tests share an emulator.
func newEmulator(t *testing.T) *emulator {
	t.Helper()
	url := os.Getenv("AWS_ENDPOINT_URL")
	if url == "" {
		t.Skip("AWS_ENDPOINT_URL names no emulator")
	}
	w := newWire()
	o := Options{
		Credentials: staticKey{}, Endpoint: url, Limits: ratelimit.NewPool(ratelimit.Options{Share: 1000}),
		Poll: 50 * time.Millisecond, Settle: 5 * time.Second, SettlePoll: 50 * time.Millisecond,
	}.withDefaults()
	f := newFactory(o)
	w.next = f.http.Transport
	f.http.Transport = w
	raw := awssdk.Config{
		Region: "us-west-2", BaseEndpoint: &url, HTTPClient: f.http,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE000000000", "secret", ""),
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	return &emulator{
		Activities: &Activities{options: o, clients: f.get}, wire: w,
		ec2: ec2.NewFromConfig(raw), elb: elb.NewFromConfig(raw),
		s3:      s3.NewFromConfig(raw, func(o *s3.Options) { o.UsePathStyle = true }),
		account: contract.CloudAccount{Namespace: "infra", Provider: "core-aws", AccountID: "123456789012", Region: "us-west-2"},
		owner:   contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "c1", ID: hex.EncodeToString(id)},
	}
}

func (e *emulator) named(name string) contract.CloudResourceInput {
	return contract.CloudResourceInput{Account: e.account, Owner: e.owner, Env: "test", Name: name}
}

func (e *emulator) sweep(t *testing.T) map[string]int {
	t.Helper()
	left, err := e.SweepAWS(t.Context(), contract.SweepInput{Account: e.account, Owner: e.owner})
	require.NoError(t, err)
	count := map[string]int{}
	for _, r := range left.Resources {
		count[r.Type]++
	}
	return count
}

// lostThenAdopted checks the three properties of every Ensure: a create whose
// answer is lost fails and is adopted by the next attempt, and an attempt that
// finds everything as it should be changes nothing.
func lostThenAdopted[In, Out any](t *testing.T, e *emulator, create string, f func(context.Context, In) (Out, error), in In) Out {
	t.Helper()
	e.wire.lose(create)
	_, err := f(t.Context(), in)
	require.Error(t, err)
	require.True(t, e.wire.lost(), "%s was never called: %v", create, err)
	_, err = f(t.Context(), in)
	require.NoError(t, err)
	e.wire.reset()
	first, err := f(t.Context(), in)
	require.NoError(t, err)
	again, err := f(t.Context(), in)
	require.NoError(t, err)
	require.Empty(t, e.wire.changes(), "a repeated Ensure must change nothing")
	require.Equal(t, first, again)
	return again
}

func TestEmulatorBucket(t *testing.T) {
	e := newEmulator(t)
	in := e.named("ic-" + e.owner.ID8() + "-789012-data")
	out := lostThenAdopted(t, e, "CreateBucket", e.EnsureBucket, in)
	require.Equal(t, v1.ResourcePresent, out.Resource.State)
	require.Equal(t, map[string]int{typeBucket: 1}, e.sweep(t))

	for _, key := range []string{"a", "b", "a"} { // the second a makes a version
		_, err := e.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &in.Name, Key: &key, Body: strings.NewReader("x")})
		require.NoError(t, err)
	}
	_, err := e.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &in.Name, Key: awssdk.String("b")})
	require.NoError(t, err)
	_, err = e.s3.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &in.Name, Key: awssdk.String("c")})
	require.NoError(t, err)

	kept, err := e.DeleteBucket(t.Context(), contract.DeleteBucketInput{CloudResourceInput: in, Retain: true})
	require.NoError(t, err)
	require.Equal(t, v1.ResourceRetained, kept.Resource.State)

	stranger := in
	stranger.Owner.ID = "ffffffffffffffff"
	_, err = e.EnsureBucket(t.Context(), stranger)
	requireConflict(t, err)
	alien, err := e.DeleteBucket(t.Context(), contract.DeleteBucketInput{CloudResourceInput: stranger})
	require.NoError(t, err)
	require.Equal(t, v1.ResourceForeign, alien.Resource.State)

	for range 2 {
		_, err = e.DeleteBucket(t.Context(), contract.DeleteBucketInput{CloudResourceInput: in})
		require.NoError(t, err)
	}
	require.Empty(t, e.sweep(t))
}

func TestEmulatorKey(t *testing.T) {
	e := newEmulator(t)
	in := e.named("alias/ic-" + e.owner.ID8() + "-data")
	key := lostThenAdopted(t, e, "CreateKey", e.EnsureKey, in)
	require.Equal(t, map[string]int{typeKey: 1, typeAlias: 1}, e.sweep(t))

	stranger := in
	stranger.Owner.ID = "ffffffffffffffff"
	_, err := e.EnsureKey(t.Context(), stranger)
	requireConflict(t, err)

	e.wire.lose("ScheduleKeyDeletion")
	_, err = e.DeleteKey(t.Context(), in)
	require.Error(t, err)
	gone, err := e.DeleteKey(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, v1.ResourceDeleting, gone.Resource.State)
	require.Empty(t, e.sweep(t))

	revived := lostThenAdopted(t, e, "CancelKeyDeletion", e.EnsureKey, in)
	require.Equal(t, key.Resource.ID, revived.Resource.ID, "the key that is pending deletion comes back")
	_, err = e.DeleteKey(t.Context(), in)
	require.NoError(t, err)
	require.Empty(t, e.sweep(t))
}

func TestEmulatorOIDCAndRole(t *testing.T) {
	e := newEmulator(t)
	issuer := "https://issuer.example.com/" + e.owner.ID
	oidc := contract.IssuerInput{Account: e.account, Owner: e.owner, Env: "test", IssuerURL: issuer}
	provider := lostThenAdopted(t, e, "CreateOpenIDConnectProvider", e.EnsureOIDCProvider, oidc)

	in := contract.IdentityInput{
		CloudResourceInput: e.named("ic-" + e.owner.ID8() + "-db"),
		IssuerID:           provider.Resource.ID, Issuer: issuer,
		Subjects: []string{"system:serviceaccount:tidb:b", "system:serviceaccount:tidb:a"},
		Bucket:   "bucket", Prefix: "clusters/x", KeyID: "arn:aws:kms:us-west-2:123456789012:key/x",
	}
	lostThenAdopted(t, e, "CreateRole", e.EnsureRole, in)
	require.Equal(t, map[string]int{typeOIDC: 1, typeRole: 1}, e.sweep(t))

	in.Subjects = in.Subjects[:1]
	in.Prefix = "clusters/y"
	lostThenAdopted(t, e, "UpdateAssumeRolePolicy", e.EnsureRole, in)

	stranger := in
	stranger.Owner.ID = "ffffffffffffffff"
	_, err := e.EnsureRole(t.Context(), stranger)
	requireConflict(t, err)
	for _, delete := range []contract.CloudResourceInput{stranger.CloudResourceInput, in.CloudResourceInput, in.CloudResourceInput} {
		_, err = e.DeleteRole(t.Context(), delete)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int{typeOIDC: 1}, e.sweep(t))
	oidc.IssuerURL += "/of-a-shoot-made-again"
	lostThenAdopted(t, e, "CreateOpenIDConnectProvider", e.EnsureOIDCProvider, oidc)
	require.Equal(t, map[string]int{typeOIDC: 1}, e.sweep(t), "the outdated one is gone")
	oidc.IssuerURL = ""
	for range 2 {
		_, err = e.DeleteOIDCProvider(t.Context(), oidc)
		require.NoError(t, err)
	}
	require.Empty(t, e.sweep(t))
}

func TestEmulatorZoneAndRecords(t *testing.T) {
	e := newEmulator(t)
	vpc, _ := e.network(t)
	in := contract.ZoneInput{CloudResourceInput: e.named(e.owner.ID8() + ".example.com"), Visibility: "Private", VPCID: vpc}
	z := lostThenAdopted(t, e, "CreateHostedZone", e.EnsureHostedZone, in)
	require.Equal(t, map[string]int{typeZone: 1}, e.sweep(t))

	records := contract.RecordsInput{Account: e.account, Owner: e.owner, ZoneID: z.ID, Records: []contract.Record{
		{Name: "a." + in.Name, Target: "lb-1.example.net"}, {Name: "public-a." + in.Name, Target: "lb-2.example.net"},
	}}
	lostOnce := func() {
		e.wire.lose("ChangeResourceRecordSets")
		_, err := e.EnsureRecords(t.Context(), records)
		require.Error(t, err)
		e.wire.reset()
		_, err = e.EnsureRecords(t.Context(), records)
		require.NoError(t, err)
		require.Empty(t, e.wire.changes())
	}
	lostOnce()
	records.Records[0].Target = "lb-3.example.net"
	lostOnce()

	stranger := records
	stranger.Owner.ID = "ffffffffffffffff"
	_, err := e.EnsureRecords(t.Context(), stranger)
	requireConflict(t, err)
	_, err = e.DeleteRecords(t.Context(), stranger)
	require.NoError(t, err)
	e.wire.reset()
	_, err = e.EnsureRecords(t.Context(), records)
	require.NoError(t, err)
	require.Empty(t, e.wire.changes(), "a stranger's delete took nothing of ours")

	for range 2 {
		_, err = e.DeleteRecords(t.Context(), contract.RecordsInput{Account: e.account, Owner: e.owner, ZoneID: z.ID})
		require.NoError(t, err)
	}
	_, err = e.EnsureRecords(t.Context(), records) // the zone is emptied on deletion
	require.NoError(t, err)
	for range 2 {
		_, err = e.DeleteHostedZone(t.Context(), in)
		require.NoError(t, err)
	}
	_, err = e.DeleteRecords(t.Context(), records)
	require.NoError(t, err, "the zone is gone, so the records are")
	require.Empty(t, e.sweep(t))
}

func TestEmulatorVPCAndLoadBalancer(t *testing.T) {
	e := newEmulator(t)
	vpc, lb := e.network(t)
	found, err := e.DiscoverVPC(t.Context(), contract.DiscoverVPCInput{Account: e.account, TechnicalID: e.technicalID()})
	require.NoError(t, err)
	require.Equal(t, vpc, found.ID)
	require.Equal(t, "10.250.0.0/16", found.CIDR)
	require.Equal(t, []string{"us-west-2a", "us-west-2b"}, found.Zones)
	require.NotEmpty(t, found.RouteTableIDs)

	in := contract.LoadBalancerInput{Account: e.account, Cluster: e.owner, Hostname: awssdk.ToString(lb.DNSName)}
	active, err := e.WaitLoadBalancerActive(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, awssdk.ToString(lb.LoadBalancerArn), active.ID)

	left, err := e.ListVPCDependents(t.Context(), contract.DiscoverVPCInput{Account: e.account, TechnicalID: e.technicalID()})
	require.NoError(t, err)
	require.Contains(t, names(left), active.ID)

	gone := contract.LoadBalancerInput{Account: e.account, Cluster: e.owner, ServiceNamespace: "tidb-" + e.owner.ID8(), VPCID: vpc}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = e.WaitLoadBalancerGone(short, gone)
	require.Error(t, err, "it is still there")
	_, err = e.elb.DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerArn: lb.LoadBalancerArn})
	require.NoError(t, err)
	_, err = e.WaitLoadBalancerGone(t.Context(), gone)
	require.NoError(t, err)
}

// TestEmulatorEndpointService needs what moto lacks and dev/awsproxy adds.
func TestEmulatorEndpointService(t *testing.T) {
	e := newEmulator(t)
	if _, err := e.ec2.DescribeVpcEndpointConnections(t.Context(), &ec2.DescribeVpcEndpointConnectionsInput{}); err != nil {
		t.Skipf("the emulator has no PrivateLink: %v", err)
	}
	vpc, lb := e.network(t)
	in := contract.EndpointServiceInput{
		Account: e.account, Owner: e.owner, Env: "test", LoadBalancerID: awssdk.ToString(lb.LoadBalancerArn),
		AllowedPrincipals: []string{"arn:aws:iam::123456789012:root"},
	}
	service := lostThenAdopted(t, e, "CreateVpcEndpointServiceConfiguration", e.EnsureEndpointService, in)
	require.Equal(t, "Available", service.State)
	in.AllowedPrincipals = []string{"arn:aws:iam::123456789012:root", "arn:aws:iam::222222222222:root"}
	lostThenAdopted(t, e, "ModifyVpcEndpointServicePermissions", e.EnsureEndpointService, in)
	require.Equal(t, 1, e.sweep(t)[typeEndpoint])

	subnets, err := e.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filter("vpc-id", vpc)}})
	require.NoError(t, err)
	_, err = e.ec2.CreateVpcEndpoint(t.Context(), &ec2.CreateVpcEndpointInput{
		VpcId: &vpc, ServiceName: &service.ServiceName, VpcEndpointType: ec2types.VpcEndpointTypeInterface,
		SubnetIds: []string{awssdk.ToString(subnets.Subnets[0].SubnetId)},
	})
	require.NoError(t, err)

	e.wire.lose("DeleteVpcEndpointServiceConfigurations")
	_, err = e.DeleteEndpointService(t.Context(), in)
	require.Error(t, err)
	require.True(t, e.wire.lost(), err)
	for range 2 {
		_, err = e.DeleteEndpointService(t.Context(), in)
		require.NoError(t, err)
	}
	require.Zero(t, e.sweep(t)[typeEndpoint])
}

func (e *emulator) technicalID() string { return "shoot--core--" + e.owner.ID8() }

// network makes a tagged VPC with two subnets and an NLB of a Service.
func (e *emulator) network(t *testing.T) (vpc string, lb elbtypes.LoadBalancer) {
	t.Helper()
	made, err := e.ec2.CreateVpc(t.Context(), &ec2.CreateVpcInput{
		CidrBlock: awssdk.String("10.250.0.0/16"),
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeVpc, Tags: []ec2types.Tag{
			{Key: awssdk.String(clusterTag + e.technicalID()), Value: awssdk.String("1")},
		}}},
	})
	require.NoError(t, err)
	vpc = awssdk.ToString(made.Vpc.VpcId)
	var subnets []string
	for zone, cidr := range map[string]string{"us-west-2a": "10.250.0.0/19", "us-west-2b": "10.250.32.0/19"} {
		s, err := e.ec2.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{VpcId: &vpc, CidrBlock: &cidr, AvailabilityZone: &zone})
		require.NoError(t, err)
		subnets = append(subnets, awssdk.ToString(s.Subnet.SubnetId))
	}
	out, err := e.elb.CreateLoadBalancer(t.Context(), &elb.CreateLoadBalancerInput{
		Name: awssdk.String("t" + e.owner.ID8()), Type: elbtypes.LoadBalancerTypeEnumNetwork, Subnets: subnets,
		Scheme: elbtypes.LoadBalancerSchemeEnumInternal,
		Tags:   []elbtypes.Tag{{Key: awssdk.String(serviceTags[0]), Value: awssdk.String("tidb-" + e.owner.ID8() + "/db")}},
	})
	require.NoError(t, err)
	return vpc, out.LoadBalancers[0]
}

func names(left contract.Leftovers) []string {
	var ids []string
	for _, r := range left.Resources {
		ids = append(ids, r.ID)
	}
	return ids
}

// TestEmulatorDisksAndCluster: what the shoot's controllers and Gardener leave
// is found by its tags, and disks that are attached to nothing are deleted.
func TestEmulatorDisksAndCluster(t *testing.T) {
	e := newEmulator(t)
	technicalID := "shoot--t--" + e.owner.ID8()
	tagsOf := func(kind ec2types.ResourceType, more ...ec2types.Tag) []ec2types.TagSpecification {
		return []ec2types.TagSpecification{{ResourceType: kind, Tags: append([]ec2types.Tag{{Key: awssdk.String(clusterTag + technicalID), Value: awssdk.String("owned")}}, more...)}}
	}
	for i, id := range []string{e.owner.ID, e.owner.ID, "ffffffffffffffff"} {
		_, err := e.ec2.CreateVolume(t.Context(), &ec2.CreateVolumeInput{AvailabilityZone: awssdk.String("us-west-2a"), Size: awssdk.Int32(int32(10 + i)),
			TagSpecifications: tagsOf(ec2types.ResourceTypeVolume, ec2types.Tag{Key: awssdk.String(v1.TagID), Value: &id})})
		require.NoError(t, err)
	}
	vpc, err := e.ec2.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: awssdk.String("10.250.0.0/16"), TagSpecifications: tagsOf(ec2types.ResourceTypeVpc)})
	require.NoError(t, err)
	_, err = e.ec2.AllocateAddress(t.Context(), &ec2.AllocateAddressInput{Domain: ec2types.DomainTypeVpc, TagSpecifications: tagsOf(ec2types.ResourceTypeElasticIp)})
	require.NoError(t, err)
	_, err = e.ec2.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{GroupName: awssdk.String("nodes"), Description: awssdk.String("d"),
		VpcId: vpc.Vpc.VpcId, TagSpecifications: tagsOf(ec2types.ResourceTypeSecurityGroup)})
	require.NoError(t, err)

	require.Equal(t, map[string]int{typeVolume: 2}, e.sweep(t))
	in := contract.SweepInput{Account: e.account, Owner: e.owner, TechnicalID: technicalID}
	count := func() map[string]int {
		left, err := e.SweepAWS(t.Context(), in)
		require.NoError(t, err)
		count := map[string]int{}
		for _, r := range left.Resources {
			count[r.Type]++
		}
		return count
	}
	require.Equal(t, map[string]int{typeVolume: 3, typeVPC: 1, typeAddress: 1, typeGroup: 1}, count())
	out, err := e.DeleteVolumes(t.Context(), in)
	require.NoError(t, err)
	require.Contains(t, out.Note, "deleted 2 EBS volumes")
	again, err := e.DeleteVolumes(t.Context(), in)
	require.NoError(t, err)
	require.Empty(t, again.Note)
	require.Empty(t, e.sweep(t))
	require.Equal(t, 1, count()[typeVolume], "another's is found by the Shoot, and never deleted")
}

// TestEmulatorStrangersCostNothing: a sweep makes the same calls whatever else
// the account has. ListRoles, which has no filter, takes one for a thousand.
func TestEmulatorStrangersCostNothing(t *testing.T) {
	e := newEmulator(t)
	strangers := func(from, to int) {
		for i := from; i < to; i++ {
			other := *e
			other.owner.ID = fmt.Sprintf("%s%08d", e.owner.ID8(), i)[2:] + "ff"
			_, err := e.EnsureKey(t.Context(), contract.CloudResourceInput{Account: e.account, Owner: other.owner, Name: "alias/" + other.owner.ID})
			require.NoError(t, err)
			_, err = e.EnsureOIDCProvider(t.Context(), contract.IssuerInput{Account: e.account, Owner: other.owner, IssuerURL: "https://i.example.com/" + other.owner.ID})
			require.NoError(t, err)
		}
	}
	calls := func() int {
		e.wire.reset()
		e.sweep(t)
		return len(e.wire.calls)
	}
	strangers(0, 5)
	few := calls()
	strangers(5, 60)
	require.Equal(t, few, calls())
	require.Less(t, few, 20)
}
