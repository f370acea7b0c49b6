// Package contract is what workflows and activities agree on: the name, the
// input and the output of every activity. It links no cloud SDK, so workflows
// may import it; the folders beside it implement it, one for each system.
//
// Rules for every activity:
//   - It does one thing and may be called any number of times: an earlier call
//     may have succeeded even if it returned an error, or if its worker died.
//   - Ensure… looks up by identity, adopts what is ours, refuses what is
//     foreign (faults.Conflict), creates with tag, token and name in one call,
//     and returns what it then observes. Delete… ends with proof of absence;
//     absent is success. Wait… returns when the thing is so, heartbeats what
//     it waits for, and runs on QueueWaits. Observe… only reads.
//   - Failures are faults (package faults), converted by the worker's
//     interceptor; an activity never builds a Temporal error itself.
//   - Inputs and outputs hold references and facts, never a credential, and
//     stay under 100 KB.
package contract

import (
	"context"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Task queues.
const (
	// QueueInfra serves workflows and all quick activities.
	QueueInfra = "infra"
	// QueueWaits serves the Wait… activities only, so that a thousand waits
	// never starve work.
	QueueWaits = "infra-waits"
	// QueueLongWaits serves the waits for people, and for other objects, which
	// last for days: however many there are, they hold no slot of the waits that
	// an operation goes on after in minutes.
	QueueLongWaits = "infra-long-waits"
)

// Activity names an activity and ties its input to its output.
type Activity[In, Out any] struct {
	Name string
	// Wait marks an activity that runs on QueueWaits and heartbeats.
	Wait bool
	// Long marks a wait that may last for days: it runs on QueueLongWaits, and
	// heartbeats more seldom.
	Long bool
}

// Queue is the task queue that the activity runs on.
func (a Activity[In, Out]) Queue() string {
	switch {
	case a.Long:
		return QueueLongWaits
	case a.Wait:
		return QueueWaits
	}
	return QueueInfra
}

// IsWaits tells whether a task queue serves waits only.
func IsWaits(queue string) bool { return queue == QueueWaits || queue == QueueLongWaits }

// None is the input or output of an activity that has none.
type None struct{}

// Func is an implementation of an Activity[In, Out].
type Func[In, Out any] func(ctx context.Context, in In) (Out, error)

// ObjectRef names a custom resource and the identity that it has for us.
type ObjectRef struct {
	Kind      string `json:"kind"` // Network, Cluster, ...
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ID is the identity annotation; external names, tags and tokens derive
	// from it. 16 lower-case hexadecimal digits.
	ID string `json:"id,omitempty"`
}

// ID8 is the first 8 digits of the identity, as used in names.
func (o ObjectRef) ID8() string { return o.ID[:min(8, len(o.ID))] }

// String is kind/namespace/name, for messages.
func (o ObjectRef) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// CloudAccount says where cloud calls go and with whose credentials. The
// credentials themselves are read by each activity call from the Provider's
// Secret, through the worker's cache.
type CloudAccount struct {
	Namespace string `json:"namespace"` // of the Provider
	Provider  string `json:"provider"`  // name of the Provider
	AccountID string `json:"accountID"` // AWS account; credentials of another account are refused
	Region    string `json:"region"`
	ProjectID string `json:"projectID,omitempty"` // GCP project; AccountID is empty then
}

// ShootRef names a Shoot in the garden.
type ShootRef struct {
	Namespace string `json:"namespace"` // the project's, such as garden-core
	Name      string `json:"name"`
}

// String is namespace/name, for messages.
func (s ShootRef) String() string { return s.Namespace + "/" + s.Name }

// Outcome is what became of an external resource.
type Outcome struct {
	// Resource is the ledger entry to record; state Present, Retained,
	// Orphaned or Foreign. Key is filled by the workflow.
	Resource v1.Resource `json:"resource"`
	// Note is one sentence for an Event, empty when there is nothing to say.
	Note string `json:"note,omitempty"`
}
