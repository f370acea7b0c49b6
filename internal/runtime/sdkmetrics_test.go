package runtime

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestTemporalMetrics(t *testing.T) {
	r := prometheus.NewRegistry()
	h, err := TemporalMetrics(r)
	require.NoError(t, err)
	h.WithTags(map[string]string{"operation": "CreateNetwork", "class": "Quota"}).Counter("infra_operation_stalls_total").Inc(2)
	n, err := testutil.GatherAndCount(r)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	all, err := r.Gather()
	require.NoError(t, err)
	require.Equal(t, "infra_operation_stalls_total", all[0].GetName())
	require.InDelta(t, 2, all[0].GetMetric()[0].GetGauge().GetValue(), 0, "the SDK's adapter counts in up-down counters, which export as gauges")
}
