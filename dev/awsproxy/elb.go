package awsproxy

import (
	"context"
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// provisioning is how long a load balancer takes to become active; one to three
// minutes in AWS.
const provisioning = 2 * time.Second

// elbARN finds what moto always writes as /app/: ids of load balancers, their
// listeners and rules.
var elbARN = regexp.MustCompile(`(loadbalancer|listener|listener-rule)/app/([^/<]+)/([0-9a-f]+)`)

// toMoto turns the ARNs of network load balancers into those that moto knows.
func toMoto(body []byte) []byte {
	text := strings.NewReplacer("loadbalancer%2Fnet%2F", "loadbalancer%2Fapp%2F", "listener%2Fnet%2F", "listener%2Fapp%2F",
		"listener-rule%2Fnet%2F", "listener-rule%2Fapp%2F").Replace(string(body))
	return []byte(text)
}

// networkARN and albName find what belongs to one network load balancer.
var (
	networkARN = regexp.MustCompile(`:loadbalancer/net/([^/<]+)/([0-9a-f]+)<`)
	albName    = regexp.MustCompile(`<DNSName>([^<]+)-1\.([a-z0-9-]+)\.elb\.amazonaws\.com</DNSName>`)
)

// fromMoto writes /net/ into the ARNs of network load balancers, and gives them
// the form of their host names: <name>-<id>.elb.<region>.amazonaws.com.
func (p *Proxy) fromMoto(body []byte) []byte {
	body = elbARN.ReplaceAllFunc(body, func(found []byte) []byte {
		m := elbARN.FindSubmatch(found)
		if _, network := p.network[string(m[3])]; !network {
			return found
		}
		return []byte(string(m[1]) + "/net/" + string(m[2]) + "/" + string(m[3]))
	})
	ids := map[string]string{}
	for _, m := range networkARN.FindAllSubmatch(body, -1) {
		ids[string(m[1])] = string(m[2])
	}
	return albName.ReplaceAllFunc(body, func(found []byte) []byte {
		m := albName.FindSubmatch(found)
		id, network := ids[string(m[1])]
		if !network {
			return found
		}
		return []byte("<DNSName>" + string(m[1]) + "-" + id + ".elb." + string(m[2]) + ".amazonaws.com</DNSName>")
	})
}

// createLoadBalancer gives an existing one of the same name and settings again,
// as AWS does, and refuses the same name with others.
func createLoadBalancer(p *Proxy, ctx context.Context, r *request) *response {
	name := r.form.Get("Name")
	existing := p.query(ctx, r, serviceELB, "DescribeLoadBalancers", url.Values{"Names.member.1": {name}})
	var page loadBalancers
	if existing.ok() && xml.Unmarshal(existing.body, &page) == nil && len(page.Balancers) > 0 {
		if !sameSettings(r, page.Balancers[0]) {
			return r.fail(http.StatusBadRequest, "DuplicateLoadBalancerName",
				"A load balancer with the same name '%s' exists, but with different settings", name)
		}
		p.stillProvisioning(existing)
		text := strings.ReplaceAll(string(existing.body), "DescribeLoadBalancers", "CreateLoadBalancer")
		return existing.setBody([]byte(text))
	}
	res := p.moto(ctx, r)
	if !res.ok() {
		return res
	}
	if m := elbARN.FindSubmatch(res.body); m != nil {
		p.balancer[string(m[3])] = time.Now().Add(p.scaled(provisioning))
		if r.form.Get("Type") == "network" {
			p.network[string(m[3])] = struct{}{}
		}
	}
	return res.setBody(p.fromMoto(res.body))
}

// sameSettings compares type, scheme and subnets.
func sameSettings(r *request, lb balancer) bool {
	or := func(value, usual string) string {
		if value == "" {
			return usual
		}
		return value
	}
	want := r.list("Subnets")
	for i := 1; r.form.Has("SubnetMappings.member." + itoa(i) + ".SubnetId"); i++ {
		want = append(want, r.form.Get("SubnetMappings.member."+itoa(i)+".SubnetId"))
	}
	slices.Sort(want)
	have := slices.Sorted(slices.Values(lb.Subnets))
	return slices.Equal(want, have) && or(r.form.Get("Type"), "application") == lb.Type &&
		or(r.form.Get("Scheme"), "internet-facing") == lb.Scheme
}

func describeLoadBalancers(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if res.ok() {
		p.stillProvisioning(res)
	}
	return res
}

// stillProvisioning holds back the state "active" that moto gives at the first
// look.
func (p *Proxy) stillProvisioning(res *response) {
	now, body := time.Now(), string(res.body)
	for id, active := range p.balancer {
		if now.After(active) {
			delete(p.balancer, id)
			continue
		}
		at := strings.Index(body, "/"+id+"</LoadBalancerArn>")
		if at < 0 {
			continue
		}
		from := strings.Index(body[at:], "<Code>active</Code>")
		if from >= 0 {
			body = body[:at+from] + "<Code>provisioning</Code>" + body[at+from+len("<Code>active</Code>"):]
		}
	}
	res.setBody([]byte(body))
}

func deleteLoadBalancer(p *Proxy, ctx context.Context, r *request) *response {
	arn := r.form.Get("LoadBalancerArn")
	if p.link.inUse(arn) {
		return r.fail(http.StatusBadRequest, "ResourceInUse",
			"Load balancer '%s' cannot be deleted because it is currently associated with another service", arn)
	}
	return p.moto(ctx, r)
}

// createListener gives an identical listener again and refuses another one on
// the same port.
func createListener(p *Proxy, ctx context.Context, r *request) *response {
	arn := r.form.Get("LoadBalancerArn")
	existing := p.query(ctx, r, serviceELB, "DescribeListeners", url.Values{"LoadBalancerArn": {arn}})
	var page struct {
		Listeners []struct {
			ARN      string   `xml:"ListenerArn"`
			Port     string   `xml:"Port"`
			Protocol string   `xml:"Protocol"`
			Targets  []string `xml:"DefaultActions>member>TargetGroupArn"`
		} `xml:"DescribeListenersResult>Listeners>member"`
	}
	if !existing.ok() || xml.Unmarshal(existing.body, &page) != nil {
		return p.moto(ctx, r)
	}
	for _, l := range page.Listeners {
		if l.Port != r.form.Get("Port") {
			continue
		}
		if l.Protocol != r.form.Get("Protocol") || !slices.Contains(l.Targets, r.form.Get("DefaultActions.member.1.TargetGroupArn")) {
			return r.fail(http.StatusBadRequest, "DuplicateListener",
				"A listener already exists on this port for this load balancer '%s'", arn)
		}
		same := p.query(ctx, r, serviceELB, "DescribeListeners", url.Values{"ListenerArns.member.1": {l.ARN}})
		return same.setBody([]byte(strings.ReplaceAll(string(same.body), "DescribeListeners", "CreateListener")))
	}
	return p.moto(ctx, r)
}
