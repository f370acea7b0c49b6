package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// TestVerbs asks for pause (and resume), cancel, retry, deletion and another
// spec at every step of every operation. The object always ends in a legal
// state, and a deletion always ends with nothing left.
func TestVerbs(t *testing.T) {
	if !full() {
		t.Skip("part of make chaos")
	}
	expect, _ := dryRun(t)
	all := allWishes(learned.steps, dice()).split(wishesPerStack)
	for k, w := range all {
		t.Run(fmt.Sprintf("%d of %d", k+1, len(all)), func(t *testing.T) {
			ownStack(t)
			fulfilAll(t, w, expect)
		})
	}
	failUnconverged(t, "verbs")
}

// fulfilAll has all wishes fulfilled, in as many lanes as there are.
func fulfilAll(t *testing.T, w *wishes, expect *states) {
	var wg sync.WaitGroup
	for i := range laneCount() {
		wg.Go(func() {
			kinds := []string{v1.KindNetwork, v1.KindCluster}
			if i%2 == 0 {
				kinds = []string{v1.KindCluster, v1.KindNetwork}
			}
			if i == 0 {
				kinds = append([]string{v1.KindProviderType, v1.KindProvider}, kinds...)
			}
			for _, kind := range kinds {
				inLanes(t, "verbs", expect, func(j *journey) error { return (&verbs{j, w, kind, j.lane.Key(kind)}).all() })
			}
		})
	}
	wg.Wait()
}

// verbs asks for everything at all steps of the operations of one object.
type verbs struct {
	*journey
	wishes *wishes
	kind   string
	key    invariants.Key
}

func (v *verbs) all() error {
	create, update, remove := "Create"+v.kind, "Update"+v.kind, "Delete"+v.kind
	if v.wishes.count(create, update, remove) == 0 {
		return nil
	}
	var below []string
	for _, kind := range lab.Kinds {
		if kind == v.kind {
			break
		}
		below = append(below, kind)
		if err := v.create(kind); err != nil {
			return err
		}
	}
	for v.wishes.count(create, update, remove) > 0 {
		if err := v.life(create, update, remove); err != nil {
			return err
		}
	}
	for _, kind := range slices.Backward(below) {
		if err := v.remove(kind); err != nil {
			return err
		}
	}
	return nil
}

// life is one life of the object: its creation, all updates that are left while
// it lives, its deletion.
func (v *verbs) life(create, update, remove string) error {
	if err := v.operation(create, func(ctx context.Context) error { return v.lane.Create(ctx, v.key, nil) }); err != nil {
		return err
	}
	for v.wishes.count(update) > 0 && v.lane.Checker.Latest(v.key) != nil {
		if err := v.operation(update, func(ctx context.Context) error { _, err := v.lane.Change(ctx, v.key); return err }); err != nil {
			return err
		}
	}
	if v.lane.Checker.Latest(v.key) == nil {
		return nil
	}
	return v.operation(remove, func(ctx context.Context) error { return v.lane.Delete(ctx, v.key) })
}

// operation starts an operation, fulfils a wish in it, and judges its end.
func (v *verbs) operation(operation string, start func(context.Context) error) error {
	w, wished := v.wishes.take(operation)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	run := lab.Run{Part: "verbs", Operation: operation, What: w.String()}
	begin := time.Now()
	var armed *lab.Armed
	if wished {
		armed = v.lane.Conductor.Arm(v.rule(operation, w))
		defer armed.Release()
	}
	err := start(ctx)
	var last v1.Object
	end := operation
	if err == nil && wished {
		end, last, err = v.fulfil(ctx, operation, w, armed)
	}
	if last == nil {
		last = v.lane.Checker.Latest(v.key)
	}
	if err == nil {
		err = v.settle(ctx, end)
	}
	run.Took = time.Since(begin)
	stuck := err
	if err == nil {
		run.Operation = end // the state that the last operation ends in
		err = v.judge(ctx, &run, v.key, last)
		run.Operation = operation
	}
	if run.Converged = err == nil && len(run.Twice)+len(run.Left) == 0; !run.Converged {
		run.Problem = fmt.Sprintf("%s %s, %s: %v; twice: %v; left: %v", operation, v.key, run.What, err, run.Twice, run.Left)
	}
	if wished || !run.Converged {
		table.Add(run)
	}
	return stuck
}

// rule holds the worker in the step; for retry it makes the step stall.
func (v *verbs) rule(operation string, w wish) lab.Rule {
	r := lab.Rule{Boundary: lab.Boundary{Workflow: operation, Moment: hook.Before}, Object: lab.WorkflowID(v.key), Then: hook.Go}
	if len(w.step.Calls) == 0 {
		r.Step = w.step.Name
		return r
	}
	r.Boundary = w.step.Calls[0]
	if w.ask == temporal.VerbRetry {
		r.Then = hook.Stall
	}
	return r
}

