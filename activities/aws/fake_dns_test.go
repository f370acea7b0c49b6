package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
)

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
	if err := f.unknown("GetHostedZone", "NoSuchHostedZone"); err != nil {
		return nil, err
	}
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
	if err := f.unknown("AssociateVPCWithHostedZone", "NoSuchHostedZone"); err != nil {
		return nil, err
	}
	f.vpcs[*in.HostedZoneId] = append(f.vpcs[*in.HostedZoneId], *in.VPC)
	return &route53.AssociateVPCWithHostedZoneOutput{}, f.after("AssociateVPCWithHostedZone")
}

func (f *fakeDNS) ListTagsForResource(_ context.Context, in *route53.ListTagsForResourceInput, _ ...func(*route53.Options)) (*route53.ListTagsForResourceOutput, error) {
	if err := f.unknown("ListTagsForResource", "NoSuchHostedZone"); err != nil {
		return nil, err
	}
	return &route53.ListTagsForResourceOutput{ResourceTagSet: &r53types.ResourceTagSet{Tags: f.tags[*in.ResourceId]}}, nil
}

func (f *fakeDNS) ChangeTagsForResource(_ context.Context, in *route53.ChangeTagsForResourceInput, _ ...func(*route53.Options)) (*route53.ChangeTagsForResourceOutput, error) {
	if err := f.unknown("ChangeTagsForResource", "NoSuchHostedZone"); err != nil {
		return nil, err
	}
	f.tags[*in.ResourceId] = in.AddTags
	return &route53.ChangeTagsForResourceOutput{}, f.after("ChangeTagsForResource")
}
