package workers

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Metrics counts what activities do.
type Metrics struct {
	attempts *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics infra_activity_attempts_total{activity,
// outcome} and infra_activity_duration_seconds{activity}. The outcome is "ok",
// "cancelled" or a fault class.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_activity_attempts_total", Help: "Attempts of activities by outcome: ok, cancelled or a fault class.",
		}, []string{"activity", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "infra_activity_duration_seconds", Help: "Duration of one attempt.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 30, 120, 600, 3600},
		}, []string{"activity"}),
	}
	return m, errors.Join(r.Register(m.attempts), r.Register(m.duration))
}

func (m *Metrics) observe(activity string, err error, took time.Duration) {
	if m == nil {
		return
	}
	m.attempts.WithLabelValues(activity, outcome(err)).Inc()
	m.duration.WithLabelValues(activity).Observe(took.Seconds())
}

func outcome(err error) string {
	switch f := faults.As(err); {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case f != nil:
		return string(f.Class)
	default:
		return string(faults.Transient)
	}
}
