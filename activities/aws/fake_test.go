package aws

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// The fakes below keep resources in maps and follow AWS in what matters to an
// Ensure. Calls that no unit test needs are left to the nil interface that each
// embeds; the emulator's tests cover them.

// lossy loses the answer of one operation, once: it has taken effect.
type lossy struct {
	lose  string
	calls []string // that change something
}

func (l *lossy) after(operation string) error {
	l.calls = append(l.calls, operation)
	if l.lose != operation {
		return nil
	}
	l.lose = ""
	return &smithy.OperationError{OperationName: operation, Err: io.ErrUnexpectedEOF}
}

func apiErr(code string) error { return &smithy.GenericAPIError{Code: code, Message: code} }

var (
	fakeAccount = contract.CloudAccount{Namespace: "infra", Provider: "p", AccountID: "123456789012", Region: "us-west-2"}
	fakeOwner   = contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "c1", ID: "1a2b3c4d5e6f7081"}
)

func fakeInput(name string) contract.AWSResourceInput {
	return contract.AWSResourceInput{Account: fakeAccount, Owner: fakeOwner, Env: "test", Name: name}
}

// fakeActivities are activities over the clients that set fills.
func fakeActivities(t *testing.T, set func(*clients)) *Activities {
	t.Helper()
	c := &clients{region: fakeAccount.Region, identity: contract.AWSIdentity{AccountID: fakeAccount.AccountID}}
	set(c)
	return &Activities{
		options: Options{Settle: 200 * time.Millisecond, SettlePoll: time.Millisecond, Poll: time.Millisecond}.withDefaults(),
		clients: func(context.Context, contract.CloudAccount) (*clients, error) { return c, nil },
	}
}

// fakeKMS has keys, their tags and aliases.
type fakeKMS struct {
	keyAPI
	lossy
	keys    map[string]*kmstypes.KeyMetadata
	tags    map[string][]kmstypes.Tag
	aliases map[string]string
}

func newFakeKMS() *fakeKMS {
	return &fakeKMS{keys: map[string]*kmstypes.KeyMetadata{}, tags: map[string][]kmstypes.Tag{}, aliases: map[string]string{}}
}

func (f *fakeKMS) add(id string, state kmstypes.KeyState, born time.Time, tags []kmstypes.Tag) *kmstypes.KeyMetadata {
	m := &kmstypes.KeyMetadata{KeyId: &id, Arn: awssdk.String("arn:key/" + id), KeyState: state, CreationDate: &born}
	f.keys[id], f.tags[id] = m, tags
	return m
}

func (f *fakeKMS) CreateKey(_ context.Context, in *kms.CreateKeyInput, _ ...func(*kms.Options)) (*kms.CreateKeyOutput, error) {
	m := f.add(fmt.Sprintf("k%d", len(f.keys)+1), kmstypes.KeyStateEnabled, time.Now(), in.Tags)
	return &kms.CreateKeyOutput{KeyMetadata: m}, f.after("CreateKey")
}

func (f *fakeKMS) DescribeKey(_ context.Context, in *kms.DescribeKeyInput, _ ...func(*kms.Options)) (*kms.DescribeKeyOutput, error) {
	id := *in.KeyId
	if target, ok := f.aliases[id]; ok {
		id = target
	}
	if m := f.keys[id]; m != nil {
		return &kms.DescribeKeyOutput{KeyMetadata: m}, nil
	}
	return nil, apiErr("NotFoundException")
}

func (f *fakeKMS) ListKeys(context.Context, *kms.ListKeysInput, ...func(*kms.Options)) (*kms.ListKeysOutput, error) {
	out := &kms.ListKeysOutput{}
	for _, id := range slices.Sorted(maps.Keys(f.keys)) {
		out.Keys = append(out.Keys, kmstypes.KeyListEntry{KeyId: awssdk.String(id)})
	}
	return out, nil
}

