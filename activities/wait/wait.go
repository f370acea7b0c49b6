// Package wait is the loop inside every Wait… activity: check, say what it
// waits for, sleep until something happens, check again.
package wait

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Teller shows people what an object waits for; telling is best effort.
type Teller interface {
	// Tell writes the sentence to status.operation.waitingFor of the object; an
	// empty sentence removes it.
	Tell(ctx context.Context, object contract.ObjectRef, sentence string)
}

type tellerKey struct{}

// WithTeller returns a context whose waits tell t. Workers put it into their
// background activity context.
func WithTeller(ctx context.Context, t Teller) context.Context {
	return context.WithValue(ctx, tellerKey{}, t)
}

// Check looks once. The sentence says what is still missing, such as
// "shoot garden-core/n1 45 %: waiting until workers have joined".
type Check func(ctx context.Context) (done bool, sentence string, err error)

// For calls check at once, and again on every wake and every poll interval,
// until it is done or fails. It heartbeats apart from the looks, and tells the
// object each new sentence. wake may be nil.
//
// It returns check's error as it is; context.Canceled when the step was
// cancelled; and a Transient fault when a look takes longer than 2 minutes, or
// when the worker shuts down, so that another worker goes on at once.
func For(ctx context.Context, object contract.ObjectRef, poll time.Duration, wake <-chan struct{}, check Check) error {
	ctx, rest := Beat(ctx, beatEvery)
	defer rest()
	w := newVoice(ctx, object)
	defer w.say("")
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.stop:
			return Stopping(object.String())
		case <-wake:
		case <-next.C:
		}
		done, sentence, err := look(ctx, w.stop, object.String(), check)
		if done || err != nil {
			return err
		}
		w.say(sentence)
		next.Reset(poll)
	}
}

// Silently is For without a sentence: for waits that go on beside the work of a
// step, which says itself what it waits for.
func Silently(ctx context.Context, poll time.Duration, wake <-chan struct{}, check func(ctx context.Context) (bool, error)) error {
	return For(context.WithValue(ctx, tellerKey{}, nil), contract.ObjectRef{}, poll, wake, func(ctx context.Context) (bool, string, error) {
		done, err := check(ctx)
		return done, "", err
	})
}

// Stopping is what a wait returns when its worker shuts down: a fault that lets
// another worker go on at once. what is what is waited for.
func Stopping(what string) error {
	f := faults.New(faults.Transient, "WorkerStopping", what, "the worker that waited is shutting down; another one goes on")
	f.RetryAt = time.Millisecond
	return f
}

// voice tells, without repeating itself.
type voice struct {
	ctx    context.Context
	object contract.ObjectRef
	teller Teller
	stop   <-chan struct{} // closed when the worker shuts down
	last   string
}

func newVoice(ctx context.Context, object contract.ObjectRef) *voice {
	v := &voice{ctx: ctx, object: object}
	v.teller, _ = ctx.Value(tellerKey{}).(Teller)
	if activity.IsActivity(ctx) {
		v.stop = activity.GetWorkerStopChannel(ctx)
	}
	return v
}

func (v *voice) say(sentence string) {
	if sentence == v.last {
		return
	}
	v.last = sentence
	if sentence != "" {
		Say(v.ctx, sentence)
	}
	if v.teller == nil {
		return
	}
	// The last word must get out even when the step was cancelled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), 5*time.Second)
	defer cancel()
	v.teller.Tell(ctx, v.object, sentence)
}

// Tell shows on the object what it waits for; an empty sentence takes that away.
// It is for activities that are no waits themselves.
func Tell(ctx context.Context, object contract.ObjectRef, sentence string) {
	if t, ok := ctx.Value(tellerKey{}).(Teller); ok {
		t.Tell(ctx, object, sentence)
	}
}

// Missing joins the names of what is not ready yet: "a, b and 3 more".
func Missing(names []string, most int) string {
	if len(names) <= most {
		return join(names)
	}
	return fmt.Sprintf("%s and %d more", join(names[:most]), len(names)-most)
}

func join(names []string) string {
	s := ""
	for i, n := range names {
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}
