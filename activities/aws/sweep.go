package aws

import (
	"context"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// SweepAWS implements contract.AWS.Sweep. Where a service cannot list by tag,
// only names that derive from the identity are asked for their tags, so that a
// sweep stays cheap in an account with thousands of roles. A retained bucket is
// in the list.
func (a *Activities) SweepAWS(ctx context.Context, in contract.SweepInput) (contract.Leftovers, error) {
	if err := needIdentity(in.Owner); err != nil {
		return contract.Leftovers{}, err
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return contract.Leftovers{}, err
	}
	s := &sweep{a: a, c: c, in: in, prefix: "ic-" + in.Owner.ID8() + "-"}
	for _, part := range append(s.byIdentity(), s.byCluster()...) {
		if err := part.list(ctx); err != nil {
			return contract.Leftovers{}, faults.FromAWS(err, "sweep for "+in.Owner.String())
		}
	}
	return s.left, nil
}

// swept is a part of a sweep, with the types that it can find.
type swept struct {
	types []string
	list  func(context.Context) error
}

// byIdentity has every type that anything tags with an identity: see the test
// that derives it.
func (s *sweep) byIdentity() []swept {
	return []swept{
		{[]string{typeEndpoint}, s.endpointServices},
		{[]string{typeLB}, s.loadBalancers},
		{[]string{typeTargets}, s.targetGroups},
		{[]string{typeGroup}, s.securityGroups},
		{[]string{typeZone}, s.zones},
		{[]string{typeRole}, s.roles},
		{[]string{typeOIDC}, s.oidcProviders},
		{[]string{typeKey, typeAlias}, s.keys},
		{[]string{typeBucket}, s.buckets},
		{[]string{typeVolume}, s.volumes},
	}
}

type sweep struct {
	a      *Activities
	c      *clients
	in     contract.SweepInput
	prefix string // of the owner's names
	left   contract.Leftovers
}

// found notes a resource once, whichever of its tags it was found by.
func (s *sweep) found(kind, id string) {
	known := slices.ContainsFunc(s.left.Resources, func(r v1.Resource) bool { return r.Type == kind && r.ID == id })
	if !known {
		add(&s.left, s.c, kind, id, "")
	}
}

func (s *sweep) ours(identity string) bool { return identity == s.in.Owner.ID }

func (s *sweep) endpointServices(ctx context.Context) error {
	all, err := endpointServices(ctx, s.c.ec2, s.in.Owner.ID)
	for _, e := range all {
		s.found(typeEndpoint, awssdk.ToString(e.ServiceId))
	}
	return err
}

func (s *sweep) loadBalancers(ctx context.Context) error {
	return s.balancing(ctx, typeLB, taggedLoadBalancers)
}

// targetGroups get the tags of their load balancer from the controller.
func (s *sweep) targetGroups(ctx context.Context) error {
	return s.balancing(ctx, typeTargets, taggedTargetGroups)
}

func (s *sweep) balancing(ctx context.Context, kind, indexed string) error {
	all, err := tagged(ctx, s.c.tagging, indexed, s.in.Owner.ID)
	if err != nil {
		return err
	}
	arns, err := loadBalancersTagged(ctx, s.c.elb, all, func(tags []elbtypes.Tag) bool { return s.ours(identityIn(tags, elbTag)) })
	for _, arn := range arns {
		s.found(kind, arn)
	}
	return err
}

// securityGroups are those that the controller makes for a load balancer.
func (s *sweep) securityGroups(ctx context.Context) error {
	return s.groups(ctx, filter("tag:"+v1.TagID, s.in.Owner.ID), func([]ec2types.Tag) bool { return true })
}

func (s *sweep) groups(ctx context.Context, by ec2types.Filter, ours func([]ec2types.Tag) bool) error {
	pages := ec2.NewDescribeSecurityGroupsPaginator(s.c.ec2, &ec2.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{by}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, g := range page.SecurityGroups {
			if ours(g.Tags) {
				s.found(typeGroup, awssdk.ToString(g.GroupId))
			}
		}
	}
	return nil
}

func (s *sweep) zones(ctx context.Context) error {
	pages := route53.NewListHostedZonesPaginator(s.c.route53, &route53.ListHostedZonesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, z := range page.HostedZones {
			if madeBy(z, s.in.Owner.ID) {
				s.found(typeZone, zoneID(z.Id))
			}
		}
	}
	return nil
}

// roles lists a thousand a call, which is what an account may have unless its
// quota was raised: IAM has no filter by name, and no index of roles' tags.
func (s *sweep) roles(ctx context.Context) error {
	pages := iam.NewListRolesPaginator(s.c.iam, &iam.ListRolesInput{MaxItems: awssdk.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, r := range page.Roles {
			if !strings.HasPrefix(awssdk.ToString(r.RoleName), s.prefix) {
				continue
			}
			tags, err := s.c.iam.ListRoleTags(ctx, &iam.ListRoleTagsInput{RoleName: r.RoleName})
			if err := faults.IgnoreGone(faults.FromAWS(err, "IAM role "+awssdk.ToString(r.RoleName))); err != nil {
				return err
			}
			if err == nil && s.ours(identityIn(tags.Tags, iamTag)) {
				s.found(typeRole, awssdk.ToString(r.Arn))
			}
		}
	}
	return nil
}

func (s *sweep) oidcProviders(ctx context.Context) error {
	arns, err := tagged(ctx, s.c.taggingGlobal, taggedOIDCProviders, s.in.Owner.ID)
	if err != nil {
		return err
	}
	for _, arn := range arns {
		o := &oidc{a: s.a, c: s.c, iam: s.c.iam, in: contract.IssuerInput{Account: s.in.Account, Owner: s.in.Owner}}
		switch _, err := o.get(ctx, arn); {
		case err == nil:
			s.found(typeOIDC, arn)
		case !faults.Is(err, faults.Gone) && !faults.Is(err, faults.Conflict): // gone, or re-tagged, since it was indexed
			return err
		}
	}
	return nil
}

// keys lists our keys and their aliases. A key pending deletion is on its way
// out and does not count, an alias of it does.
func (s *sweep) keys(ctx context.Context) error {
	k := &key{a: s.a, c: s.c, kms: s.c.kms, in: contract.CloudResourceInput{Account: s.in.Account, Owner: s.in.Owner, Name: "alias/" + s.prefix}}
	keys, err := k.ours(ctx)
	if err != nil {
		return err
	}
	for _, m := range keys {
		if m.KeyState != kmstypes.KeyStatePendingDeletion {
			s.found(typeKey, awssdk.ToString(m.Arn))
		}
		for _, alias := range m.aliases {
			if strings.HasPrefix(awssdk.ToString(alias.AliasName), k.in.Name) {
				s.found(typeAlias, awssdk.ToString(alias.AliasArn))
			}
		}
	}
	return nil
}

func (s *sweep) buckets(ctx context.Context) error {
	pages := s3.NewListBucketsPaginator(s.c.s3, &s3.ListBucketsInput{Prefix: &s.prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, found := range page.Buckets {
			name := awssdk.ToString(found.Name)
			if !strings.HasPrefix(name, s.prefix) {
				continue
			}
			b := &bucket{a: s.a, c: s.c, s3: s.c.s3, name: &name, owner: &s.c.identity.AccountID,
				in: contract.CloudResourceInput{Account: s.in.Account, Owner: s.in.Owner, Name: name}}
			identity, err := b.identity(ctx)
			if err := faults.IgnoreGone(err); err != nil {
				return err
			}
			if err == nil && (identity == "" || s.ours(identity)) { // untagged: see adoptUntagged
				s.found(typeBucket, b.arn())
			}
		}
	}
	return nil
}
