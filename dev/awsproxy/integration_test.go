package awsproxy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	route53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

func makeVPC(t *testing.T, c *ec2.Client, cluster string) (vpc, subnet string) {
	t.Helper()
	ctx := t.Context()
	v := must[*ec2.CreateVpcOutput](t)(c.CreateVpc(ctx, &ec2.CreateVpcInput{
		CidrBlock: aws.String("10.9.0.0/16"),
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeVpc,
			Tags: []ec2types.Tag{{Key: aws.String("kubernetes.io/cluster/" + cluster), Value: aws.String("1")}}}},
	}))
	s := must[*ec2.CreateSubnetOutput](t)(c.CreateSubnet(ctx, &ec2.CreateSubnetInput{
		VpcId: v.Vpc.VpcId, CidrBlock: aws.String("10.9.0.0/24"), AvailabilityZone: aws.String("us-west-2a"),
	}))
	return *v.Vpc.VpcId, *s.Subnet.SubnetId
}

func TestPrivateLinkOverNLB(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	cfg := clientConfig(stack, "AKIAPRODUCT")
	c, lbs := ec2.NewFromConfig(cfg), elb.NewFromConfig(cfg)
	vpc, subnet := makeVPC(t, c, "shoot--core--link")
	arn := testLoadBalancer(t, lbs, subnet)
	service := testService(t, c, arn)
	testPermissions(t, c, *service.ServiceId)
	testConnections(t, c, vpc, subnet, *service.ServiceId, *service.ServiceName)

	_, err := lbs.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerArn: aws.String(arn)})
	wantCode(t, err, "ResourceInUse")
	_, err = c.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: aws.String(subnet)})
	wantCode(t, err, "DependencyViolation")
	gone := must[*ec2.DeleteVpcEndpointServiceConfigurationsOutput](t)(c.DeleteVpcEndpointServiceConfigurations(ctx,
		&ec2.DeleteVpcEndpointServiceConfigurationsInput{ServiceIds: []string{*service.ServiceId}}))
	if len(gone.Unsuccessful) != 0 {
		t.Fatalf("not deleted: %s", *gone.Unsuccessful[0].Error.Code)
	}
	eventually(t, "gone", func() bool { return len(servicesOf(t, c, "1a2b3c4d5e6f7081")) == 0 })
	must[*elb.DeleteLoadBalancerOutput](t)(lbs.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerArn: aws.String(arn)}))
	must[*ec2.DeleteSubnetOutput](t)(c.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: aws.String(subnet)}))
	must[*ec2.DeleteVpcOutput](t)(c.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: aws.String(vpc)}))
}

// testLoadBalancer makes an NLB, twice, and waits until it is active.
func testLoadBalancer(t *testing.T, lbs *elb.Client, subnet string) string {
	t.Helper()
	ctx := t.Context()
	input := &elb.CreateLoadBalancerInput{Name: aws.String("nlb-link"), Type: elbtypes.LoadBalancerTypeEnumNetwork,
		Scheme: elbtypes.LoadBalancerSchemeEnumInternal, Subnets: []string{subnet}}
	lb := must[*elb.CreateLoadBalancerOutput](t)(lbs.CreateLoadBalancer(ctx, input)).LoadBalancers[0]
	arn := aws.ToString(lb.LoadBalancerArn)
	if !strings.Contains(arn, ":loadbalancer/net/nlb-link/") || lb.State.Code != elbtypes.LoadBalancerStateEnumProvisioning {
		t.Fatalf("created %s in state %s", arn, lb.State.Code)
	}
	again := must[*elb.CreateLoadBalancerOutput](t)(lbs.CreateLoadBalancer(ctx, input)).LoadBalancers[0]
	if *again.LoadBalancerArn != arn {
		t.Errorf("the same request made a second load balancer %s", *again.LoadBalancerArn)
	}
	_, err := lbs.CreateLoadBalancer(ctx, &elb.CreateLoadBalancerInput{Name: input.Name, Subnets: []string{subnet}})
	wantCode(t, err, "DuplicateLoadBalancerName")
	eventually(t, "active", func() bool {
		out := must[*elb.DescribeLoadBalancersOutput](t)(lbs.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{LoadBalancerArns: []string{arn}}))
		return out.LoadBalancers[0].State.Code == elbtypes.LoadBalancerStateEnumActive
	})

	return arn
}

