package control

import (
	"context"
	"errors"
	"time"
)

// Call is one request to the AWS emulator, as the proxy saw it.
type Call struct {
	// Seq numbers the calls since the start, from 1, also beyond the ring.
	Seq uint64 `json:"seq"`
	// Time is when the request arrived.
	Time time.Time `json:"time"`
	// Duration is how long the proxy took, faults included.
	Duration Duration `json:"duration"`
	Account  string   `json:"account,omitempty"`
	Service  string   `json:"service"`
	// Operation is the API operation, such as CreateVpc.
	Operation string `json:"operation"`
	// Resource is the first name, id or ARN of the request, for people.
	Resource string `json:"resource,omitempty"`
	// Status is the HTTP status that the emulator or the proxy gave; 0 when
	// the connection was reset before anything was done.
	Status int `json:"status"`
	// Code is the AWS error code, empty for success.
	Code string `json:"code,omitempty"`
	// Fault is the ID of the fault that struck.
	Fault string `json:"fault,omitempty"`
	// Lost says that the caller never got the answer.
	Lost bool `json:"lost,omitempty"`
	// Client is the stand-in that called, empty for the product and people.
	Client string `json:"client,omitempty"`
	// UserAgent is as the client sent it.
	UserAgent string `json:"userAgent,omitempty"`
}

// Resource is one thing that exists in the AWS emulator.
type Resource struct {
	Account string `json:"account"`
	// Type is service/kind, such as "ec2/vpc" or "kms/key".
	Type string `json:"type"`
	// ID is what the service calls it: an id, an ARN or a name.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// State as the service says it, such as "available" or "PendingDeletion".
	State string            `json:"state,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
	// Owner is the tag infra.cloud.pingcap.com/id.
	Owner string `json:"owner,omitempty"`
	// Cluster is the technicalID of a tag kubernetes.io/cluster/<technicalID>.
	Cluster string `json:"cluster,omitempty"`
}

// InventoryQuery restricts an inventory. Without any field it asks for all that
// carries an identity or a cluster tag.
type InventoryQuery struct {
	// Owner is an identity (tag infra.cloud.pingcap.com/id).
	Owner string
	// Cluster is a technicalID (tag kubernetes.io/cluster/<technicalID>).
	Cluster string
	// All asks for untagged resources, too.
	All bool
}

// CallQuery restricts a list of calls.
type CallQuery struct {
	Service, Operation string
	// After is the sequence number after which to start.
	After uint64
	// Limit is the most calls to return, the newest; 0 is all in the ring.
	Limit int
}

// Cloud is what the control API shows of the AWS emulator.
type Cloud interface {
	// Inventory lists what exists, sorted by type and id.
	Inventory(ctx context.Context, q InventoryQuery) ([]Resource, error)
	// Calls lists recorded calls, oldest first.
	Calls(q CallQuery) []Call
	// ForgetCalls empties the ring; sequence numbers go on.
	ForgetCalls()
}

// Action is what can be done to a process.
type Action string

const (
	// ActionKill sends SIGKILL and does not start the process again.
	ActionKill Action = "kill"
	// ActionStop sends SIGTERM and waits for the end.
	ActionStop Action = "stop"
	// ActionStart starts the process again; running already is not an error.
	ActionStart Action = "start"
	// ActionWipe kills the process, removes all that it has stored, and starts it
	// again at the same address. For temporal only.
	ActionWipe Action = "wipe"
)

// Process is a child of the supervisor.
type Process struct {
	Name string `json:"name"`
	// PID is 0 when the process does not run.
	PID     int        `json:"pid"`
	Running bool       `json:"running"`
	Since   *time.Time `json:"since,omitempty"`
	Log     string     `json:"log,omitempty"` // path of its log file
}

// Systems that an outage can strike.
const (
	SystemAPIServer = "apiserver" // the management API server
	SystemGarden    = "garden"    // gardener-apiserver
	SystemTemporal  = "temporal"
	SystemAWS       = "aws"
)

// ErrNotFound is returned by a Supervisor that does not know a process or a
// system; the API answers 404.
var ErrNotFound = errors.New("not found")

// Supervisor is what the control API can do to processes and systems.
type Supervisor interface {
	// Processes lists the children, by name.
	Processes() []Process
	// Do acts on a process and returns when that is done.
	Do(ctx context.Context, process string, action Action) error
	// Outage makes one of the System constants unreachable (connections are
	// refused or reset) and returns at once; it ends by itself after d, or at
	// once with d 0. A second call replaces the end of a running outage.
	Outage(ctx context.Context, system string, d time.Duration) error
}
