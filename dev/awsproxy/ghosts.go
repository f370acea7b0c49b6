package awsproxy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// ghost ends the name of something that a list shows and that is gone.
const ghost = "-gone"

// deletions are the calls after which lists still show what they have deleted,
// with the list that does.
var deletions = map[string]string{
	"iam.DeleteRole":                  "iam.ListRoles",
	"iam.DeleteOpenIDConnectProvider": "iam.ListOpenIDConnectProviders",
	"s3.DeleteBucket":                 "s3.ListBuckets",
}

// shown is how a list shows things without their tags, so that each is looked at
// once more: what the names in it look like, and how one more is written.
type shown struct {
	name   *regexp.Regexp
	within string // the element around all
	item   func(r *request, name string) string
	// belongs says that a name is one of this list.
	belongs func(name string) bool
}

const longAgo = "2026-01-01T00:00:00Z"

var lists = map[string]shown{
	"iam.ListRoles": {
		name: regexp.MustCompile(`<RoleName>([^<]+)</RoleName>`), within: "Roles",
		item: func(r *request, name string) string {
			return fmt.Sprintf(`<member><Path>/</Path><RoleName>%s</RoleName><RoleId>AROAGONE</RoleId><Arn>arn:aws:iam::%s:role/%s</Arn><CreateDate>%s</CreateDate></member>`,
				escape(name), r.account, escape(name), longAgo)
		},
		belongs: func(name string) bool { return !strings.HasPrefix(name, "arn:") },
	},
	"iam.ListOpenIDConnectProviders": {
		name: regexp.MustCompile(`<Arn>([^<]+)</Arn>`), within: "OpenIDConnectProviderList",
		item:    func(_ *request, name string) string { return "<member><Arn>" + escape(name) + "</Arn></member>" },
		belongs: func(name string) bool { return strings.HasPrefix(name, "arn:") },
	},
	"s3.ListBuckets": {
		name: regexp.MustCompile(`<Name>([^<]+)</Name>`), within: "Buckets",
		item: func(_ *request, name string) string {
			return "<Bucket><Name>" + escape(name) + "</Name><CreationDate>" + longAgo + "</CreationDate></Bucket>"
		},
		belongs: func(string) bool { return true },
	},
	"elasticloadbalancing.DescribeLoadBalancers": {
		name: regexp.MustCompile(`<LoadBalancerArn>([^<]+)</LoadBalancerArn>`), within: "LoadBalancers",
		item: func(r *request, name string) string {
			return fmt.Sprintf(`<member><LoadBalancerArn>%s</LoadBalancerArn><DNSName>gone.elb.%s.amazonaws.com</DNSName><LoadBalancerName>gone</LoadBalancerName>`+
				`<Scheme>internal</Scheme><State><Code>active</Code></State><Type>network</Type><CreatedTime>%s</CreatedTime></member>`, escape(name), r.region, longAgo)
		},
		belongs: func(string) bool { return true },
	},
}

// afterEventual changes the answer to a list: it lacks keys that are fresh, and
// has what is gone.
func (p *Proxy) afterEventual(fault control.Fault, r *request, res *response) {
	switch operation := r.service + "." + r.operation; {
	case operation == "route53.ChangeResourceRecordSets":
		if !res.ok() && strings.Contains(string(r.body), goneRecord) {
			p.eventual.settle(r.named(r.params["Id"]))
		}
	case !res.ok():
	case operation == "kms.ListKeys":
		if p.lateKeys(fault, r, res) {
			p.faults.Hit(fault.ID)
		}
	case operation == "route53.ListResourceRecordSets":
		p.goneRecords(r, res)
	default:
		if list, ok := lists[operation]; ok && len(r.about()) == 0 && r.form.Get("Names.member.1") == "" {
			p.haunt(fault, r, res, list)
		}
	}
}

// haunt adds what is gone to a list: a stranger's, and what was deleted a moment
// ago.
func (p *Proxy) haunt(fault control.Fault, r *request, res *response, list shown) {
	body := string(res.body)
	var more []string
	for _, m := range list.name.FindAllStringSubmatch(body, -1) {
		if r.service != serviceS3 || strings.HasPrefix(m[1], r.form.Get("prefix")) {
			more = append(more, m[1]+ghost)
			break
		}
	}
	for _, name := range p.eventual.leaving(fault, r) {
		if list.belongs(name) && !strings.Contains(body, ">"+name+"<") {
			more = append(more, name)
		}
	}
	var items strings.Builder
	for _, name := range more {
		items.WriteString(list.item(r, name))
	}
	empty := regexp.MustCompile(`<` + list.within + `\s*/>`)
	body = empty.ReplaceAllString(body, "<"+list.within+"></"+list.within+">")
	res.setBody([]byte(strings.Replace(body, "</"+list.within+">", items.String()+"</"+list.within+">", 1)))
}

// leaving are things of the call's service that were deleted a moment ago.
func (e *eventual) leaving(fault control.Fault, r *request) (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, at := range e.gone {
		if name, ok := strings.CutPrefix(key, r.named("")); ok && time.Since(at) < time.Duration(fault.Delay) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lateKeys takes fresh keys out of a list, and adds one that is gone. It says
// whether any was taken out.
func (p *Proxy) lateKeys(fault control.Fault, r *request, res *response) (late bool) {
	type key struct {
		ID  string `json:"KeyId"`
		ARN string `json:"KeyArn"`
	}
	var all map[string]json.RawMessage
	var keys []key
	if json.Unmarshal(res.body, &all) != nil || json.Unmarshal(all["Keys"], &keys) != nil || len(keys) == 0 {
		return false
	}
	first := keys[0]
	p.eventual.mu.Lock()
	kept := slices.DeleteFunc(keys, func(k key) bool {
		f := p.eventual.fresh[r.named(k.ID)]
		return f != nil && f.unseen(fault, r.operation, time.Now())
	})
	p.eventual.mu.Unlock()
	late = len(kept) < len(keys)
	kept = append(kept, key{first.ID + ghost, first.ARN + ghost})
	var err error
	if all["Keys"], err = json.Marshal(kept); err != nil {
		return false
	}
	if body, err := json.Marshal(all); err == nil {
		res.setBody(body)
	}
	return late
}

// goneRecord is a record that somebody else removes between a list and a change.
const goneRecord = "devstack-gone."

var zoneApex = regexp.MustCompile(`<Name>([^<]+)</Name>\s*<Type>SOA</Type>`)

// goneRecords shows one more record until a change was refused because of it.
func (p *Proxy) goneRecords(r *request, res *response) {
	m := zoneApex.FindSubmatch(res.body)
	if m == nil || p.eventual.isSettled(r.named(r.params["Id"])) {
		return
	}
	record := `<ResourceRecordSet><Name>` + goneRecord + string(m[1]) + `</Name><Type>TXT</Type><TTL>60</TTL><ResourceRecords>` +
		`<ResourceRecord><Value>"gone"</Value></ResourceRecord></ResourceRecords></ResourceRecordSet>`
	res.setBody([]byte(strings.Replace(string(res.body), "</ResourceRecordSets>", record+"</ResourceRecordSets>", 1)))
}

func (e *eventual) settle(zone string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settled[zone] = true
}

func (e *eventual) isSettled(zone string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.settled[zone]
}
