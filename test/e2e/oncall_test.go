package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// onCall is a night with a second Network: it stalls, is retried, is cancelled
// in the Temporal UI, is terminated there, and is Ready in the end.
func onCall(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	n2 := secondNetwork(ctx, t)
	// The ProviderType was written just now. Times of writes are whole seconds, so
	// a stall in the same one ends at once, to be safe: here it is to stay.
	time.Sleep(time.Second)
	fault, err := world.AddFault(ctx, stack.Fault{Target: "aws", Kind: "deny", Operation: "CreateBucket"})
	require.NoError(t, err)
	require.NoError(t, world.Kube.Create(ctx, n2))

	t.Log("it stalls, and says whose it is")
	until(ctx, t, n2, func() bool { // the operation tells it first, then the object
		return n2.Status.Operation != nil && n2.Status.Operation.State == v1.OperationBlocked && n2.Status.Phase == v1.PhaseFailed
	})
	require.Equal(t, "Auth", n2.Status.LastError.Class)
	require.Equal(t, "operator", n2.Status.LastError.Owner)
	require.Contains(t, n2.Status.LastError.Hint, "grant the Provider")

	eventually(t, 30*time.Second, "lists in the Temporal UI show it, too", func() error {
		query := fmt.Sprintf("InfraPhase = %q AND InfraFaultClass = %q AND WorkflowId = %q", v1.PhaseFailed, "Auth", n2.Status.Operation.ID)
		found, err := world.Workflows(ctx, query)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("%d match %s", len(found), query)
		}
		return err
	})

	t.Log("skip is refused, retry with the wrong step too, retry goes on")
	out, err := infractl("skip", "network", "n2")
	require.ErrorContains(t, err, "cannot be skipped", out)
	out, err = infractl("retry", "network", "n2", "--step", "WaitShootReady")
	require.ErrorContains(t, err, "look again", out)
	require.NoError(t, world.RemoveFault(ctx, fault))
	out, err = infractl("retry", "network/n2", "--step", "EnsureBucket", "-o", "json")
	require.NoError(t, err)
	var answer struct {
		Accepted bool   `json:"accepted"`
		Text     string `json:"text"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	require.True(t, answer.Accepted)
	require.Equal(t, "step EnsureBucket runs again", answer.Text)

	t.Log("Request Cancellation in the Temporal UI undoes what it made")
	until(ctx, t, n2, func() bool { return n2.Status.Operation.Step == "WaitShootReady" })
	id := n2.Annotations[v1.AnnotationID]
	require.NoError(t, world.Temporal.CancelWorkflow(ctx, n2.Status.Operation.ID, ""))
	until(ctx, t, n2, func() bool {
		return n2.Status.Operation.State == v1.OperationCancelled && n2.Status.Phase == v1.PhaseFailed
	})
	require.Empty(t, n2.Status.Resources, "an inventory that Delete can finish")
	require.Empty(t, owned(ctx, t, id))

	t.Log("it is terminated by hand: the object says so, and accepts retry")
	annotate(ctx, t, n2, v1.AnnotationOperation, temporal.VerbRetry)
	until(ctx, t, n2, func() bool {
		return n2.Status.Operation.Step == "WaitShootReady" && n2.Status.Operation.State == v1.OperationRunning
	})
	require.Empty(t, n2.Annotations[v1.AnnotationOperation], "the annotation is consumed")
	require.NoError(t, world.Temporal.TerminateWorkflow(ctx, n2.Status.Operation.ID, "", "by hand"))
	until(ctx, t, n2, func() bool {
		return n2.Status.Operation.State == v1.OperationFailed && n2.Status.Phase == v1.PhaseFailed
	})
	ready := meta.FindStatusCondition(n2.Status.Conditions, v1.ConditionReady)
	require.Contains(t, ready.Message, "ended")
	require.Contains(t, ready.Message, "retry")
	resetAfterTerminate(ctx, t, n2)

	idleCostsNothing(ctx, t, n2)
	newCredentialsWakeIt(ctx, t, n2)
	pauseHoldsADeletion(ctx, t, n2)
	require.Empty(t, owned(ctx, t, id))
	removedByForce(ctx, t)
}

// newCredentialsWakeIt lets AWS refuse the credentials, and mends that by
// changing the Provider's Secret: nobody has to ask for a retry.
func newCredentialsWakeIt(ctx context.Context, t *testing.T, n *v1.Network) {
	t.Helper()
	fault, err := world.AddFault(ctx, stack.Fault{Target: "aws", Kind: "deny", Operation: "GetCallerIdentity"})
	require.NoError(t, err)
	annotate(ctx, t, n, v1.AnnotationOperation, temporal.VerbReconcile)
	until(ctx, t, n, func() bool { return n.Status.Operation.State == v1.OperationBlocked })
	require.Equal(t, "Auth", n.Status.LastError.Class)
	started := n.Status.Operation.ID
	resetByHand(ctx, t, started) // nothing is lost by that
	until(ctx, t, n, func() bool {
		return n.Status.Operation.State == v1.OperationBlocked && n.Status.Phase == v1.PhaseUpdating
	})
	require.Equal(t, started, n.Status.Operation.ID)
	require.NoError(t, world.RemoveFault(ctx, fault))
	p := provider()
	require.NoError(t, world.Kube.Get(ctx, client.ObjectKeyFromObject(p), p))
	secret := &corev1.Secret{ObjectMeta: named(p.Spec.Credentials.SecretRef.Name)}
	start := time.Now()
	annotate(ctx, t, secret, "example.com/rotated", "yes")
	until(ctx, t, n, func() bool { return isReady(n) })
	require.Less(t, time.Since(start), 2*time.Minute, "the slow timer of Auth is 8 minutes and more")
}

// idleCostsNothing looks at the history of an object workflow that rests, and
// at what a signal without news adds to it.
func idleCostsNothing(ctx context.Context, t *testing.T, n *v1.Network) {
	t.Helper()
	id := temporal.ObjectID("Network", n.Namespace, n.Name)
	var before int64
	eventually(t, 30*time.Second, "the object workflow rests", func() error {
		d, err := world.Temporal.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return err
		}
		before = d.GetWorkflowExecutionInfo().GetHistoryLength()
		if before >= 12 || d.GetPendingWorkflowTask() != nil {
			return fmt.Errorf("%d events", before)
		}
		return nil
	})
	require.NoError(t, world.Temporal.SignalWorkflow(ctx, id, "", temporal.SignalChanged, temporal.Changed{Generation: n.Generation}))
	eventually(t, 30*time.Second, "it looks and rests again", func() error {
		d, err := world.Temporal.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return err
		}
		after := d.GetWorkflowExecutionInfo().GetHistoryLength()
		if after == before || after >= 12 || d.GetPendingWorkflowTask() != nil {
			return fmt.Errorf("%d events, %d before", after, before)
		}
		t.Logf("an idle object has %d events; a resync made them %d", before, after)
		return nil
	})
}

// pauseHoldsADeletion deletes a paused object: it says how to proceed.
func pauseHoldsADeletion(ctx context.Context, t *testing.T, n *v1.Network) {
	t.Helper()
	_, err := infractl("pause", "network", n.Name)
	require.NoError(t, err)
	require.NoError(t, world.Kube.Delete(ctx, n))
	until(ctx, t, n, func() bool {
		c := meta.FindStatusCondition(n.Status.Conditions, v1.ConditionReady)
		return c != nil && c.Reason == "Paused" && strings.Contains(c.Message, "the deletion waits")
	})
	_, err = infractl("cancel", "network", n.Name)
	require.ErrorContains(t, err, "resume first")
	_, err = infractl("resume", "network", n.Name)
	require.NoError(t, err)
	eventually(t, 2*time.Minute, "it is deleted", func() error {
		if err := world.Kube.Get(ctx, client.ObjectKeyFromObject(n), n); err == nil {
			return errors.New(describe(n))
		}
		return nil
	})
}

// secondNetwork is the sample Network under another name.
func secondNetwork(ctx context.Context, t *testing.T) *v1.Network {
	t.Helper()
	n := network()
	require.NoError(t, world.Kube.Get(ctx, client.ObjectKeyFromObject(n), n))
	spec := n.Spec
	spec.ShootName = ""
	return &v1.Network{ObjectMeta: named("n2"), Spec: spec}
}

// until looks at the object until it is as wanted.
func until(ctx context.Context, t *testing.T, n *v1.Network, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("not in time; last seen: %s", describe(n))
		case <-time.After(200 * time.Millisecond):
		}
		require.NoError(t, world.Kube.Get(ctx, client.ObjectKeyFromObject(n), n))
	}
}

func annotate(ctx context.Context, t *testing.T, o client.Object, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	require.NoError(t, world.Kube.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// owned lists what the emulator has of an identity.
func owned(ctx context.Context, t *testing.T, id string) (left []string) {
	t.Helper()
	all, err := world.Inventory(ctx)
	require.NoError(t, err)
	for _, r := range all {
		if r.Owner == id {
			left = append(left, r.Type+" "+r.ID)
		}
	}
	return left
}

// infractl runs the command line against the stack; a refusal is its error.
func infractl(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(stack.Bin(), "infractl"), append(args, "--namespace", namespace)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.State.Kubeconfig, "TEMPORAL_ADDRESS="+world.State.TemporalAddress,
		"TEMPORAL_NAMESPACE="+world.State.TemporalNamespace)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}
