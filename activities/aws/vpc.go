package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// vpcAPI is what is read of EC2 about VPCs.
type vpcAPI interface {
	ec2.DescribeVpcsAPIClient
	ec2.DescribeRouteTablesAPIClient
	ec2.DescribeSubnetsAPIClient
	ec2.DescribeVpcEndpointsAPIClient
	ec2.DescribeVpcPeeringConnectionsAPIClient
	ec2.DescribeNetworkInterfacesAPIClient
	ec2.DescribeSecurityGroupsAPIClient
}

// clusterTag is the tag by which Gardener marks what belongs to a Shoot.
const clusterTag = "kubernetes.io/cluster/"

func filter(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: awssdk.String(name), Values: values}
}

// vpcs returns the VPCs of a Shoot.
func vpcs(ctx context.Context, c *clients, technicalID string) ([]ec2types.Vpc, error) {
	var found []ec2types.Vpc
	pages := ec2.NewDescribeVpcsPaginator(c.ec2, &ec2.DescribeVpcsInput{
		Filters: []ec2types.Filter{filter("tag-key", clusterTag+technicalID)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, faults.FromAWS(err, "VPC of shoot "+technicalID)
		}
		found = append(found, page.Vpcs...)
	}
	return found, nil
}

// DiscoverVPC implements contract.AWS.DiscoverVPC.
func (a *Activities) DiscoverVPC(ctx context.Context, in contract.DiscoverVPCInput) (contract.VPC, error) {
	resource := "VPC of shoot " + in.TechnicalID
	if in.TechnicalID == "" {
		return contract.VPC{}, faults.New(faults.Invalid, "NoTechnicalID", resource, "the Shoot has no technical ID yet")
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return contract.VPC{}, err
	}
	found, err := vpcs(ctx, c, in.TechnicalID)
	switch {
	case err != nil:
		return contract.VPC{}, err
	case len(found) == 0:
		return contract.VPC{}, faults.New(faults.Gone, "VPCNotFound", resource,
			"no VPC in %s carries the tag %s", in.Account.Region, clusterTag+in.TechnicalID).
			WithHint(faults.OwnerOperator, "see the Shoot's infrastructure in Gardener; without a VPC the Shoot must be made again")
	case len(found) > 1:
		return contract.VPC{}, faults.New(faults.Conflict, "VPCNotUnique", resource,
			"%d VPCs carry its tag, among them %s and %s", len(found), awssdk.ToString(found[0].VpcId), awssdk.ToString(found[1].VpcId)).
			WithHint(faults.OwnerOperator, "remove the tag from the VPC that Gardener does not use, then retry")
	}
	return describeVPC(ctx, c, found[0])
}

func describeVPC(ctx context.Context, c *clients, v ec2types.Vpc) (contract.VPC, error) {
	out := contract.VPC{ID: awssdk.ToString(v.VpcId), CIDR: awssdk.ToString(v.CidrBlock)}
	in := []ec2types.Filter{filter("vpc-id", out.ID)}
	tables := ec2.NewDescribeRouteTablesPaginator(c.ec2, &ec2.DescribeRouteTablesInput{Filters: in})
	for tables.HasMorePages() {
		page, err := tables.NextPage(ctx)
		if err != nil {
			return out, faults.FromAWS(err, "route tables of VPC "+out.ID)
		}
		for _, t := range page.RouteTables {
			out.RouteTableIDs = append(out.RouteTableIDs, awssdk.ToString(t.RouteTableId))
		}
	}
	zones := map[string]bool{}
	subnets := ec2.NewDescribeSubnetsPaginator(c.ec2, &ec2.DescribeSubnetsInput{Filters: in})
	for subnets.HasMorePages() {
		page, err := subnets.NextPage(ctx)
		if err != nil {
			return out, faults.FromAWS(err, "subnets of VPC "+out.ID)
		}
		for _, s := range page.Subnets {
			zones[awssdk.ToString(s.AvailabilityZone)] = true
		}
	}
	slices.Sort(out.RouteTableIDs)
	out.Zones = slices.Sorted(maps.Keys(zones))
	return out, nil
}

// ListVPCDependents implements contract.AWS.ListVPCDependents: load balancers,
// endpoints, peerings, network interfaces and security groups in the Shoot's
// VPC. What Gardener removes by itself (subnets, gateways, routes) is left out.
func (a *Activities) ListVPCDependents(ctx context.Context, in contract.DiscoverVPCInput) (contract.Leftovers, error) {
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return contract.Leftovers{}, err
	}
	found, err := vpcs(ctx, c, in.TechnicalID)
	if err != nil {
		return contract.Leftovers{}, err
	}
	var left contract.Leftovers
	for _, v := range found {
		for _, list := range []func(context.Context, *clients, string, *contract.Leftovers) error{
			vpcLoadBalancers, vpcEndpoints, vpcPeerings, vpcInterfaces, vpcSecurityGroups,
		} {
			if err := list(ctx, c, awssdk.ToString(v.VpcId), &left); err != nil {
				return left, faults.FromAWS(err, "dependents of VPC "+awssdk.ToString(v.VpcId))
			}
		}
	}
	return left, nil
}

