package workers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// busy is a worker whose activities use all the time that they have.
type busy struct{}

func (busy) Stop() { time.Sleep(stopTimeout) }

// A process is killed some time after it is told to stop: its queues must not
// use that up one after the other.
func TestQueuesStopAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		stopAll([]busy{{}, {}, {}, {}})
		require.Equal(t, stopTimeout, time.Since(start))
	})
}
