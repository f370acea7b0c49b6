package workers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

const heartbeatTimeout = 15 * time.Second // as in lifecycle

// cutOff is a heartbeat that does not get through.
func cutOff(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// The call of a worker that is cut off from Temporal ends no later than
// Temporal gives its attempt up.
func TestACallEndsWithItsAttempt(t *testing.T) {
	for name, beat := range map[string]func(context.Context) error{
		"hangs": cutOff,
		"fails": func(context.Context) error { return serviceerror.NewUnavailable("no connection") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var down atomic.Bool
				var last time.Time
				ctx, stop := keepAlive(t.Context(), heartbeatTimeout, func(ctx context.Context) error {
					if down.Load() {
						return beat(ctx)
					}
					last = time.Now()
					return nil
				})
				defer stop()
				time.Sleep(time.Minute)
				require.NoError(t, ctx.Err())
				require.Nil(t, lostIn(ctx))
				down.Store(true)
				<-ctx.Done()
				require.LessOrEqual(t, time.Since(last), heartbeatTimeout)
				require.Greater(t, time.Since(last), heartbeatTimeout-beatEvery, "a short outage ends nothing")
				require.ErrorIs(t, ctx.Err(), context.Canceled)
				require.True(t, faults.Is(lostIn(ctx), faults.Transient))
				require.ErrorContains(t, lostIn(ctx), "no heartbeat has reached Temporal for 15s")
			})
		})
	}
}

func TestACallEndsWhenItsAttemptIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := keepAlive(t.Context(), heartbeatTimeout, func(context.Context) error { return serviceerror.NewNotFound("workflow execution already completed") })
		defer stop()
		start := time.Now()
		<-ctx.Done()
		require.Equal(t, beatEvery, time.Since(start))
		require.ErrorContains(t, lostIn(ctx), "already completed")
	})
}

// What Temporal only asks for does not end a call: its outcome is awaited.
func TestACallOutlivesItsWorkflowsCancellation(t *testing.T) {
	for _, asks := range []error{temporal.NewCanceledError(), activity.ErrActivityPaused, activity.ErrActivityReset} {
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithCancelCause(t.Context())
			beats := 0
			ctx, stop := keepAlive(parent, heartbeatTimeout, func(context.Context) error {
				beats++
				cancel(asks)
				return asks
			})
			time.Sleep(time.Minute + time.Second)
			require.NoError(t, ctx.Err())
			require.Equal(t, 12, beats, "heartbeats go on")
			stop()
			require.Nil(t, lostIn(ctx))
		})
	}
}

func TestACallSurvivesAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, stop := keepAlive(t.Context(), heartbeatTimeout, func(context.Context) error {
			if at := time.Since(start); at > 7*time.Second && at < 12*time.Second {
				return errors.New("no connection")
			}
			return nil
		})
		defer stop()
		time.Sleep(time.Minute)
		require.NoError(t, ctx.Err())
	})
}

func TestACallEndsWithItsWorkerAndItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, shutdown := context.WithCancelCause(t.Context())
		ctx, stop := keepAlive(parent, 0, func(context.Context) error { return nil })
		defer stop()
		shutdown(worker.ErrWorkerShutdown)
		<-ctx.Done()
		require.ErrorContains(t, lostIn(ctx), "the worker has stopped")

		parent, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ctx, stop = keepAlive(parent, 0, func(context.Context) error { return errors.New("no connection") })
		defer stop()
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		require.Nil(t, lostIn(ctx))
	})
}
