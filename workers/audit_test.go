package workers_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workers"
	"github.com/tidbcloud/infra-orchestrator/workers/audit"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/object"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// operation runs one operation of a Network with the audit on.
func operation(t *testing.T, world *workflowtest.World, verb lifecycle.Verb) map[string]audit.Record {
	t.Helper()
	return byActivity(outcomesOf(t, world, verb))
}

// outcomesOf runs one operation of the world's object with the audit on.
func outcomesOf(t *testing.T, world *workflowtest.World, verb lifecycle.Verb) []audit.Record {
	t.Helper()
	kind := world.Object.Kind
	return audited(t, world, func(env *testsuite.TestWorkflowEnvironment) {
		// Its stalls are told to the object workflow, which does not run here.
		env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil)
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: strings.ToLower(kind) + "/infra/x1/" + string(verb) + "/1.1", TaskQueue: contract.QueueInfra})
		env.ExecuteWorkflow(string(verb)+kind, lifecycle.Input{Object: world.Object, UID: "uid-1", Verb: verb, Generation: 3, By: "argocd"})
		require.NoError(t, env.GetWorkflowError())
	})
}

func byActivity(outcomes []audit.Record) map[string]audit.Record {
	last := map[string]audit.Record{}
	for _, r := range outcomes {
		last[r.Activity] = r
	}
	return last
}

// audited runs workflows with the audit on, and returns the outcomes.
func audited(t *testing.T, world *workflowtest.World, run func(*testsuite.TestWorkflowEnvironment)) (outcomes []audit.Record) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.json")
	log, err := audit.Open(audit.Options{Path: path, MaxSizeMB: 1}, "1@host")
	require.NoError(t, err)
	auditor, err := audit.NewInterceptor(log, prometheus.NewRegistry())
	require.NoError(t, err)

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	suite.SetContextPropagators([]workflow.ContextPropagator{lifecycle.Propagator()})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	// The first workflow of a process takes a second and more on a busy machine.
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{auditor}, DeadlockDetectionTimeout: 20 * time.Second})
	workers.RegisterWorkflows(env)
	world.Register(env)
	run(env)
	require.NoError(t, log.Close())

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	intents := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		var r audit.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		switch r.Stage {
		case audit.StageIntent:
			intents[r.Call] = true
		case audit.StageOutcome:
			require.True(t, intents[r.Call], "%s: no intent", r.Activity)
			outcomes = append(outcomes, r)
		}
	}
	return outcomes
}

// Every activity of an operation that changes something has a record with who
// asked, the step, and what was there before and after.
func TestAuditOfAnOperation(t *testing.T) {
	world := workflowtest.New(v1.KindNetwork)
	created := operation(t, world, lifecycle.Create)
	for _, activity := range world.Journal() {
		effect, _ := contract.EffectOf(activity)
		r, ok := created[activity]
		require.Equal(t, effect == contract.Mutates, ok, "%s", activity)
		if !ok {
			continue
		}
		require.Equal(t, "argocd", r.By, activity)
		require.Equal(t, &audit.Object{Kind: "Network", Namespace: "infra", Name: "x1", ID: world.Object.ID}, r.Object, activity)
		require.EqualValues(t, 3, r.Generation, activity)
		require.Equal(t, "CreateNetwork", r.OperationType, activity)
		require.Equal(t, "network/infra/x1/Create/1.1", r.Operation, activity)
		require.NotEmpty(t, r.Step, activity)
		require.Equal(t, audit.OutcomeOK, r.Outcome, activity)
	}
	bucket := created[contract.AWS.EnsureBucket.Name]
	require.Equal(t, "EnsureBucket", bucket.Step, "steps that run together keep their names")
	require.Equal(t, "EnsureShoot", created[contract.EnsureShoot.Name].Step)
	require.Equal(t, "bucket", bucket.Resource)
	require.Nil(t, bucket.Before, "there was none")
	require.Equal(t, "id-of-aws.EnsureBucket", bucket.After.ID)

	deleted := operation(t, world, lifecycle.Delete)
	oidc := deleted[contract.AWS.DeleteIssuer.Name]
	require.Equal(t, "id-of-aws.EnsureOIDCProvider", oidc.Before.ID)
	require.Equal(t, "Present", oidc.Before.State)
	require.Nil(t, oidc.After, "null in the file: it is gone")
	shoot := deleted[contract.DeleteShoot.Name]
	require.Equal(t, "id-of-garden.EnsureShoot", shoot.Before.ID)
	require.Nil(t, shoot.After, "Gardener takes its time")
	require.Equal(t, "bucket", deleted[contract.AWS.DeleteBucket.Name].Resource)
	require.Contains(t, deleted, contract.RemoveFinalizer.Name)
}

// Verbs have records of their own, and operations follow who wrote the spec.
func TestAuditOfAVerb(t *testing.T) {
	world := workflowtest.New(v1.KindNetwork)
	world.State.LastManager, world.State.Verb, world.State.VerbManager = "argocd", "skip", "alice"
	records := byActivity(audited(t, world, func(env *testsuite.TestWorkflowEnvironment) {
		o := world.Object
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "network/infra/x1", TaskQueue: contract.QueueInfra})
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
		env.ExecuteWorkflow("Network", object.Input{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, ID: o.ID})
	}))
	answer := records[contract.AnswerVerb.Name]
	require.Equal(t, "alice", answer.By)
	require.Equal(t, "refused skip", answer.Verb, "there is nothing to skip yet")
	require.Equal(t, "x1", answer.Object.Name)
	require.Equal(t, "argocd", records[contract.AWS.EnsureBucket.Name].By)
}
