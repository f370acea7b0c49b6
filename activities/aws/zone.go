package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// dnsAPI is what is called of Route 53.
type dnsAPI interface {
	CreateHostedZone(context.Context, *route53.CreateHostedZoneInput, ...func(*route53.Options)) (*route53.CreateHostedZoneOutput, error)
	GetHostedZone(context.Context, *route53.GetHostedZoneInput, ...func(*route53.Options)) (*route53.GetHostedZoneOutput, error)
	DeleteHostedZone(context.Context, *route53.DeleteHostedZoneInput, ...func(*route53.Options)) (*route53.DeleteHostedZoneOutput, error)
	ListHostedZones(context.Context, *route53.ListHostedZonesInput, ...func(*route53.Options)) (*route53.ListHostedZonesOutput, error)
	ListHostedZonesByName(context.Context, *route53.ListHostedZonesByNameInput, ...func(*route53.Options)) (*route53.ListHostedZonesByNameOutput, error)
	AssociateVPCWithHostedZone(context.Context, *route53.AssociateVPCWithHostedZoneInput, ...func(*route53.Options)) (*route53.AssociateVPCWithHostedZoneOutput, error)
	ListTagsForResource(context.Context, *route53.ListTagsForResourceInput, ...func(*route53.Options)) (*route53.ListTagsForResourceOutput, error)
	ChangeTagsForResource(context.Context, *route53.ChangeTagsForResourceInput, ...func(*route53.Options)) (*route53.ChangeTagsForResourceOutput, error)
	ListResourceRecordSets(context.Context, *route53.ListResourceRecordSetsInput, ...func(*route53.Options)) (*route53.ListResourceRecordSetsOutput, error)
	ChangeResourceRecordSets(context.Context, *route53.ChangeResourceRecordSetsInput, ...func(*route53.Options)) (*route53.ChangeResourceRecordSetsOutput, error)
	GetChange(context.Context, *route53.GetChangeInput, ...func(*route53.Options)) (*route53.GetChangeOutput, error)
}

// zone is the hosted zone of an owner, in one activity call.
type zone struct {
	a   *Activities
	c   *clients
	dns dnsAPI
	in  contract.ZoneInput
}

func (a *Activities) zone(ctx context.Context, in contract.ZoneInput) (*zone, error) {
	if err := needIdentity(in.Owner); err != nil {
		return nil, err
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return nil, err
	}
	return &zone{a: a, c: c, dns: c.route53, in: in}, nil
}

func (z *zone) resource() string { return "Route 53 zone " + z.in.Name }

func (z *zone) fault(err error) error { return faults.FromAWS(err, z.resource()) }

func (z *zone) private() bool { return z.in.Visibility != "Public" }

// EnsureHostedZone implements contract.AWS.EnsureZone.
//
// A zone is ours when its caller reference is our identity: Route 53 takes no
// tags when it creates, and grants a reference once. The tags, added after it,
// are for people. Another's private zone of the same name in another VPC is no
// conflict, a public one is: the domain can be delegated to one of them only.
func (a *Activities) EnsureHostedZone(ctx context.Context, in contract.ZoneInput) (contract.Zone, error) {
	z, err := a.zone(ctx, in)
	if err != nil {
		return contract.Zone{}, err
	}
	if z.private() && in.VPCID == "" {
		return contract.Zone{}, faults.New(faults.Invalid, "NoVPC", z.resource(), "a private zone needs a VPC")
	}
	ours, others, err := z.find(ctx)
	if err != nil {
		return contract.Zone{}, err
	}
	if len(ours) == 0 {
		if len(others) > 0 && !z.private() {
			return contract.Zone{}, foreign(z.resource(), "", in.Owner)
		}
		id, err := z.create(ctx)
		if err != nil {
			return contract.Zone{}, err
		}
		return z.observe(ctx, id)
	}
	keep := ours[0]
	for _, twin := range ours[1:] {
		if err := z.deleteIfEmpty(ctx, twin); err != nil {
			return contract.Zone{}, err
		}
	}
	return z.observe(ctx, zoneID(keep.Id))
}