func (f *fakeKMS) ListAliases(context.Context, *kms.ListAliasesInput, ...func(*kms.Options)) (*kms.ListAliasesOutput, error) {
	out := &kms.ListAliasesOutput{}
	for name, id := range f.aliases {
		out.Aliases = append(out.Aliases, kmstypes.AliasListEntry{AliasName: &name, TargetKeyId: &id})
	}
	return out, nil
}

func (f *fakeKMS) ListResourceTags(_ context.Context, in *kms.ListResourceTagsInput, _ ...func(*kms.Options)) (*kms.ListResourceTagsOutput, error) {
	return &kms.ListResourceTagsOutput{Tags: f.tags[*in.KeyId]}, nil
}

func (f *fakeKMS) CreateAlias(_ context.Context, in *kms.CreateAliasInput, _ ...func(*kms.Options)) (*kms.CreateAliasOutput, error) {
	if _, ok := f.aliases[*in.AliasName]; ok {
		return nil, apiErr("AlreadyExistsException")
	}
	f.aliases[*in.AliasName] = *in.TargetKeyId
	return &kms.CreateAliasOutput{}, f.after("CreateAlias")
}

func (f *fakeKMS) DeleteAlias(_ context.Context, in *kms.DeleteAliasInput, _ ...func(*kms.Options)) (*kms.DeleteAliasOutput, error) {
	delete(f.aliases, *in.AliasName)
	return &kms.DeleteAliasOutput{}, f.after("DeleteAlias")
}

func (f *fakeKMS) EnableKey(_ context.Context, in *kms.EnableKeyInput, _ ...func(*kms.Options)) (*kms.EnableKeyOutput, error) {
	f.keys[*in.KeyId].KeyState = kmstypes.KeyStateEnabled
	return &kms.EnableKeyOutput{}, f.after("EnableKey")
}

func (f *fakeKMS) ScheduleKeyDeletion(_ context.Context, in *kms.ScheduleKeyDeletionInput, _ ...func(*kms.Options)) (*kms.ScheduleKeyDeletionOutput, error) {
	m := f.keys[*in.KeyId]
	m.KeyState = kmstypes.KeyStatePendingDeletion
	m.DeletionDate = awssdk.Time(time.Now().AddDate(0, 0, int(*in.PendingWindowInDays)))
	return &kms.ScheduleKeyDeletionOutput{DeletionDate: m.DeletionDate}, f.after("ScheduleKeyDeletion")
}

func (f *fakeKMS) CancelKeyDeletion(_ context.Context, in *kms.CancelKeyDeletionInput, _ ...func(*kms.Options)) (*kms.CancelKeyDeletionOutput, error) {
	f.keys[*in.KeyId].KeyState = kmstypes.KeyStateDisabled
	return &kms.CancelKeyDeletionOutput{}, f.after("CancelKeyDeletion")
}

// fakeIAM has roles and OIDC providers. refusePrincipal is how many policies it
// still refuses for a principal that it does not know yet.
type fakeIAM struct {
	iamAPI
	lossy
	roles           map[string]*iamtypes.Role
	inline          map[string]string
	providers       map[string]*iam.GetOpenIDConnectProviderOutput
	refusePrincipal int
}

func newFakeIAM() *fakeIAM {
	return &fakeIAM{roles: map[string]*iamtypes.Role{}, inline: map[string]string{}, providers: map[string]*iam.GetOpenIDConnectProviderOutput{}}
}

func (f *fakeIAM) CreateRole(_ context.Context, in *iam.CreateRoleInput, _ ...func(*iam.Options)) (*iam.CreateRoleOutput, error) {
	if f.refusePrincipal > 0 {
		f.refusePrincipal--
		return nil, &smithy.GenericAPIError{Code: "MalformedPolicyDocument", Message: "Invalid principal in policy"}
	}
	if f.roles[*in.RoleName] != nil {
		return nil, apiErr("EntityAlreadyExists")
	}
	r := &iamtypes.Role{RoleName: in.RoleName, Arn: awssdk.String("arn:role/" + *in.RoleName), Tags: in.Tags, AssumeRolePolicyDocument: in.AssumeRolePolicyDocument}
	f.roles[*in.RoleName] = r
	return &iam.CreateRoleOutput{Role: r}, f.after("CreateRole")
}

