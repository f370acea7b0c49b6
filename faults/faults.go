// Package faults is the project's error taxonomy: nine classes that say what a
// failure means for an operation, whose it is, and what to do.
//
// Errors of a system (AWS, Kubernetes, Gardener, ...) are mapped to a class
// once, at the edge of that system, by its From function here. Nothing outside
// this package looks at provider error codes or texts. The class travels as
// the type of a Temporal ApplicationError, becomes the prefix of a condition's
// reason, and labels metrics.
package faults

import (
	"errors"
	"fmt"
	"time"
)

// Class says what a failure means for the operation that met it.
type Class string

const (
	// Throttled: the system asks to slow down. Retried with backoff for ever;
	// no user hears of it before 15 minutes.
	Throttled Class = "Throttled"
	// Transient: it may work at the next try. Retried to the step's deadline.
	Transient Class = "Transient"
	// Quota: a limit of the account is reached. Needs its owner.
	Quota Class = "Quota"
	// Capacity: the provider has no capacity now. Retried slowly.
	Capacity Class = "Capacity"
	// Auth: credentials are wrong, expired or lack a permission.
	Auth Class = "Auth"
	// Dependency: something else must come, or go, first.
	Dependency Class = "Dependency"
	// Conflict: the name is taken by something that is not ours. Never adopted.
	Conflict Class = "Conflict"
	// Invalid: the request cannot work as written. Needs a spec change.
	Invalid Class = "Invalid"
	// Gone: the thing is not there. Success when deleting, drift otherwise.
	Gone Class = "Gone"
)

// Classes lists every class, in the order of the constants.
func Classes() []Class {
	return []Class{Throttled, Transient, Quota, Capacity, Auth, Dependency, Conflict, Invalid, Gone}
}

// Retryable reports whether an activity should simply try again: true for
// Throttled and Transient. All other classes end the activity; the operation
// then stalls visibly (or, for Gone, decides).
func (c Class) Retryable() bool { return c == Throttled || c == Transient }

// Owner is who can mend a failure.
type Owner string

const (
	OwnerUser     Owner = "user"     // the author of the custom resource
	OwnerOperator Owner = "operator" // whoever runs this control plane
	OwnerProvider Owner = "provider" // the cloud; wait or open a ticket there
)

// DefaultOwner is the owner of a class when an edge does not know better.
func (c Class) DefaultOwner() Owner {
	switch c {
	case Invalid, Dependency:
		return OwnerUser
	case Throttled, Transient, Capacity:
		return OwnerProvider
	default:
		return OwnerOperator
	}
}

// Fault is a classified failure. Message and Hint are for people: what
// happened to which resource, and what to do. They never hold a credential.
type Fault struct {
	Class    Class
	Code     string        // the system's own code, such as "VcpuLimitExceeded"
	Resource string        // what it happened to, such as "s3 bucket ic-1a2b3c4d-data"
	Message  string        // what happened, in the system's or our words
	Owner    Owner         // DefaultOwner of the class when empty
	Hint     string        // what to do; DefaultHint of the class when empty
	RetryAt  time.Duration // the system's own wish for the next try; 0 when none
	Cause    error         // not shown to users
	// Used are the versions of our resources that the attempt has read, by
	// kind/name; "" of what did not exist.
	Used map[string]string
}

// New returns a Fault with a formatted message.
func New(c Class, code, resource, format string, args ...any) *Fault {
	return &Fault{Class: c, Code: code, Resource: resource, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns the fault with another owner and hint.
func (f *Fault) WithHint(o Owner, hint string) *Fault {
	f.Owner, f.Hint = o, hint
	return f
}

// Error says what happened to which resource.
func (f *Fault) Error() string {
	s := f.Message
	if f.Resource != "" {
		s = f.Resource + ": " + s
	}
	if f.Code != "" {
		s += " (" + f.Code + ")"
	}
	return s
}

func (f *Fault) Unwrap() error { return f.Cause }

// Human is the sentence for a condition, an event or an operator: what
// happened, whose it is, what to do.
func (f *Fault) Human() string {
	owner, hint := f.Owner, f.Hint
	if owner == "" {
		owner = f.Class.DefaultOwner()
	}
	if hint == "" {
		hint = f.Class.DefaultHint()
	}
	return fmt.Sprintf("%s. For the %s: %s", f.Error(), owner, hint)
}

// DefaultHint is what to do about a class when an edge does not know better.
func (c Class) DefaultHint() string {
	switch c {
	case Throttled:
		return "nothing, the call is repeated more slowly"
	case Transient:
		return "nothing yet, the call is repeated"
	case Quota:
		return "raise the limit at the provider, then retry"
	case Capacity:
		return "wait, or choose another machine class or zone"
	case Auth:
		return "correct the Provider's credentials or permissions; the operation goes on by itself"
	case Dependency:
		return "see to what it depends on; the operation goes on by itself"
	case Conflict:
		return "remove or rename the other resource, or re-create this object, then retry"
	case Invalid:
		return "change the spec"
	default:
		return "retry"
	}
}

// As returns the Fault in err's chain, or nil.
func As(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// Is reports whether err is a fault of class c.
func Is(err error, c Class) bool { f := As(err); return f != nil && f.Class == c }

// IgnoreGone returns nil for a fault of class Gone, err otherwise.
func IgnoreGone(err error) error {
	if Is(err, Gone) {
		return nil
	}
	return err
}
