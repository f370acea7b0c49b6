package awsproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// DefaultAccount is the account of every access key that AssumeRole did not
// issue; it is moto's.
const DefaultAccount = "123456789012"

// invalidKeyPrefix marks access keys that are refused as unknown.
const invalidKeyPrefix = "AKIAINVALID"

// ClientHeader names the stand-in that calls. Faults strike it only when they
// say so, since it stands for machinery that is not under test.
const ClientHeader = "X-Devstack-Client"

// Options of a Proxy.
type Options struct {
	// Upstream is moto's address, "http://127.0.0.1:port".
	Upstream string
	// Speed divides all of AWS's delays; 1 (also for 0) is the devstack's
	// usual pace: a load balancer provisions 2 s, a DNS change spreads 0.5 s.
	Speed float64
	// Faults is asked before every call; nil means none.
	Faults *control.Registry
	// Log gets a line for what moto does not implement; nil is slog's default.
	Log *slog.Logger
}

// Proxy is the HTTP handler in front of moto.
type Proxy struct {
	upstream string
	client   *http.Client
	faults   *control.Registry
	log      *slog.Logger
	speed    float64
	calls    ring
	eventual *eventual
	// outage is when the current outage ends, in Unix nanoseconds.
	outage atomic.Int64

	// mu makes each call but those of S3 one step with its checks. It guards
	// all that follows.
	mu       sync.Mutex
	accounts map[string]string // access key -> account
	places   map[place]string  // where something may exist -> an access key
	link     *privateLink
	tokens   map[string]tokenUse
	balancer map[string]time.Time // id of a load balancer -> when it becomes active
	network  map[string]struct{}  // ids of network load balancers
	changes  map[string]time.Time // id of a DNS change -> when it is INSYNC
	zones    map[string]zoneClaim // account/caller reference -> hosted zone
}

// place is an account and a region in which a client has called.
type place struct{ account, region string }

var _ control.Cloud = (*Proxy)(nil)

// New returns a proxy in front of moto.
func New(o Options) *Proxy {
	if o.Speed <= 0 {
		o.Speed = 1
	}
	if o.Faults == nil {
		o.Faults = control.NewRegistry()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Proxy{
		upstream: strings.TrimSuffix(o.Upstream, "/"),
		client:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}},
		faults:   o.Faults, log: o.Log, speed: o.Speed,
		accounts: map[string]string{},
		places:   map[place]string{{DefaultAccount, "us-west-2"}: "devstack"},
		eventual: newEventual(),
		link:     newPrivateLink(), tokens: map[string]tokenUse{},
		balancer: map[string]time.Time{}, network: map[string]struct{}{}, changes: map[string]time.Time{}, zones: map[string]zoneClaim{},
	}
}

// scaled is a delay of the usual pace at this proxy's speed.
func (p *Proxy) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / p.speed)
}

// Outage cuts every connection from now for d; 0 ends an outage.
func (p *Proxy) Outage(d time.Duration) { p.outage.Store(time.Now().Add(d).UnixNano()) }

// Calls implements control.Cloud.
func (p *Proxy) Calls(q control.CallQuery) []control.Call { return p.calls.find(q) }

// ForgetCalls implements control.Cloud.
func (p *Proxy) ForgetCalls() { p.calls.forget() }

// ServeHTTP answers one AWS call.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	start := time.Now()
	if start.UnixNano() < p.outage.Load() {
		reset(w)
		return
	}
	r, err := parseRequest(hr)
	if err != nil {
		p.log.Warn("aws call is unreadable", "error", err)
		reset(w)
		return
	}
	call := control.Call{
		Time: start, Service: r.service, Operation: r.operation, Resource: r.resource(), Client: hr.Header.Get(ClientHeader), UserAgent: hr.UserAgent(),
	}
	r.account = p.accountOf(hr.Context(), r)
	call.Account = r.account
	fault, res := p.strike(hr.Context(), r)
	late, isLate := p.faults.Eventual(control.TargetAWS, r.subject())
	if res == nil && isLate {
		if res = p.beforeEventual(late, r); res != nil {
			fault = late
		}
	}
	call.Fault = fault.ID
	call.Lost = fault.Kind == control.KindLostAnswer || fault.Kind == control.KindLostRequest
	if res == nil && fault.Kind != control.KindLostRequest {
		// A caller that gives up does not stop AWS: what was asked gets done.
		res = p.handle(context.WithoutCancel(hr.Context()), r)
		p.eventual.note(r, res)
		if isLate {
			p.afterEventual(late, r, res)
		}
	}
	if res != nil {
		call.Status, call.Code = res.status, res.code()
	}
	call.Duration = control.Duration(time.Since(start))
	p.calls.add(call)
	if call.Lost {
		reset(w)
		return
	}
	write(w, res)
}