// servicesOf finds endpoint services by a pattern of their identity tag.
func servicesOf(t *testing.T, c *ec2.Client, pattern string) []ec2types.ServiceConfiguration {
	t.Helper()
	return must[*ec2.DescribeVpcEndpointServiceConfigurationsOutput](t)(c.DescribeVpcEndpointServiceConfigurations(t.Context(),
		&ec2.DescribeVpcEndpointServiceConfigurationsInput{Filters: []ec2types.Filter{{Name: aws.String("tag:" + tagOwner), Values: []string{pattern}}}})).ServiceConfigurations
}

// testService makes an endpoint service, twice, and waits until it is available.
func testService(t *testing.T, c *ec2.Client, arn string) *ec2types.ServiceConfiguration {
	t.Helper()
	ctx := t.Context()
	create := &ec2.CreateVpcEndpointServiceConfigurationInput{
		NetworkLoadBalancerArns: []string{arn}, AcceptanceRequired: aws.Bool(true), ClientToken: aws.String("token-1"),
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeVpcEndpointService,
			Tags: []ec2types.Tag{{Key: aws.String(tagOwner), Value: aws.String("1a2b3c4d5e6f7081")}}}},
	}
	service := must[*ec2.CreateVpcEndpointServiceConfigurationOutput](t)(c.CreateVpcEndpointServiceConfiguration(ctx, create)).ServiceConfiguration
	if service.ServiceState != ec2types.ServiceStatePending || !aws.ToBool(service.AcceptanceRequired) ||
		aws.ToString(service.ServiceName) != "com.amazonaws.vpce.us-west-2."+aws.ToString(service.ServiceId) || service.AvailabilityZones[0] != "us-west-2a" {
		t.Errorf("created %+v", service)
	}
	same := must[*ec2.CreateVpcEndpointServiceConfigurationOutput](t)(c.CreateVpcEndpointServiceConfiguration(ctx, create)).ServiceConfiguration
	if *same.ServiceId != *service.ServiceId {
		t.Error("one client token made two services")
	}
	create.AcceptanceRequired = aws.Bool(false)
	_, err := c.CreateVpcEndpointServiceConfiguration(ctx, create)
	wantCode(t, err, "IdempotentParameterMismatch")

	eventually(t, "available", func() bool {
		found := servicesOf(t, c, "1a2b*")
		return len(found) == 1 && found[0].ServiceState == ec2types.ServiceStateAvailable
	})
	if found := servicesOf(t, c, "other"); len(found) != 0 {
		t.Errorf("the filter let %d services through", len(found))
	}
	_, err = c.DescribeVpcEndpointServiceConfigurations(ctx, &ec2.DescribeVpcEndpointServiceConfigurationsInput{ServiceIds: []string{"vpce-svc-0"}})
	wantCode(t, err, "InvalidVpcEndpointServiceId.NotFound")
	return service
}

