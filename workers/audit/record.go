// Package audit writes down what activities change, and at whose word: one
// record before each call that changes something, and one when it has ended.
//
// The record before is the intent. It is written first, and without it the
// call does not happen: a worker that dies in the middle of a call, or a disk
// that fills up, leaves an intent without outcome, never a change without a
// record. The outcome holds everything that the intent holds, so a reader who
// wants one line for each call takes the outcomes alone. An outcome that
// cannot be written fails the attempt: activities are idempotent, the next
// attempt finds what this one has done, and writes its outcome.
//
// Records hold names, ids and classes. Messages of other systems, inputs and
// outputs of activities are not in them, so that no secret can be.
package audit

import (
	"time"

	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// Stage says what a record is about.
type Stage string

const (
	// StageStart: a worker begins; the proof that it can write.
	StageStart Stage = "start"
	// StageIntent: an activity is about to run.
	StageIntent Stage = "intent"
	// StageOutcome: it has ended.
	StageOutcome Stage = "outcome"
)

// Outcomes, beside the fault classes.
const (
	OutcomeOK        = "ok"
	OutcomeCancelled = "cancelled"
	OutcomePanic     = "panic"
)

// Record is one line of the audit log. Fields that are not known are left out.
type Record struct {
	Time  time.Time `json:"time"` // UTC
	Stage Stage     `json:"audit"`
	// Call pairs an intent with its outcome: workflow run, activity, attempt.
	Call string `json:"call,omitempty"`
	// By is who asked: the field manager that last wrote the object's spec, or
	// the sender of a verb.
	By         string  `json:"by,omitempty"`
	Object     *Object `json:"object,omitempty"`
	Generation int64   `json:"generation,omitempty"`
	// Operation is the workflow's id, OperationType its type: CreateNetwork.
	Operation     string `json:"operation,omitempty"`
	OperationType string `json:"operationType,omitempty"`
	Step          string `json:"step,omitempty"`
	// Verb that By has asked for, where that is what the record is about;
	// "refused " before it when it was.
	Verb     string `json:"verb,omitempty"`
	Activity string `json:"activity,omitempty"`
	Attempt  int32  `json:"attempt,omitempty"`
	// Resource is the key of what it is about in the object's ledger. Before is
	// what the ledger said when the call began, After what the call has found
	// or made. After is absent where the call does not say, and on failure,
	// when it is unknown; after a deletion it is null.
	Resource string              `json:"resource,omitempty"`
	Before   *lifecycle.External `json:"before,omitempty"`
	After    *After              `json:"after,omitempty"`
	// Changed are the external resources that the call has changed, or has
	// tried to, in that order, as far as it says so one by one. State is absent
	// where the change has failed, since it is unknown then. ChangedMore counts
	// those that the line has no room for.
	Changed     []lifecycle.External `json:"changed,omitempty"`
	ChangedMore int                  `json:"changedMore,omitempty"`
	// Outcome is ok, cancelled, panic or a fault class; Code is the fault's.
	Outcome    string `json:"outcome,omitempty"`
	Code       string `json:"code,omitempty"`
	DurationMS *int64 `json:"durationMS,omitempty"`
	// Worker is the identity of the process: pid@host.
	Worker string `json:"worker"`
}

// Object names a custom resource, with its identity for us.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	ID        string `json:"id,omitempty"`
}

// After is a resource, or null: proven absent.
type After struct{ *lifecycle.External }

// MarshalJSON writes the resource, or null.
func (a After) MarshalJSON() ([]byte, error) { return marshal(a.External) }
