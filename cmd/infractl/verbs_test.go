package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

func TestEveryVerbHasACommandThatSaysWhatItDoes(t *testing.T) {
	root := newRoot()
	for _, verb := range temporal.Verbs() {
		cmd, _, err := root.Find([]string{verb})
		require.NoError(t, err)
		require.Equal(t, verb, cmd.Name())
		require.NotEmpty(t, cmd.Short)
		require.Contains(t, cmd.Long, v1.AnnotationOperation+"="+verb)
		require.NotNil(t, cmd.ValidArgsFunction, "the shell completes kinds and names")
	}
}

func TestVerbOfAKindWithoutOperations(t *testing.T) {
	root := newRoot()
	root.SetArgs([]string{"retry", "account", "acme"})
	require.ErrorContains(t, root.Execute(), "kind Account has no operations")
	root = newRoot()
	root.SetArgs([]string{"retry", "network", "n1", "-o", "yaml"})
	require.ErrorContains(t, root.Execute(), "want json")
}

func TestPrintVerb(t *testing.T) {
	var out bytes.Buffer
	accepted := verbResult{Kind: "Network", Namespace: "infra", Name: "n1", Verb: "retry", Accepted: true, Text: "step EnsureShoot runs again"}
	require.NoError(t, printVerb(&out, accepted, ""))
	require.Equal(t, "Network infra/n1: step EnsureShoot runs again\n", out.String())

	out.Reset()
	resumed := accepted
	resumed.Text = "Network infra/n1 goes on"
	require.NoError(t, printVerb(&out, resumed, ""))
	require.Equal(t, "Network infra/n1 goes on\n", out.String(), "the object once")

	out.Reset()
	refused := accepted
	refused.Accepted, refused.Text = false, "nothing to retry"
	require.EqualError(t, printVerb(&out, refused, ""), "refused: nothing to retry")
	require.Empty(t, out.String())
	require.EqualError(t, printVerb(&out, refused, "json"), "refused: nothing to retry", "scripts see the exit code")
	require.JSONEq(t, `{"kind":"Network","namespace":"infra","name":"n1","verb":"retry","accepted":false,"text":"nothing to retry"}`, out.String())
}

func TestAccepts(t *testing.T) {
	now := metav1.Now()
	of := func(op v1.OperationStatus) object {
		var o object
		o.Status.Operation = &op
		return o
	}
	require.Equal(t, []string{"pause", "cancel"}, accepts(of(v1.OperationStatus{State: v1.OperationRunning, Cancellable: true})))
	require.Equal(t, []string{"retry", "skip", "pause"}, accepts(of(v1.OperationStatus{State: v1.OperationBlocked, Skippable: true})))
	require.Equal(t, []string{"retry", "reconcile", "pause"}, accepts(of(v1.OperationStatus{State: v1.OperationCancelled, FinishedAt: &now})))
	require.Equal(t, []string{"reconcile", "pause"}, accepts(of(v1.OperationStatus{State: v1.OperationSucceeded, FinishedAt: &now})))
	paused := of(v1.OperationStatus{State: v1.OperationRunning})
	paused.Annotations = map[string]string{v1.AnnotationPaused: "true"}
	require.Equal(t, []string{"resume"}, accepts(paused))
}

// busy turns updates away so many times, and then answers.
type busy struct {
	temporalclient.WorkflowUpdateHandle
	times, asked int
	end          error
}

func (b *busy) NewWithStartWorkflowOperation(temporalclient.StartWorkflowOptions, any, ...any) temporalclient.WithStartWorkflowOperation {
	return nil
}

func (b *busy) UpdateWithStartWorkflow(context.Context, temporalclient.UpdateWithStartWorkflowOptions) (temporalclient.WorkflowUpdateHandle, error) {
	if b.asked++; b.asked <= b.times {
		return nil, serviceerror.NewWorkflowNotReady("workflow task failed")
	}
	return b, nil
}

func (b *busy) Get(_ context.Context, reply any) error {
	reply.(*temporal.VerbReply).Text = "step EnsureBucket runs again"
	return b.end
}

var someNetwork = object{common: common{TypeMeta: metav1.TypeMeta{Kind: "Network"}}}

func TestAVerbThatTemporalTurnsAwayIsSentAgain(t *testing.T) {
	b := &busy{times: 2}
	reply, err := send(t.Context(), b, someNetwork, temporal.VerbRequest{Verb: temporal.VerbRetry})
	require.NoError(t, err)
	require.Equal(t, "step EnsureBucket runs again", reply.Text)
	require.Equal(t, 3, b.asked)

	b = &busy{end: errors.New("refused")}
	_, err = send(t.Context(), b, someNetwork, temporal.VerbRequest{Verb: temporal.VerbRetry})
	require.ErrorContains(t, err, "refused")
	require.Equal(t, 1, b.asked, "an answer is an answer")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = send(ctx, &busy{times: 1000}, someNetwork, temporal.VerbRequest{Verb: temporal.VerbRetry})
	require.Error(t, err)
}

// While no worker runs, the call ends by its own deadline or by the server's.
func TestNoAnswerSaysWhatBecomesOfTheVerb(t *testing.T) {
	for name, err := range map[string]error{
		"the update's deadline": temporalclient.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded),
		"the server's":          serviceerror.NewCanceled("stream terminated by RST_STREAM with error code: CANCEL"),
		"the call's":            serviceerror.NewDeadlineExceeded("context deadline exceeded"),
	} {
		require.True(t, unanswered(err), name)
	}
	require.False(t, unanswered(serviceerror.NewUnavailable("connection refused")))

	o := someNetwork
	o.Namespace, o.Name = "infra", "n1"
	text := silence(o, temporal.VerbRequest{Verb: temporal.VerbRetry}, 20400*time.Millisecond).Error()
	for _, want := range []string{"no worker has answered for Network infra/n1 within 20s", "retry is still done if", "/readyz", "infractl describe network n1", v1.AnnotationOperation + "=retry"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "RST_STREAM")
}