func testPermissions(t *testing.T, c *ec2.Client, id string) {
	t.Helper()
	ctx := t.Context()
	const first, second = "arn:aws:iam::111111111111:root", "arn:aws:iam::222222222222:role/app"
	out := must[*ec2.ModifyVpcEndpointServicePermissionsOutput](t)(c.ModifyVpcEndpointServicePermissions(ctx,
		&ec2.ModifyVpcEndpointServicePermissionsInput{ServiceId: aws.String(id), AddAllowedPrincipals: []string{first, second}}))
	if !aws.ToBool(out.ReturnValue) || len(out.AddedPrincipals) != 2 {
		t.Errorf("added %+v", out.AddedPrincipals)
	}
	must[*ec2.ModifyVpcEndpointServicePermissionsOutput](t)(c.ModifyVpcEndpointServicePermissions(ctx,
		&ec2.ModifyVpcEndpointServicePermissionsInput{ServiceId: aws.String(id), RemoveAllowedPrincipals: []string{first}}))
	list := must[*ec2.DescribeVpcEndpointServicePermissionsOutput](t)(c.DescribeVpcEndpointServicePermissions(ctx,
		&ec2.DescribeVpcEndpointServicePermissionsInput{ServiceId: aws.String(id)})).AllowedPrincipals
	if len(list) != 1 || aws.ToString(list[0].Principal) != second || list[0].PrincipalType != ec2types.PrincipalTypeRole {
		t.Errorf("allowed %+v", list)
	}
	_, err := c.ModifyVpcEndpointServicePermissions(ctx,
		&ec2.ModifyVpcEndpointServicePermissionsInput{ServiceId: aws.String(id), AddAllowedPrincipals: []string{"somebody"}})
	wantCode(t, err, "InvalidPrincipal")
}

// testConnections also checks that a live connection keeps the service.
func testConnections(t *testing.T, c *ec2.Client, vpc, subnet, id, name string) {
	t.Helper()
	ctx := t.Context()
	_, err := c.CreateVpcEndpoint(ctx, &ec2.CreateVpcEndpointInput{VpcId: aws.String(vpc), ServiceName: aws.String("com.amazonaws.vpce.us-west-2.vpce-svc-0")})
	wantCode(t, err, "InvalidServiceName")
	end := must[*ec2.CreateVpcEndpointOutput](t)(c.CreateVpcEndpoint(ctx, &ec2.CreateVpcEndpointInput{
		VpcId: aws.String(vpc), SubnetIds: []string{subnet}, ServiceName: aws.String(name), VpcEndpointType: ec2types.VpcEndpointTypeInterface,
	})).VpcEndpoint
	if !strings.EqualFold(string(end.State), string(ec2types.StatePendingAcceptance)) {
		t.Errorf("endpoint is %s", end.State)
	}
	kept := must[*ec2.DeleteVpcEndpointServiceConfigurationsOutput](t)(c.DeleteVpcEndpointServiceConfigurations(ctx,
		&ec2.DeleteVpcEndpointServiceConfigurationsInput{ServiceIds: []string{id}}))
	if len(kept.Unsuccessful) != 1 || aws.ToString(kept.Unsuccessful[0].Error.Code) != "ExistingVpcEndpointConnections" {
		t.Fatalf("deleted with a connection: %+v", kept.Unsuccessful)
	}
	must[*ec2.AcceptVpcEndpointConnectionsOutput](t)(c.AcceptVpcEndpointConnections(ctx,
		&ec2.AcceptVpcEndpointConnectionsInput{ServiceId: aws.String(id), VpcEndpointIds: []string{*end.VpcEndpointId}}))
	state := func() string {
		list := must[*ec2.DescribeVpcEndpointConnectionsOutput](t)(c.DescribeVpcEndpointConnections(ctx, &ec2.DescribeVpcEndpointConnectionsInput{
			Filters: []ec2types.Filter{{Name: aws.String("service-id"), Values: []string{id}}}})).VpcEndpointConnections
		if len(list) != 1 {
			t.Fatalf("%d connections", len(list))
		}
		return string(list[0].VpcEndpointState)
	}
	if got := state(); got != "available" {
		t.Errorf("accepted connection is %s", got)
	}
	must[*ec2.RejectVpcEndpointConnectionsOutput](t)(c.RejectVpcEndpointConnections(ctx,
		&ec2.RejectVpcEndpointConnectionsInput{ServiceId: aws.String(id), VpcEndpointIds: []string{*end.VpcEndpointId}}))
	if got := state(); got != "rejected" {
		t.Errorf("rejected connection is %s", got)
	}
	must[*ec2.DeleteVpcEndpointsOutput](t)(c.DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{*end.VpcEndpointId}}))
}

