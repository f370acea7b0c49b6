package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
)

// pause pauses and resumes. While it is paused no other step starts.
func (v *verbs) pause(ctx context.Context, w wish, armed *lab.Armed) error {
	refused, err := v.ask(ctx, w, temporal.VerbPause, armed)
	if err != nil || refused != "" {
		armed.Release()
		if gone(v.lane, v.key) {
			return nil // its last step had no call
		}
		return errors.Join(err, unless(refused == "", "pause was refused: "+refused))
	}
	armed.Release()
	o, err := v.lane.Checker.Await(ctx, v.key, func(o v1.Object) bool { return o == nil || isPaused(o) || ended(o) })
	if err != nil || o == nil {
		return err
	}
	// The operation rests: what it has not begun it does not begin. What it would
	// do takes less time than a look around.
	before := len(v.lane.Conductor.Trace())
	if _, err := checker.Inventory(ctx); err != nil {
		return err
	}
	if begun := begunSince(v.lane.Conductor.Trace(), before, lab.WorkflowID(v.key)+"/", w.step.Calls); begun != "" {
		return fmt.Errorf("%s began while the object was paused", begun)
	}
	refused, err = v.ask(ctx, w, temporal.VerbResume, armed)
	if err != nil && gone(v.lane, v.key) {
		return nil // what ran was its last
	}
	return errors.Join(err, unless(refused == "", "resume was refused: "+refused))
}

// begunSince names an activity that the operations with the prefix have begun
// since the trace had so many entries, but for those under way by then; and but
// for what is done under a lock, which is finished and given back: others wait
// for it.
func begunSince(trace []lab.Passed, since int, prefix string, underWay []lab.Boundary) string {
	locks := map[string]int{} // by operation; a lease that is kept counts, too
	for i, p := range trace {
		if p.Local || !strings.HasPrefix(p.WorkflowID, prefix) || p.Attempt != 1 {
			continue
		}
		begins := p.Moment == hook.Before
		if i >= since && begins && locks[p.WorkflowID] == 0 && !slices.ContainsFunc(underWay, func(b lab.Boundary) bool {
			return b.Activity == p.Activity && b.Call == p.Call
		}) {
			return p.Activity
		}
		switch {
		case begins && p.Activity == contract.AcquireLease.Name && releases(trace[i:], p.WorkflowID):
			locks[p.WorkflowID]++
		case !begins && p.Activity == contract.ReleaseLease.Name && locks[p.WorkflowID] > 0:
			locks[p.WorkflowID]--
		}
	}
	return ""
}

// releases says whether the operation gives back what it acquires first in this
// trace, before it acquires anything else: then that was a lock.
func releases(trace []lab.Passed, workflowID string) bool {
	for _, p := range trace[1:] {
		switch {
		case p.WorkflowID != workflowID || p.Moment != hook.Before:
		case p.Activity == contract.ReleaseLease.Name:
			return true
		case p.Activity == contract.AcquireLease.Name:
			return false
		}
	}
	return false
}

// isPaused says that the operation, or the object, rests.
func isPaused(o v1.Object) bool {
	for _, kind := range []string{v1.ConditionProgressing, v1.ConditionReady} {
		if c := apimeta.FindStatusCondition(o.Common().Conditions, kind); c != nil && c.Status == metav1.ConditionFalse && c.Reason == "Paused" {
			return true
		}
	}
	return false
}
