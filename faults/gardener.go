package faults

import (
	"regexp"
	"slices"
	"strings"
)

// ShootError is an entry of a Shoot's status.lastErrors.
type ShootError struct {
	Description string
	Codes       []string // ERR_…, empty when Gardener did not recognise the error
}

// ShootFailure is what FromShoot needs of a Shoot's status.
type ShootFailure struct {
	Resource    string // such as "shoot garden-core/n-3f9ac21"
	Operation   string // lastOperation.type: Create, Reconcile, Delete, …
	State       string // lastOperation.state: Error or Failed; other states are no failure
	Description string // lastOperation.description
	Errors      []ShootError
}

// shootRule says what one of Gardener's error codes means for an operation, see
// https://github.com/gardener/gardener/blob/master/docs/usage/shoot/shoot_status.md#error-codes.
type shootRule struct {
	code  string
	class Class
	owner Owner
	hint  string
}

// shootRules is in order of precedence: with several codes at once, the one
// that needs a person comes first.
var shootRules = []shootRule{
	{"ERR_INFRA_UNAUTHENTICATED", Auth, OwnerOperator, "correct the Provider's credentials; the operation goes on by itself"},
	{"ERR_INFRA_UNAUTHORIZED", Auth, OwnerOperator, "grant the Provider's credentials the permission named in the message, then retry"},
	{"ERR_INFRA_QUOTA_EXCEEDED", Quota, OwnerOperator, "raise the cloud account's quota, then retry"},
	{"ERR_CONFIGURATION_PROBLEM", Invalid, OwnerUser, "correct the spec; a changed spec starts the operation again by itself"},
	{"ERR_PROBLEMATIC_WEBHOOK", Dependency, OwnerOperator, "mend or remove the webhook in the shoot that the message names, then retry"},
	{"ERR_INFRA_DEPENDENCIES", Dependency, OwnerOperator, "remove the cloud resources that still depend on the shoot's network, then retry"},
	{"ERR_CLEANUP_CLUSTER_RESOURCES", Dependency, OwnerOperator, "remove what blocks the deletion of the objects in the shoot, such as their finalizers; Gardener keeps trying"},
	{"ERR_INFRA_RESOURCES_DEPLETED", Capacity, OwnerProvider, "wait, or choose another machine class or zone; Gardener keeps trying"},
	{"ERR_INFRA_RATE_LIMITS_EXCEEDED", Throttled, OwnerProvider, "nothing, the operation is repeated after 10 minutes"},
	{"ERR_RETRYABLE_INFRA_DEPENDENCIES", Transient, OwnerProvider, "nothing yet, Gardener keeps trying"},
	{"ERR_RETRYABLE_CONFIGURATION_PROBLEM", Transient, OwnerProvider, "nothing yet, Gardener keeps trying"},
}

// FromShoot classifies the failure that a Shoot's status reports. It returns
// nil unless the last operation is in state Error, which Gardener retries by
// itself, or Failed, which it does not.
//
// A Failed operation is never Transient: Gardener has given up after its own
// retries, so without a code that says more it is a Dependency for the
// operator. The one retryable class that a Failed Shoot can have is Throttled;
// Gardener, or we, start it again.
func FromShoot(s ShootFailure) *Fault {
	if s.State != "Error" && s.State != "Failed" {
		return nil
	}
	f := &Fault{
		Class:    Transient,
		Resource: s.Resource,
		Message:  shootMessage(s),
		Owner:    OwnerProvider,
		Hint:     "nothing yet, Gardener keeps trying",
	}
	for _, rule := range shootRules {
		if i := slices.IndexFunc(s.Errors, func(e ShootError) bool { return slices.Contains(e.Codes, rule.code) }); i >= 0 {
			f.Class, f.Code, f.Owner, f.Hint = rule.class, rule.code, rule.owner, rule.hint
			break
		}
	}
	if s.State == "Failed" && f.Class == Transient {
		if f.Code == "" {
			f.Code = "SHOOT_FAILED"
		}
		f.Class, f.Owner = Dependency, OwnerOperator
		f.Hint = "see the Shoot's lastErrors, remove the cause, then retry"
	}
	return f
}

// shootMessage is what happened: the operation and the first error's text, or
// the operation's description when there are no errors.
func shootMessage(s ShootFailure) string {
	text := s.Description
	for _, rule := range shootRules {
		for _, e := range s.Errors {
			if slices.Contains(e.Codes, rule.code) {
				return s.Operation + " " + strings.ToLower(s.State) + ": " + redact(e.Description)
			}
		}
	}
	if len(s.Errors) > 0 {
		text = s.Errors[0].Description
	}
	return s.Operation + " " + strings.ToLower(s.State) + ": " + redact(text)
}

const maxMessage = 700

var (
	accessKeyID = regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{12,}\b`)
	whitespace  = regexp.MustCompile(`\s+`)
)

// redact makes a foreign text fit for people: one line, of bounded length,
// without access key ids, which providers like to quote.
func redact(s string) string {
	s = whitespace.ReplaceAllString(accessKeyID.ReplaceAllString(s, "<access key>"), " ")
	s = strings.TrimRight(strings.TrimSpace(s), ".")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + " …"
	}
	return s
}