func TestVPCDependencies(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	c := ec2.NewFromConfig(clientConfig(stack, "AKIAPRODUCT"))
	vpc, subnet := makeVPC(t, c, "shoot--core--deps")
	gateway := must[*ec2.CreateInternetGatewayOutput](t)(c.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{})).InternetGateway.InternetGatewayId
	must[*ec2.AttachInternetGatewayOutput](t)(c.AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: gateway, VpcId: aws.String(vpc)}))
	address := must[*ec2.AllocateAddressOutput](t)(c.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: ec2types.DomainTypeVpc})).AllocationId
	nat := &ec2.CreateNatGatewayInput{SubnetId: aws.String(subnet), AllocationId: address, ClientToken: aws.String("nat-1")}
	first := must[*ec2.CreateNatGatewayOutput](t)(c.CreateNatGateway(ctx, nat)).NatGateway.NatGatewayId
	second := must[*ec2.CreateNatGatewayOutput](t)(c.CreateNatGateway(ctx, nat)).NatGateway.NatGatewayId
	if *first != *second {
		t.Error("one client token made two NAT gateways")
	}
	group := must[*ec2.CreateSecurityGroupOutput](t)(c.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: aws.String("nodes"), Description: aws.String("d"), VpcId: aws.String(vpc)})).GroupId

	detach := &ec2.DetachInternetGatewayInput{InternetGatewayId: gateway, VpcId: aws.String(vpc)}
	_, err := c.DetachInternetGateway(ctx, detach)
	wantCode(t, err, "DependencyViolation")
	_, err = c.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: address})
	wantCode(t, err, "InvalidIPAddress.InUse")
	_, err = c.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: aws.String(subnet)})
	wantCode(t, err, "DependencyViolation")
	must[*ec2.DeleteNatGatewayOutput](t)(c.DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: first}))
	must[*ec2.ReleaseAddressOutput](t)(c.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: address}))
	must[*ec2.DeleteSubnetOutput](t)(c.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: aws.String(subnet)}))
	_, err = c.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: aws.String(vpc)})
	wantCode(t, err, "DependencyViolation") // gateway and group
	must[*ec2.DetachInternetGatewayOutput](t)(c.DetachInternetGateway(ctx, detach))
	_, err = c.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: aws.String(vpc)})
	wantCode(t, err, "DependencyViolation") // group
	must[*ec2.DeleteSecurityGroupOutput](t)(c.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: group}))
	must[*ec2.DeleteVpcOutput](t)(c.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: aws.String(vpc)}))
	_, err = c.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: aws.String(vpc)})
	wantCode(t, err, "InvalidVpcID.NotFound")
	_, err = c.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16"), DryRun: aws.Bool(true)})
	wantCode(t, err, "DryRunOperation")
}

func TestKeyStates(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	c := kms.NewFromConfig(clientConfig(stack, "AKIAPRODUCT"))
	id := must[*kms.CreateKeyOutput](t)(c.CreateKey(ctx, &kms.CreateKeyInput{})).KeyMetadata.KeyId
	_, err := c.CancelKeyDeletion(ctx, &kms.CancelKeyDeletionInput{KeyId: id})
	wantCode(t, err, "KMSInvalidStateException")
	out := must[*kms.ScheduleKeyDeletionOutput](t)(c.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: id, PendingWindowInDays: aws.Int32(7)}))
	if out.KeyState != kmstypes.KeyStatePendingDeletion || aws.ToInt32(out.PendingWindowInDays) != 7 {
		t.Errorf("scheduled: %+v", out)
	}
	_, err = c.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: aws.String("alias/dead"), TargetKeyId: id})
	wantCode(t, err, "KMSInvalidStateException")
	_, err = c.EnableKey(ctx, &kms.EnableKeyInput{KeyId: id})
	wantCode(t, err, "KMSInvalidStateException")
	_, err = c.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: id})
	wantCode(t, err, "KMSInvalidStateException")
	must[*kms.CancelKeyDeletionOutput](t)(c.CancelKeyDeletion(ctx, &kms.CancelKeyDeletionInput{KeyId: id}))
	_, err = c.Encrypt(ctx, &kms.EncryptInput{KeyId: id, Plaintext: []byte("x")})
	wantCode(t, err, "DisabledException")
	must[*kms.EnableKeyOutput](t)(c.EnableKey(ctx, &kms.EnableKeyInput{KeyId: id}))
	must[*kms.EncryptOutput](t)(c.Encrypt(ctx, &kms.EncryptInput{KeyId: id, Plaintext: []byte("x")}))
}

