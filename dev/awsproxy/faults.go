package awsproxy

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// failure is an error code with its HTTP status.
type failure struct {
	status int
	code   string
}

// The codes that each service uses for the same three troubles, by its API
// reference ("Common errors") and the retry tables of the SDKs.
var (
	throttling = map[string]failure{
		serviceEC2: {503, "RequestLimitExceeded"}, serviceELB: {400, "Throttling"}, serviceIAM: {400, "Throttling"},
		serviceKMS: {400, "ThrottlingException"}, serviceRoute53: {400, "Throttling"}, serviceS3: {503, "SlowDown"},
		serviceSTS: {400, "Throttling"},
	}
	denial = map[string]failure{
		serviceEC2: {403, "UnauthorizedOperation"}, serviceELB: {403, "AccessDenied"}, serviceIAM: {403, "AccessDenied"},
		serviceKMS: {400, "AccessDeniedException"}, serviceRoute53: {403, "AccessDenied"}, serviceS3: {403, "AccessDenied"},
		serviceSTS: {403, "AccessDenied"},
	}
	internal = map[string]failure{
		serviceEC2: {500, "InternalError"}, serviceELB: {500, "InternalFailure"}, serviceIAM: {500, "ServiceFailure"},
		serviceKMS: {500, "KMSInternalException"}, serviceRoute53: {500, "InternalFailure"}, serviceS3: {500, "InternalError"},
		serviceSTS: {500, "InternalFailure"},
	}
	unknownKey = map[string]failure{
		serviceEC2: {401, "AuthFailure"}, serviceELB: {403, "InvalidClientTokenId"}, serviceIAM: {403, "InvalidClientTokenId"},
		serviceKMS: {400, "UnrecognizedClientException"}, serviceRoute53: {403, "InvalidClientTokenId"},
		serviceS3: {403, "InvalidAccessKeyId"}, serviceSTS: {403, "InvalidClientTokenId"},
	}
)

// of returns the entry of a service, or a default for one that is not listed.
func of(table map[string]failure, service string) failure {
	if f, ok := table[service]; ok {
		return f
	}
	return table[serviceSTS]
}

// strike applies the fault that fits, if any. It returns an answer when the
// call goes no further; losing an answer or a request is left to the caller.
func (p *Proxy) strike(ctx context.Context, r *request) (fault control.Fault, res *response) {
	fault, ok := p.faults.Strike(control.TargetAWS, r.subject())
	if !ok {
		return control.Fault{}, nil
	}
	message := func(usual string) string {
		if fault.Message != "" {
			return fault.Message
		}
		return usual + " (fault " + fault.ID + " of the devstack)"
	}
	switch fault.Kind {
	case control.KindThrottle:
		f := of(throttling, r.service)
		return fault, r.fail(f.status, f.code, "%s", message("Rate exceeded"))
	case control.KindDeny:
		f := of(denial, r.service)
		return fault, r.fail(f.status, f.code, "%s", message("You are not authorized to perform "+r.service+":"+r.operation))
	case control.KindServerError:
		f := of(internal, r.service)
		if fault.Status != 0 {
			f.status = fault.Status
		}
		return fault, r.fail(f.status, f.code, "%s", message("An internal error has occurred"))
	case control.KindDelay:
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(fault.Delay)):
		}
	}
	return fault, nil
}

// subject is what faults are matched against.
func (r *request) subject() control.Subject {
	return control.Subject{
		Service: r.service, Operation: r.operation, Account: r.account, Resource: r.haystack(),
		StandIn: r.http.Header.Get(ClientHeader) != "",
	}
}

// reset cuts the connection so that the client sees a reset, not an EOF.
func reset(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
