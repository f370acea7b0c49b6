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

// The kernel goes by a verb's traits, so none may lack them.
func TestEachVerbHasTraits(t *testing.T) {
	for _, k := range Kinds() {
		for verb := range k.Operations {
			require.True(t, verb.Known(), "%s of %s", verb, k.Name)
			require.NotEmpty(t, k.Phases[verb], "%s of %s has no phase", verb, k.Name)
		}
	}
}
