package awsproxy

import (
	"bytes"
	"context"
	"encoding/xml"
	"net/url"
	"strings"
)

// createTags tags endpoint services here and everything else in moto.
func createTags(p *Proxy, ctx context.Context, r *request) *response {
	return p.splitTags(ctx, r, func(s *endpointService, key, value string) { s.tags[key] = value })
}

// deleteTags removes tags; one that names a value only if it has that value.
func deleteTags(p *Proxy, ctx context.Context, r *request) *response {
	return p.splitTags(ctx, r, func(s *endpointService, key, value string) {
		if value == "" || s.tags[key] == value {
			delete(s.tags, key)
		}
	})
}

// splitTags applies change to the endpoint services among ResourceId.N and
// sends the rest to moto.
func (p *Proxy) splitTags(ctx context.Context, r *request, change func(s *endpointService, key, value string)) *response {
	var ours []*endpointService
	var others []string
	for _, id := range r.list("ResourceId") {
		if !strings.HasPrefix(id, "vpce-svc-") {
			others = append(others, id)
			continue
		}
		s := p.link.service(r, id)
		if s == nil {
			return noSuchService(r, id)
		}
		ours = append(ours, s)
	}
	if len(ours) == 0 {
		return p.moto(ctx, r)
	}
	res := r.render(struct {
		Return bool `xml:"return"`
	}{true})
	if len(others) > 0 {
		params := url.Values{}
		for name, values := range r.form {
			if !strings.HasPrefix(name, "ResourceId.") && name != "Action" && name != "Version" {
				params[name] = values
			}
		}
		for i, id := range others {
			params.Set("ResourceId."+itoa(i+1), id)
		}
		if res = p.query(ctx, r, serviceEC2, r.operation, params); !res.ok() {
			return res
		}
	}
	for _, s := range ours {
		for i := 1; r.form.Has("Tag." + itoa(i) + ".Key"); i++ {
			change(s, r.form.Get("Tag."+itoa(i)+".Key"), r.form.Get("Tag."+itoa(i)+".Value"))
		}
	}
	return res
}

// describeTags appends the tags of endpoint services to moto's answer.
func describeTags(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if !res.ok() || r.form.Get("NextToken") != "" {
		return res
	}
	type item struct {
		XMLName      xml.Name `xml:"item"`
		ResourceID   string   `xml:"resourceId"`
		ResourceType string   `xml:"resourceType"`
		tag
	}
	var extra bytes.Buffer
	for _, s := range p.link.services(r) {
		for key, value := range s.tags {
			if !tagItemMatches(r.filters(), s, key, value) {
				continue
			}
			text, err := xml.Marshal(item{ResourceID: s.id, ResourceType: "vpc-endpoint-service", tag: tag{key, value}})
			if err == nil {
				extra.Write(text)
			}
		}
	}
	body := string(res.body)
	body = strings.Replace(body, "<tagSet/>", "<tagSet></tagSet>", 1)
	return res.setBody([]byte(strings.Replace(body, "</tagSet>", extra.String()+"</tagSet>", 1)))
}

func tagItemMatches(filters map[string][]string, s *endpointService, key, value string) bool {
	for name, values := range filters {
		subject := ""
		switch {
		case name == "key":
			subject = key
		case name == "value":
			subject = value
		case name == "resource-id":
			subject = s.id
		case name == "resource-type":
			subject = "vpc-endpoint-service"
		case strings.HasPrefix(name, "tag:") || name == "tag-key":
			if !tagsMatch(name, values, map[string]string{key: value}) {
				return false
			}
			continue
		}
		if !matchesAny(values, subject) {
			return false
		}
	}
	return true
}