func (f *fakeIAM) GetRole(_ context.Context, in *iam.GetRoleInput, _ ...func(*iam.Options)) (*iam.GetRoleOutput, error) {
	if r := f.roles[*in.RoleName]; r != nil {
		return &iam.GetRoleOutput{Role: r}, nil
	}
	return nil, apiErr("NoSuchEntity")
}

func (f *fakeIAM) UpdateAssumeRolePolicy(_ context.Context, in *iam.UpdateAssumeRolePolicyInput, _ ...func(*iam.Options)) (*iam.UpdateAssumeRolePolicyOutput, error) {
	f.roles[*in.RoleName].AssumeRolePolicyDocument = in.PolicyDocument
	return &iam.UpdateAssumeRolePolicyOutput{}, f.after("UpdateAssumeRolePolicy")
}

func (f *fakeIAM) GetRolePolicy(_ context.Context, in *iam.GetRolePolicyInput, _ ...func(*iam.Options)) (*iam.GetRolePolicyOutput, error) {
	if p, ok := f.inline[*in.RoleName]; ok {
		return &iam.GetRolePolicyOutput{PolicyDocument: &p}, nil
	}
	return nil, apiErr("NoSuchEntity")
}

func (f *fakeIAM) PutRolePolicy(_ context.Context, in *iam.PutRolePolicyInput, _ ...func(*iam.Options)) (*iam.PutRolePolicyOutput, error) {
	f.inline[*in.RoleName] = *in.PolicyDocument
	return &iam.PutRolePolicyOutput{}, f.after("PutRolePolicy")
}

func (f *fakeIAM) CreateOpenIDConnectProvider(_ context.Context, in *iam.CreateOpenIDConnectProviderInput, _ ...func(*iam.Options)) (*iam.CreateOpenIDConnectProviderOutput, error) {
	arn := "arn:aws:iam::123456789012:oidc-provider/" + (*in.Url)[len("https://"):]
	if f.providers[arn] != nil {
		return nil, apiErr("EntityAlreadyExists")
	}
	f.providers[arn] = &iam.GetOpenIDConnectProviderOutput{ClientIDList: in.ClientIDList, Tags: in.Tags, Url: in.Url}
	return &iam.CreateOpenIDConnectProviderOutput{OpenIDConnectProviderArn: &arn}, f.after("CreateOpenIDConnectProvider")
}

func (f *fakeIAM) GetOpenIDConnectProvider(_ context.Context, in *iam.GetOpenIDConnectProviderInput, _ ...func(*iam.Options)) (*iam.GetOpenIDConnectProviderOutput, error) {
	if p := f.providers[*in.OpenIDConnectProviderArn]; p != nil {
		return p, nil
	}
	return nil, apiErr("NoSuchEntity")
}

func (f *fakeIAM) AddClientIDToOpenIDConnectProvider(_ context.Context, in *iam.AddClientIDToOpenIDConnectProviderInput, _ ...func(*iam.Options)) (*iam.AddClientIDToOpenIDConnectProviderOutput, error) {
	p := f.providers[*in.OpenIDConnectProviderArn]
	p.ClientIDList = append(p.ClientIDList, *in.ClientID)
	return &iam.AddClientIDToOpenIDConnectProviderOutput{}, f.after("AddClientIDToOpenIDConnectProvider")
}

// fakeS3 has buckets with settings, and no objects but in versions.
type fakeS3 struct {
	bucketAPI
	lossy
	buckets map[string]*fakeBucket
	taken   bool // by a stranger: denied to look at, and to create
}

