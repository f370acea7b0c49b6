package aws

import (
	"context"
	"slices"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// clusterAPI is what a sweep for a Shoot reads of EC2, beside vpcAPI and
// volumeAPI.
type clusterAPI interface {
	ec2.DescribeNatGatewaysAPIClient
	ec2.DescribeInstancesAPIClient
	DescribeAddresses(context.Context, *ec2.DescribeAddressesInput, ...func(*ec2.Options)) (*ec2.DescribeAddressesOutput, error)
}

// byCluster is what costs, or keeps a VPC, of what Gardener and the shoot's
// controllers tag with the Shoot's technical ID; dearest first.
func (s *sweep) byCluster() []swept {
	if s.in.TechnicalID == "" {
		return nil
	}
	return []swept{
		{[]string{typeInstance}, s.clusterInstances},
		{[]string{typeVolume}, s.clusterVolumes},
		{[]string{typeNAT}, s.clusterNATs},
		{[]string{typeAddress}, s.clusterAddresses},
		{[]string{typeLB}, s.clusterLoadBalancers},
		{[]string{typeInterface}, s.clusterInterfaces},
		{[]string{typeGroup}, s.clusterGroups},
		{[]string{typeVPC}, s.clusterVPCs},
	}
}

func (s *sweep) clusterKey() string { return clusterTag + s.in.TechnicalID }

func (s *sweep) clusterFilter() ec2types.Filter { return filter("tag-key", s.clusterKey()) }

// theirs reports whether tags say that the thing goes with the Shoot. One that
// is shared with it is the user's, such as a VPC that was there before.
func (s *sweep) theirs(tags []ec2types.Tag) bool {
	value := tagValue(tags, s.clusterKey(), ec2Tag)
	return value != "" && value != "shared"
}

func (s *sweep) clusterVPCs(ctx context.Context) error {
	all, err := vpcs(ctx, s.c, s.in.TechnicalID)
	for _, v := range all {
		if s.theirs(v.Tags) {
			s.found(typeVPC, awssdk.ToString(v.VpcId))
		}
	}
	return err
}

func (s *sweep) clusterVolumes(ctx context.Context) error {
	all, err := volumesOf(ctx, s.c, s.clusterFilter())
	for _, v := range all {
		if s.theirs(v.Tags) {
			s.found(typeVolume, awssdk.ToString(v.VolumeId))
		}
	}
	return err
}

// clusterNATs leaves out deleted ones, which EC2 shows for an hour.
func (s *sweep) clusterNATs(ctx context.Context) error {
	pages := ec2.NewDescribeNatGatewaysPaginator(s.c.ec2, &ec2.DescribeNatGatewaysInput{Filter: []ec2types.Filter{
		s.clusterFilter(), filter("state", "pending", "available", "deleting"),
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, g := range page.NatGateways {
			if s.theirs(g.Tags) && g.State != ec2types.NatGatewayStateDeleted && g.State != ec2types.NatGatewayStateFailed {
				s.found(typeNAT, awssdk.ToString(g.NatGatewayId))
			}
		}
	}
	return nil
}

func (s *sweep) clusterAddresses(ctx context.Context) error {
	out, err := s.c.ec2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: []ec2types.Filter{s.clusterFilter()}})
	if err != nil {
		return err
	}
	for _, a := range out.Addresses {
		if s.theirs(a.Tags) {
			s.found(typeAddress, awssdk.ToString(a.AllocationId))
		}
	}
	return nil
}

// clusterInstances leaves out terminated ones, which EC2 shows for an hour.
func (s *sweep) clusterInstances(ctx context.Context) error {
	pages := ec2.NewDescribeInstancesPaginator(s.c.ec2, &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{s.clusterFilter()}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				if s.theirs(i.Tags) && (i.State == nil || i.State.Name != ec2types.InstanceStateNameTerminated) {
					s.found(typeInstance, awssdk.ToString(i.InstanceId))
				}
			}
		}
	}
	return nil
}

func (s *sweep) clusterLoadBalancers(ctx context.Context) error {
	all, err := taggedKey(ctx, s.c.tagging, taggedLoadBalancers, s.clusterKey())
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(all, 20) {
		live, err := describeTags(ctx, s.c.elb, chunk)
		if err != nil {
			return err
		}
		for _, d := range live {
			if value := tagValue(d.Tags, s.clusterKey(), elbTag); value != "" && value != "shared" {
				s.found(typeLB, awssdk.ToString(d.ResourceArn))
			}
		}
	}
	return nil
}

func (s *sweep) clusterInterfaces(ctx context.Context) error {
	pages := ec2.NewDescribeNetworkInterfacesPaginator(s.c.ec2, &ec2.DescribeNetworkInterfacesInput{Filters: []ec2types.Filter{s.clusterFilter()}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, n := range page.NetworkInterfaces {
			if s.theirs(n.TagSet) {
				s.found(typeInterface, awssdk.ToString(n.NetworkInterfaceId))
			}
		}
	}
	return nil
}

func (s *sweep) clusterGroups(ctx context.Context) error {
	return s.groups(ctx, s.clusterFilter(), s.theirs)
}