// find returns the zones of our name: ours, the one with most records first,
// and those of others with the same visibility.
func (z *zone) find(ctx context.Context) (ours, others []r53types.HostedZone, err error) {
	name := z.in.Name + "."
	in := &route53.ListHostedZonesByNameInput{DNSName: &name}
	for {
		out, err := z.dns.ListHostedZonesByName(ctx, in)
		if err != nil {
			return nil, nil, z.fault(err)
		}
		for _, found := range out.HostedZones {
			switch {
			case !strings.EqualFold(awssdk.ToString(found.Name), name):
			case madeBy(found, z.in.Owner.ID):
				ours = append(ours, found)
			case (found.Config != nil && found.Config.PrivateZone) == z.private():
				others = append(others, found)
			}
		}
		// Zones are listed by name, from ours on.
		if !out.IsTruncated || !strings.EqualFold(awssdk.ToString(out.NextDNSName), name) {
			break
		}
		in = &route53.ListHostedZonesByNameInput{DNSName: out.NextDNSName, HostedZoneId: out.NextHostedZoneId}
	}
	slices.SortFunc(ours, func(a, b r53types.HostedZone) int {
		if d := awssdk.ToInt64(b.ResourceRecordSetCount) - awssdk.ToInt64(a.ResourceRecordSetCount); d != 0 {
			return int(d)
		}
		return strings.Compare(awssdk.ToString(a.Id), awssdk.ToString(b.Id))
	})
	return ours, others, nil
}

// madeBy reports whether a zone's caller reference is the identity, maybe with
// a number (see create).
func madeBy(found r53types.HostedZone, identity string) bool {
	reference, _, _ := strings.Cut(awssdk.ToString(found.CallerReference), "/")
	return reference == identity
}

func zoneID(id *string) string { return strings.TrimPrefix(awssdk.ToString(id), "/hostedzone/") }

// create makes the zone. Route 53 remembers the references of deleted zones,
// so an owner that had one before needs a number behind its identity.
func (z *zone) create(ctx context.Context) (id string, err error) {
	in := &route53.CreateHostedZoneInput{
		Name:             &z.in.Name,
		HostedZoneConfig: &r53types.HostedZoneConfig{Comment: awssdk.String("of " + z.in.Owner.String()), PrivateZone: z.private()},
	}
	if z.private() {
		in.VPC = z.vpc()
	}
	for n := 1; n <= 5; n++ {
		in.CallerReference = awssdk.String(z.in.Owner.ID)
		if n > 1 {
			in.CallerReference = awssdk.String(fmt.Sprintf("%s/%d", z.in.Owner.ID, n))
		}
		out, err := z.dns.CreateHostedZone(ctx, in)
		if err == nil {
			return zoneID(out.HostedZone.Id), z.insync(ctx, out.ChangeInfo)
		}
		if f := faults.As(z.fault(err)); f == nil || f.Code != "HostedZoneAlreadyExists" {
			return "", z.fault(err)
		}
		// Either made by a call whose answer was lost and listed only now, or
		// deleted long ago.
		if ours, _, err := z.find(ctx); err != nil || len(ours) > 0 {
			if err != nil {
				return "", err
			}
			return zoneID(ours[0].Id), nil
		}
	}
	return "", faults.New(faults.Conflict, "HostedZoneAlreadyExists", z.resource(), "Route 53 says that the zone exists, but does not list it")
}

func (z *zone) vpc() *r53types.VPC {
	return &r53types.VPC{VPCId: &z.in.VPCID, VPCRegion: r53types.VPCRegion(z.in.Account.Region)}
}

// insync waits until all of Route 53's servers know a change.
func (z *zone) insync(ctx context.Context, change *r53types.ChangeInfo) error {
	if change == nil || change.Status == r53types.ChangeStatusInsync {
		return nil
	}
	return z.a.settle(ctx, z.resource(), "served (INSYNC)", func() (bool, error) {
		out, err := z.dns.GetChange(ctx, &route53.GetChangeInput{Id: change.Id})
		if err != nil {
			return false, z.fault(err)
		}
		return out.ChangeInfo.Status == r53types.ChangeStatusInsync, nil
	})
}

