package ratelimit

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics shows whose calls wait. A nil *Metrics counts nothing.
type Metrics struct {
	calls   *prometheus.CounterVec
	waited  *prometheus.CounterVec
	answers *prometheus.CounterVec
	rateNow *prometheus.GaugeVec
}

// NewMetrics registers infra_ratelimit_calls_total{account,service,outcome}
// (outcome: free, waited, refused), infra_ratelimit_wait_seconds_total and
// infra_ratelimit_throttled_total{account,service}, and
// infra_ratelimit_rate{account,service,region}.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	account := []string{"account", "service"}
	m := &Metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_ratelimit_calls_total", Help: "Calls to a cloud that asked for a token, by outcome: free, waited or refused.",
		}, append(account, "outcome")),
		waited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_ratelimit_wait_seconds_total", Help: "Time that calls to a cloud have waited for a token.",
		}, account),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_ratelimit_throttled_total", Help: "Calls that the cloud has throttled.",
		}, account),
		rateNow: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "infra_ratelimit_rate", Help: "Calls a second that a bucket granted when it was last used.",
		}, append(account, "region")),
	}
	return m, errors.Join(r.Register(m.calls), r.Register(m.waited), r.Register(m.answers), r.Register(m.rateNow))
}

func (m *Metrics) taken(k Key, waited time.Duration, rate float64) {
	if m == nil {
		return
	}
	outcome := "free"
	if waited > 0 {
		outcome = "waited"
		m.waited.WithLabelValues(k.Account, k.Service).Add(waited.Seconds())
	}
	m.calls.WithLabelValues(k.Account, k.Service, outcome).Inc()
	m.rateNow.WithLabelValues(k.Account, k.Service, k.Region).Set(rate)
}

func (m *Metrics) refused(k Key) {
	if m == nil {
		return
	}
	m.calls.WithLabelValues(k.Account, k.Service, "refused").Inc()
}

func (m *Metrics) throttled(k Key, rate float64) {
	if m == nil {
		return
	}
	m.answers.WithLabelValues(k.Account, k.Service).Inc()
	m.rateNow.WithLabelValues(k.Account, k.Service, k.Region).Set(rate)
}
