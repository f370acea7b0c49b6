package awsproxy

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// spreading is how long a DNS change is PENDING; up to a minute in AWS.
const spreading = 500 * time.Millisecond

const route53Namespace = "https://route53.amazonaws.com/doc/2013-04-01/"

// zoneClaim remembers which zone a caller reference made.
type zoneClaim struct{ id string }

// createHostedZone enforces the caller reference and the VPC, and makes a zone
// with a VPC private, which moto does only when told.
func createHostedZone(p *Proxy, ctx context.Context, r *request) *response {
	var ask struct {
		CallerReference string
		VPC             *struct{ VPCRegion, VPCId string }
		Config          *struct{ PrivateZone string } `xml:"HostedZoneConfig"`
	}
	if xml.Unmarshal(r.body, &ask) != nil || ask.CallerReference == "" {
		return r.fail(http.StatusBadRequest, "InvalidInput", "The request is not a CreateHostedZoneRequest with a CallerReference")
	}
	claim := r.account + "/" + ask.CallerReference
	if _, taken := p.zones[claim]; taken {
		return r.fail(http.StatusConflict, "HostedZoneAlreadyExists",
			"A hosted zone has already been created with the specified caller reference.")
	}
	if ask.VPC != nil {
		there := *r
		there.region = ask.VPC.VPCRegion
		if !p.query(ctx, &there, serviceEC2, "DescribeVpcs", url.Values{"VpcId.1": {ask.VPC.VPCId}}).ok() {
			return r.fail(http.StatusBadRequest, "InvalidVPCId", "The VPC: %s with the region %s does not exist", ask.VPC.VPCId, ask.VPC.VPCRegion)
		}
		r.body = makePrivate(r.body, ask.Config != nil)
	}
	res := p.moto(ctx, r)
	var made struct {
		ID string `xml:"HostedZone>Id"`
	}
	if res.ok() && xml.Unmarshal(res.body, &made) == nil {
		p.zones[claim] = zoneClaim{id: strings.TrimPrefix(made.ID, "/hostedzone/")}
	}
	return p.pending(res)
}

var (
	privateZone = regexp.MustCompile(`<PrivateZone>[^<]*</PrivateZone>`)
	emptyConfig = regexp.MustCompile(`<HostedZoneConfig\s*/>`)
)

// makePrivate puts <PrivateZone>true</PrivateZone> into the request.
func makePrivate(body []byte, hasConfig bool) []byte {
	const flag = "<PrivateZone>true</PrivateZone>"
	text := privateZone.ReplaceAllString(string(body), "")
	text = emptyConfig.ReplaceAllString(text, "<HostedZoneConfig></HostedZoneConfig>")
	if hasConfig {
		return []byte(strings.Replace(text, "</HostedZoneConfig>", flag+"</HostedZoneConfig>", 1))
	}
	return []byte(strings.Replace(text, "</CreateHostedZoneRequest>",
		"<HostedZoneConfig>"+flag+"</HostedZoneConfig></CreateHostedZoneRequest>", 1))
}

// deleteHostedZone frees the caller reference.
func deleteHostedZone(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if res.ok() {
		for claim, zone := range p.zones {
			if zone.id == r.params["Id"] {
				delete(p.zones, claim)
			}
		}
	}
	return p.pending(res)
}

var changeInfo = regexp.MustCompile(`(?s)<Id>(/change/)?[A-Z0-9]+</Id>(\s*)<Status>[A-Z]+</Status>`)

// pending gives a change an id of its own and the state PENDING.
func (p *Proxy) pending(res *response) *response {
	if !res.ok() {
		return res
	}
	id := "C" + strings.ToUpper(hexID(20))
	now := time.Now()
	for old, due := range p.changes {
		if now.Sub(due) > time.Hour {
			delete(p.changes, old)
		}
	}
	p.changes[id] = now.Add(p.scaled(spreading))
	body := changeInfo.ReplaceAllString(string(res.body), "<Id>/change/"+id+"</Id>$2<Status>PENDING</Status>")
	// moto writes the time before the status in some answers.
	if !strings.Contains(body, "/change/"+id) {
		body = regexp.MustCompile(`/change/[A-Z0-9]+`).ReplaceAllString(body, "/change/"+id)
		body = strings.ReplaceAll(body, "<Status>INSYNC</Status>", "<Status>PENDING</Status>")
	}
	return res.setBody([]byte(body))
}

