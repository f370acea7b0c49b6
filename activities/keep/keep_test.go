package keep

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

func always(int) bool { return true }

func TestOneMakesForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache[string, int]
		made := 0
		slowly := func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(10 * time.Second):
				made++
				return 7, nil
			}
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(impatient, "k", "1", always, slowly)
		require.ErrorIs(t, err, context.DeadlineExceeded, "a caller waits no longer than it may")
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				v, err := c.Get(t.Context(), "k", "1", always, slowly)
				require.NoError(t, err)
				require.Equal(t, 7, v)
			})
		}
		all.Wait()
		require.Equal(t, 1, made, "also of a call whose first caller has gone")
		time.Sleep(2 * time.Hour)
	})
}

func TestAFailureIsEachCallersOwnAndNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache[string, int]
		fail := func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return 0, faults.New(faults.Auth, "Refused", "key", "no")
		}
		got := make([]error, 2)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { _, got[i] = c.Get(t.Context(), "k", "1", always, fail) })
		}
		all.Wait()
		require.True(t, faults.Is(got[0], faults.Auth))
		require.NotSame(t, faults.As(got[0]), faults.As(got[1]))
		_, err := c.Get(t.Context(), "k", "1", always, func(context.Context) (int, error) { return 0, errors.New("as it is") })
		require.EqualError(t, err, "as it is")
		require.Zero(t, c.Len())
		_, err = c.Get(t.Context(), "k", "1", always, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		require.True(t, faults.Is(err, faults.Transient), "a call that hangs ends: %v", err)
	})
}

// A key must not stay in memory for as long as the process lives.
func TestWhatNobodyAsksForIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Cache[string, int]{Idle: time.Hour}
		for _, key := range []string{"used", "idle", "gone"} {
			_, err := c.Get(t.Context(), key, "", always, func(context.Context) (int, error) { return 1, nil })
			require.NoError(t, err)
		}
		c.Forget(func(key string) bool { return key == "gone" })
		require.Equal(t, 2, c.Len())
		for range 3 {
			time.Sleep(50 * time.Minute)
			_, err := c.Get(t.Context(), "used", "", always, nil)
			require.NoError(t, err)
		}
		require.Equal(t, 1, c.Len())
		time.Sleep(2 * time.Hour)
		require.Zero(t, c.Len())
	})
}
