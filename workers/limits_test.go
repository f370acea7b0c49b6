package workers

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

// parse is what the flags say.
func parse(t *testing.T, args ...string) (l Limits, err error) {
	t.Helper()
	fs := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	l.AddTo(fs)
	if err := fs.Parse(args); err != nil {
		return l, err
	}
	return l, l.Validate()
}

func TestLimitsOfAQueue(t *testing.T) {
	l, err := parse(t, "--slots", "infra=20", "--queue-rate", "infra=50", "--worker-rate", "infra-waits=2.5,infra=7")
	require.NoError(t, err)
	for queue, want := range map[string]worker.Options{
		"infra":       {MaxConcurrentActivityExecutionSize: 20, TaskQueueActivitiesPerSecond: 50, WorkerActivitiesPerSecond: 7},
		"infra-waits": {MaxConcurrentActivityExecutionSize: maxWaits, WorkerActivitiesPerSecond: 2.5},
	} {
		var got worker.Options
		l.apply(queue, &got)
		require.Equal(t, want, got, queue)
	}
	var got worker.Options
	Limits{}.apply("infra", &got)
	require.Equal(t, worker.Options{MaxConcurrentActivityExecutionSize: maxQuick}, got)
	require.Equal(t, "infra=7,infra-waits=2.5", l.WorkerRates.String())
}

func TestLimitsRefuse(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown queue":          {"--slots", "x=1"},
		"an unknown queue's rate":   {"--queue-rate", "x=1"},
		"and that of this process":  {"--worker-rate", "x=1"},
		"no slot":                   {"--slots", "infra=0"},
		"no rate":                   {"--queue-rate", "infra"},
		"a rate that stops a queue": {"--queue-rate", "infra=0"},
		"a rate that is no number":  {"--worker-rate", "infra=NaN"},
	} {
		_, err := parse(t, args...)
		require.Error(t, err, name)
	}
}