func trackedChange(p *Proxy, ctx context.Context, r *request) *response {
	return p.pending(p.moto(ctx, r))
}

func getChange(p *Proxy, _ context.Context, r *request) *response {
	id := r.params["Id"]
	due, ok := p.changes[id]
	if !ok {
		return r.fail(http.StatusNotFound, "NoSuchChange", "Could not find resource with ID: %s", id)
	}
	status := "INSYNC"
	if time.Now().Before(due) {
		status = "PENDING"
	}
	body := fmt.Sprintf(`%s<GetChangeResponse xmlns="%s"><ChangeInfo><Id>/change/%s</Id><Status>%s</Status><SubmittedAt>%s</SubmittedAt></ChangeInfo></GetChangeResponse>`,
		xml.Header, route53Namespace, id, status, due.UTC().Format(time.RFC3339))
	return newResponse(http.StatusOK, contentXML, []byte(body))
}

// recordSet is a resource record set as far as DELETE and CREATE compare it.
type recordSet struct {
	Name   string
	Type   string
	TTL    string
	Values []string `xml:"ResourceRecords>ResourceRecord>Value"`
}

func (s recordSet) same(o recordSet) bool {
	return s.named(o) && s.TTL == o.TTL && slices.Equal(s.sorted(), o.sorted())
}

func (s recordSet) named(o recordSet) bool {
	return s.Type == o.Type && strings.EqualFold(strings.TrimSuffix(s.Name, "."), strings.TrimSuffix(o.Name, "."))
}

func (s recordSet) sorted() []string { return slices.Sorted(slices.Values(s.Values)) }

// changeRecords checks the whole batch before moto gets it: in AWS a batch is
// all or nothing, in moto a bad change leaves those before it done.
func changeRecords(p *Proxy, ctx context.Context, r *request) *response {
	var batch struct {
		Changes []struct {
			Action string
			Set    recordSet `xml:"ResourceRecordSet"`
		} `xml:"ChangeBatch>Changes>Change"`
	}
	if xml.Unmarshal(r.body, &batch) != nil {
		return r.fail(http.StatusBadRequest, "InvalidInput", "The request is not a ChangeResourceRecordSetsRequest")
	}
	have := p.recordSets(ctx, r)
	var wrong []string
	for _, change := range batch.Changes {
		there := slices.ContainsFunc(have, change.Set.named)
		label := fmt.Sprintf("[name='%s', type='%s']", change.Set.Name, change.Set.Type)
		switch {
		case change.Action == "CREATE" && there:
			wrong = append(wrong, "Tried to create resource record set "+label+" but it already exists")
		case change.Action == "DELETE" && !there:
			wrong = append(wrong, "Tried to delete resource record set "+label+" but it was not found")
		case change.Action == "DELETE" && !slices.ContainsFunc(have, change.Set.same):
			wrong = append(wrong, "Tried to delete resource record set "+label+" but the values provided do not match the current values")
		}
	}
	if len(wrong) > 0 {
		return r.fail(http.StatusBadRequest, "InvalidChangeBatch", "[%s]", strings.Join(wrong, ", "))
	}
	return p.pending(p.moto(ctx, r))
}

// recordSets lists a zone; none when moto refuses, which then refuses the change
// itself.
func (p *Proxy) recordSets(ctx context.Context, r *request) []recordSet {
	var all []recordSet
	query := url.Values{}
	for {
		target := p.upstream + "/2013-04-01/hostedzone/" + url.PathEscape(r.params["Id"]) + "/rrset?" + query.Encode()
		hr, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		if err != nil {
			return nil
		}
		hr.Header.Set("Authorization", authorization(r.accessKey, r.region, serviceRoute53))
		res := p.moto(ctx, &request{http: hr, service: serviceRoute53, operation: "ListResourceRecordSets"})
		var page struct {
			Sets                           []recordSet `xml:"ResourceRecordSets>ResourceRecordSet"`
			IsTruncated                    bool
			NextRecordName, NextRecordType string
		}
		if !res.ok() || xml.Unmarshal(res.body, &page) != nil {
			return all
		}
		all = append(all, page.Sets...)
		if !page.IsTruncated {
			return all
		}
		query = url.Values{"name": {page.NextRecordName}, "type": {page.NextRecordType}}
	}
}
