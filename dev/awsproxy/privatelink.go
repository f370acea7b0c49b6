package awsproxy

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// How long PrivateLink takes at the usual pace; minutes in AWS.
const (
	servicePending  = time.Second
	serviceDeleting = 500 * time.Millisecond
)

// privateLink is the state of VPC endpoint services, which moto has only by
// name. The proxy's lock guards it.
type privateLink struct {
	all         map[string]*endpointService
	connections map[string]*connection // by endpoint id
}

// endpointService is one VPC endpoint service configuration.
type endpointService struct {
	id, account, region string
	balancers, zones    []string
	acceptance          bool
	privateName         string
	tags                map[string]string
	permissions         map[string]string // principal -> permission id
	created             time.Time
	available           time.Time
	deleted             time.Time // zero while it lives
	gone                time.Time
}

// connection is an endpoint of a consumer at one of our services.
type connection struct {
	endpoint, connection, service string
	owner, region, state          string
	created                       time.Time
}

// States of a connection on the wire. AWS writes them in lower camel case,
// unlike the enumeration in its API model.
const (
	statePendingAcceptance = "pendingAcceptance"
	stateAvailable         = "available"
	stateRejected          = "rejected"
)

func newPrivateLink() *privateLink {
	return &privateLink{all: map[string]*endpointService{}, connections: map[string]*connection{}}
}

func (s *endpointService) name() string {
	return "com.amazonaws.vpce." + s.region + "." + s.id
}

func (s *endpointService) state(now time.Time) string {
	switch {
	case !s.deleted.IsZero():
		return "Deleting"
	case now.Before(s.available):
		return "Pending"
	}
	return "Available"
}

// service returns the caller's service, or nil when there is none.
func (l *privateLink) service(r *request, id string) *endpointService {
	s := l.all[id]
	if s == nil || s.account != r.account || s.region != r.region {
		return nil
	}
	if !s.gone.IsZero() && time.Now().After(s.gone) {
		delete(l.all, id)
		return nil
	}
	return s
}

// services lists the caller's services, oldest first.
func (l *privateLink) services(r *request) []*endpointService {
	var list []*endpointService
	for id := range maps.Clone(l.all) {
		if s := l.service(r, id); s != nil {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *endpointService) int { return a.created.Compare(b.created) })
	return list
}

// inUse reports whether a living service stands on the load balancer.
func (l *privateLink) inUse(arn string) bool {
	for _, s := range l.all {
		if s.deleted.IsZero() && slices.Contains(s.balancers, arn) {
			return true
		}
	}
	return false
}

// live lists a service's connections that keep it from being deleted.
func (l *privateLink) live(service string) []*connection {
	var list []*connection
	for _, c := range l.connections {
		if c.service == service && (c.state == stateAvailable || c.state == statePendingAcceptance) {
			list = append(list, c)
		}
	}
	return list
}

func noSuchService(r *request, id string) *response {
	return r.fail(http.StatusBadRequest, "InvalidVpcEndpointServiceId.NotFound", "The VpcEndpointService Id '%s' does not exist", id)
}

// createEndpointService needs network load balancers that exist.
func createEndpointService(p *Proxy, ctx context.Context, r *request) *response {
	arns := r.list("NetworkLoadBalancerArn")
	if len(arns) == 0 {
		return r.fail(http.StatusBadRequest, "MissingParameter", "The request must contain the parameter networkLoadBalancerArns or gatewayLoadBalancerArns")
	}
	byARN := map[string]balancer{}
	for _, lb := range p.balancers(ctx, r) {
		byARN[lb.ARN] = lb
	}
	now := time.Now()
	s := &endpointService{
		id: "vpce-svc-" + hexID(17), account: r.account, region: r.region, balancers: arns,
		acceptance: r.form.Get("AcceptanceRequired") != "false", privateName: r.form.Get("PrivateDnsName"),
		tags: r.tagSpecification("vpc-endpoint-service"), permissions: map[string]string{},
		created: now, available: now.Add(p.scaled(servicePending)),
	}
	for _, arn := range arns {
		lb, ok := byARN[arn]
		if !ok || lb.Type != "network" {
			return r.fail(http.StatusBadRequest, "InvalidParameter", "The network load balancer '%s' does not exist", arn)
		}
		for _, zone := range lb.Zones {
			if !slices.Contains(s.zones, zone) {
				s.zones = append(s.zones, zone)
			}
		}
	}
	slices.Sort(s.zones)
	p.link.all[s.id] = s
	return r.render(struct {
		Service serviceXML `xml:"serviceConfiguration"`
	}{s.xml(now)})
}

func describeEndpointServices(p *Proxy, _ context.Context, r *request) *response {
	list := p.link.services(r)
	if ids := r.list("ServiceId"); len(ids) > 0 {
		list = nil
		for _, id := range ids {
			s := p.link.service(r, id)
			if s == nil {
				return noSuchService(r, id)
			}
			list = append(list, s)
		}
	}
	now := time.Now()
	var found []serviceXML
	for _, s := range list {
		fits, unknown := s.matches(r.filters(), now)
		if unknown != "" {
			return r.fail(http.StatusBadRequest, "InvalidParameterValue", "The filter '%s' is invalid", unknown)
		}
		if fits {
			found = append(found, s.xml(now))
		}
	}
	return r.render(struct {
		Services []serviceXML `xml:"serviceConfigurationSet>item"`
	}{found})
}