// handle runs the call through the overlay, or through to moto.
func (p *Proxy) handle(ctx context.Context, r *request) *response {
	if r.account == "" {
		r.account = p.accountOf(ctx, r)
	}
	if strings.HasPrefix(r.accessKey, invalidKeyPrefix) {
		f := of(unknownKey, r.service)
		return r.fail(f.status, f.code, "The security token included in the request is invalid.")
	}
	operation := overlay[r.service+"."+r.operation]
	if r.service == serviceS3 {
		if operation == nil {
			return p.moto(ctx, r)
		}
		return operation(p, ctx, r)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places[place{r.account, r.region}] = r.accessKey
	if r.service == serviceEC2 && r.form.Get("DryRun") == "true" {
		return r.fail(http.StatusPreconditionFailed, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	if operation == nil {
		return p.moto(ctx, r)
	}
	return operation(p, ctx, r)
}

// Transport reaches the emulator in process, past faults, outages and records,
// for look-ups that belong to no client.
func (p *Proxy) Transport() http.RoundTripper { return transport{p} }

type transport struct{ p *Proxy }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(hr *http.Request) (*http.Response, error) {
	if hr.Body == nil {
		hr = hr.Clone(hr.Context())
		hr.Body = http.NoBody
	}
	r, err := parseRequest(hr)
	_ = hr.Body.Close()
	if err != nil {
		return nil, err
	}
	res := t.p.handle(hr.Context(), r)
	return &http.Response{
		StatusCode: res.status, Status: http.StatusText(res.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: res.header, Body: io.NopCloser(bytes.NewReader(res.body)), ContentLength: int64(len(res.body)), Request: hr,
	}, nil
}

// moto sends the request on as it is and reads the answer.
func (p *Proxy) moto(ctx context.Context, r *request) *response {
	target := p.upstream + r.http.URL.EscapedPath()
	if r.http.URL.RawQuery != "" {
		target += "?" + r.http.URL.RawQuery
	}
	sent := r.body
	if r.service == serviceELB {
		sent = toMoto(sent)
	}
	out, err := http.NewRequestWithContext(ctx, r.http.Method, target, bytes.NewReader(sent))
	if err != nil {
		return r.fail(http.StatusInternalServerError, "InternalError", "the proxy cannot call moto: %v", err)
	}
	out.Header = r.http.Header.Clone()
	for _, hop := range []string{"Connection", "Expect", "Accept-Encoding", "Transfer-Encoding", ClientHeader} {
		out.Header.Del(hop)
	}
	res, err := p.client.Do(out)
	if err != nil {
		return r.fail(http.StatusServiceUnavailable, "ServiceUnavailable", "moto does not answer: %v", rootCause(err))
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return r.fail(http.StatusServiceUnavailable, "ServiceUnavailable", "moto's answer broke off: %v", err)
	}
	if lacking(r, res) {
		p.log.Warn("the AWS emulator lacks an operation", "service", r.service, "operation", r.operation)
		return r.fail(http.StatusNotImplemented, "NotImplemented",
			"The AWS emulator (moto %s) does not implement %s:%s, or failed in it; see moto.log", MotoVersion, r.service, r.operation)
	}
	if r.service == serviceELB {
		body = p.fromMoto(body)
	}
	return &response{status: res.StatusCode, header: res.Header, body: body}
}

// lacking recognises the answers for operations that moto does not implement
// and for its own failures: an HTML page of the framework, or a text of the
// server around it, where AWS has XML or JSON.
func lacking(r *request, res *http.Response) bool {
	if res.StatusCode < 400 || r.http.Method == http.MethodHead || (r.service == serviceS3 && res.StatusCode == http.StatusNotFound) {
		return false
	}
	kind := res.Header.Get("Content-Type")
	return strings.HasPrefix(kind, "text/html") || (res.StatusCode >= 500 && !strings.Contains(kind, "xml") && !strings.Contains(kind, "json"))
}

// query makes a further call of the query protocol with the caller's identity.
func (p *Proxy) query(ctx context.Context, r *request, service, operation string, params url.Values) *response {
	form := url.Values{"Action": {operation}}
	for version, s := range queryVersions {
		if s == service {
			form.Set("Version", version)
		}
	}
	for key, values := range params {
		form[key] = values
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, p.upstream+"/", nil)
	if err != nil {
		return r.fail(http.StatusInternalServerError, "InternalError", "the proxy cannot call moto: %v", err)
	}
	hr.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	hr.Header.Set("Authorization", authorization(r.accessKey, r.region, service))
	return p.moto(ctx, &request{
		http: hr, body: []byte(form.Encode()), service: service, operation: operation,
		region: r.region, accessKey: r.accessKey, account: r.account, form: form,
	})
}

// authorization is a header that moto reads service, region and account from.
func authorization(accessKey, region, service string) string {
	return "AWS4-HMAC-SHA256 Credential=" + accessKey + "/20260101/" + region + "/" + service +
		"/aws4_request, SignedHeaders=host, Signature=none"
}

// write sends an answer.
func write(w http.ResponseWriter, res *response) {
	for key, values := range res.header {
		switch key {
		case "Connection", "Content-Length", "Transfer-Encoding", "Date", "Server":
		default:
			w.Header()[key] = values
		}
	}
	if len(res.body) > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(res.body)))
	} else if length := res.header.Get("Content-Length"); length != "" {
		w.Header().Set("Content-Length", length) // HEAD
	}
	w.WriteHeader(res.status)
	_, _ = w.Write(res.body)
}

// rootCause is the innermost error, without addresses that mean nothing to
// people.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