type fakeBucket struct {
	tags       []s3types.Tag
	block      *s3types.PublicAccessBlockConfiguration
	encryption *s3types.ServerSideEncryptionConfiguration
	versioning s3types.BucketVersioningStatus
	rules      []s3types.LifecycleRule
	versions   []s3types.ObjectVersion
}

func (f *fakeS3) CreateBucket(_ context.Context, in *s3.CreateBucketInput, _ ...func(*s3.Options)) (*s3.CreateBucketOutput, error) {
	if f.taken {
		return nil, apiErr("BucketAlreadyExists")
	}
	if f.buckets[*in.Bucket] != nil {
		return nil, apiErr("BucketAlreadyOwnedByYou")
	}
	f.buckets[*in.Bucket] = &fakeBucket{tags: in.CreateBucketConfiguration.Tags}
	return &s3.CreateBucketOutput{}, f.after("CreateBucket")
}

func (f *fakeS3) GetBucketTagging(_ context.Context, in *s3.GetBucketTaggingInput, _ ...func(*s3.Options)) (*s3.GetBucketTaggingOutput, error) {
	b := f.buckets[*in.Bucket]
	switch {
	case b == nil:
		return nil, apiErr("NoSuchBucket")
	case len(b.tags) == 0:
		return nil, apiErr("NoSuchTagSet")
	}
	return &s3.GetBucketTaggingOutput{TagSet: b.tags}, nil
}

func (f *fakeS3) PutBucketTagging(_ context.Context, in *s3.PutBucketTaggingInput, _ ...func(*s3.Options)) (*s3.PutBucketTaggingOutput, error) {
	f.buckets[*in.Bucket].tags = in.Tagging.TagSet
	return &s3.PutBucketTaggingOutput{}, f.after("PutBucketTagging")
}

func (f *fakeS3) GetPublicAccessBlock(_ context.Context, in *s3.GetPublicAccessBlockInput, _ ...func(*s3.Options)) (*s3.GetPublicAccessBlockOutput, error) {
	if p := f.buckets[*in.Bucket].block; p != nil {
		return &s3.GetPublicAccessBlockOutput{PublicAccessBlockConfiguration: p}, nil
	}
	return nil, apiErr("NoSuchPublicAccessBlockConfiguration")
}

func (f *fakeS3) PutPublicAccessBlock(_ context.Context, in *s3.PutPublicAccessBlockInput, _ ...func(*s3.Options)) (*s3.PutPublicAccessBlockOutput, error) {
	f.buckets[*in.Bucket].block = in.PublicAccessBlockConfiguration
	return &s3.PutPublicAccessBlockOutput{}, f.after("PutPublicAccessBlock")
}

func (f *fakeS3) GetBucketEncryption(_ context.Context, in *s3.GetBucketEncryptionInput, _ ...func(*s3.Options)) (*s3.GetBucketEncryptionOutput, error) {
	if e := f.buckets[*in.Bucket].encryption; e != nil {
		return &s3.GetBucketEncryptionOutput{ServerSideEncryptionConfiguration: e}, nil
	}
	return nil, apiErr("ServerSideEncryptionConfigurationNotFoundError")
}

func (f *fakeS3) PutBucketEncryption(_ context.Context, in *s3.PutBucketEncryptionInput, _ ...func(*s3.Options)) (*s3.PutBucketEncryptionOutput, error) {
	f.buckets[*in.Bucket].encryption = in.ServerSideEncryptionConfiguration
	return &s3.PutBucketEncryptionOutput{}, f.after("PutBucketEncryption")
}

func (f *fakeS3) GetBucketVersioning(_ context.Context, in *s3.GetBucketVersioningInput, _ ...func(*s3.Options)) (*s3.GetBucketVersioningOutput, error) {
	return &s3.GetBucketVersioningOutput{Status: f.buckets[*in.Bucket].versioning}, nil
}

