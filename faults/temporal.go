package faults

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
)

// wire is the part of a Fault that travels in an ApplicationError's details.
type wire struct {
	Code     string `json:"code,omitempty"`
	Resource string `json:"resource,omitempty"`
	Message  string `json:"message"`
	Owner    Owner  `json:"owner,omitempty"`
	Hint     string `json:"hint,omitempty"`
	// Used is Fault.Used: names and versions only.
	Used map[string]string `json:"used,omitempty"`
}

// ToTemporal turns an activity's error into what Temporal understands: a fault
// becomes an ApplicationError with the class as its type, retried only if the
// class is. An error that no edge has classified counts as Transient. Errors
// of Temporal itself and cancellation pass unchanged.
func ToTemporal(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	if errors.As(err, &app) || errors.As(err, &cancelled) {
		return err
	}
	f := As(err)
	if f == nil {
		f = New(Transient, "Unclassified", "", "%s", err)
	}
	owner, hint := f.Owner, f.Hint
	if owner == "" {
		owner = f.Class.DefaultOwner()
	}
	if hint == "" {
		hint = f.Class.DefaultHint()
	}
	return temporal.NewApplicationErrorWithOptions(f.Error(), string(f.Class), temporal.ApplicationErrorOptions{
		NonRetryable:   !f.Class.Retryable(),
		NextRetryDelay: f.RetryAt,
		Details:        []any{wire{f.Code, f.Resource, f.Message, owner, hint, f.Used}},
	})
}

// FromTemporal reads an activity's failure in workflow code. A timeout becomes
// Transient, with the last failure before it as its message. Any other error
// that carries no class is Transient too. It must not be called with a
// cancellation (see temporal.IsCanceledError).
func FromTemporal(err error) *Fault {
	var timeout *temporal.TimeoutError
	timedOut := errors.As(err, &timeout)
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		f := &Fault{Class: Class(app.Type()), Message: app.Message()}
		var w wire
		if app.HasDetails() && app.Details(&w) == nil {
			f.Code, f.Resource, f.Message, f.Owner, f.Hint, f.Used = w.Code, w.Resource, w.Message, w.Owner, w.Hint, w.Used
		}
		if !known(f.Class) {
			f.Class, f.Code = Transient, app.Type()
		}
		if timedOut {
			f.Message = "did not finish in time; last: " + f.Message
		}
		return f
	}
	if timedOut {
		return New(Transient, "Timeout", "", "did not finish in time (%s)", timeout.TimeoutType()).
			WithHint(OwnerOperator, "look at the workers and at what the step waits for; it is repeated by itself")
	}
	return New(Transient, "Unclassified", "", "%s", err)
}

func known(c Class) bool {
	for _, k := range Classes() {
		if c == k {
			return true
		}
	}
	return false
}

// RetryAfter is how long a stalled operation waits before it tries again by
// itself, without a verb or a change.
func (c Class) RetryAfter() time.Duration {
	switch c {
	case Dependency:
		return 2 * time.Minute
	case Throttled, Transient:
		return 5 * time.Minute
	case Capacity, Auth:
		return 10 * time.Minute
	case Quota:
		return 30 * time.Minute
	default:
		return time.Hour
	}
}