func TestHostedZones(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	cfg := clientConfig(stack, "AKIAPRODUCT")
	c := route53.NewFromConfig(cfg)
	vpc, _ := makeVPC(t, ec2.NewFromConfig(cfg), "shoot--core--zone")
	create := &route53.CreateHostedZoneInput{Name: aws.String("n1.dev.example"), CallerReference: aws.String("1a2b"),
		VPC: &route53types.VPC{VPCId: aws.String(vpc), VPCRegion: route53types.VPCRegionUsWest2}}
	zone := must[*route53.CreateHostedZoneOutput](t)(c.CreateHostedZone(ctx, create))
	if !zone.HostedZone.Config.PrivateZone || zone.ChangeInfo.Status != route53types.ChangeStatusPending {
		t.Errorf("created %+v %+v", zone.HostedZone.Config, zone.ChangeInfo)
	}
	insync := func(id *string) {
		eventually(t, "INSYNC", func() bool {
			out := must[*route53.GetChangeOutput](t)(c.GetChange(ctx, &route53.GetChangeInput{Id: id}))
			return out.ChangeInfo.Status == route53types.ChangeStatusInsync
		})
	}
	insync(zone.ChangeInfo.Id)
	_, err := c.GetChange(ctx, &route53.GetChangeInput{Id: aws.String("C123")})
	wantCode(t, err, "NoSuchChange")
	_, err = c.CreateHostedZone(ctx, create)
	wantCode(t, err, "HostedZoneAlreadyExists")
	create.CallerReference, create.VPC.VPCId = aws.String("other"), aws.String("vpc-0")
	_, err = c.CreateHostedZone(ctx, create)
	wantCode(t, err, "InvalidVPCId")

	change := func(action route53types.ChangeAction, name, target string) (*route53.ChangeResourceRecordSetsOutput, error) {
		return c.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{HostedZoneId: zone.HostedZone.Id,
			ChangeBatch: &route53types.ChangeBatch{Changes: []route53types.Change{{Action: action, ResourceRecordSet: &route53types.ResourceRecordSet{
				Name: aws.String(name), Type: route53types.RRTypeCname, TTL: aws.Int64(60), ResourceRecords: []route53types.ResourceRecord{{Value: aws.String(target)}}}}}}})
	}
	made := must[*route53.ChangeResourceRecordSetsOutput](t)(change(route53types.ChangeActionUpsert, "a.n1.dev.example", "x"))
	insync(made.ChangeInfo.Id)
	for name, bad := range map[string]func() error{
		"delete of a missing record": func() error {
			_, err := change(route53types.ChangeActionDelete, "b.n1.dev.example", "x")
			return err
		},
		"delete with another value": func() error {
			_, err := change(route53types.ChangeActionDelete, "a.n1.dev.example", "y")
			return err
		},
		"create of an existing one": func() error {
			_, err := change(route53types.ChangeActionCreate, "a.n1.dev.example", "x")
			return err
		},
	} {
		var invalid *route53types.InvalidChangeBatch
		if err := bad(); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = c.DeleteHostedZone(ctx, &route53.DeleteHostedZoneInput{Id: zone.HostedZone.Id})
	wantCode(t, err, "HostedZoneNotEmpty")
	must[*route53.ChangeResourceRecordSetsOutput](t)(change(route53types.ChangeActionDelete, "a.n1.dev.example", "x"))
	must[*route53.DeleteHostedZoneOutput](t)(c.DeleteHostedZone(ctx, &route53.DeleteHostedZoneInput{Id: zone.HostedZone.Id}))
}

