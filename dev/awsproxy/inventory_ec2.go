package awsproxy

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// inspector lists one account and region.
type inspector struct {
	cfg             aws.Config
	account, region string
	proxy           *Proxy
}

// lister lists one kind.
type lister func(ctx context.Context) ([]control.Resource, error)

// list runs a describe call that needs no pages in the emulator and makes a
// resource of each item.
func list[Out, Item any](call func(context.Context) (Out, error), items func(Out) []Item, make func(Item) control.Resource) lister {
	return func(ctx context.Context) ([]control.Resource, error) {
		out, err := call(ctx)
		if err != nil {
			return nil, err
		}
		var found []control.Resource
		for _, item := range items(out) {
			if r := make(item); r.ID != "" {
				found = append(found, r)
			}
		}
		return found, nil
	}
}

func ec2Tags(tags []types.Tag) map[string]string {
	found := map[string]string{}
	for _, t := range tags {
		found[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return found
}

// regional lists what belongs to a region, in the order of creation.
func (in inspector) regional() []lister {
	return append(append(in.network(), in.gateways()...), in.balancers, in.targetGroups, in.keys, in.aliases, in.endpointServices)
}

func (in inspector) network() []lister {
	c := ec2.NewFromConfig(in.cfg)
	return []lister{
		list(func(ctx context.Context) (*ec2.DescribeVpcsOutput, error) {
			return c.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
		},
			func(o *ec2.DescribeVpcsOutput) []types.Vpc { return o.Vpcs },
			func(v types.Vpc) control.Resource {
				return in.resource("ec2/vpc", aws.ToString(v.VpcId), "", string(v.State), ec2Tags(v.Tags))
			}),
		list(func(ctx context.Context) (*ec2.DescribeSubnetsOutput, error) {
			return c.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
		},
			func(o *ec2.DescribeSubnetsOutput) []types.Subnet { return o.Subnets },
			func(s types.Subnet) control.Resource {
				return in.resource("ec2/subnet", aws.ToString(s.SubnetId), "", string(s.State), ec2Tags(s.Tags))
			}),
		list(func(ctx context.Context) (*ec2.DescribeSecurityGroupsOutput, error) {
			return c.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{})
		},
			func(o *ec2.DescribeSecurityGroupsOutput) []types.SecurityGroup { return o.SecurityGroups },
			func(g types.SecurityGroup) control.Resource {
				return in.resource("ec2/security-group", aws.ToString(g.GroupId), aws.ToString(g.GroupName), "", ec2Tags(g.Tags))
			}),
		list(func(ctx context.Context) (*ec2.DescribeRouteTablesOutput, error) {
			return c.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{})
		},
			func(o *ec2.DescribeRouteTablesOutput) []types.RouteTable { return o.RouteTables },
			func(t types.RouteTable) control.Resource {
				return in.resource("ec2/route-table", aws.ToString(t.RouteTableId), "", "", ec2Tags(t.Tags))
			}),
		list(func(ctx context.Context) (*ec2.DescribeVolumesOutput, error) {
			return c.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{})
		},
			func(o *ec2.DescribeVolumesOutput) []types.Volume { return o.Volumes },
			func(v types.Volume) control.Resource {
				tags := ec2Tags(v.Tags)
				return in.resource("ec2/volume", aws.ToString(v.VolumeId), tags["CSIVolumeName"], string(v.State), tags)
			}),
		list(func(ctx context.Context) (*ec2.DescribeKeyPairsOutput, error) {
			return c.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{})
		},
			func(o *ec2.DescribeKeyPairsOutput) []types.KeyPairInfo { return o.KeyPairs },
			func(k types.KeyPairInfo) control.Resource {
				return in.resource("ec2/key-pair", aws.ToString(k.KeyPairId), aws.ToString(k.KeyName), "", ec2Tags(k.Tags))
			}),
	}
}

