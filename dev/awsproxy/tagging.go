package awsproxy

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
)

// serviceTagging is the Resource Groups Tagging API.
const serviceTagging = "tagging"

// taggedResource is an entry of the index of tags.
type taggedResource struct {
	ResourceARN string
	Tags        []struct{ Key, Value string }
}

// getResources gives network load balancers their ARNs, and adds OIDC
// providers, which moto's index lacks. AWS has them in us-east-1.
func getResources(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if !res.ok() {
		return res
	}
	res = res.setBody(p.fromMoto(res.body))
	var ask struct {
		ResourceTypeFilters []string
		PaginationToken     string
		TagFilters          []struct {
			Key    string
			Values []string
		}
	}
	if json.Unmarshal(r.body, &ask) != nil || !slices.Contains(ask.ResourceTypeFilters, "iam:oidc-provider") ||
		ask.PaginationToken != "" || r.region != "us-east-1" {
		return res
	}
	var answer struct {
		PaginationToken        string
		ResourceTagMappingList []taggedResource
	}
	if json.Unmarshal(res.body, &answer) != nil {
		return res
	}
	for _, provider := range p.oidcProviders(ctx, r) {
		matches := true
		for _, filter := range ask.TagFilters {
			matches = matches && slices.ContainsFunc(provider.Tags, func(t struct{ Key, Value string }) bool {
				return t.Key == filter.Key && (len(filter.Values) == 0 || slices.Contains(filter.Values, t.Value))
			})
		}
		if matches {
			answer.ResourceTagMappingList = append(answer.ResourceTagMappingList, provider)
		}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return res
	}
	return res.setBody(body)
}

// oidcProviders lists IAM's OIDC providers with their tags.
func (p *Proxy) oidcProviders(ctx context.Context, r *request) []taggedResource {
	var list struct {
		ARNs []string `xml:"ListOpenIDConnectProvidersResult>OpenIDConnectProviderList>member>Arn"`
	}
	p.ask(ctx, r, serviceIAM, "ListOpenIDConnectProviders", url.Values{}, &list)
	var all []taggedResource
	for _, arn := range list.ARNs {
		var tags struct {
			Tags []struct{ Key, Value string } `xml:"ListOpenIDConnectProviderTagsResult>Tags>member"`
		}
		p.ask(ctx, r, serviceIAM, "ListOpenIDConnectProviderTags", url.Values{"OpenIDConnectProviderArn": {arn}}, &tags)
		all = append(all, taggedResource{arn, tags.Tags})
	}
	return all
}
