package cluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/cluster"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// queued is a Cluster whose request for the Shoot has a place in the Network's
// queue for some time.
func queued(t *testing.T, until time.Duration) (e *workflowtest.Env, asked *[]time.Time) {
	e, asked = workflowtest.NewEnv(t, cluster.Kind()), &[]time.Time{}
	start := e.Now()
	e.Queue = func(in contract.LeaseRequest) contract.LeaseAnswer {
		if in.Name != contract.LockShoot {
			return contract.LeaseAnswer{}
		}
		*asked = append(*asked, e.Now())
		if e.Now().Sub(start) >= until {
			return contract.LeaseAnswer{}
		}
		return contract.LeaseAnswer{Place: 7, Behind: "Cluster c13", Holds: "Cluster c2"}
	}
	return e, asked
}

// A request waits for as long as those before it take, and never stalls: the
// step's budget of minutes is for its own work.
func TestARequestForALeaseWaitsItsTurn(t *testing.T) {
	e, asked := queued(t, 5*time.Hour)
	e.Rest(24 * time.Hour)
	e.RunObject()
	require.Equal(t, v1.PhaseAvailable, e.Current().Phase)
	for _, r := range e.Reports() {
		require.Nil(t, r.LastError)
	}
	require.Greater(t, len(*asked), 10)
	require.Less(t, len(*asked), 60, "it asks seldom: who is granted it is called")
}

// The keeper calls, and the operation goes on at once.
func TestARequestForALeaseIsCalled(t *testing.T) {
	e, asked := queued(t, 30*time.Second)
	e.RegisterDelayedCallback(func() {
		require.NoError(t, e.SignalWorkflowByID(temporal.OperationID(temporal.ObjectID("Cluster", "infra", "x1"), "Create", 1, 1), "control", map[string]string{"do": "granted"}))
	}, 40*time.Second)
	e.RegisterDelayedCallback(func() { require.Equal(t, v1.PhaseAvailable, e.Current().Phase) }, 90*time.Second)
	e.Rest(time.Hour)
	e.RunObject()
	require.Equal(t, v1.PhaseAvailable, e.Current().Phase)
	require.GreaterOrEqual(t, len(*asked), 2)
}

// Whoever is paused in the queue leaves it, since its turn would hold up
// everybody behind it, and asks anew afterwards.
func TestAPausedRequestForALeaseLeavesTheQueue(t *testing.T) {
	e, asked := queued(t, 2*time.Hour)
	e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbPause) }, time.Hour)
	before := 0
	e.RegisterDelayedCallback(func() {
		journal := e.Journal()
		require.Equal(t, contract.ReleaseLease.Name, journal[len(journal)-1])
		before = len(*asked)
	}, 90*time.Minute)
	e.RegisterDelayedCallback(func() {
		require.Len(t, *asked, before, "it asks for nothing")
		e.Ask(temporal.VerbResume)
	}, 4*time.Hour)
	e.Rest(24 * time.Hour)
	e.RunObject()
	require.Equal(t, v1.PhaseAvailable, e.Current().Phase)
	require.NotZero(t, before)
}

// Whoever is deleted in the queue leaves it.
func TestADeletedRequestForALeaseLeavesTheQueue(t *testing.T) {
	e, _ := queued(t, 24*time.Hour)
	e.RegisterDelayedCallback(func() {
		e.Queue = nil
		e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
		e.Nudge()
	}, time.Hour)
	e.Rest(24 * time.Hour)
	e.RunObject()
	journal := e.Journal()
	require.Contains(t, journal, contract.ReleaseLease.Name)
	require.Less(t, slices.Index(journal, contract.ReleaseLease.Name), slices.Index(journal, contract.WaitUnused.Name), "before the deletion begins")
	require.False(t, e.Current().Exists)
}

// Temporal has lost its data: the operation that status calls active is begun
// again, and nobody has to ask.
func TestAnOperationThatTemporalLostBeginsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		verb string
		want v1.Phase
		set  func(*contract.ObjectState)
	}{
		"creation":                    {"Create", v1.PhaseAvailable, func(*contract.ObjectState) {}},
		"update":                      {"Update", v1.PhaseAvailable, func(s *contract.ObjectState) { s.Generation, s.ObservedGeneration = 2, 1 }},
		"reconcile of its generation": {"Update", v1.PhaseAvailable, func(s *contract.ObjectState) { s.ObservedGeneration = 1 }},
		"deletion":                    {"Delete", "", func(s *contract.ObjectState) { s.Deleting, s.ObservedGeneration = true, 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			e := workflowtest.NewEnv(t, cluster.Kind())
			e.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil)
			e.Attached = func(contract.OperationRun) contract.OperationEnd {
				return contract.OperationEnd{Unknown: true, Failure: "Temporal no longer knows it"}
			}
			lost := ""
			e.Change(func(s *contract.ObjectState) {
				c.set(s)
				lost = temporal.OperationID("cluster/infra/x1", c.verb, s.Generation, 1)
				s.Operation = &v1.OperationStatus{ID: lost, UID: s.UID, Type: c.verb, Generation: s.Generation, State: v1.OperationRunning, Step: "WaitDatabaseReady"}
			})
			e.Rest(time.Hour)
			e.RunObject()
			for _, s := range e.Statuses() {
				require.NotEqual(t, v1.PhaseFailed, s.Phase)
			}
			next := false
			events := ""
			for _, r := range e.Reports() {
				next = next || r.Operation.ID == strings.TrimSuffix(lost, ".1")+".2"
				for _, ev := range r.Events {
					events += ev.Reason + " "
				}
			}
			require.True(t, next, "the next attempt")
			require.Contains(t, events, "OperationLost")
			if c.want == "" {
				require.False(t, e.Current().Exists)
				return
			}
			require.Equal(t, c.want, e.Current().Phase)
		})
	}
}
