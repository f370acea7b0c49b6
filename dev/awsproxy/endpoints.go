package awsproxy

import (
	"context"
	"encoding/xml"
	"net/http"
	"strings"
	"time"
)

// serviceNamed finds a service by its name, for a consumer who may see it.
func (l *privateLink) serviceNamed(r *request, name string) *endpointService {
	for _, s := range l.all {
		if s.name() != name || !s.deleted.IsZero() {
			continue
		}
		if s.account == r.account || s.permissions["*"] != "" {
			return s
		}
		for principal := range s.permissions {
			if strings.Contains(principal, "::"+r.account+":") {
				return s
			}
		}
	}
	return nil
}

// createEndpoint lets moto make the endpoint and, for one of our services,
// keeps its connection.
func createEndpoint(p *Proxy, ctx context.Context, r *request) *response {
	name := r.form.Get("ServiceName")
	if !strings.Contains(name, ".vpce-svc-") {
		return p.moto(ctx, r)
	}
	s := p.link.serviceNamed(r, name)
	if s == nil {
		return r.fail(http.StatusBadRequest, "InvalidServiceName", "The Vpc Endpoint Service '%s' does not exist", name)
	}
	res := p.moto(ctx, r)
	var made struct {
		ID string `xml:"vpcEndpoint>vpcEndpointId"`
	}
	if !res.ok() || xml.Unmarshal(res.body, &made) != nil || made.ID == "" {
		return res
	}
	c := &connection{
		endpoint: made.ID, connection: "vpce-con-" + hexID(17), service: s.id, owner: r.account, region: r.region,
		state: stateAvailable, created: time.Now(),
	}
	if s.acceptance {
		c.state = statePendingAcceptance
	}
	p.link.connections[made.ID] = c
	return p.link.patchStates(res)
}

func describeEndpoints(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if !res.ok() {
		return res
	}
	return p.link.patchStates(res)
}

// patchStates writes the state of each connection into moto's answer, where
// <state> follows <vpcEndpointId>.
func (l *privateLink) patchStates(res *response) *response {
	body := string(res.body)
	for id, c := range l.connections {
		at := strings.Index(body, ">"+id+"<")
		if at < 0 {
			continue
		}
		from := strings.Index(body[at:], "<state>")
		to := strings.Index(body[at:], "</state>")
		if from >= 0 && to > from {
			body = body[:at+from+len("<state>")] + c.state + body[at+to:]
		}
	}
	return res.setBody([]byte(body))
}

func deleteEndpoints(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if !res.ok() {
		return res
	}
	for _, id := range r.list("VpcEndpointId") {
		delete(p.link.connections, id)
		p.forgetTokens(id)
	}
	return res
}

// describeConnections shows the provider's side.
func describeConnections(p *Proxy, _ context.Context, r *request) *response {
	var list []connectionXML
	for _, c := range p.link.connections {
		s := p.link.service(r, c.service)
		if s == nil {
			continue
		}
		fits := true
		for name, values := range r.filters() {
			subject, known := map[string]string{
				"service-id": c.service, "vpc-endpoint-owner": c.owner, "vpc-endpoint-region": c.region,
				"vpc-endpoint-state": c.state, "vpc-endpoint-id": c.endpoint, "ip-address-type": "ipv4",
			}[name]
			if !known {
				return r.fail(http.StatusBadRequest, "InvalidParameterValue", "The filter '%s' is invalid", name)
			}
			fits = fits && matchesAny(values, subject)
		}
		if fits {
			list = append(list, c.xml())
		}
	}
	return r.render(struct {
		Connections []connectionXML `xml:"vpcEndpointConnectionSet>item"`
	}{list})
}

func acceptConnections(p *Proxy, _ context.Context, r *request) *response {
	return p.decide(r, stateAvailable, statePendingAcceptance)
}

func rejectConnections(p *Proxy, _ context.Context, r *request) *response {
	return p.decide(r, stateRejected, statePendingAcceptance, stateAvailable)
}

// decide moves connections to a state, from one of the given states only.
func (p *Proxy) decide(r *request, to string, from ...string) *response {
	id := r.form.Get("ServiceId")
	if p.link.service(r, id) == nil {
		return noSuchService(r, id)
	}
	var failed []unsuccessful
	for _, endpoint := range r.list("VpcEndpointId") {
		c := p.link.connections[endpoint]
		switch {
		case c == nil || c.service != id:
			failed = append(failed, unsuccess(endpoint, "InvalidVpcEndpointId.NotFound", "The Vpc Endpoint Id '"+endpoint+"' does not exist"))
		case c.state != to && !matchesAny(from, c.state):
			failed = append(failed, unsuccess(endpoint, "InvalidState", "The Vpc Endpoint '"+endpoint+"' is "+c.state))
		default:
			c.state = to
		}
	}
	return r.render(struct {
		Failed []unsuccessful `xml:"unsuccessful>item"`
	}{failed})
}
