package wait_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// beats notes the heartbeats of one activity.
type beats struct {
	mu      sync.Mutex
	last    time.Time
	gap     time.Duration // the longest time without one
	details string
}

func (b *beats) note(details converter.EncodedValues) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gap, b.last = max(b.gap, time.Since(b.last)), time.Now()
	if details.HasValues() {
		_ = details.Get(&b.details)
	}
}

// run runs f as an activity, in the bubble's time.
func run(t *testing.T, f func(ctx context.Context) error) (*beats, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Hour)
	b := &beats{last: time.Now()}
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) { b.note(details) })
	env.RegisterActivity(f)
	_, err := env.ExecuteActivity(f)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gap = max(b.gap, time.Since(b.last))
	return b, err
}

// A look may take longer than the heartbeat timeout (15 s): one that waits for
// tokens of a cloud's account, or for an API server that is slow.
func TestHeartbeatsGoOnDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		b, err := run(t, func(ctx context.Context) error {
			return wait.For(ctx, contract.ObjectRef{}, time.Second, nil, func(context.Context) (bool, string, error) {
				looks++
				time.Sleep(50 * time.Second)
				return looks == 2, "half of it", nil
			})
		})
		require.NoError(t, err)
		require.Equal(t, 2, looks)
		require.LessOrEqual(t, b.gap, 30*time.Second, "the throttle of this environment")
		require.Equal(t, "half of it", b.details, "a beat repeats what was said last")
	})
}

// A look that hangs ends with its deadline, also one that does not listen.
func TestALookThatHangsEnds(t *testing.T) {
	for name, hang := range map[string]func(context.Context) error{
		"listens": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"is deaf": func(context.Context) error { time.Sleep(time.Hour); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := wait.For(t.Context(), contract.ObjectRef{Name: "n1"}, time.Second, nil, func(ctx context.Context) (bool, string, error) {
					return false, "", hang(ctx)
				})
				require.True(t, faults.Is(err, faults.Transient), "%v", err)
				require.ErrorContains(t, err, "did not end within 2m0s")
				require.LessOrEqual(t, time.Since(start), 3*time.Minute)
				time.Sleep(2 * time.Hour) // the deaf one
			})
		})
	}
}

// Another attempt may be looking by then.
func TestALostAttemptEndsItsLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lose := context.WithCancel(t.Context())
		looking := false
		time.AfterFunc(time.Minute, lose)
		start := time.Now()
		err := wait.For(ctx, contract.ObjectRef{}, time.Second, nil, func(ctx context.Context) (bool, string, error) {
			looking = true
			defer func() { looking = false }()
			<-ctx.Done()
			return false, "", faults.New(faults.Transient, "Hung", "", "the call was ended")
		})
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, looking)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestTheErrorOfALookIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := errors.New("as it is")
		err := wait.For(t.Context(), contract.ObjectRef{}, time.Second, nil, func(context.Context) (bool, string, error) { return false, "", want })
		require.Equal(t, want, err)
	})
	require.PanicsWithError(t, "", func() {
		defer func() {
			if p, ok := recover().(error); ok {
				require.ErrorContains(t, p, "wait_test.go", "with the place")
				panic(errors.New(""))
			}
		}()
		_ = wait.For(t.Context(), contract.ObjectRef{}, time.Second, nil, func(context.Context) (bool, string, error) { panic("in a look") })
	})
}