func (f *fakeS3) PutBucketVersioning(_ context.Context, in *s3.PutBucketVersioningInput, _ ...func(*s3.Options)) (*s3.PutBucketVersioningOutput, error) {
	f.buckets[*in.Bucket].versioning = in.VersioningConfiguration.Status
	return &s3.PutBucketVersioningOutput{}, f.after("PutBucketVersioning")
}

func (f *fakeS3) GetBucketLifecycleConfiguration(_ context.Context, in *s3.GetBucketLifecycleConfigurationInput, _ ...func(*s3.Options)) (*s3.GetBucketLifecycleConfigurationOutput, error) {
	if r := f.buckets[*in.Bucket].rules; len(r) > 0 {
		return &s3.GetBucketLifecycleConfigurationOutput{Rules: slices.Clone(r)}, nil
	}
	return nil, apiErr("NoSuchLifecycleConfiguration")
}

func (f *fakeS3) PutBucketLifecycleConfiguration(_ context.Context, in *s3.PutBucketLifecycleConfigurationInput, _ ...func(*s3.Options)) (*s3.PutBucketLifecycleConfigurationOutput, error) {
	f.buckets[*in.Bucket].rules = in.LifecycleConfiguration.Rules
	return &s3.PutBucketLifecycleConfigurationOutput{}, f.after("PutBucketLifecycleConfiguration")
}

func (f *fakeS3) ListObjectVersions(_ context.Context, in *s3.ListObjectVersionsInput, _ ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	b := f.buckets[*in.Bucket]
	if b == nil {
		return nil, apiErr("NoSuchBucket")
	}
	return &s3.ListObjectVersionsOutput{Versions: b.versions}, nil
}

// fakeDNS has zones. It remembers the caller references of deleted ones.
type fakeDNS struct {
	dnsAPI
	lossy
	zones      map[string]*r53types.HostedZone
	vpcs       map[string][]r53types.VPC
	tags       map[string][]r53types.Tag
	references map[string]bool
}

func newFakeDNS() *fakeDNS {
	return &fakeDNS{zones: map[string]*r53types.HostedZone{}, vpcs: map[string][]r53types.VPC{}, tags: map[string][]r53types.Tag{}, references: map[string]bool{}}
}

func (f *fakeDNS) CreateHostedZone(_ context.Context, in *route53.CreateHostedZoneInput, _ ...func(*route53.Options)) (*route53.CreateHostedZoneOutput, error) {
	if f.references[*in.CallerReference] {
		return nil, apiErr("HostedZoneAlreadyExists")
	}
	id := fmt.Sprintf("Z%d", len(f.references)+1)
	f.references[*in.CallerReference] = true
	z := &r53types.HostedZone{
		Id: awssdk.String("/hostedzone/" + id), Name: awssdk.String(*in.Name + "."), CallerReference: in.CallerReference,
		Config: in.HostedZoneConfig, ResourceRecordSetCount: awssdk.Int64(2),
	}
	f.zones[id] = z
	if in.VPC != nil {
		f.vpcs[id] = append(f.vpcs[id], *in.VPC)
	}
	return &route53.CreateHostedZoneOutput{HostedZone: z, ChangeInfo: &r53types.ChangeInfo{Id: awssdk.String("C1"), Status: r53types.ChangeStatusPending}}, f.after("CreateHostedZone")
}

func (f *fakeDNS) GetChange(context.Context, *route53.GetChangeInput, ...func(*route53.Options)) (*route53.GetChangeOutput, error) {
	return &route53.GetChangeOutput{ChangeInfo: &r53types.ChangeInfo{Status: r53types.ChangeStatusInsync}}, nil
}

func (f *fakeDNS) GetHostedZone(_ context.Context, in *route53.GetHostedZoneInput, _ ...func(*route53.Options)) (*route53.GetHostedZoneOutput, error) {
	if z := f.zones[*in.Id]; z != nil {
		return &route53.GetHostedZoneOutput{HostedZone: z, VPCs: f.vpcs[*in.Id]}, nil
	}
	return nil, apiErr("NoSuchHostedZone")
}

