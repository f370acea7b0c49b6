package awsproxy

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

func itoa(i int) string { return strconv.Itoa(i) }

// The parts of EC2's answers that dependency checks look at.
type (
	securityGroups struct {
		Groups []struct {
			ID    string `xml:"groupId"`
			Name  string `xml:"groupName"`
			Peers []struct {
				ID string `xml:"groupId"`
			} `xml:"ipPermissions>item>groups>item"`
			PeersOut []struct {
				ID string `xml:"groupId"`
			} `xml:"ipPermissionsEgress>item>groups>item"`
		} `xml:"securityGroupInfo>item"`
	}
	internetGateways struct {
		IDs []string `xml:"internetGatewaySet>item>internetGatewayId"`
	}
	natGateways struct {
		Gateways []struct {
			ID        string   `xml:"natGatewayId"`
			State     string   `xml:"state"`
			SubnetID  string   `xml:"subnetId"`
			Addresses []string `xml:"natGatewayAddressSet>item>allocationId"`
		} `xml:"natGatewaySet>item"`
	}
	endpoints struct {
		Endpoints []struct {
			ID      string   `xml:"vpcEndpointId"`
			State   string   `xml:"state"`
			Subnets []string `xml:"subnetIdSet>item"`
		} `xml:"vpcEndpointSet>item"`
	}
	loadBalancers struct {
		Balancers []balancer `xml:"DescribeLoadBalancersResult>LoadBalancers>member"`
		Marker    string     `xml:"DescribeLoadBalancersResult>NextMarker"`
	}
)

// balancer is a load balancer as DescribeLoadBalancers shows it.
type balancer struct {
	ARN     string   `xml:"LoadBalancerArn"`
	Name    string   `xml:"LoadBalancerName"`
	Type    string   `xml:"Type"`
	Scheme  string   `xml:"Scheme"`
	VPCID   string   `xml:"VpcId"`
	Subnets []string `xml:"AvailabilityZones>member>SubnetId"`
	Zones   []string `xml:"AvailabilityZones>member>ZoneName"`
}

// liveNATs lists NAT gateways that still hold their address and interface.
func (p *Proxy) liveNATs(ctx context.Context, r *request, vpc string) natGateways {
	var all, live natGateways
	params := url.Values{}
	if vpc != "" {
		params = filter("vpc-id", vpc)
	}
	p.ask(ctx, r, serviceEC2, "DescribeNatGateways", params, &all)
	for _, gateway := range all.Gateways {
		if gateway.State != "deleted" && gateway.State != "failed" {
			live.Gateways = append(live.Gateways, gateway)
		}
	}
	return live
}

// balancers lists all load balancers of the caller's account and region.
func (p *Proxy) balancers(ctx context.Context, r *request) []balancer {
	var all []balancer
	params := url.Values{}
	for {
		var page loadBalancers
		p.ask(ctx, r, serviceELB, "DescribeLoadBalancers", params, &page)
		all = append(all, page.Balancers...)
		if page.Marker == "" {
			return all
		}
		params.Set("Marker", page.Marker)
	}
}

// deleteVPC adds the dependencies that moto does not see: an attached internet
// gateway, security groups but the default one, VPC endpoints.
func deleteVPC(p *Proxy, ctx context.Context, r *request) *response {
	vpc := r.form.Get("VpcId")
	var gateways internetGateways
	p.ask(ctx, r, serviceEC2, "DescribeInternetGateways", filter("attachment.vpc-id", vpc), &gateways)
	var groups securityGroups
	p.ask(ctx, r, serviceEC2, "DescribeSecurityGroups", filter("vpc-id", vpc), &groups)
	var ends endpoints
	p.ask(ctx, r, serviceEC2, "DescribeVpcEndpoints", filter("vpc-id", vpc), &ends)
	blocked := len(gateways.IDs) > 0
	for _, group := range groups.Groups {
		blocked = blocked || group.Name != "default"
	}
	for _, end := range ends.Endpoints {
		blocked = blocked || end.State != "deleted"
	}
	if blocked {
		return r.fail(http.StatusBadRequest, "DependencyViolation", "The vpc '%s' has dependencies and cannot be deleted.", vpc)
	}
	return p.moto(ctx, r)
}

// deleteSubnet refuses while a network interface of a load balancer, a NAT
// gateway or an endpoint is in the subnet.
func deleteSubnet(p *Proxy, ctx context.Context, r *request) *response {
	subnet := r.form.Get("SubnetId")
	blocked := false
	for _, lb := range p.balancers(ctx, r) {
		blocked = blocked || slices.Contains(lb.Subnets, subnet)
	}
	for _, gateway := range p.liveNATs(ctx, r, "").Gateways {
		blocked = blocked || gateway.SubnetID == subnet
	}
	var ends endpoints
	p.ask(ctx, r, serviceEC2, "DescribeVpcEndpoints", url.Values{}, &ends)
	for _, end := range ends.Endpoints {
		blocked = blocked || end.State != "deleted" && slices.Contains(end.Subnets, subnet)
	}
	if blocked {
		return r.fail(http.StatusBadRequest, "DependencyViolation", "The subnet '%s' has dependencies and cannot be deleted.", subnet)
	}
	return p.moto(ctx, r)
}

// deleteSecurityGroup refuses while a rule of another group refers to it.
func deleteSecurityGroup(p *Proxy, ctx context.Context, r *request) *response {
	id := r.form.Get("GroupId")
	var groups securityGroups
	p.ask(ctx, r, serviceEC2, "DescribeSecurityGroups", url.Values{}, &groups)
	for _, group := range groups.Groups {
		if group.ID == id {
			continue
		}
		for _, peer := range append(group.Peers, group.PeersOut...) {
			if peer.ID == id {
				return r.fail(http.StatusBadRequest, "DependencyViolation", "resource %s has a dependent object", id)
			}
		}
	}
	return p.moto(ctx, r)
}

// detachInternetGateway refuses while public addresses are mapped through it.
func detachInternetGateway(p *Proxy, ctx context.Context, r *request) *response {
	vpc := r.form.Get("VpcId")
	mapped := len(p.liveNATs(ctx, r, vpc).Gateways) > 0
	for _, lb := range p.balancers(ctx, r) {
		mapped = mapped || lb.VPCID == vpc && lb.Scheme == "internet-facing"
	}
	if mapped {
		return r.fail(http.StatusBadRequest, "DependencyViolation",
			"Network %s has some mapped public address(es). Please unmap those public address(es) before detaching the gateway.", vpc)
	}
	return p.moto(ctx, r)
}

// releaseAddress refuses while a NAT gateway uses the address.
func releaseAddress(p *Proxy, ctx context.Context, r *request) *response {
	id := r.form.Get("AllocationId")
	for _, gateway := range p.liveNATs(ctx, r, "").Gateways {
		if slices.Contains(gateway.Addresses, id) {
			return r.fail(http.StatusBadRequest, "InvalidIPAddress.InUse", "Address with allocation id %s is in use.", id)
		}
	}
	return p.moto(ctx, r)
}

func deleteNATGateway(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if res.ok() {
		p.forgetTokens(r.form.Get("NatGatewayId"))
	}
	return res
}

func deleteVolume(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if res.ok() {
		p.forgetTokens(r.form.Get("VolumeId"))
	}
	return res
}
