package cluster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/cluster"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

func count(e *workflowtest.Env, activity string) (n int) {
	for _, name := range e.Journal() {
		if name == activity {
			n++
		}
	}
	return n
}

func noDatabase() error {
	return faults.New(faults.Gone, "NotFound", "database tidb/db", "its TidbCluster does not exist any more")
}

// withdrawn removes the database while it is waited for, and lets it stay when
// it is made for the nth time.
func withdrawn(t *testing.T, stays int) *workflowtest.Env {
	e := workflowtest.NewEnv(t, cluster.Kind())
	made := 0
	e.Before = func(name string, times int) error {
		switch {
		case name == contract.EnsureDatabase.Name:
			made = times
		case name == contract.WaitDatabaseReady.Name && made < stays:
			return noDatabase()
		}
		return nil
	}
	return e
}

func stateOf(r contract.OperationReport, step string) v1.StepState {
	at := slices.IndexFunc(r.Operation.Steps, func(s v1.StepStatus) bool { return s.Name == step })
	return r.Operation.Steps[at].State
}

// A database that is removed while it is waited for is made again, and the
// status shows that the operation has gone back.
func TestARemovedDatabaseIsMadeAgain(t *testing.T) {
	e := withdrawn(t, 2)
	e.Rest(24 * time.Hour)
	e.RunObject()
	s := e.Current()
	require.Equal(t, v1.OperationSucceeded, s.Operation.State)
	require.Less(t, s.Operation.FinishedAt.Sub(s.Operation.StartedAt.Time), time.Minute)
	require.Equal(t, 2, count(e, contract.EnsureDatabase.Name))
	require.Equal(t, 1, count(e, contract.EnsureClusterNamespace.Name), "what is before it does not run again")
	at := slices.IndexFunc(e.Reports(), func(r contract.OperationReport) bool {
		return slices.ContainsFunc(r.Events, func(ev contract.Event) bool { return ev.Reason == "Recreated" })
	})
	require.Positive(t, at, "an Event says so")
	r := e.Reports()[at]
	require.Equal(t, "EnsureDatabase", r.Operation.Step)
	require.Equal(t, v1.StepSucceeded, stateOf(r, "EnsureNamespace"))
	require.Equal(t, v1.StepRunning, stateOf(r, "EnsureDatabase"))
	require.Equal(t, v1.StepPending, stateOf(r, "WaitDatabaseReady"))
	ev := r.Events[slices.IndexFunc(r.Events, func(ev contract.Event) bool { return ev.Reason == "Recreated" })]
	require.True(t, ev.Warning)
	require.Equal(t, "database tidb/db: its TidbCluster does not exist any more (NotFound); step EnsureDatabase makes it again", ev.Message)
	for _, r := range e.Reports() {
		require.Nil(t, r.LastError)
	}
}

// What somebody, or something, removes again and again is told, and does not
// spin; it is made again whenever the stall ends.
func TestWhatIsRemovedAgainAndAgainIsTold(t *testing.T) {
	e := withdrawn(t, 1000)
	e.Rest(14 * 24 * time.Hour)
	e.RunObject()
	made, waited := count(e, contract.EnsureDatabase.Name), count(e, contract.WaitDatabaseReady.Name)
	require.Greater(t, made, 100, "hourly")
	require.Less(t, made, 700)
	require.LessOrEqual(t, waited, 2*made)
	r := e.Reports()[slices.IndexFunc(e.Reports(), func(r contract.OperationReport) bool { return r.LastError != nil })]
	require.Equal(t, string(faults.Dependency), r.LastError.Class)
	require.Equal(t, "WaitDatabaseReady", r.LastError.Step)
	require.Equal(t, "database tidb/db: its TidbCluster does not exist any more (NotFound)", r.LastError.Message)
	require.Contains(t, r.LastError.Hint, "find out what removes it")
	require.InDelta(t, 2*time.Minute, r.LastError.NextRetryAt.Sub(r.LastError.At.Time), float64(time.Minute/2))
	require.Less(t, r.LastError.At.Sub(r.Operation.StartedAt.Time), 2*time.Minute)
}

// Each step that was taken twice is undone once.
func TestWhatWasMadeAgainIsUndoneOnce(t *testing.T) {
	e := withdrawn(t, 2)
	before, asked := e.Before, false
	e.Before = func(name string, times int) error {
		if name == contract.EnsureRootPassword.Name && !asked {
			asked = true
			e.AskNow(temporal.VerbCancel)
		}
		return before(name, times)
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	require.Equal(t, v1.OperationCancelled, e.Current().Operation.State)
	require.Equal(t, 1, count(e, contract.DeleteDatabase.Name))
	require.Equal(t, 1, count(e, contract.DeleteWorkerPools.Name))
}

// A step that somebody has left out stays left out when the operation goes
// back over it.
func TestWhatWasSkippedStaysSoOnTheWayBack(t *testing.T) {
	e := workflowtest.NewEnv(t, cluster.Kind())
	gone := false
	e.Before = func(name string, times int) error {
		switch name {
		case contract.AWS.EnsureEndpointService.Name:
			if times == 1 {
				e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbSkip) }, time.Minute)
				return faults.New(faults.Quota, "LimitExceeded", "endpoint services", "no more of them")
			}
			t.Error("it was left out")
		case contract.EnsureBackupSchedule.Name: // the namespace is gone
			gone = gone || times == 1
			if gone && count(e, contract.EnsureClusterNamespace.Name) < 2 {
				return faults.New(faults.Gone, "NotFound", "namespace tidb", "it was not found")
			}
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	s := e.Current()
	require.Equal(t, v1.OperationSucceeded, s.Operation.State)
	require.Equal(t, 2, count(e, contract.EnsureDatabase.Name))
	require.Equal(t, v1.StepSkipped, stateOf(contract.OperationReport{Operation: *s.Operation}, "EnsureEndpointService"))
	require.Less(t, s.Operation.FinishedAt.Sub(s.Operation.StartedAt.Time), 10*time.Minute)
}

// Somebody deletes the Network's zone while a Cluster is created, and the
// Network makes another one: the Cluster makes its plan anew.
func TestWhatAnotherObjectMadeAgainIsFound(t *testing.T) {
	e := workflowtest.NewEnv(t, cluster.Kind())
	plans := 0
	e.Before = func(name string, _ int) error {
		switch {
		case name == contract.PlanCluster.Name:
			plans++
		case name == contract.AWS.EnsureRecords.Name && plans < 5:
			return faults.New(faults.Gone, "NoSuchHostedZone", "Route 53 zone Z1", "no hosted zone found with ID Z1")
		}
		return nil
	}
	e.Rest(48 * time.Hour)
	e.RunObject()
	require.Equal(t, v1.OperationSucceeded, e.Current().Operation.State)
	stalled := false
	for _, r := range e.Reports() {
		if r.LastError != nil {
			stalled = true
			require.Contains(t, r.LastError.Hint, "Preflight looks for it anew")
		}
	}
	require.True(t, stalled, "it is told meanwhile")
}

// A Cluster that a backup brought back without status, and that is deleted at
// once, has what carries its identity.
func TestARestoredClusterIsDeletedWithWhatItHas(t *testing.T) {
	e := workflowtest.NewEnv(t, cluster.Kind())
	e.Change(func(s *contract.ObjectState) { s.UID, s.Minted, s.Deleting, s.Generation = "uid-2", false, true, 2 })
	e.RunObject()
	require.Contains(t, e.Journal(), contract.AWS.Sweep.Name)
	require.False(t, e.Current().Exists)
}
