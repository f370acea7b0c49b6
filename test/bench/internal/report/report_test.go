package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentiles(t *testing.T) {
	require.Equal(t, Percentiles{}, Of(nil))
	require.Equal(t, Percentiles{P50: 7, P99: 7, N: 1}, Of([]float64{7}))
	var hundred []float64
	for i := 100; i > 0; i-- {
		hundred = append(hundred, float64(i))
	}
	require.Equal(t, Percentiles{P50: 50, P99: 99, N: 100}, Of(hundred))
	require.EqualValues(t, 100, hundred[0], "the sample is left as it is")
}

func TestPhaseCounts(t *testing.T) {
	p := Phase{
		CPU:      map[string]time.Duration{"subject": time.Second, "apiserver": 2 * time.Second},
		Requests: map[string]int64{"worker patch networks/status": 3, "bridge get networks": 2, "worker post events": 1},
		Temporal: map[string]int64{"temporal_request RespondWorkflowTaskCompleted": 5, "temporal_request_latency RespondWorkflowTaskCompleted": 5,
			"temporal_workflow_completed": 1, "temporal_workflow_continue_as_new": 2},
	}
	require.EqualValues(t, 6, p.APIRequests())
	require.EqualValues(t, 4, p.Wrote())
	require.EqualValues(t, 5, p.TemporalRequests())
	require.EqualValues(t, 3, p.Workflows())
	require.Equal(t, 3*time.Second, p.CPUOf(Processes...))
}

func TestPrintHasOneColumnForEachRun(t *testing.T) {
	var out bytes.Buffer
	idle := Phase{Wall: time.Minute}
	require.NoError(t, Print(&out, []Result{{Mode: "product", N: 2, Objects: 4, Idle: &idle, Resync: &idle}, {Mode: "bare", N: 2, Objects: 4}}))
	first, _, _ := strings.Cut(out.String(), "\n")
	require.Equal(t, []string{"product", "2", "bare", "2"}, strings.Fields(first))
	require.Regexp(t, `60\.0 +-\n`, out.String(), "what a run does not have is a dash")
}
