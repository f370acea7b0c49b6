package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func TestBucketYieldsAndRecovers(t *testing.T) {
	b := newBucket(Limit{Rate: 20, Burst: 60}, Options{}.withDefaults())
	require.Equal(t, 20.0, b.rate(at(0)))
	b.cut(at(0), at(1))
	require.Equal(t, 10.0, b.rate(at(1)), "a throttled answer halves the rate")
	b.cut(at(0.5), at(1.2))
	require.InDelta(t, 10, b.rate(at(1.2)), 0.1, "a call sent before the cut says nothing of the new rate")
	require.InDelta(t, 15, b.rate(at(31)), 1e-9, "a quarter of the rate in a quarter of the recovery time")
	b.cut(at(31), at(31))
	require.InDelta(t, 7.5, b.rate(at(31)), 1e-9)
	for i := range 20 {
		b.cut(at(31+float64(i)/1000), at(31+float64(i)/1000))
	}
	require.InDelta(t, 0.2, b.rate(at(31.019)), 0.01, "never below the floor")
	require.Equal(t, 20.0, b.rate(at(300)))
}

// However hard the cloud throttles, somebody tries now and then; and the rate
// of these tries is a crawl, not the old rate.
func TestBucketCrawlsUnderThrottlingOfEverything(t *testing.T) {
	b := newBucket(Limit{Rate: 20, Burst: 60}, Options{}.withDefaults())
	now, calls := at(0), 0
	for now.Before(at(600)) {
		r := b.reserve(now, time.Hour)
		now = now.Add(r.after).Add(10 * time.Millisecond)
		b.cut(now, now)
		calls++
	}
	require.Greater(t, calls, 100)
	require.Less(t, calls, 600, "at most about one call a second over ten minutes")
}

func TestBucketSavesNothingUpWhileThrottled(t *testing.T) {
	b := newBucket(Limit{Rate: 20, Burst: 60}, Options{}.withDefaults())
	b.cut(at(0), at(0))
	require.Zero(t, b.reserve(at(10), time.Second).after)
	require.NotZero(t, b.reserve(at(10), time.Second).after, "one at a time after a throttled answer")
	b.reserve(at(1000), 0)
	free := 0
	for b.reserve(at(1010), 0).granted {
		free++
	}
	require.Equal(t, 60, free, "the whole burst again at the whole rate")
}

// Those who would wait too long get turns apart, so that they do not come back
// all at once.
func TestBucketDealsOutTurns(t *testing.T) {
	b := newBucket(Limit{Rate: 2, Burst: 1}, Options{MaxDelay: 5 * time.Second}.withDefaults())
	patience := time.Second
	for _, want := range []float64{0, 0.5, 1} {
		r := b.reserve(at(0), patience)
		require.True(t, r.granted)
		require.Equal(t, want, r.after.Seconds())
	}
	for _, want := range []float64{1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5, 5} {
		r := b.reserve(at(0), patience)
		require.False(t, r.granted)
		require.Equal(t, want, r.after.Seconds())
	}
	require.Equal(t, 0.0, b.reserve(at(2), patience).after.Seconds(), "a refused attempt holds no token")
}

func TestShareOfALimit(t *testing.T) {
	p := NewPool(Options{Share: 0.5})
	require.Equal(t, Limit{Rate: 10, Burst: 30}, p.bucket(Key{Account: "a"}, Limit{Rate: 20, Burst: 60}).limit)
	require.Equal(t, Limit{Rate: 0.5, Burst: 1}, p.bucket(Key{Account: "b"}, Limit{Rate: 1, Burst: 1}).limit, "one call at least")
}
