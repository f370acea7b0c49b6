package awsproxy

import (
	"context"
	"encoding/xml"
	"net/url"
)

// accountOf asks moto's STS whose the access key is, once for each key.
func (p *Proxy) accountOf(ctx context.Context, r *request) string {
	if r.accessKey == "" {
		return DefaultAccount
	}
	p.mu.Lock()
	account, known := p.accounts[r.accessKey]
	p.mu.Unlock()
	if known {
		return account
	}
	res := p.query(ctx, r, serviceSTS, "GetCallerIdentity", url.Values{})
	var who struct {
		Account string `xml:"GetCallerIdentityResult>Account"`
	}
	if !res.ok() || xml.Unmarshal(res.body, &who) != nil || who.Account == "" {
		return DefaultAccount
	}
	p.mu.Lock()
	p.accounts[r.accessKey] = who.Account
	p.mu.Unlock()
	return who.Account
}
