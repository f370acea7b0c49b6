// Package count counts what a process asks of its API server and of Temporal.
package count

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

// Counter counts by name. The zero value is ready.
type Counter struct {
	mu sync.Mutex
	m  map[string]int64
}

// Add adds n to a name.
func (c *Counter) Add(name string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[string]int64{}
	}
	c.m[name] += n
}

// Values returns a copy of all counts.
func (c *Counter) Values() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]int64, len(c.m))
	for k, v := range c.m {
		out[k] = v
	}
	return out
}

// Transport returns a wrapper for rest.Config.Wrap that counts requests as
// "<who> <verb> <resource>", such as "worker patch networks/status".
func (c *Counter) Transport(who string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			c.Add(who+" "+Request(r), 1)
			return next.RoundTrip(r)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Request names a request to an API server: "get networks",
// "patch networks/status", "watch clusters", "post events".
func Request(r *http.Request) string {
	verb := strings.ToLower(r.Method)
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "apis":
		parts = parts[3:]
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	default:
		return verb + " discovery"
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) == 0 {
		return verb + " discovery"
	}
	if verb == "get" && len(parts) == 1 {
		verb = "list"
		if r.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
	}
	name := parts[0]
	if len(parts) > 2 {
		name += "/" + parts[2]
	}
	return verb + " " + name
}

// Handler counts the SDK's metrics: counters by their value, timers by how
// often they were used. A request's operation is part of the name:
// "temporal_request RespondActivityTaskCompleted".
func (c *Counter) Handler() client.MetricsHandler { return handler{c: c} }

type handler struct {
	c         *Counter
	operation string
}

func (h handler) WithTags(tags map[string]string) client.MetricsHandler {
	if op := tags["operation"]; op != "" {
		h.operation = op
	}
	return h
}

func (h handler) name(metric string) string {
	if strings.HasPrefix(metric, "temporal_request") || strings.HasPrefix(metric, "temporal_long_request") {
		return metric + " " + h.operation
	}
	return metric
}

func (h handler) Counter(name string) client.MetricsCounter {
	return counterFunc(func(n int64) { h.c.Add(h.name(name), n) })
}

func (h handler) Timer(name string) client.MetricsTimer {
	return timerFunc(func(time.Duration) { h.c.Add(h.name(name), 1) })
}

func (handler) Gauge(string) client.MetricsGauge { return gaugeFunc(func(float64) {}) }

type counterFunc func(int64)

func (f counterFunc) Inc(n int64) { f(n) }

type timerFunc func(time.Duration)

func (f timerFunc) Record(d time.Duration) { f(d) }

type gaugeFunc func(float64)

func (f gaugeFunc) Update(v float64) { f(v) }
