package balancing

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

// Metrics counts what sweeps do. They have no label for the Balancer: there may
// be ten thousand, each with its own condition.
type Metrics struct {
	plans    prometheus.Histogram
	looked   prometheus.Counter
	failures *prometheus.CounterVec
	scales   *prometheus.CounterVec
	statuses *prometheus.CounterVec
}

// NewMetrics registers infra_balancer_plan_duration_seconds,
// infra_balancer_rounds_total, infra_balancer_failures_total{phase},
// infra_balancer_scales_total{outcome} and
// infra_balancer_status_updates_total{outcome}. The outcome is ok or failed.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "infra_balancer_plan_duration_seconds", Help: "Time to look at all Balancers.",
			Buckets: []float64{.001, .005, .02, .1, .5, 1, 5, 20},
		}),
		looked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "infra_balancer_rounds_total", Help: "Balancers that were looked at, once a sweep each.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_balancer_failures_total", Help: "Rounds in which a Balancer could not be balanced, by phase.",
		}, []string{"phase"}),
		scales: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_balancer_scales_total", Help: "Writes of a target's replicas, by outcome.",
		}, []string{"outcome"}),
		statuses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_balancer_status_updates_total", Help: "Writes of a Balancer's status, by outcome.",
		}, []string{"outcome"}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.plans, m.looked, m.failures, m.scales, m.statuses} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *Metrics) planned(p contract.BalancersPlan, took time.Duration) {
	if m != nil {
		m.plans.Observe(took.Seconds())
		m.looked.Add(float64(p.Looked))
	}
}

func (m *Metrics) failed(phase round.Phase) {
	if m != nil {
		m.failures.WithLabelValues(string(phase)).Inc()
	}
}

func (m *Metrics) scaled(err error) {
	if m != nil {
		m.scales.WithLabelValues(outcome(err)).Inc()
	}
}

func (m *Metrics) reported(err error) {
	if m != nil {
		m.statuses.WithLabelValues(outcome(err)).Inc()
	}
}

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "ok"
}
