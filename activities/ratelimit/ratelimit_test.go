package ratelimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

var (
	slow = Limit{Rate: 0.25, Burst: 1} // a token each four seconds
	acme = Key{Account: "acme", Service: "s3", Region: "us-west-2"}
)

// take takes a token and tells how long that took.
func take(ctx context.Context, p *Pool, k Key) (time.Duration, func(bool), error) {
	began := time.Now()
	done, err := p.Take(ctx, k, slow)
	return time.Since(began), done, err
}

func TestRefusalComesSoonAndSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{})
		_, _, err := take(t.Context(), p, acme)
		require.NoError(t, err)
		took, _, err := take(t.Context(), p, acme)
		require.True(t, faults.Is(err, faults.Throttled), err)
		require.Zero(t, took, "who would wait four seconds gives its slot back at once")
		require.Equal(t, 6*time.Second, faults.As(err).RetryAt)
		require.Equal(t, "account acme: its allowance of calls to s3 is in use by its other operations; this one has its turn in about 6s (RateLimited)", err.Error())

		took, _, err = take(t.Context(), p, Key{Account: "other", Service: "s3", Region: "us-west-2"})
		require.NoError(t, err, "another account has another bucket")
		require.Zero(t, took)

		time.Sleep(3 * time.Second)
		took, _, err = take(t.Context(), p, acme)
		require.NoError(t, err)
		require.Equal(t, time.Second, took, "a short wait is worth it")
	})
}

func TestWhoGotThroughWaitsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{})
		ctx := WithAttempt(t.Context())
		_, done, err := take(ctx, p, acme)
		require.NoError(t, err)
		done(false)
		took, done, err := take(ctx, p, acme)
		require.NoError(t, err, "it would have to begin anew")
		require.Equal(t, 4*time.Second, took)
		done(false)

		_, _, err = take(WithAttempt(t.Context()), p, acme)
		require.Error(t, err, "another attempt")
	})
}

func TestThrottledAttemptHasNotGotThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{})
		ctx := WithAttempt(t.Context())
		_, done, err := take(ctx, p, acme)
		require.NoError(t, err)
		done(true)
		_, _, err = take(ctx, p, acme)
		require.Error(t, err)
		require.Equal(t, 0.2, p.bucket(acme, slow).rate(time.Now()), "halved, but not below the floor")
	})
}

func TestDeadlineAndCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{MaxWait: time.Minute})
		_, _, err := take(t.Context(), p, acme)
		require.NoError(t, err)

		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		took, _, err := take(soon, p, acme)
		require.True(t, faults.Is(err, faults.Throttled), "the token would come after the deadline: %v", err)
		require.Zero(t, took)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _, err = take(ctx, p, acme)
		require.ErrorIs(t, err, context.Canceled)
		took, _, err = take(t.Context(), p, acme)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, took, "a cancelled wait gives its token back")
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		m, err := NewMetrics(registry)
		require.NoError(t, err)
		p := NewPool(Options{Metrics: m, MaxWait: 5 * time.Second})
		_, done, err := take(t.Context(), p, acme)
		require.NoError(t, err)
		done(true)
		_, _, err = take(t.Context(), p, acme)
		require.NoError(t, err)
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, _, err = take(soon, p, acme)
		require.Error(t, err)
		got := gathered(t, registry)
		for name, want := range map[string]float64{
			"infra_ratelimit_calls_total acme free s3":    1,
			"infra_ratelimit_calls_total acme refused s3": 1,
			"infra_ratelimit_calls_total acme waited s3":  1,
			"infra_ratelimit_throttled_total acme s3":     1,
			"infra_ratelimit_wait_seconds_total acme s3":  5,
			"infra_ratelimit_rate acme us-west-2 s3":      0.2,
		} {
			require.InDelta(t, want, got[name], want/20, name)
		}
	})
}

// gathered is every sample by its name and the values of its labels.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	samples := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			samples[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return samples
}