func (f *fakeDNS) ListHostedZonesByName(_ context.Context, in *route53.ListHostedZonesByNameInput, _ ...func(*route53.Options)) (*route53.ListHostedZonesByNameOutput, error) {
	out := &route53.ListHostedZonesByNameOutput{}
	for _, id := range slices.Sorted(maps.Keys(f.zones)) {
		if *f.zones[id].Name >= *in.DNSName {
			out.HostedZones = append(out.HostedZones, *f.zones[id])
		}
	}
	return out, nil
}

func (f *fakeDNS) AssociateVPCWithHostedZone(_ context.Context, in *route53.AssociateVPCWithHostedZoneInput, _ ...func(*route53.Options)) (*route53.AssociateVPCWithHostedZoneOutput, error) {
	f.vpcs[*in.HostedZoneId] = append(f.vpcs[*in.HostedZoneId], *in.VPC)
	return &route53.AssociateVPCWithHostedZoneOutput{}, f.after("AssociateVPCWithHostedZone")
}

func (f *fakeDNS) ListTagsForResource(_ context.Context, in *route53.ListTagsForResourceInput, _ ...func(*route53.Options)) (*route53.ListTagsForResourceOutput, error) {
	return &route53.ListTagsForResourceOutput{ResourceTagSet: &r53types.ResourceTagSet{Tags: f.tags[*in.ResourceId]}}, nil
}

func (f *fakeDNS) ChangeTagsForResource(_ context.Context, in *route53.ChangeTagsForResourceInput, _ ...func(*route53.Options)) (*route53.ChangeTagsForResourceOutput, error) {
	f.tags[*in.ResourceId] = in.AddTags
	return &route53.ChangeTagsForResourceOutput{}, f.after("ChangeTagsForResource")
}

// fakeLink has endpoint services with client tokens, permissions and
// connections.
type fakeLink struct {
	ec2API
	lossy
	services    map[string]*ec2types.ServiceConfiguration
	tokens      map[string]string
	permissions map[string][]string
	connections []ec2types.VpcEndpointConnection
}

func newFakeLink() *fakeLink {
	return &fakeLink{services: map[string]*ec2types.ServiceConfiguration{}, tokens: map[string]string{}, permissions: map[string][]string{}}
}

func (f *fakeLink) CreateVpcEndpointServiceConfiguration(_ context.Context, in *ec2.CreateVpcEndpointServiceConfigurationInput, _ ...func(*ec2.Options)) (*ec2.CreateVpcEndpointServiceConfigurationOutput, error) {
	id, ok := f.tokens[*in.ClientToken]
	if !ok {
		id = fmt.Sprintf("vpce-svc-%d", len(f.services)+1)
		f.tokens[*in.ClientToken] = id
		f.services[id] = &ec2types.ServiceConfiguration{
			ServiceId: awssdk.String(id), ServiceName: awssdk.String("com.amazonaws.vpce." + id), ServiceState: ec2types.ServiceStateAvailable,
			NetworkLoadBalancerArns: in.NetworkLoadBalancerArns, AcceptanceRequired: in.AcceptanceRequired, Tags: in.TagSpecifications[0].Tags,
		}
	}
	service := *f.services[id]
	return &ec2.CreateVpcEndpointServiceConfigurationOutput{ServiceConfiguration: &service}, f.after("CreateVpcEndpointServiceConfiguration")
}

func (f *fakeLink) DescribeVpcEndpointServiceConfigurations(_ context.Context, in *ec2.DescribeVpcEndpointServiceConfigurationsInput, _ ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointServiceConfigurationsOutput, error) {
	out := &ec2.DescribeVpcEndpointServiceConfigurationsOutput{}
	for _, id := range slices.Sorted(maps.Keys(f.services)) {
		if len(in.ServiceIds) == 0 || slices.Contains(in.ServiceIds, id) {
			out.ServiceConfigurations = append(out.ServiceConfigurations, *f.services[id])
		}
	}
	return out, nil
}