// matches applies the documented filters; unknown names one that is not.
func (s *endpointService) matches(filters map[string][]string, now time.Time) (fits bool, unknown string) {
	for name, values := range filters {
		var subject string
		switch {
		case name == "service-id":
			subject = s.id
		case name == "service-name":
			subject = s.name()
		case name == "service-state":
			subject = s.state(now)
		case name == "supported-ip-address-types":
			subject = "ipv4"
		case name == "tag-key" || strings.HasPrefix(name, "tag:"):
			if !tagsMatch(name, values, s.tags) {
				return false, ""
			}
			continue
		default:
			return false, name
		}
		if !matchesAny(values, subject) {
			return false, ""
		}
	}
	return true, ""
}

func modifyEndpointService(p *Proxy, _ context.Context, r *request) *response {
	id := r.form.Get("ServiceId")
	s := p.link.service(r, id)
	if s == nil {
		return noSuchService(r, id)
	}
	if v := r.form.Get("AcceptanceRequired"); v != "" {
		s.acceptance = v == "true"
	}
	if v := r.form.Get("PrivateDnsName"); v != "" {
		s.privateName = v
	}
	if r.form.Get("RemovePrivateDnsName") == "true" {
		s.privateName = ""
	}
	for _, arn := range r.list("AddNetworkLoadBalancerArn") {
		if !slices.Contains(s.balancers, arn) {
			s.balancers = append(s.balancers, arn)
		}
	}
	for _, arn := range r.list("RemoveNetworkLoadBalancerArn") {
		s.balancers = slices.DeleteFunc(s.balancers, func(have string) bool { return have == arn })
	}
	return r.render(returned{true})
}

// deleteEndpointServices answers 200 also for what it did not delete.
func deleteEndpointServices(p *Proxy, _ context.Context, r *request) *response {
	var failed []unsuccessful
	now := time.Now()
	for _, id := range r.list("ServiceId") {
		s := p.link.service(r, id)
		switch {
		case s == nil || !s.deleted.IsZero():
			failed = append(failed, unsuccess(id, "InvalidVpcEndpointServiceId.NotFound", "The VpcEndpointService Id '"+id+"' does not exist"))
		case len(p.link.live(id)) > 0:
			failed = append(failed, unsuccess(id, "ExistingVpcEndpointConnections",
				"Service has existing active VPC Endpoint connections!"))
		default:
			s.deleted, s.gone = now, now.Add(p.scaled(serviceDeleting))
			p.forgetTokens(id)
		}
	}
	return r.render(struct {
		Failed []unsuccessful `xml:"unsuccessful>item"`
	}{failed})
}

var principalForm = regexp.MustCompile(`^(\*|arn:aws[a-z-]*:iam::\d{12}:(root|(role|user)/.+))$`)

// modifyPermissions adds and removes principals, all or nothing.
func modifyPermissions(p *Proxy, _ context.Context, r *request) *response {
	id := r.form.Get("ServiceId")
	s := p.link.service(r, id)
	if s == nil {
		return noSuchService(r, id)
	}
	add, remove := r.list("AddAllowedPrincipals"), r.list("RemoveAllowedPrincipals")
	for _, principal := range slices.Concat(add, remove) {
		if !principalForm.MatchString(principal) {
			return r.fail(http.StatusBadRequest, "InvalidPrincipal", "The principal '%s' is not valid", principal)
		}
	}
	var added []principalXML
	for _, principal := range add {
		if s.permissions[principal] == "" {
			s.permissions[principal] = "vpce-svc-perm-" + hexID(17)
			added = append(added, s.principal(principal))
		}
	}
	for _, principal := range remove {
		delete(s.permissions, principal)
	}
	return r.render(struct {
		Added  []principalXML `xml:"addedPrincipalSet>item"`
		Return bool           `xml:"return"`
	}{added, true})
}

func describePermissions(p *Proxy, _ context.Context, r *request) *response {
	id := r.form.Get("ServiceId")
	s := p.link.service(r, id)
	if s == nil {
		return noSuchService(r, id)
	}
	wanted, restricted := r.filters()["principal"]
	var list []principalXML
	for _, principal := range slices.Sorted(maps.Keys(s.permissions)) {
		if !restricted || matchesAny(wanted, principal) {
			list = append(list, s.principal(principal))
		}
	}
	return r.render(struct {
		Principals []principalXML `xml:"allowedPrincipals>item"`
	}{list})
}

// tagSpecification reads the tags of TagSpecification.N for a resource type.
func (r *request) tagSpecification(resourceType string) map[string]string {
	tags := map[string]string{}
	for i := 1; r.form.Has("TagSpecification." + itoa(i) + ".ResourceType"); i++ {
		prefix := "TagSpecification." + itoa(i)
		if r.form.Get(prefix+".ResourceType") != resourceType {
			continue
		}
		for j := 1; r.form.Has(prefix + ".Tag." + itoa(j) + ".Key"); j++ {
			tags[r.form.Get(prefix+".Tag."+itoa(j)+".Key")] = r.form.Get(prefix + ".Tag." + itoa(j) + ".Value")
		}
	}
	return tags
}

// hexID makes the random part of an EC2 id.
func hexID(length int) string {
	return strings.ReplaceAll(uuid.NewString(), "-", "")[:length]
}
