package awsinfra

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// ensureZone makes the subnets of a zone, its NAT gateway with an elastic IP,
// and the route table of its nodes.
func (f *flow) ensureZone(ctx context.Context, vpc, main string, index int, z zone) error {
	role := func(kind string) types.Tag {
		return types.Tag{Key: aws.String("kubernetes.io/role/" + kind), Value: aws.String("1")}
	}
	nodes, err := f.ensureSubnet(ctx, vpc, z.Name, z.Workers, fmt.Sprintf("nodes-z%d", index))
	if err != nil {
		return err
	}
	public, err := f.ensureSubnet(ctx, vpc, z.Name, z.Public, fmt.Sprintf("public-utility-z%d", index), role("elb"))
	if err != nil {
		return err
	}
	internal, err := f.ensureSubnet(ctx, vpc, z.Name, z.Internal, fmt.Sprintf("private-utility-z%d", index), role("internal-elb"))
	if err != nil {
		return err
	}
	address, err := f.ensureElasticIP(ctx, fmt.Sprintf("eip-natgw-z%d", index))
	if err != nil {
		return err
	}
	gateway, err := f.ensureNATGateway(ctx, fmt.Sprintf("natgw-z%d", index), public, address)
	if err != nil {
		return err
	}
	table, err := f.ensureRouteTable(ctx, vpc, "private-"+z.Name)
	if err != nil {
		return err
	}
	err = f.ensureRoute(ctx, &ec2.CreateRouteInput{RouteTableId: &table, DestinationCidrBlock: aws.String(everywhere), NatGatewayId: &gateway})
	if err != nil {
		return err
	}
	for subnet, table := range map[string]string{public: main, nodes: table, internal: table} {
		if err := f.associate(ctx, table, subnet); err != nil {
			return err
		}
	}
	return nil
}

func (f *flow) ensureElasticIP(ctx context.Context, suffix string) (string, error) {
	found, err := f.ec2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: f.find(suffix)})
	if err != nil {
		return "", fmt.Errorf("find elastic ip %s: %w", f.name(suffix), err)
	}
	if len(found.Addresses) > 0 {
		return aws.ToString(found.Addresses[0].AllocationId), nil
	}
	out, err := f.ec2.AllocateAddress(ctx, &ec2.AllocateAddressInput{
		Domain: types.DomainTypeVpc, TagSpecifications: f.tags(types.ResourceTypeElasticIp, suffix),
	})
	if err != nil {
		return "", fmt.Errorf("allocate elastic ip %s: %w", f.name(suffix), err)
	}
	return aws.ToString(out.AllocationId), nil
}

func (f *flow) ensureNATGateway(ctx context.Context, suffix, subnet, address string) (string, error) {
	gateways, err := f.natGateways(ctx, filter("subnet-id", subnet))
	if err != nil {
		return "", err
	}
	if len(gateways) > 0 {
		return aws.ToString(gateways[0].NatGatewayId), nil
	}
	out, err := f.ec2.CreateNatGateway(ctx, &ec2.CreateNatGatewayInput{
		SubnetId: &subnet, AllocationId: &address, TagSpecifications: f.tags(types.ResourceTypeNatgateway, suffix),
	})
	if err != nil {
		return "", fmt.Errorf("create nat gateway %s: %w", f.name(suffix), err)
	}
	return aws.ToString(out.NatGateway.NatGatewayId), nil
}

// natGateways lists the cluster's living gateways: deleted ones stay visible for
// an hour. The tag is looked at here, as moto ignores tag filters in this call.
func (f *flow) natGateways(ctx context.Context, where types.Filter) ([]types.NatGateway, error) {
	found, err := f.ec2.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{Filter: []types.Filter{where}})
	if err != nil {
		return nil, fmt.Errorf("find nat gateways: %w", err)
	}
	var live []types.NatGateway
	for _, g := range found.NatGateways {
		ours := slices.ContainsFunc(g.Tags, func(t types.Tag) bool { return aws.ToString(t.Key) == "kubernetes.io/cluster/"+f.id })
		if ours && g.State != types.NatGatewayStateDeleted && g.State != types.NatGatewayStateFailed {
			live = append(live, g)
		}
	}
	return live, nil
}

func (f *flow) ensureNodesSecurityGroup(ctx context.Context, vpc string) error {
	found, err := f.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: f.find("nodes", filter("vpc-id", vpc))})
	if err != nil {
		return fmt.Errorf("find the security group of nodes: %w", err)
	}
	if len(found.SecurityGroups) > 0 {
		return nil
	}
	out, err := f.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: aws.String(f.name("nodes")), Description: aws.String("Security group for nodes"), VpcId: &vpc,
		TagSpecifications: f.tags(types.ResourceTypeSecurityGroup, "nodes"),
	})
	if err != nil {
		return fmt.Errorf("create the security group of nodes: %w", err)
	}
	_, err = f.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{
		GroupId: out.GroupId,
		IpPermissions: []types.IpPermission{{
			IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: out.GroupId}},
		}},
	})
	if err != nil && !hasCode(err, "InvalidPermission.Duplicate") {
		return fmt.Errorf("allow traffic between nodes: %w", err)
	}
	return nil
}
