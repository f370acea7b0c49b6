package awsproxy

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	route53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

func beEventual(t *testing.T, f control.Fault) {
	t.Helper()
	f.Target, f.Kind = control.TargetAWS, control.KindEventual
	if _, err := shared.faults.Add(f); err != nil {
		t.Fatal(err)
	}
}

const trustNobody = `{"Version":"2012-10-17","Statement":[]}`

// The first call of each operation about something fresh finds nothing, in the
// words of its service; the second one does.
func TestWhatIsFreshIsNotVisibleYet(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	cfg := clientConfig(stack, "AKIAFRESH")
	beEventual(t, control.Fault{})
	roles := iam.NewFromConfig(cfg)
	must[*iam.CreateRoleOutput](t)(roles.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("fresh"), AssumeRolePolicyDocument: aws.String(trustNobody)}))
	keys := kms.NewFromConfig(cfg)
	key := *must[*kms.CreateKeyOutput](t)(keys.CreateKey(ctx, &kms.CreateKeyInput{})).KeyMetadata.KeyId
	buckets := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	must[*s3.CreateBucketOutput](t)(buckets.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("fresh-bucket"),
		CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: "us-west-2"}}))
	zones := route53.NewFromConfig(cfg)
	zone := *must[*route53.CreateHostedZoneOutput](t)(zones.CreateHostedZone(ctx, &route53.CreateHostedZoneInput{
		Name: aws.String("fresh.example.com"), CallerReference: aws.String("fresh")})).HostedZone.Id
	vpcs, lbs := ec2.NewFromConfig(cfg), elb.NewFromConfig(cfg)
	_, subnet := makeVPC(t, vpcs, "shoot--core--fresh")
	arn := freshBalancer(t, lbs, subnet, "nlb-fresh")
	service := must[*ec2.CreateVpcEndpointServiceConfigurationOutput](t)(vpcs.CreateVpcEndpointServiceConfiguration(ctx,
		&ec2.CreateVpcEndpointServiceConfigurationInput{NetworkLoadBalancerArns: []string{arn}})).ServiceConfiguration
	t.Cleanup(func() {
		_, _ = vpcs.DeleteVpcEndpointServiceConfigurations(context.Background(), &ec2.DeleteVpcEndpointServiceConfigurationsInput{ServiceIds: []string{*service.ServiceId}})
	})
	for _, tc := range []struct {
		name, code string
		call       func() error
	}{
		{"role", "NoSuchEntity", func() error {
			_, err := roles.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("fresh")})
			return err
		}},
		{"role policy", "NoSuchEntity", func() error {
			_, err := roles.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: aws.String("fresh"), PolicyName: aws.String("p"),
				PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}`)})
			return err
		}},
		{"key", "NotFoundException", func() error {
			_, err := keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &key})
			return err
		}},
		{"alias to a key", "NotFoundException", func() error {
			_, err := keys.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: aws.String("alias/fresh"), TargetKeyId: &key})
			return err
		}},
		{"bucket", "NotFound", func() error {
			_, err := buckets.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String("fresh-bucket")})
			return err
		}},
		{"bucket's configuration", "NoSuchBucket", func() error {
			_, err := buckets.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: aws.String("fresh-bucket")})
			return err
		}},
		{"zone", "NoSuchHostedZone", func() error {
			_, err := zones.GetHostedZone(ctx, &route53.GetHostedZoneInput{Id: &zone})
			return err
		}},
		{"endpoint service", "InvalidVpcEndpointServiceId.NotFound", func() error {
			_, err := vpcs.DescribeVpcEndpointServicePermissions(ctx, &ec2.DescribeVpcEndpointServicePermissionsInput{ServiceId: service.ServiceId})
			return err
		}},
		{"load balancer", "LoadBalancerNotFound", func() error {
			_, err := lbs.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: []string{arn}})
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantCode(t, tc.call(), tc.code)
			if err := tc.call(); err != nil {
				t.Errorf("still not visible at the second look: %v", err)
			}
		})
	}
	if n := shared.faults.List()[0].Hits; n < 9 {
		t.Errorf("%d hits were counted", n)
	}
}

// A key is not listed at first, and of the operations on it those are struck
// that the fault chooses; a thing that is not fresh any more is never hidden.
func TestWhichLooksFindNothing(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	keys := kms.NewFromConfig(clientConfig(stack, "AKIACHOICE"))
	listed := func(id string) bool {
		all := must[*kms.ListKeysOutput](t)(keys.ListKeys(ctx, &kms.ListKeysInput{}))
		return slices.ContainsFunc(all.Keys, func(k kmstypes.KeyListEntry) bool { return *k.KeyId == id })
	}
	describe := func(id string) error {
		_, err := keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
		return err
	}
	make := func() string {
		return *must[*kms.CreateKeyOutput](t)(keys.CreateKey(ctx, &kms.CreateKeyInput{})).KeyMetadata.KeyId
	}
	beEventual(t, control.Fault{Looks: 2})
	if id := make(); listed(id) || listed(id) || !listed(id) {
		t.Error("a fresh key is hidden from the first two lists, and shown by the third")
	}
	shared.faults.Clear("")
	beEventual(t, control.Fault{Every: 2, Skip: 1})
	id := make()
	if err := describe(id); err != nil {
		t.Errorf("the first operation is left alone: %v", err)
	}
	if listed(id) {
		t.Error("the second operation finds nothing")
	}
	shared.faults.Clear("")
	beEventual(t, control.Fault{Delay: control.Duration(time.Millisecond)})
	id = make()
	time.Sleep(2 * time.Millisecond)
	if err := describe(id); err != nil {
		t.Errorf("it is not fresh any more: %v", err)
	}
}

// What a list shows is gone at the next look: a stranger's, and what was deleted
// a moment ago.
func TestListsShowWhatIsGone(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	cfg := clientConfig(stack, "AKIAGHOST")
	roles := iam.NewFromConfig(cfg)
	for _, name := range []string{"stays", "goes"} {
		must[*iam.CreateRoleOutput](t)(roles.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trustNobody)}))
	}
	beEventual(t, control.Fault{Delay: control.Duration(time.Minute), Every: 100, Skip: 99}) // hides nothing
	must[*iam.DeleteRoleOutput](t)(roles.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: aws.String("goes")}))
	all := must[*iam.ListRolesOutput](t)(roles.ListRoles(ctx, &iam.ListRolesInput{}))
	var names []string
	for _, r := range all.Roles {
		names = append(names, *r.RoleName)
	}
	if !slices.Contains(names, "stays") || !slices.Contains(names, "goes") || !slices.ContainsFunc(names, isGhost) {
		t.Errorf("listed: %v", names)
	}
	for _, name := range names {
		if name != "goes" && !isGhost(name) {
			continue
		}
		_, err := roles.ListRoleTags(ctx, &iam.ListRoleTagsInput{RoleName: &name})
		wantCode(t, err, "NoSuchEntity")
	}

	buckets := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	must[*s3.CreateBucketOutput](t)(buckets.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("ghost-host"),
		CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: "us-west-2"}}))
	found := must[*s3.ListBucketsOutput](t)(buckets.ListBuckets(ctx, &s3.ListBucketsInput{Prefix: aws.String("ghost-")}))
	if len(found.Buckets) != 2 {
		t.Fatalf("%d buckets are listed", len(found.Buckets))
	}
	_, err := buckets.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: found.Buckets[1].Name})
	wantCode(t, err, "NoSuchBucket")

	vpcs, lbs := ec2.NewFromConfig(cfg), elb.NewFromConfig(cfg)
	_, subnet := makeVPC(t, vpcs, "shoot--core--ghost")
	freshBalancer(t, lbs, subnet, "nlb-ghost")
	var arns []string
	for _, lb := range must[*elb.DescribeLoadBalancersOutput](t)(lbs.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{})).LoadBalancers {
		arns = append(arns, *lb.LoadBalancerArn)
	}
	if !slices.ContainsFunc(arns, isGhost) {
		t.Errorf("listed: %v", arns)
	}
	_, err = lbs.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: arns})
	wantCode(t, err, "LoadBalancerNotFound") // one of many is enough
}

// A record that somebody else removes between a list and a change: the batch is
// refused as a whole, once.
func TestARecordVanishesBetweenListAndChange(t *testing.T) {
	ctx, stack := t.Context(), emulator(t)
	zones := route53.NewFromConfig(clientConfig(stack, "AKIARECORD"))
	zone := *must[*route53.CreateHostedZoneOutput](t)(zones.CreateHostedZone(ctx, &route53.CreateHostedZoneInput{
		Name: aws.String("vanish.example.com"), CallerReference: aws.String("vanish")})).HostedZone.Id
	beEventual(t, control.Fault{Every: 100, Skip: 99})
	records := func() (all []route53types.Change) {
		for _, r := range must[*route53.ListResourceRecordSetsOutput](t)(zones.ListResourceRecordSets(ctx,
			&route53.ListResourceRecordSetsInput{HostedZoneId: &zone})).ResourceRecordSets {
			if r.Type == route53types.RRTypeTxt {
				all = append(all, route53types.Change{Action: route53types.ChangeActionDelete, ResourceRecordSet: &r})
			}
		}
		return all
	}
	stale := records()
	if len(stale) != 1 {
		t.Fatalf("%d TXT records are listed", len(stale))
	}
	_, err := zones.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{HostedZoneId: &zone, ChangeBatch: &route53types.ChangeBatch{Changes: stale}})
	wantCode(t, err, "InvalidChangeBatch")
	if left := records(); len(left) != 0 {
		t.Errorf("it is listed again: %v", left)
	}
}

// freshBalancer makes a load balancer and does not look at it.
func freshBalancer(t *testing.T, lbs *elb.Client, subnet, name string) (arn string) {
	t.Helper()
	made := must[*elb.CreateLoadBalancerOutput](t)(lbs.CreateLoadBalancer(t.Context(), &elb.CreateLoadBalancerInput{
		Name: &name, Type: elbtypes.LoadBalancerTypeEnumNetwork, Subnets: []string{subnet}}))
	return *made.LoadBalancers[0].LoadBalancerArn
}

func isGhost(name string) bool { return strings.HasSuffix(name, ghost) }