// observe corrects the association and the tags, and tells what there is.
func (z *zone) observe(ctx context.Context, id string) (contract.Zone, error) {
	var out *route53.GetHostedZoneOutput
	err := z.a.settle(ctx, z.resource(), "created", func() (done bool, err error) {
		out, err = z.dns.GetHostedZone(ctx, &route53.GetHostedZoneInput{Id: &id})
		return err == nil, z.fault(err)
	})
	if err != nil {
		return contract.Zone{}, err
	}
	associated := !z.private() || slices.ContainsFunc(out.VPCs, func(v r53types.VPC) bool { return awssdk.ToString(v.VPCId) == z.in.VPCID })
	err = z.a.steady(ctx, z.resource(), func() error {
		if !associated {
			if err := z.associate(ctx, id); err != nil {
				return err
			}
			associated = true
		}
		return z.tag(ctx, id)
	})
	if err != nil {
		return contract.Zone{}, err
	}
	h := contract.Zone{ID: id, Name: z.in.Name, Resource: ledger(z.c, typeZone, id)}
	if out.DelegationSet != nil {
		h.NameServers = out.DelegationSet.NameServers
	}
	return h, nil
}

func (z *zone) associate(ctx context.Context, id string) error {
	change, err := z.dns.AssociateVPCWithHostedZone(ctx, &route53.AssociateVPCWithHostedZoneInput{HostedZoneId: &id, VPC: z.vpc()})
	if err != nil {
		return z.fault(err)
	}
	return z.insync(ctx, change.ChangeInfo)
}

func (z *zone) tag(ctx context.Context, id string) error {
	have, err := z.dns.ListTagsForResource(ctx, &route53.ListTagsForResourceInput{
		ResourceType: r53types.TagResourceTypeHostedzone, ResourceId: &id,
	})
	if err != nil {
		return z.fault(err)
	}
	if have.ResourceTagSet != nil && identityIn(have.ResourceTagSet.Tags, dnsTag) == z.in.Owner.ID {
		return nil
	}
	_, err = z.dns.ChangeTagsForResource(ctx, &route53.ChangeTagsForResourceInput{
		ResourceType: r53types.TagResourceTypeHostedzone, ResourceId: &id,
		AddTags: tagsAs(identityTags(z.in.Owner, z.in.Env), func(k, v *string) r53types.Tag { return r53types.Tag{Key: k, Value: v} }),
	})
	return z.fault(err)
}

func dnsTag(t r53types.Tag) (*string, *string) { return t.Key, t.Value }

// deleteIfEmpty deletes a twin of our zone that nothing was ever put into.
func (z *zone) deleteIfEmpty(ctx context.Context, twin r53types.HostedZone) error {
	if awssdk.ToInt64(twin.ResourceRecordSetCount) > 2 { // NS and SOA
		return nil
	}
	_, err := z.dns.DeleteHostedZone(ctx, &route53.DeleteHostedZoneInput{Id: awssdk.String(zoneID(twin.Id))})
	return faults.IgnoreGone(z.fault(err))
}

// DeleteHostedZone implements contract.AWS.DeleteZone.
func (a *Activities) DeleteHostedZone(ctx context.Context, in contract.ZoneInput) (contract.None, error) {
	z, err := a.zone(ctx, in)
	if err != nil {
		return contract.None{}, err
	}
	ours, _, err := z.find(ctx)
	if err != nil {
		return contract.None{}, err
	}
	for _, found := range ours {
		id := zoneID(found.Id)
		records := recordSets{dns: z.dns, zone: id, fault: z.fault}
		if err := faults.IgnoreGone(records.empty(ctx, awssdk.ToString(found.Name))); err != nil {
			return contract.None{}, err
		}
		_, err = z.dns.DeleteHostedZone(ctx, &route53.DeleteHostedZoneInput{Id: &id})
		if err := faults.IgnoreGone(z.fault(err)); err != nil {
			return contract.None{}, err
		}
	}
	return contract.None{}, a.settle(ctx, z.resource(), "deleted", func() (bool, error) {
		ours, _, err := z.find(ctx)
		return len(ours) == 0, err
	})
}