func (f *fakeLink) ModifyVpcEndpointServiceConfiguration(_ context.Context, in *ec2.ModifyVpcEndpointServiceConfigurationInput, _ ...func(*ec2.Options)) (*ec2.ModifyVpcEndpointServiceConfigurationOutput, error) {
	s := f.services[*in.ServiceId]
	if in.AcceptanceRequired != nil {
		s.AcceptanceRequired = in.AcceptanceRequired
	}
	s.NetworkLoadBalancerArns = append(without(s.NetworkLoadBalancerArns, in.RemoveNetworkLoadBalancerArns), in.AddNetworkLoadBalancerArns...)
	return &ec2.ModifyVpcEndpointServiceConfigurationOutput{}, f.after("ModifyVpcEndpointServiceConfiguration")
}

func (f *fakeLink) DescribeVpcEndpointServicePermissions(_ context.Context, in *ec2.DescribeVpcEndpointServicePermissionsInput, _ ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointServicePermissionsOutput, error) {
	out := &ec2.DescribeVpcEndpointServicePermissionsOutput{}
	for _, p := range f.permissions[*in.ServiceId] {
		out.AllowedPrincipals = append(out.AllowedPrincipals, ec2types.AllowedPrincipal{Principal: &p})
	}
	return out, nil
}

func (f *fakeLink) ModifyVpcEndpointServicePermissions(_ context.Context, in *ec2.ModifyVpcEndpointServicePermissionsInput, _ ...func(*ec2.Options)) (*ec2.ModifyVpcEndpointServicePermissionsOutput, error) {
	f.permissions[*in.ServiceId] = append(without(f.permissions[*in.ServiceId], in.RemoveAllowedPrincipals), in.AddAllowedPrincipals...)
	return &ec2.ModifyVpcEndpointServicePermissionsOutput{}, f.after("ModifyVpcEndpointServicePermissions")
}

func (f *fakeLink) DescribeVpcEndpointConnections(context.Context, *ec2.DescribeVpcEndpointConnectionsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointConnectionsOutput, error) {
	return &ec2.DescribeVpcEndpointConnectionsOutput{VpcEndpointConnections: slices.Clone(f.connections)}, nil
}

func (f *fakeLink) RejectVpcEndpointConnections(_ context.Context, in *ec2.RejectVpcEndpointConnectionsInput, _ ...func(*ec2.Options)) (*ec2.RejectVpcEndpointConnectionsOutput, error) {
	for i := range f.connections {
		if slices.Contains(in.VpcEndpointIds, *f.connections[i].VpcEndpointId) {
			f.connections[i].VpcEndpointState = ec2types.StateRejected
		}
	}
	return &ec2.RejectVpcEndpointConnectionsOutput{}, f.after("RejectVpcEndpointConnections")
}

func (f *fakeLink) DeleteVpcEndpointServiceConfigurations(_ context.Context, in *ec2.DeleteVpcEndpointServiceConfigurationsInput, _ ...func(*ec2.Options)) (*ec2.DeleteVpcEndpointServiceConfigurationsOutput, error) {
	out := &ec2.DeleteVpcEndpointServiceConfigurationsOutput{}
	for _, c := range f.connections {
		if slices.Contains(in.ServiceIds, *c.ServiceId) && live(canonical(c.VpcEndpointState)) {
			out.Unsuccessful = append(out.Unsuccessful, ec2types.UnsuccessfulItem{ResourceId: c.ServiceId, Error: &ec2types.UnsuccessfulItemError{
				Code: awssdk.String("ExistingVpcEndpointConnections"), Message: awssdk.String("Service has existing active VPC Endpoint connections!"),
			}})
			return out, nil
		}
	}
	for _, id := range in.ServiceIds {
		f.services[id].ServiceState = ec2types.ServiceStateDeleted
	}
	return out, f.after("DeleteVpcEndpointServiceConfigurations")
}
