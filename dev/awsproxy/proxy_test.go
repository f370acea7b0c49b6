package awsproxy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// fakeMoto answers every call with a form of success, but one with the HTML
// page that moto has for what it lacks.
func fakeMoto(t *testing.T) (url string, effects *atomic.Int32) {
	t.Helper()
	effects = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), "GetCallerIdentity"):
			_, _ = io.WriteString(w, "<R><GetCallerIdentityResult><Account>111122223333</Account></GetCallerIdentityResult></R>")
			return
		case strings.Contains(string(body), "DescribeLacking"):
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "<!doctype html>")
			return
		}
		effects.Add(1)
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, "<ok/>")
	}))
	t.Cleanup(server.Close)
	return server.URL, effects
}

// call makes one call on a connection of its own and returns status and body;
// status 0 means that the connection was cut.
func call(t *testing.T, endpoint, service, method, path, body string, standIn bool) (status int, text string) {
	t.Helper()
	r, err := http.NewRequest(method, endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization("AKIA1", "us-west-2", service))
	switch {
	case service == serviceKMS:
		r.Header.Set("X-Amz-Target", "TrentService.ListKeys")
	case strings.HasPrefix(body, "Action="):
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if standIn {
		r.Header.Set(ClientHeader, "gardener")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	res, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	answer, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(answer)
}

const createVPC = "Action=CreateVpc&Version=2016-11-15&CidrBlock=10.0.0.0%2F16"

func newProxy(t *testing.T) (p *Proxy, endpoint string, faults *control.Registry, effects *atomic.Int32) {
	t.Helper()
	upstream, effects := fakeMoto(t)
	faults = control.NewRegistry()
	p = New(Options{Upstream: upstream, Faults: faults, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, server.URL, faults, effects
}

func TestFaultsAnswerAsTheServiceDoes(t *testing.T) {
	_, endpoint, faults, effects := newProxy(t)
	for _, tc := range []struct {
		service, method, path, body string
		kind                        control.Kind
		status                      int
		contains                    string
	}{
		{"ec2", "POST", "/", createVPC, control.KindThrottle, 503, "<Response><Errors><Error><Code>RequestLimitExceeded<"},
		{"iam", "POST", "/", "Action=ListRoles&Version=2010-05-08", control.KindThrottle, 400, "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling<"},
		{"kms", "POST", "/", "{}", control.KindThrottle, 400, `"__type":"ThrottlingException"`},
		{"s3", "GET", "/b1?tagging", "", control.KindThrottle, 503, "<Error><Code>SlowDown<"},
		{"route53", "GET", "/2013-04-01/hostedzone", "", control.KindThrottle, 400, "<Code>Throttling<"},
		{"ec2", "POST", "/", createVPC, control.KindDeny, 403, "UnauthorizedOperation"},
		{"kms", "POST", "/", "{}", control.KindDeny, 400, "AccessDeniedException"},
		{"ec2", "POST", "/", createVPC, control.KindServerError, 500, "InternalError"},
		{"ec2", "POST", "/", createVPC, control.KindLostRequest, 0, ""},
	} {
		if _, err := faults.Add(control.Fault{Target: control.TargetAWS, Kind: tc.kind, Service: tc.service, Count: 1}); err != nil {
			t.Fatal(err)
		}
		before := effects.Load()
		status, text := call(t, endpoint, tc.service, tc.method, tc.path, tc.body, false)
		if status != tc.status || !strings.Contains(text, tc.contains) {
			t.Errorf("%s %s: %d %s", tc.kind, tc.service, status, text)
		}
		if effects.Load() != before {
			t.Errorf("%s %s: had an effect", tc.kind, tc.service)
		}
		if left := faults.List(); len(left) != 0 {
			t.Errorf("%s %s: the fault did not strike", tc.kind, tc.service)
			faults.Clear("")
		}
	}
}

func TestDelayLostAnswerAndStandIns(t *testing.T) {
	p, endpoint, faults, effects := newProxy(t)
	add := func(f control.Fault) {
		f.Target = control.TargetAWS
		if _, err := faults.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	add(control.Fault{Kind: control.KindDelay, Delay: control.Duration(80 * time.Millisecond), Count: 1})
	begin := time.Now()
	if status, _ := call(t, endpoint, "ec2", "POST", "/", createVPC, false); status != 200 || time.Since(begin) < 80*time.Millisecond {
		t.Errorf("delay: %d after %s", status, time.Since(begin))
	}
	add(control.Fault{Kind: control.KindLostAnswer, Operation: "CreateVpc", Resource: "10.0.0.0/16"})
	before := effects.Load()
	if status, _ := call(t, endpoint, "ec2", "POST", "/", createVPC, true); status != 200 {
		t.Errorf("a stand-in was struck: %d", status)
	}
	if status, _ := call(t, endpoint, "ec2", "POST", "/", createVPC, false); status != 0 || effects.Load() != before+2 {
		t.Errorf("lost answer: status %d, %d effects", status, effects.Load()-before)
	}
	calls := p.Calls(control.CallQuery{Operation: "CreateVpc"})
	last := calls[len(calls)-1]
	if len(calls) != 3 || !last.Lost || last.Fault == "" || last.Account != "111122223333" || calls[1].Client != "gardener" {
		t.Errorf("on record: %+v", calls)
	}
	if after := p.Calls(control.CallQuery{After: calls[0].Seq, Limit: 1}); len(after) != 1 || after[0].Seq != last.Seq {
		t.Errorf("newest call: %+v", after)
	}
	p.ForgetCalls()
	if len(p.Calls(control.CallQuery{})) != 0 {
		t.Error("calls were not forgotten")
	}
}

func TestOutageAndWhatMotoLacks(t *testing.T) {
	p, endpoint, _, _ := newProxy(t)
	p.Outage(time.Minute)
	if status, _ := call(t, endpoint, "ec2", "POST", "/", createVPC, false); status != 0 {
		t.Errorf("during an outage: %d", status)
	}
	p.Outage(0)
	status, text := call(t, endpoint, "ec2", "POST", "/", "Action=DescribeLacking&Version=2016-11-15", false)
	if status != http.StatusNotImplemented || !strings.Contains(text, "<Code>NotImplemented</Code>") || !strings.Contains(text, "ec2:DescribeLacking") {
		t.Errorf("lacking: %d %s", status, text)
	}
}

func TestMatchesAny(t *testing.T) {
	for _, tc := range []struct {
		pattern, value string
		want           bool
	}{
		{"a*", "abc", true}, {"a?c", "abc", true}, {"a.c", "abc", false}, {"abc", "abcd", false}, {"", "", true},
	} {
		if got := matchesAny([]string{tc.pattern}, tc.value); got != tc.want {
			t.Errorf("%q ~ %q: %v", tc.value, tc.pattern, got)
		}
	}
}

func TestLists(t *testing.T) {
	r := &request{form: url.Values{"A.1": {"x"}, "A.2": {"y"}, "B.member.1": {"z"}, "Filter.1.Name": {"n"}, "Filter.1.Value.1": {"v"}, "Filter.1.Value.2": {"w"}}}
	if got := strings.Join(append(r.list("A"), r.list("B")...), ""); got != "xyz" {
		t.Errorf("lists: %q", got)
	}
	if got := strings.Join(r.filters()["n"], ""); got != "vw" {
		t.Errorf("filter values: %q", got)
	}
}
