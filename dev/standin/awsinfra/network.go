package awsinfra

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// everywhere is the default route.
const everywhere = "0.0.0.0/0"

// name is the Name tag of a part; the VPC's own is the technicalID.
func (f *flow) name(suffix string) string {
	return strings.TrimSuffix(f.id+"-"+suffix, "-")
}

// tags is Gardener's tag specification for a resource.
func (f *flow) tags(kind types.ResourceType, suffix string, more ...types.Tag) []types.TagSpecification {
	tags := append([]types.Tag{
		{Key: aws.String("Name"), Value: aws.String(f.name(suffix))},
		{Key: aws.String("kubernetes.io/cluster/" + f.id), Value: aws.String("1")},
	}, more...)
	return []types.TagSpecification{{ResourceType: kind, Tags: tags}}
}

// find filters by the cluster tag, and by name unless suffix is "*".
func (f *flow) find(suffix string, more ...types.Filter) []types.Filter {
	filters := append([]types.Filter{{Name: aws.String("tag-key"), Values: []string{"kubernetes.io/cluster/" + f.id}}}, more...)
	if suffix != "*" {
		filters = append(filters, types.Filter{Name: aws.String("tag:Name"), Values: []string{f.name(suffix)}})
	}
	return filters
}

func filter(name, value string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: []string{value}}
}

// ensureVPC makes the VPC of networks.vpc.cidr, or checks that of networks.vpc.id.
func (f *flow) ensureVPC(ctx context.Context) (string, error) {
	vpc, err := f.findVPC(ctx)
	if err != nil || vpc != "" {
		return vpc, err
	}
	if f.config.Networks.VPC.ID != nil {
		return "", fmt.Errorf("vpc %s does not exist", *f.config.Networks.VPC.ID)
	}
	out, err := f.ec2.CreateVpc(ctx, &ec2.CreateVpcInput{
		CidrBlock: f.config.Networks.VPC.CIDR, TagSpecifications: f.tags(types.ResourceTypeVpc, ""),
	})
	if err != nil {
		return "", fmt.Errorf("create vpc: %w", err)
	}
	vpc = aws.ToString(out.Vpc.VpcId)
	for _, in := range []*ec2.ModifyVpcAttributeInput{
		{VpcId: &vpc, EnableDnsSupport: &types.AttributeBooleanValue{Value: aws.Bool(true)}},
		{VpcId: &vpc, EnableDnsHostnames: &types.AttributeBooleanValue{Value: aws.Bool(true)}},
	} {
		if _, err := f.ec2.ModifyVpcAttribute(ctx, in); err != nil {
			return "", fmt.Errorf("set dns attributes of vpc %s: %w", vpc, err)
		}
	}
	return vpc, nil
}

// findVPC returns the id, or "" when there is none.
func (f *flow) findVPC(ctx context.Context) (string, error) {
	in := &ec2.DescribeVpcsInput{Filters: f.find("")}
	if id := f.config.Networks.VPC.ID; id != nil {
		in = &ec2.DescribeVpcsInput{Filters: []types.Filter{filter("vpc-id", *id)}}
	}
	out, err := f.ec2.DescribeVpcs(ctx, in)
	if err != nil {
		return "", fmt.Errorf("find vpc: %w", err)
	}
	if len(out.Vpcs) == 0 {
		return "", nil
	}
	return aws.ToString(out.Vpcs[0].VpcId), nil
}

func (f *flow) ensureInternetGateway(ctx context.Context, vpc string) (string, error) {
	found, err := f.ec2.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{Filters: f.find("")})
	if err != nil {
		return "", fmt.Errorf("find internet gateway: %w", err)
	}
	var gateway types.InternetGateway
	if len(found.InternetGateways) > 0 {
		gateway = found.InternetGateways[0]
	} else {
		out, err := f.ec2.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{TagSpecifications: f.tags(types.ResourceTypeInternetGateway, "")})
		if err != nil {
			return "", fmt.Errorf("create internet gateway: %w", err)
		}
		gateway = *out.InternetGateway
	}
	id := aws.ToString(gateway.InternetGatewayId)
	if len(gateway.Attachments) > 0 {
		return id, nil
	}
	_, err = f.ec2.AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: &id, VpcId: &vpc})
	if err != nil && !hasCode(err, "Resource.AlreadyAssociated") {
		return "", fmt.Errorf("attach internet gateway %s: %w", id, err)
	}
	return id, nil
}

// ensureMainRouteTable makes the table of the public subnets.
func (f *flow) ensureMainRouteTable(ctx context.Context, vpc, gateway string) (string, error) {
	table, err := f.ensureRouteTable(ctx, vpc, "")
	if err != nil {
		return "", err
	}
	return table, f.ensureRoute(ctx, &ec2.CreateRouteInput{RouteTableId: &table, DestinationCidrBlock: aws.String(everywhere), GatewayId: &gateway})
}

func (f *flow) ensureRouteTable(ctx context.Context, vpc, suffix string) (string, error) {
	found, err := f.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: f.find(suffix, filter("vpc-id", vpc))})
	if err != nil {
		return "", fmt.Errorf("find route table %s: %w", f.name(suffix), err)
	}
	if len(found.RouteTables) > 0 {
		return aws.ToString(found.RouteTables[0].RouteTableId), nil
	}
	out, err := f.ec2.CreateRouteTable(ctx, &ec2.CreateRouteTableInput{VpcId: &vpc, TagSpecifications: f.tags(types.ResourceTypeRouteTable, suffix)})
	if err != nil {
		return "", fmt.Errorf("create route table %s: %w", f.name(suffix), err)
	}
	return aws.ToString(out.RouteTable.RouteTableId), nil
}

// ensureRoute leaves routes to other destinations alone: peerings add theirs.
func (f *flow) ensureRoute(ctx context.Context, in *ec2.CreateRouteInput) error {
	if _, err := f.ec2.CreateRoute(ctx, in); err != nil && !hasCode(err, "RouteAlreadyExists") {
		return fmt.Errorf("create default route in %s: %w", aws.ToString(in.RouteTableId), err)
	}
	return nil
}

func (f *flow) ensureSubnet(ctx context.Context, vpc, zone, cidr, suffix string, more ...types.Tag) (string, error) {
	found, err := f.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: f.find(suffix, filter("vpc-id", vpc))})
	if err != nil {
		return "", fmt.Errorf("find subnet %s: %w", f.name(suffix), err)
	}
	if len(found.Subnets) > 0 {
		return aws.ToString(found.Subnets[0].SubnetId), nil
	}
	out, err := f.ec2.CreateSubnet(ctx, &ec2.CreateSubnetInput{
		VpcId: &vpc, CidrBlock: &cidr, AvailabilityZone: &zone, TagSpecifications: f.tags(types.ResourceTypeSubnet, suffix, more...),
	})
	if err != nil {
		return "", fmt.Errorf("create subnet %s: %w", f.name(suffix), err)
	}
	return aws.ToString(out.Subnet.SubnetId), nil
}

func (f *flow) associate(ctx context.Context, table, subnet string) error {
	found, err := f.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("association.subnet-id", subnet)}})
	if err != nil {
		return fmt.Errorf("find the route table of subnet %s: %w", subnet, err)
	}
	if len(found.RouteTables) > 0 {
		return nil
	}
	if _, err := f.ec2.AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: &table, SubnetId: &subnet}); err != nil {
		return fmt.Errorf("associate route table %s with subnet %s: %w", table, subnet, err)
	}
	return nil
}