func (in inspector) gateways() []lister {
	c := ec2.NewFromConfig(in.cfg)
	return []lister{
		list(func(ctx context.Context) (*ec2.DescribeInternetGatewaysOutput, error) {
			return c.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{})
		},
			func(o *ec2.DescribeInternetGatewaysOutput) []types.InternetGateway { return o.InternetGateways },
			func(g types.InternetGateway) control.Resource {
				return in.resource("ec2/internet-gateway", aws.ToString(g.InternetGatewayId), "", "", ec2Tags(g.Tags))
			}),
		list(func(ctx context.Context) (*ec2.DescribeNatGatewaysOutput, error) {
			return c.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{})
		},
			func(o *ec2.DescribeNatGatewaysOutput) []types.NatGateway { return o.NatGateways },
			func(g types.NatGateway) control.Resource {
				if g.State == types.NatGatewayStateDeleted {
					return control.Resource{}
				}
				return in.resource("ec2/nat-gateway", aws.ToString(g.NatGatewayId), "", string(g.State), ec2Tags(g.Tags))
			}),
		list(func(ctx context.Context) (*ec2.DescribeAddressesOutput, error) {
			return c.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{})
		},
			func(o *ec2.DescribeAddressesOutput) []types.Address { return o.Addresses },
			func(a types.Address) control.Resource {
				return in.resource("ec2/elastic-ip", aws.ToString(a.AllocationId), aws.ToString(a.PublicIp), "", ec2Tags(a.Tags))
			}),
		list(func(ctx context.Context) (*ec2.DescribeVpcEndpointsOutput, error) {
			return c.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{})
		},
			func(o *ec2.DescribeVpcEndpointsOutput) []types.VpcEndpoint { return o.VpcEndpoints },
			func(e types.VpcEndpoint) control.Resource {
				return in.resource("ec2/vpc-endpoint", aws.ToString(e.VpcEndpointId), "", string(e.State), ec2Tags(e.Tags))
			}),
	}
}

func (in inspector) endpointServices(ctx context.Context) ([]control.Resource, error) {
	var found []control.Resource
	c := ec2.NewFromConfig(in.cfg)
	out, err := c.DescribeVpcEndpointServiceConfigurations(ctx, &ec2.DescribeVpcEndpointServiceConfigurationsInput{})
	if err != nil {
		return nil, err
	}
	for _, s := range out.ServiceConfigurations {
		found = append(found, in.resource("ec2/vpc-endpoint-service", aws.ToString(s.ServiceId), "", string(s.ServiceState), ec2Tags(s.Tags)))
	}
	return found, nil
}

func (in inspector) balancers(ctx context.Context) ([]control.Resource, error) {
	c := elb.NewFromConfig(in.cfg)
	var found []control.Resource
	pages := elb.NewDescribeLoadBalancersPaginator(c, &elb.DescribeLoadBalancersInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, lb := range page.LoadBalancers {
			tags, err := elbTags(ctx, c, aws.ToString(lb.LoadBalancerArn))
			if err != nil {
				return nil, err
			}
			found = append(found, in.resource("elasticloadbalancing/loadbalancer", aws.ToString(lb.LoadBalancerArn),
				aws.ToString(lb.LoadBalancerName), string(lb.State.Code), tags))
		}
	}
	return found, nil
}

func (in inspector) targetGroups(ctx context.Context) ([]control.Resource, error) {
	c := elb.NewFromConfig(in.cfg)
	var found []control.Resource
	pages := elb.NewDescribeTargetGroupsPaginator(c, &elb.DescribeTargetGroupsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, group := range page.TargetGroups {
			tags, err := elbTags(ctx, c, aws.ToString(group.TargetGroupArn))
			if err != nil {
				return nil, err
			}
			found = append(found, in.resource("elasticloadbalancing/targetgroup", aws.ToString(group.TargetGroupArn),
				aws.ToString(group.TargetGroupName), "", tags))
		}
	}
	return found, nil
}

func elbTags(ctx context.Context, c *elb.Client, arn string) (map[string]string, error) {
	out, err := c.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: []string{arn}})
	if err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, d := range out.TagDescriptions {
		for _, t := range d.Tags {
			tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
		}
	}
	return tags, nil
}