// fulfil does what is wished for once the operation is in the step. It returns
// the operation that the object ends with, and the object as it was seen last
// before a deletion was asked for.
func (v *verbs) fulfil(ctx context.Context, operation string, w wish, armed *lab.Armed) (end string, last v1.Object, err error) {
	select {
	case <-armed.Reached():
	case <-ctx.Done():
		return "", nil, fmt.Errorf("step %s was never reached: %s", w.step.Name, invariants.Describe(v.lane.Checker.Latest(v.key)))
	}
	last = v.lane.Checker.Latest(v.key)
	deleting := strings.HasPrefix(operation, "Delete")
	switch w.ask {
	case askDelete:
		err = v.lane.Delete(ctx, v.key)
		armed.Release()
		return "Delete" + v.kind, last, err
	case askChange:
		_, err = v.lane.Change(ctx, v.key)
		armed.Release()
		if deleting {
			return operation, last, err
		}
		return "Update" + v.kind, last, err
	case temporal.VerbPause:
		return operation, last, v.pause(ctx, w, armed)
	case temporal.VerbRetry:
		return operation, last, v.retry(ctx, w, armed)
	default:
		end, err = v.cancel(ctx, operation, w, armed)
		return end, last, err
	}
}

// ask asks for a verb through the wish's door. A step that makes no call is held
// within a workflow task, which must go on before anything is answered.
func (v *verbs) ask(ctx context.Context, w wish, verb string, armed *lab.Armed) (refused string, err error) {
	if len(w.step.Calls) == 0 {
		time.AfterFunc(200*time.Millisecond, armed.Release)
	}
	if w.annotation {
		return v.lane.VerbByAnnotation(ctx, v.key, verb)
	}
	_, refused, err = v.lane.Verb(ctx, v.key, verb)
	return refused, err
}

func ended(o v1.Object) bool {
	op := o.Common().Operation
	return op != nil && (op.State == v1.OperationSucceeded || op.State == v1.OperationCancelled || op.State == v1.OperationFailed)
}

// retry waits for the stall and ends it.
func (v *verbs) retry(ctx context.Context, w wish, armed *lab.Armed) error {
	if len(w.step.Calls) == 0 { // cannot stall: retry has nothing to do
		armed.Release()
		return nil
	}
	if _, err := v.lane.Checker.Await(ctx, v.key, stalled); err != nil {
		return err
	}
	refused, err := v.ask(ctx, w, temporal.VerbRetry, armed)
	if err != nil || refused != "" {
		return errors.Join(err, unless(refused == "", "retry was refused: "+refused))
	}
	_, err = v.lane.Checker.Await(ctx, v.key, func(o v1.Object) bool { return o == nil || !stalled(o) })
	return err
}

func stalled(o v1.Object) bool {
	return o != nil && apimeta.IsStatusConditionTrue(o.Common().Conditions, v1.ConditionStalled)
}

// cancel cancels. A deletion refuses; a creation leaves an object that can be
// deleted; an update leaves one that goes on at the word retry.
func (v *verbs) cancel(ctx context.Context, operation string, w wish, armed *lab.Armed) (end string, err error) {
	refused, err := v.ask(ctx, w, temporal.VerbCancel, armed)
	armed.Release()
	if err != nil {
		return operation, err
	}
	if refused != "" {
		cancellable := !strings.HasPrefix(operation, "Delete") && len(w.step.Calls) > 0
		return operation, unless(!cancellable, "cancel was refused: "+refused)
	}
	o, err := v.lane.Checker.Await(ctx, v.key, func(o v1.Object) bool { return o == nil || ended(o) })
	if err != nil || o == nil {
		return operation, errors.Join(err, unless(strings.HasPrefix(operation, "Delete") || o != nil, "the object is gone"))
	}
	if o.Common().Operation.State == v1.OperationSucceeded {
		return operation, nil // the step was the last, and over before anybody could be asked
	}
	if o, err = v.lane.Checker.Await(ctx, v.key, func(o v1.Object) bool {
		return o != nil && o.Common().Phase == v1.PhaseFailed
	}); err != nil {
		return operation, err
	}
	ready := apimeta.FindStatusCondition(o.Common().Conditions, v1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return operation, fmt.Errorf("cancelled, but Ready: %s", invariants.Describe(o))
	}
	if strings.HasPrefix(operation, "Create") {
		return "Delete" + v.kind, v.lane.Delete(ctx, v.key)
	}
	_, refused, err = v.lane.Verb(ctx, v.key, temporal.VerbRetry)
	return operation, errors.Join(err, unless(refused == "", "retry after cancel was refused: "+refused))
}

// settle waits for the end of the last operation.
func (v *verbs) settle(ctx context.Context, operation string) error {
	if strings.HasPrefix(operation, "Delete") {
		return v.lane.AwaitGone(ctx, v.key)
	}
	generation, err := v.lane.Generation(ctx, v.key)
	if err != nil {
		return err
	}
	_, err = v.lane.AwaitGeneration(ctx, v.key, generation)
	return err
}

func gone(l *lab.Lane, key invariants.Key) bool { return l.Checker.Latest(key) == nil }

// unless is an error with the sentence unless ok.
func unless(ok bool, sentence string) error {
	if ok {
		return nil
	}
	return errors.New(sentence)
}

func requireSteps(t *testing.T, steps map[string][]lab.Step) {
	t.Helper()
	for _, kind := range lab.Kinds {
		for _, verb := range []string{"Create", "Update", "Delete"} {
			require.NotEmpty(t, steps[verb+kind], verb+kind)
		}
	}
}
