// Package workflowtest is a world of one object for tests of operations: every
// activity of the contract, answering at once from memory, with faults on
// demand. The tests of each kind use it, so that what is tested there is the
// kind's own steps and nothing else.
package workflowtest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// World holds one custom resource, as the API server would, and a journal of
// the activities that ran. Fields may be set before a test starts; while it
// runs, use the methods.
type World struct {
	// Object names the resource; State is what ReadObject returns.
	Object contract.ObjectRef
	State  contract.ObjectState
	// Network, Cluster and Shoot are what the planners and the garden answer.
	Network contract.NetworkPlan
	Cluster contract.ClusterPlan
	Shoot   contract.ShootStatus
	// Mended, when set, is what WaitDependencies says at once.
	Mended string
	// Allocate, when set, names worker pools.
	Allocate func(contract.AllocateWorkerPoolsInput) contract.WorkerPools
	// Queue, when set, says where a request for a lease stands; otherwise it is
	// granted.
	Queue func(contract.LeaseRequest) contract.LeaseAnswer
	// Left is what sweeps find.
	Left []v1.Resource
	// Swept is what the last sweep was asked.
	Swept contract.SweepInput
	// Attached, when set, says how an operation ends that is waited for because
	// it runs already; otherwise it was terminated.
	Attached func(contract.OperationRun) contract.OperationEnd
	// Before runs before each activity that is not a telling, with its name and
	// how often it ran; its error fails the activity.
	Before func(activity string, times int) error
	// BeforeReport runs before each report of an operation is written; its error
	// refuses it.
	BeforeReport func(contract.OperationReport) error

	mu       sync.Mutex
	journal  []string
	reports  []contract.OperationReport
	statuses []contract.ObjectStatus
	answers  []contract.VerbAnswer
	vanished []string
	pools    []string
	answered chan struct{} // has an entry for each answer
	refused  map[string]bool
}

// New returns a world with a fresh object of the kind, generation 1.
func New(kind string) *World {
	w := &World{
		answered: make(chan struct{}, 100),
		Object:   contract.ObjectRef{Kind: kind, Namespace: "infra", Name: "x1", ID: "0123456789abcdef"},
		State: contract.ObjectState{Exists: true, UID: "uid-1", ID: "0123456789abcdef", Generation: 1, Minted: true,
			DeletionPolicy: v1.DeletionPolicyDelete, Account: "acme", Provider: "core-aws", Cloud: "AWS", Region: "us-west-2"},
		Shoot: contract.ShootStatus{Exists: true, UID: "s-1", TechnicalID: "shoot--core--n1", Issuer: "https://issuer.example", OperationType: "Create", OperationState: "Succeeded"},
	}
	account := contract.CloudAccount{Namespace: "infra", Provider: "core-aws", AccountID: "123456789012", Region: "us-west-2"}
	shoot := contract.ShootRef{Namespace: "garden-core", Name: "n1"}
	w.Network = contract.NetworkPlan{Ref: w.Object, Generation: 1, Account: account, Cloud: "AWS", Tenant: "acme", Project: "core", Shoot: shoot,
		Region: "us-west-2", BucketName: "ic-01234567-789012-data", DNSZoneName: "n1.clusters.example.com", DNSVisibility: "Private"}
	w.Cluster = contract.ClusterPlan{Ref: w.Object, Generation: 1, Account: account, Cloud: "AWS", Tenant: "acme", Shoot: shoot,
		Network: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1", ID: "fedcba9876543210"}, DNSZoneID: "Z1", DNSZoneName: "n1.clusters.example.com",
		Namespace: "tidb-01234567", Name: "db", Operator: "V1", Version: "v8.5.2", Port: 4000, RootPasswordSecret: "x1-root", EncryptionMode: "ServiceManaged",
		KeyAlias: "alias/ic-01234567-data", RoleName: "ic-01234567-db", Private: true, BackupSchedule: "Daily"}
	return w
}

// Change changes the object, as a user does through the API server.
func (w *World) Change(f func(*contract.ObjectState)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.State)
}

// Journal lists the activities that ran, in order, without the tellings.
func (w *World) Journal() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.journal)
}

// Reports lists what operations told, in order.
func (w *World) Reports() []contract.OperationReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reports)
}

// Statuses lists what the object workflow told, in order.
func (w *World) Statuses() []contract.ObjectStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.statuses)
}

