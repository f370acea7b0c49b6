package lifecycle

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Verb is what an operation does. The workflow type is verb + kind.
type Verb string

const (
	Create Verb = "Create"
	Update Verb = "Update"
	Delete Verb = "Delete"
)

// Kind is what the kernel must know of a kind.
type Kind struct {
	// Name is the kind: Network, Cluster, ....
	Name string
	// Well is the phase of an object with nothing to do: Normal or Available.
	Well v1.Phase
	// Phases shown while an operation runs.
	Phases map[Verb]v1.Phase
	// Keeper: its object workflow grants leases and locks to others.
	Keeper bool
	// Operations are the workflow functions of the verbs that the kind has:
	// func(workflow.Context, Input) (Result, error).
	Operations map[Verb]Operation
}

// Operation is the signature of every operation workflow.
type Operation func(workflow.Context, Input) (Result, error)

// OperationType is the workflow type of an operation: CreateNetwork.
func (k Kind) OperationType(v Verb) string { return string(v) + k.Name }

// Input is the argument of every operation workflow.
type Input struct {
	Object         contract.ObjectRef `json:"object"`
	UID            string             `json:"uid"`
	Verb           Verb               `json:"verb"`
	Generation     int64              `json:"generation"`
	DeletionPolicy v1.DeletionPolicy  `json:"deletionPolicy,omitempty"`
	// Minted: see contract.ObjectState; false for a migrated object.
	Minted bool `json:"minted,omitempty"`
	// ForceDelete: let the object go at once and leave what it has.
	ForceDelete bool  `json:"forceDelete,omitempty"`
	Facts       Facts `json:"facts"`
	// By is who asked for it: the field manager that last wrote the spec, or
	// the sender of the verb that started it. For the audit.
	By string `json:"by,omitempty"`
	// Previous is the id of the object's operation before this one.
	Previous string `json:"previous,omitempty"`
}

// Facts are for titles and search attributes; decisions read the plan.
type Facts struct {
	Account  string `json:"account,omitempty"`
	Provider string `json:"provider,omitempty"`
	Network  string `json:"network,omitempty"`
	Cloud    string `json:"cloud,omitempty"`
	Region   string `json:"region,omitempty"`
}

// Title is one line for the Temporal UI: "Create Network infra/n1 on", cloud and region.
func (in Input) Title() string {
	t := fmt.Sprintf("%s %s %s/%s", in.Verb, in.Object.Kind, in.Object.Namespace, in.Object.Name)
	switch {
	case in.Facts.Network != "":
		t += " in network " + in.Facts.Network
	case in.Facts.Region != "":
		t += strings.TrimRight(" on "+in.Facts.Cloud, " ") + " " + in.Facts.Region
	}
	return t
}

// Result is what an operation tells its object.
type Result struct {
	State ResultState `json:"state"`
}

// ResultState says how an operation ended when it did not fail.
type ResultState string

const (
	// Succeeded: every step is done.
	Succeeded ResultState = "Succeeded"
	// Superseded: it stalled, and a newer generation asked for another try.
	Superseded ResultState = "Superseded"
)
