package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const namespace = "infra"

// story is what a user saw of an object over time: phases and steps.
type story struct {
	phases []v1.Phase
	steps  []string
}

func (s *story) note(c *v1.CommonStatus) {
	if n := len(s.phases); c.Phase != "" && (n == 0 || s.phases[n-1] != c.Phase) {
		s.phases = append(s.phases, c.Phase)
	}
	if c.Operation == nil || c.Operation.Step == "" {
		return
	}
	if n := len(s.steps); n == 0 || s.steps[n-1] != c.Operation.Step {
		s.steps = append(s.steps, c.Operation.Step)
	}
}

// follow watches an object until done says so, or until it is deleted when
// done is nil. It fails the test when an operation stalls, which none does in a
// world without faults; what must always hold is the checker's.
func follow(ctx context.Context, t *testing.T, o v1.Object, list client.ObjectList, done func(v1.Object) bool) *story {
	t.Helper()
	name := o.GetName()
	w, err := world.Kube.Watch(ctx, list, &client.ListOptions{Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", name)})
	require.NoError(t, err)
	defer w.Stop()
	s := &story{}
	var last v1.Object
	for {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not in time; last seen: %s", name, describe(last))
		case e, ok := <-w.ResultChan():
			require.True(t, ok, "watch ended")
			now, ok := e.Object.(v1.Object)
			require.True(t, ok, "unexpected event %#v", e.Object)
			if e.Type == "DELETED" {
				require.Nil(t, done, "%s was deleted", name)
				return s
			}
			neverStalls(t, now)
			s.note(now.Common())
			if last = now; done != nil && done(now) {
				return s
			}
		}
	}
}

func neverStalls(t *testing.T, now v1.Object) {
	t.Helper()
	stalled := meta.FindStatusCondition(now.Common().Conditions, v1.ConditionStalled)
	if stalled != nil && stalled.Status == metav1.ConditionTrue {
		t.Fatalf("%s stalled: %s", now.GetName(), stalled.Message)
	}
}

func isReady(o v1.Object) bool {
	c := o.Common()
	return c.ObservedGeneration == o.GetGeneration() && meta.IsStatusConditionTrue(c.Conditions, v1.ConditionReady)
}

// atStep is done when the object's operation is in the step.
func atStep(step string) func(v1.Object) bool {
	return func(o v1.Object) bool {
		op := o.Common().Operation
		return op != nil && op.Step == step && op.State == v1.OperationRunning
	}
}

func describe(o v1.Object) string {
	if o == nil {
		return "nothing"
	}
	c := o.Common()
	var b strings.Builder
	fmt.Fprintf(&b, "phase %s", c.Phase)
	if c.Operation != nil {
		fmt.Fprintf(&b, ", %s at step %s (%s), waiting for %q", c.Operation.Type, c.Operation.Step, c.Operation.State, c.Operation.WaitingFor)
	}
	if c.LastError != nil {
		fmt.Fprintf(&b, ", last error %+v", *c.LastError)
	}
	return b.String()
}

// within is a context for one expectation.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t *testing.T, d time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(d)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, d, err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}
