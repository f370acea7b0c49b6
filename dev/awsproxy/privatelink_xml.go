package awsproxy

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Wire forms of PrivateLink, by the location names of EC2's API model.
type (
	serviceXML struct {
		Types       []string `xml:"serviceType>item>serviceType"`
		ID          string   `xml:"serviceId"`
		Name        string   `xml:"serviceName"`
		State       string   `xml:"serviceState"`
		Zones       []string `xml:"availabilityZoneSet>item"`
		Acceptance  bool     `xml:"acceptanceRequired"`
		Manages     bool     `xml:"managesVpcEndpoints"`
		Balancers   []string `xml:"networkLoadBalancerArnSet>item"`
		Addresses   []string `xml:"supportedIpAddressTypeSet>item"`
		BaseNames   []string `xml:"baseEndpointDnsNameSet>item"`
		PrivateName string   `xml:"privateDnsName,omitempty"`
		Tags        []tag    `xml:"tagSet>item"`
	}
	principalXML struct {
		Principal  string `xml:"principal"`
		Type       string `xml:"principalType"`
		ServiceID  string `xml:"serviceId"`
		Permission string `xml:"servicePermissionId"`
	}
	connectionXML struct {
		ServiceID  string `xml:"serviceId"`
		EndpointID string `xml:"vpcEndpointId"`
		Owner      string `xml:"vpcEndpointOwner"`
		Region     string `xml:"vpcEndpointRegion"`
		State      string `xml:"vpcEndpointState"`
		Created    string `xml:"creationTimestamp"`
		Addresses  string `xml:"ipAddressType"`
		Connection string `xml:"vpcEndpointConnectionId"`
	}
	unsuccessful struct {
		ResourceID string `xml:"resourceId"`
		Code       string `xml:"error>code"`
		Message    string `xml:"error>message"`
	}
	returned struct {
		Return bool `xml:"return"`
	}
)

func unsuccess(id, code, message string) unsuccessful { return unsuccessful{id, code, message} }

func (s *endpointService) xml(now time.Time) serviceXML {
	x := serviceXML{
		Types: []string{"Interface"}, ID: s.id, Name: s.name(), State: s.state(now), Zones: s.zones,
		Acceptance: s.acceptance, Balancers: s.balancers, Addresses: []string{"ipv4"},
		BaseNames: []string{s.id + "." + s.region + ".vpce.amazonaws.com"}, PrivateName: s.privateName,
	}
	for _, key := range slices.Sorted(maps.Keys(s.tags)) {
		x.Tags = append(x.Tags, tag{key, s.tags[key]})
	}
	return x
}

func (s *endpointService) principal(arn string) principalXML {
	kind := "Account"
	switch {
	case arn == "*":
		kind = "All"
	case !strings.HasSuffix(arn, ":root"):
		kind = "Role"
		if strings.Contains(arn, ":user/") {
			kind = "User"
		}
	}
	return principalXML{arn, kind, s.id, s.permissions[arn]}
}

func (c *connection) xml() connectionXML {
	return connectionXML{
		ServiceID: c.service, EndpointID: c.endpoint, Owner: c.owner, Region: c.region, State: c.state,
		Created: c.created.UTC().Format(time.RFC3339), Addresses: "ipv4", Connection: c.connection,
	}
}
