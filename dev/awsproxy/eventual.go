package awsproxy

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// absence is what each service answers about something that does not exist, or
// that the replica which was asked does not know yet. All of them document that
// reads and writes after a creation may meet one:
//
//   - IAM: https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency,
//     https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetRole.html
//   - KMS: https://docs.aws.amazon.com/kms/latest/developerguide/accessing-kms.html#programming-eventual-consistency,
//     https://docs.aws.amazon.com/kms/latest/APIReference/API_DescribeKey.html
//   - EC2: https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html,
//     https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
//   - S3, of buckets and their configuration: https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel,
//     https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
//   - Elastic Load Balancing: https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_DescribeTags.html
//   - Route 53: https://docs.aws.amazon.com/Route53/latest/APIReference/API_GetHostedZone.html
var absence = map[string]failure{
	serviceEC2: {400, "InvalidVpcEndpointServiceId.NotFound"}, serviceELB: {400, "LoadBalancerNotFound"},
	serviceIAM: {404, "NoSuchEntity"}, serviceKMS: {400, "NotFoundException"}, serviceRoute53: {404, "NoSuchHostedZone"},
	serviceS3: {404, "NoSuchBucket"},
}

// The answers of creations that name what they have made; the requests of all
// others do.
var (
	madeService = regexp.MustCompile(`<serviceId>(vpce-svc-[0-9a-f]+)</serviceId>`)
	madeARN     = regexp.MustCompile(`<(?:OpenIDConnectProviderArn|LoadBalancerArn)>([^<]+)</`)
	madeZone    = regexp.MustCompile(`<Id>/hostedzone/([A-Z0-9]+)</Id>`)
	madeKey     = regexp.MustCompile(`"KeyId"\s*:\s*"([^"]+)"`)
)

// makes are the creations, with what finds the name of the new thing.
var makes = map[string]func(r *request, res *response) string{
	"iam.CreateRole":  func(r *request, _ *response) string { return r.form.Get("RoleName") },
	"kms.CreateAlias": func(r *request, _ *response) string { return r.text("AliasName") },
	"s3.CreateBucket": func(r *request, _ *response) string { return r.params["Bucket"] },

	"iam.CreateOpenIDConnectProvider":           answered(madeARN),
	"kms.CreateKey":                             answered(madeKey),
	"ec2.CreateVpcEndpointServiceConfiguration": answered(madeService),
	"elasticloadbalancing.CreateLoadBalancer":   answered(madeARN),
	"route53.CreateHostedZone":                  answered(madeZone),
}

func answered(id *regexp.Regexp) func(*request, *response) string {
	return func(_ *request, res *response) string {
		if m := id.FindSubmatch(res.body); m != nil {
			return string(m[1])
		}
		return ""
	}
}

// about lists what a call is about, of the sorts that makes has. A creation is
// not about what it makes: names are taken at once, everywhere.
func (r *request) about() (names []string) {
	switch r.service {
	case serviceKMS:
		names = []string{r.text("KeyId"), r.text("TargetKeyId")}
		if r.operation != "CreateAlias" {
			names = append(names, r.text("AliasName"))
		}
		for i, name := range names { // an ARN ends with the id, or with alias/name
			if _, id, ok := strings.Cut(name, ":key/"); ok {
				names[i] = id
			}
			if _, alias, ok := strings.Cut(name, ":alias/"); ok {
				names[i] = "alias/" + alias
			}
		}
	case serviceIAM:
		names = []string{r.form.Get("OpenIDConnectProviderArn")}
		if r.operation != "CreateRole" {
			names = append(names, r.form.Get("RoleName"))
		}
	case serviceS3:
		if r.operation != "CreateBucket" {
			names = []string{r.params["Bucket"]}
		}
	case serviceRoute53:
		names = []string{strings.TrimPrefix(r.params["Id"], "/hostedzone/")}
	case serviceEC2:
		names = append(r.list("ServiceId"), r.form.Get("ServiceId"))
	case serviceELB:
		names = slices.Concat(r.list("ResourceArns"), r.list("LoadBalancerArns"), []string{r.form.Get("LoadBalancerArn")})
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// fresh is something that was made a moment ago.
type fresh struct {
	born time.Time
	// order are the operations that were called about it, by first call; looks is
	// how many calls of each have found nothing.
	order []string
	looks map[string]int
}

// unseen says whether a call of the operation finds nothing, and counts it.
func (f *fresh) unseen(fault control.Fault, operation string, now time.Time) bool {
	if now.Sub(f.born) >= time.Duration(fault.Delay) {
		return false
	}
	nth := slices.Index(f.order, operation)
	if nth < 0 {
		nth = len(f.order)
		f.order = append(f.order, operation)
	}
	if fault.Every > 0 && nth%fault.Every != fault.Skip {
		return false
	}
	if f.looks[operation] >= fault.Looks {
		return false
	}
	f.looks[operation]++
	return true
}

// remembered is how long something that was made or deleted is remembered.
const remembered = 10 * time.Minute

// eventual is what an eventually consistent cloud does not show yet, or still.
type eventual struct {
	mu    sync.Mutex
	fresh map[string]*fresh    // service/account/name
	gone  map[string]time.Time // the same, when it was deleted
	// settled are zones whose record that is gone was noticed.
	settled map[string]bool
}

func newEventual() *eventual {
	return &eventual{fresh: map[string]*fresh{}, gone: map[string]time.Time{}, settled: map[string]bool{}}
}

func (r *request) named(name string) string { return r.service + "/" + r.account + "/" + name }

// note remembers what a call has made or deleted.
func (e *eventual) note(r *request, res *response) {
	if !res.ok() {
		return
	}
	now, key := time.Now(), r.service+"."+r.operation
	e.mu.Lock()
	defer e.mu.Unlock()
	if name, makes := makes[key]; makes {
		if id := name(r, res); id != "" {
			// A creation that is repeated gets what exists.
			if _, known := e.fresh[r.named(id)]; !known {
				e.fresh[r.named(id)] = &fresh{born: now, looks: map[string]int{}}
			}
			delete(e.gone, r.named(id))
		}
	}
	if lists, ok := deletions[key]; ok && lists != "" {
		for _, id := range r.about() {
			delete(e.fresh, r.named(id))
			e.gone[r.named(id)] = now
		}
	}
	for name, f := range e.fresh {
		if now.Sub(f.born) > remembered {
			delete(e.fresh, name)
		}
	}
	for name, at := range e.gone {
		if now.Sub(at) > remembered {
			delete(e.gone, name)
		}
	}
}

// hides says which of the things that a call is about it does not see, if any.
func (e *eventual) hides(fault control.Fault, r *request) (name string, hidden bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range r.about() {
		if strings.HasSuffix(name, ghost) {
			return name, true
		}
		if f := e.fresh[r.named(name)]; f != nil && f.unseen(fault, r.operation, time.Now()) {
			return name, true
		}
	}
	return "", false
}

// beforeEventual answers a call about something that is not visible yet, or not
// any more.
func (p *Proxy) beforeEventual(fault control.Fault, r *request) *response {
	name, hidden := p.eventual.hides(fault, r)
	if !hidden {
		return nil
	}
	p.faults.Hit(fault.ID)
	f := absence[r.service]
	message := fault.Message
	if message == "" {
		message = "It does not exist, or is not visible yet: " + name + " (fault " + fault.ID + " of the devstack)"
	}
	if r.service == serviceS3 && r.http.Method == http.MethodHead {
		f.code = "NotFound"
	}
	return r.fail(f.status, f.code, "%s", message)
}