func TestBucketsAndRoles(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	cfg := clientConfig(stack, "AKIAPRODUCT")
	c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	create := func(name string) error {
		_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(name), CreateBucketConfiguration: &s3types.CreateBucketConfiguration{
			LocationConstraint: s3types.BucketLocationConstraintUsWest2,
			Tags:               []s3types.Tag{{Key: aws.String(tagOwner), Value: aws.String("00000000000000b1")}}}})
		return err
	}
	wantCode(t, create("Bad_Name"), "InvalidBucketName")
	if err := create("ic-b1-data"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, create("ic-b1-data"), "BucketAlreadyOwnedByYou")
	encryption := must[*s3.GetBucketEncryptionOutput](t)(c.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: aws.String("ic-b1-data")}))
	if got := encryption.ServerSideEncryptionConfiguration.Rules[0].ApplyServerSideEncryptionByDefault.SSEAlgorithm; got != s3types.ServerSideEncryptionAes256 {
		t.Errorf("default encryption %s", got)
	}
	upload := must[*s3.CreateMultipartUploadOutput](t)(c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String("ic-b1-data"), Key: aws.String("k")}))
	_, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String("ic-b1-data")})
	wantCode(t, err, "BucketNotEmpty")
	must[*s3.AbortMultipartUploadOutput](t)(c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: aws.String("ic-b1-data"), Key: aws.String("k"), UploadId: upload.UploadId}))
	list := must[[]control.Resource](t)(stack.Inventory(ctx, control.InventoryQuery{Owner: "00000000000000b1"}))
	if len(list) != 1 || list[0].Type != "s3/bucket" || list[0].ID != "ic-b1-data" {
		t.Errorf("inventory of the bucket's owner: %+v", list)
	}
	must[*s3.DeleteBucketOutput](t)(c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String("ic-b1-data")}))

	roles := iam.NewFromConfig(cfg)
	_, err = roles.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String("{")})
	wantCode(t, err, "MalformedPolicyDocument")
	_, err = roles.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{
		OpenIDConnectProviderArn: aws.String("arn:aws:iam::123456789012:oidc-provider/a.example"), ClientID: aws.String("x")})
	wantCode(t, err, "NotImplemented")
	if !strings.Contains(err.Error(), "AddClientIDToOpenIDConnectProvider") {
		t.Errorf("the error does not name the operation: %v", err)
	}
	_, err = sts.NewFromConfig(clientConfig(stack, "AKIAINVALIDKEY")).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	wantCode(t, err, "InvalidClientTokenId")
}

// TestLostAnswer proves that the effect is there although the caller got a reset
// connection, and that the call is on record.
func TestLostAnswer(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	c := ec2.NewFromConfig(clientConfig(stack, "AKIAPRODUCT"))
	if _, err := shared.faults.Add(control.Fault{Target: control.TargetAWS, Kind: control.KindLostAnswer, Operation: "CreateVpc", Resource: "10.77.", Count: 1}); err != nil {
		t.Fatal(err)
	}
	_, err := c.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.77.0.0/16")})
	if err == nil || !strings.Contains(err.Error(), "reset by peer") {
		t.Fatalf("got %v, want a reset connection", err)
	}
	out := must[*ec2.DescribeVpcsOutput](t)(c.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: []ec2types.Filter{{Name: aws.String("cidr"), Values: []string{"10.77.0.0/16"}}}}))
	if len(out.Vpcs) != 1 {
		t.Errorf("%d VPCs after a lost answer, want 1", len(out.Vpcs))
	}
	calls := stack.Calls(control.CallQuery{Operation: "CreateVpc"})
	if !slices.ContainsFunc(calls, func(c control.Call) bool { return c.Lost && c.Status == 200 && c.Account == DefaultAccount }) {
		t.Errorf("no lost call on record: %+v", calls)
	}
}