func add(left *contract.Leftovers, c *clients, kind, id, name string) {
	r := ledger(c, kind, id)
	r.Key = id
	if name != "" {
		r.Key = fmt.Sprintf("%s (%s)", id, name)
	}
	left.Resources = append(left.Resources, r)
}

func vpcLoadBalancers(ctx context.Context, c *clients, vpc string, left *contract.Leftovers) error {
	all, err := loadBalancers(ctx, c.elb)
	for _, lb := range all {
		if awssdk.ToString(lb.VpcId) == vpc {
			add(left, c, typeLB, awssdk.ToString(lb.LoadBalancerArn), awssdk.ToString(lb.LoadBalancerName))
		}
	}
	return err
}

func vpcEndpoints(ctx context.Context, c *clients, vpc string, left *contract.Leftovers) error {
	pages := ec2.NewDescribeVpcEndpointsPaginator(c.ec2, &ec2.DescribeVpcEndpointsInput{Filters: []ec2types.Filter{filter("vpc-id", vpc)}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, e := range page.VpcEndpoints {
			if e.VpcEndpointType != ec2types.VpcEndpointTypeGateway { // Gardener's own
				add(left, c, "EC2::VPCEndpoint", awssdk.ToString(e.VpcEndpointId), awssdk.ToString(e.ServiceName))
			}
		}
	}
	return nil
}

func vpcPeerings(ctx context.Context, c *clients, vpc string, left *contract.Leftovers) error {
	for _, side := range []string{"requester-vpc-info.vpc-id", "accepter-vpc-info.vpc-id"} {
		pages := ec2.NewDescribeVpcPeeringConnectionsPaginator(c.ec2, &ec2.DescribeVpcPeeringConnectionsInput{
			Filters: []ec2types.Filter{filter(side, vpc), filter("status-code", "pending-acceptance", "provisioning", "active")},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, p := range page.VpcPeeringConnections {
				add(left, c, "EC2::VPCPeeringConnection", awssdk.ToString(p.VpcPeeringConnectionId), "")
			}
		}
	}
	return nil
}

func vpcInterfaces(ctx context.Context, c *clients, vpc string, left *contract.Leftovers) error {
	pages := ec2.NewDescribeNetworkInterfacesPaginator(c.ec2, &ec2.DescribeNetworkInterfacesInput{Filters: []ec2types.Filter{filter("vpc-id", vpc)}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, n := range page.NetworkInterfaces {
			if n.InterfaceType != ec2types.NetworkInterfaceTypeNatGateway {
				add(left, c, "EC2::NetworkInterface", awssdk.ToString(n.NetworkInterfaceId), awssdk.ToString(n.Description))
			}
		}
	}
	return nil
}

func vpcSecurityGroups(ctx context.Context, c *clients, vpc string, left *contract.Leftovers) error {
	pages := ec2.NewDescribeSecurityGroupsPaginator(c.ec2, &ec2.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{filter("vpc-id", vpc)}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, g := range page.SecurityGroups {
			gardeners := slices.ContainsFunc(g.Tags, func(t ec2types.Tag) bool { return strings.HasPrefix(awssdk.ToString(t.Key), clusterTag) })
			if awssdk.ToString(g.GroupName) != "default" && !gardeners {
				add(left, c, "EC2::SecurityGroup", awssdk.ToString(g.GroupId), awssdk.ToString(g.GroupName))
			}
		}
	}
	return nil
}
