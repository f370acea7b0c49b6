package bridge

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	signalsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "infra_bridge_signals_total",
		Help: "Signals to object workflows, by kind and outcome (accepted, unavailable, throttled, refused, failed).",
	}, []string{"kind", "outcome"})
	signalSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "infra_bridge_signal_duration_seconds",
		Help:    "Time that Temporal took to answer a signal, by kind.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"kind"})
)

func init() {
	metrics.Registry.MustRegister(signalsTotal, signalSeconds)
}

func observe(kind string, outcome Outcome, took time.Duration) {
	signalsTotal.WithLabelValues(kind, string(outcome)).Inc()
	signalSeconds.WithLabelValues(kind).Observe(took.Seconds())
}