// Current returns the object as it is.
func (w *World) Current() contract.ObjectState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.State
}

// Condition returns a condition of the object, Ready included.
func (w *World) Condition(kind string) *metav1.Condition {
	s := w.Current()
	if kind == v1.ConditionReady {
		return s.Ready
	}
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// Vanish makes the object with the uid be no more, for whoever holds leases.
func (w *World) Vanish(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.vanished = append(w.vanished, uid)
}

// SetBefore sets Before while a test runs.
func (w *World) SetBefore(before func(activity string, times int) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Before = before
}

// Refuse has an activity that tells or reads fail as in an outage, or work again.
func (w *World) Refuse(activity string, refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused == nil {
		w.refused = map[string]bool{}
	}
	w.refused[activity] = refused
}

func (w *World) read(_ context.Context, in contract.ReadObjectInput) (contract.ObjectState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused[contract.ReadObject.Name] {
		return contract.ObjectState{}, faults.ToTemporal(faults.New(faults.Transient, "Unavailable", in.Ref.String(), "the API server does not answer"))
	}
	s := w.State
	for i, h := range in.Holders {
		if slices.Contains(w.vanished, h.UID) {
			s.Vanished = append(s.Vanished, i)
		}
	}
	s.Details = maps.Clone(w.State.Details)
	return s, nil
}

func (w *World) applyObject(_ context.Context, in contract.ObjectStatus) (contract.None, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.statuses = append(w.statuses, in)
	w.State.Phase, w.State.ObservedGeneration, w.State.Ready = in.Phase, in.ObservedGeneration, &in.Ready
	w.State.Clusters, w.State.Leases = in.Clusters, in.Leases
	return contract.None{}, nil
}

// Answers lists what became of verbs, in order.
func (w *World) Answers() []contract.VerbAnswer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.answers)
}

func (w *World) answer(_ context.Context, in contract.VerbAnswer) (contract.None, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, in)
	select {
	case w.answered <- struct{}{}:
	default: // nobody waits for so many
	}
	if in.Consume != "" && w.State.Verb == in.Consume {
		w.State.Verb = ""
	}
	if in.Pause != nil {
		w.State.Paused = *in.Pause
	}
	return contract.None{}, nil
}

func (w *World) applyOperation(_ context.Context, in contract.OperationReport) (contract.None, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.BeforeReport != nil {
		if err := w.BeforeReport(in); err != nil {
			return contract.None{}, faults.ToTemporal(err)
		}
	}
	in.Details = maps.Clone(in.Details) // the operation goes on with its own
	w.reports = append(w.reports, in)
	w.State.Operation, w.State.Resources, w.State.Conditions = &in.Operation, in.Resources, in.Conditions
	w.State.Details = map[string]json.RawMessage{}
	maps.Copy(w.State.Details, in.Details)
	return contract.None{}, nil
}

// enter notes an activity and lets the test fail it.
func (w *World) enter(name string) error {
	w.mu.Lock()
	w.journal = append(w.journal, name)
	times := 0
	for _, n := range w.journal {
		if n == name {
			times++
		}
	}
	before := w.Before
	w.mu.Unlock()
	if before == nil {
		return nil
	}
	return faults.ToTemporal(before(name, times))
}

// fake registers an activity that notes itself and answers.
func fake[In, Out any](w *World, r contract.Registry, a contract.Activity[In, Out], answer func(In) Out) {
	contract.Register(r, a, func(_ context.Context, in In) (out Out, err error) {
		if err := w.enter(a.Name); err != nil {
			return out, err
		}
		return answer(in), nil
	})
}

// none registers an activity that answers with nothing.
func none[In any](w *World, r contract.Registry, a contract.Activity[In, contract.None]) {
	fake(w, r, a, func(In) contract.None { return contract.None{} })
}

// made registers an Ensure that answers with a resource named after itself.
func made[In any](w *World, r contract.Registry, a contract.Activity[In, contract.Outcome]) {
	fake(w, r, a, func(In) contract.Outcome {
		return contract.Outcome{Resource: resource(a.Name, "id-of-"+a.Name)}
	})
}

// resource is what an activity has made.
func resource(activity, id string) v1.Resource {
	return v1.Resource{Provider: "test", Type: activity, ID: id, State: v1.ResourcePresent}
}
