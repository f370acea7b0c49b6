package awsinfra

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
)

// delete follows Gardener's order: load balancers of the cluster, identity,
// zones, security group and route table, internet gateway, VPC. It stops at the
// first failure of a group, so that a foreign object in the VPC shows up as the
// provider's DependencyViolation.
func (f *flow) delete(ctx context.Context) error {
	vpc, err := f.findVPC(ctx)
	if err != nil {
		return err
	}
	if vpc != "" {
		f.deleteLoadBalancers(ctx, vpc)
	}
	if err := f.deleteNodesRole(ctx); err != nil {
		return err
	}
	_, err = f.ec2.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: aws.String(f.name("ssh-publickey"))})
	if err != nil && !hasCode(err, "InvalidKeyPair.NotFound") {
		return fmt.Errorf("delete key pair: %w", err)
	}
	if vpc != "" {
		for _, step := range []func(context.Context, string) error{
			f.deleteNATGateways, f.deleteRouteTables, f.deleteSubnets, f.deleteSecurityGroup, f.deleteInternetGateway, f.deleteVPC,
		} {
			if err := step(ctx, vpc); err != nil {
				return err
			}
		}
	}
	return f.releaseAddresses(ctx)
}

// deleteLoadBalancers removes what the shoot's own controllers left. One that
// is in use stays; the subnets then say so.
func (f *flow) deleteLoadBalancers(ctx context.Context, vpc string) {
	out, err := f.elb.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{})
	if err != nil {
		f.log.Warn("load balancers cannot be listed", "error", err)
		return
	}
	for _, lb := range out.LoadBalancers {
		if aws.ToString(lb.VpcId) != vpc {
			continue
		}
		tags, err := f.elb.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: []string{aws.ToString(lb.LoadBalancerArn)}})
		if err != nil || len(tags.TagDescriptions) == 0 {
			continue
		}
		for _, t := range tags.TagDescriptions[0].Tags {
			if aws.ToString(t.Key) != "kubernetes.io/cluster/"+f.id {
				continue
			}
			if _, err := f.elb.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerArn: lb.LoadBalancerArn}); err != nil {
				f.log.Warn("load balancer is kept", "arn", aws.ToString(lb.LoadBalancerArn), "error", err)
			}
		}
	}
}

func (f *flow) deleteNATGateways(ctx context.Context, vpc string) error {
	gateways, err := f.natGateways(ctx, filter("vpc-id", vpc))
	if err != nil {
		return err
	}
	for _, g := range gateways {
		_, err := f.ec2.DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: g.NatGatewayId})
		if err != nil && !hasCode(err, "NatGatewayNotFound") {
			return fmt.Errorf("delete nat gateway %s: %w", aws.ToString(g.NatGatewayId), err)
		}
	}
	return f.releaseAddresses(ctx)
}

func (f *flow) releaseAddresses(ctx context.Context) error {
	found, err := f.ec2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: f.find("*")})
	if err != nil {
		return fmt.Errorf("find elastic ips: %w", err)
	}
	for _, a := range found.Addresses {
		_, err := f.ec2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: a.AllocationId})
		if err != nil && !hasCode(err, "InvalidAllocationID.NotFound") {
			return fmt.Errorf("release elastic ip %s: %w", aws.ToString(a.AllocationId), err)
		}
	}
	return nil
}

func (f *flow) deleteRouteTables(ctx context.Context, vpc string) error {
	found, err := f.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: f.find("*", filter("vpc-id", vpc))})
	if err != nil {
		return fmt.Errorf("find route tables: %w", err)
	}
	for _, table := range found.RouteTables {
		for _, a := range table.Associations {
			_, err := f.ec2.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: a.RouteTableAssociationId})
			if err != nil && !hasCode(err, "InvalidAssociationID.NotFound") {
				return fmt.Errorf("disassociate route table %s: %w", aws.ToString(table.RouteTableId), err)
			}
		}
		_, err := f.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: table.RouteTableId})
		if err != nil && !hasCode(err, "InvalidRouteTableID.NotFound") {
			return fmt.Errorf("delete route table %s: %w", aws.ToString(table.RouteTableId), err)
		}
	}
	return nil
}

// deleteSubnets tries all, so that the message names every one that is in use.
func (f *flow) deleteSubnets(ctx context.Context, vpc string) error {
	found, err := f.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: f.find("*", filter("vpc-id", vpc))})
	if err != nil {
		return fmt.Errorf("find subnets: %w", err)
	}
	var errs []error
	for _, s := range found.Subnets {
		_, err := f.ec2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: s.SubnetId})
		if err != nil && !hasCode(err, "InvalidSubnetID.NotFound") {
			errs = append(errs, fmt.Errorf("delete subnet %s: %w", aws.ToString(s.SubnetId), err))
		}
	}
	return errors.Join(errs...)
}

func (f *flow) deleteSecurityGroup(ctx context.Context, vpc string) error {
	found, err := f.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: f.find("nodes", filter("vpc-id", vpc))})
	if err != nil {
		return fmt.Errorf("find the security group of nodes: %w", err)
	}
	for _, g := range found.SecurityGroups {
		_, err := f.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: g.GroupId})
		if err != nil && !hasCode(err, "InvalidGroup.NotFound") {
			return fmt.Errorf("delete security group %s: %w", aws.ToString(g.GroupId), err)
		}
	}
	return nil
}

func (f *flow) deleteInternetGateway(ctx context.Context, vpc string) error {
	found, err := f.ec2.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{Filters: f.find("")})
	if err != nil {
		return fmt.Errorf("find internet gateway: %w", err)
	}
	for _, g := range found.InternetGateways {
		if attached(g, vpc) {
			_, err := f.ec2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: g.InternetGatewayId, VpcId: &vpc})
			if err != nil && !hasCode(err, "Gateway.NotAttached") {
				return fmt.Errorf("detach internet gateway %s: %w", aws.ToString(g.InternetGatewayId), err)
			}
		}
		_, err := f.ec2.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: g.InternetGatewayId})
		if err != nil && !hasCode(err, "InvalidInternetGatewayID.NotFound") {
			return fmt.Errorf("delete internet gateway %s: %w", aws.ToString(g.InternetGatewayId), err)
		}
	}
	return nil
}

func attached(g types.InternetGateway, vpc string) bool {
	for _, a := range g.Attachments {
		if aws.ToString(a.VpcId) == vpc {
			return true
		}
	}
	return false
}

// deleteVPC leaves a VPC of the user alone.
func (f *flow) deleteVPC(ctx context.Context, vpc string) error {
	if f.config.Networks.VPC.ID != nil {
		return nil
	}
	_, err := f.ec2.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &vpc})
	if err != nil && !hasCode(err, "InvalidVpcID.NotFound") {
		return fmt.Errorf("delete vpc %s: %w", vpc, err)
	}
	return nil
}
