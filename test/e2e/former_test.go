package e2e

import (
	"context"
	"fmt"
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

// removedByForce takes a Network's finalizer away while its creation is under
// way, as people do who are in a hurry, and makes another Network of the name:
// with the object's workflow at work, and after that was terminated, too.
func removedByForce(ctx context.Context, t *testing.T) {
	t.Helper()
	fault, err := world.AddFault(ctx, stack.Fault{Target: "aws", Kind: "deny", Operation: "GetCallerIdentity"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = world.RemoveFault(context.WithoutCancel(ctx), fault) })

	t.Log("an object that goes without its finalizer is reported")
	first := stalledNetwork(ctx, t)
	takeAway(ctx, t, first, nil)
	eventOn(ctx, t, first, "RemovedByForce", first.Annotations[v1.AnnotationID])

	t.Log("the operation of a former object is stopped, and not taken for the new one's")
	second := stalledNetwork(ctx, t)
	takeAway(ctx, t, second, func() error { // earlier, the pause or the deletion would start it again
		return world.Temporal.TerminateWorkflow(ctx, temporal.ObjectID("Network", namespace, second.Name), "", "by hand")
	})
	third := stalledNetwork(ctx, t)
	require.True(t, strings.HasSuffix(third.Status.Operation.ID, "/create/1.2"), third.Status.Operation.ID)
	eventOn(ctx, t, third, "FormerOperation", second.Status.Operation.ID)

	require.NoError(t, world.RemoveFault(ctx, fault))
	require.NoError(t, world.Kube.Delete(ctx, third))
	gone(ctx, t, third)
}

// stalledNetwork makes the Network n3 and waits until its creation has stalled
// before it made anything.
func stalledNetwork(ctx context.Context, t *testing.T) *v1.Network {
	t.Helper()
	n := secondNetwork(ctx, t)
	n.Name = "n3"
	require.NoError(t, world.Kube.Create(ctx, n))
	until(ctx, t, n, func() bool {
		return n.Status.Operation != nil && n.Status.Operation.State == v1.OperationBlocked && n.Status.Phase == v1.PhaseFailed
	})
	require.Equal(t, "Preflight", n.Status.Operation.Step)
	return n
}

// takeAway deletes an object and takes its finalizers from it, before our
// deletion of it gets anywhere: that waits while the object is paused. first,
// if any, is done just before.
func takeAway(ctx context.Context, t *testing.T, n *v1.Network, first func() error) {
	t.Helper()
	annotate(ctx, t, n, v1.AnnotationPaused, "true")
	require.NoError(t, world.Kube.Delete(ctx, n))
	until(ctx, t, n, func() bool {
		c := meta.FindStatusCondition(n.Status.Conditions, v1.ConditionReady)
		return c != nil && strings.Contains(c.Message, "the deletion waits")
	})
	if first != nil {
		settled(ctx, t, n)
		require.NoError(t, first())
	}
	require.NoError(t, world.Kube.Patch(ctx, n, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	gone(ctx, t, n)
}

// settled waits until the bridge has said to the object's workflow what it has
// to say: for two seconds nothing has come into its history.
func settled(ctx context.Context, t *testing.T, n *v1.Network) {
	t.Helper()
	var events int64
	since := time.Now()
	eventually(t, time.Minute, "the object workflow is left alone", func() error {
		d, err := world.Temporal.DescribeWorkflowExecution(ctx, temporal.ObjectID("Network", n.Namespace, n.Name), "")
		if err != nil {
			return err
		}
		if now := d.GetWorkflowExecutionInfo().GetHistoryLength(); now != events {
			events, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < 2*time.Second {
			return fmt.Errorf("%d events, the last %s ago", events, quiet)
		}
		return nil
	})
}

func gone(ctx context.Context, t *testing.T, n *v1.Network) {
	t.Helper()
	uid := n.UID
	eventually(t, time.Minute, n.Name+" is gone", func() error {
		now := &v1.Network{}
		if err := world.Kube.Get(ctx, client.ObjectKeyFromObject(n), now); err == nil && now.UID == uid {
			return fmt.Errorf("%s", describe(now))
		}
		return nil
	})
}

// eventOn waits for an Event on the object whose message has the words.
func eventOn(ctx context.Context, t *testing.T, n *v1.Network, reason, words string) {
	t.Helper()
	eventually(t, time.Minute, reason+" on "+n.Name, func() error {
		all := &corev1.EventList{}
		if err := world.Kube.List(ctx, all, client.InNamespace(n.Namespace)); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.InvolvedObject.UID == n.UID && e.Reason == reason && strings.Contains(e.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("none of %d Events", len(all.Items))
	})
}
