package wait

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

const (
	// lookTimeout is the time that one look has. Calls that are held back by an
	// account's limits and lists of many pages stay far below it.
	lookTimeout = 2 * time.Minute
	// lookGrace is the time that a look has to end once it is told to.
	lookGrace = 5 * time.Second
)

// errOverdue is the cause with which the context of a look ends that has
// taken too long.
var errOverdue = errors.New("the look has taken too long")

// seen is what a look has found.
type seen struct {
	done     bool
	sentence string
	err      error
	panicked any
	stack    []byte
}

// look lets check look once. It comes back even if check does not: a wait must
// not hold a slot, nor call itself alive, because of one call that hangs. A
// look ends with its attempt: another one may look by then.
func look(ctx context.Context, stop <-chan struct{}, what string, check Check) (done bool, sentence string, err error) {
	watched, end := context.WithTimeoutCause(ctx, lookTimeout, errOverdue)
	defer end()
	result := make(chan seen, 1)
	go func() {
		var s seen
		defer func() {
			if s.panicked = recover(); s.panicked != nil {
				s.stack = debug.Stack()
			}
			result <- s
		}()
		s.done, s.sentence, s.err = check(watched)
	}()
	select {
	case s := <-result:
		return s.verdict(ctx, watched, what)
	case <-watched.Done():
	case <-stop:
	}
	grace := time.NewTimer(lookGrace)
	defer grace.Stop()
	select {
	case s := <-result:
		return s.verdict(ctx, watched, what)
	case <-grace.C:
	}
	switch {
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case watched.Err() != nil:
		return false, "", overdue(what)
	}
	return false, "", Stopping(what)
}

// verdict is what the look has found, unless it failed because it was ended.
func (s seen) verdict(ctx, watched context.Context, what string) (bool, string, error) {
	switch {
	case s.panicked != nil:
		panic(fmt.Errorf("%v, in a look at:\n%s", s.panicked, s.stack)) // in the activity's goroutine, where Temporal reports it
	case s.err != nil && ctx.Err() != nil:
		return false, "", ctx.Err()
	case s.err != nil && errors.Is(context.Cause(watched), errOverdue):
		return false, "", overdue(what)
	}
	return s.done, s.sentence, s.err
}

func overdue(what string) error {
	return faults.New(faults.Transient, "LookTimeout", what, "a look at it did not end within %s", lookTimeout).
		WithHint(faults.OwnerOperator, "see whether the API that is asked answers; the look is repeated by itself")
}
