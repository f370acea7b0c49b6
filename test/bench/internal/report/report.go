// Package report is what a benchmark found, and how it is shown.
package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Processes in the order in which they are shown.
var Processes = []string{"subject", "temporal", "apiserver", "driver"}

// Result is one run: N Networks with one Cluster each.
type Result struct {
	Mode    string `json:"mode"`
	N       int    `json:"n"`
	Objects int    `json:"objects"` // 2 N

	// Create is from the first apply until the last object is Ready.
	Create Phase `json:"create"`
	// FirstCall is from the apply of a Network to its first call to the cloud,
	// while all are applied at once; Alone while nothing else happens, and
	// AloneReady until Network and Cluster are Ready then. Milliseconds.
	FirstCall  Percentiles `json:"firstCallMs"`
	Alone      Percentiles `json:"aloneFirstCallMs"`
	AloneReady Percentiles `json:"aloneReadyMs"`
	// Idle is a time in which nothing was asked.
	Idle *Phase `json:"idle,omitempty"`
	// Resync is one repeated signal, or look, for each object.
	Resync *Phase `json:"resync,omitempty"`
	// History holds numbers of history events, by what: one example of each.
	History map[string]int64 `json:"history,omitempty"`
	// MiB resident at the end of Create, by process.
	RSS map[string]int64 `json:"rssMiB"`
}

// Phase is what happened in a time.
type Phase struct {
	Wall time.Duration `json:"wallNs"`
	// CPU by process.
	CPU map[string]time.Duration `json:"cpuNs"`
	// Requests, Temporal and Calls are what was counted, see subject.Stats.
	Requests map[string]int64 `json:"apiRequests"`
	Temporal map[string]int64 `json:"temporal"`
	Calls    int64            `json:"cloudCalls"`
}

// Percentiles of a sample.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	N   int     `json:"n"`
}

// Of returns the percentiles of a sample, by the nearest-rank method.
func Of(sample []float64) (p Percentiles) {
	if len(sample) == 0 {
		return p
	}
	s := slices.Clone(sample)
	slices.Sort(s)
	rank := func(q float64) float64 { return s[max(0, int(math.Ceil(q*float64(len(s))))-1)] }
	return Percentiles{P50: rank(0.50), P99: rank(0.99), N: len(s)}
}

// Activities that ran, without local ones.
func (p Phase) Activities() int64 { return p.Temporal["temporal_activity_execution_latency"] }

// LocalActivities that ran.
func (p Phase) LocalActivities() int64 { return p.Temporal["temporal_local_activity_total"] }

// WorkflowTasks that were executed.
func (p Phase) WorkflowTasks() int64 { return p.Temporal["temporal_workflow_task_execution_latency"] }

// Workflows that ended or continued as new.
func (p Phase) Workflows() int64 {
	return p.Temporal["temporal_workflow_completed"] + p.Temporal["temporal_workflow_continue_as_new"]
}

// TemporalRequests are the SDK's calls, without long polls.
func (p Phase) TemporalRequests() (n int64) { return sum(p.Temporal, "temporal_request ") }

// APIRequests are the requests to the API server.
func (p Phase) APIRequests() int64 { return sum(p.Requests, "") }

// Wrote are the requests that write.
func (p Phase) Wrote() (n int64) {
	for name, v := range p.Requests {
		if strings.Contains(name, " patch ") || strings.Contains(name, " post ") || strings.Contains(name, " put ") {
			n += v
		}
	}
	return n
}

func sum(m map[string]int64, prefix string) (n int64) {
	for name, v := range m {
		if strings.HasPrefix(name, prefix) {
			n += v
		}
	}
	return n
}

// CPUOf is the sum over processes.
func (p Phase) CPUOf(processes ...string) (d time.Duration) {
	for _, name := range processes {
		d += p.CPU[name]
	}
	return d
}

// Print writes the results as tables, a column for each run.
func Print(w io.Writer, results []Result) error {
	if len(results) == 0 {
		return nil
	}
	var table strings.Builder
	line := func(title string, cell func(Result) string) {
		fmt.Fprintf(&table, "%-30s", title)
		for _, r := range results {
			fmt.Fprintf(&table, " %12s", cell(r))
		}
		table.WriteByte('\n')
	}
	line("", func(r Result) string { return fmt.Sprintf("%s %d", r.Mode, r.N) })
	printCreate(line)
	printIdle(line)
	printResync(line)
	_, err := io.WriteString(w, table.String())
	return err
}

func printCreate(line func(string, func(Result) string)) {
	line("objects", func(r Result) string { return fmt.Sprint(r.Objects) })
	line("wall, s", func(r Result) string { return seconds(r.Create.Wall) })
	line("CPU, s", func(r Result) string { return seconds(r.Create.CPUOf(Processes[:3]...)) })
	for _, p := range Processes {
		line("  "+p+", s", func(r Result) string { return seconds(r.Create.CPU[p]) })
	}
	line("CPU per object, ms", func(r Result) string { return r.per(float64(r.Create.CPUOf(Processes[:3]...).Milliseconds())) })
	line("per object: workflow runs", func(r Result) string { return r.per(float64(r.Create.Workflows())) })
	line("  workflow tasks", func(r Result) string { return r.per(float64(r.Create.WorkflowTasks())) })
	line("  activities", func(r Result) string { return r.per(float64(r.Create.Activities())) })
	line("  local activities", func(r Result) string { return r.per(float64(r.Create.LocalActivities())) })
	line("  requests to Temporal", func(r Result) string { return r.per(float64(r.Create.TemporalRequests())) })
	line("  requests to API server", func(r Result) string { return r.per(float64(r.Create.APIRequests())) })
	line("    of these writing", func(r Result) string { return r.per(float64(r.Create.Wrote())) })
	line("  cloud calls", func(r Result) string { return r.per(float64(r.Create.Calls)) })
	line("first call at load p50, ms", func(r Result) string { return ms(r.FirstCall.P50) })
	line("  p99, ms", func(r Result) string { return ms(r.FirstCall.P99) })
	line("first call alone p50, ms", func(r Result) string { return ms(r.Alone.P50) })
	line("  p99, ms", func(r Result) string { return ms(r.Alone.P99) })
	line("both Ready alone p50, ms", func(r Result) string { return ms(r.AloneReady.P50) })
	for _, p := range Processes {
		line("RSS "+p+", MiB", func(r Result) string { return fmt.Sprint(r.RSS[p]) })
	}
	for _, what := range []string{"network", "cluster", "network/create", "cluster/create"} {
		line("events "+what, func(r Result) string { return fmt.Sprint(r.History[what]) })
	}
}

func printIdle(line func(string, func(Result) string)) {
	line("idle: seconds", phase(func(r Result) *Phase { return r.Idle }, func(_ Result, p Phase) string { return seconds(p.Wall) }))
	for _, name := range Processes[:3] {
		line("  cores "+name, phase(func(r Result) *Phase { return r.Idle }, func(_ Result, p Phase) string {
			return fmt.Sprintf("%.3f", p.CPU[name].Seconds()/p.Wall.Seconds())
		}))
	}
	line("  workflow tasks", phase(func(r Result) *Phase { return r.Idle }, func(_ Result, p Phase) string { return fmt.Sprint(p.WorkflowTasks()) }))
}

func printResync(line func(string, func(Result) string)) {
	get := func(r Result) *Phase { return r.Resync }
	line("resync, per object: CPU, ms", phase(get, func(r Result, p Phase) string { return r.per(float64(p.CPUOf(Processes[:3]...).Milliseconds())) }))
	line("  workflow tasks", phase(get, func(r Result, p Phase) string { return r.per(float64(p.WorkflowTasks())) }))
	line("  local activities", phase(get, func(r Result, p Phase) string { return r.per(float64(p.LocalActivities())) }))
	line("  requests to API server", phase(get, func(r Result, p Phase) string { return r.per(float64(p.APIRequests())) }))
}

func phase(get func(Result) *Phase, show func(Result, Phase) string) func(Result) string {
	return func(r Result) string {
		p := get(r)
		if p == nil {
			return "-"
		}
		return show(r, *p)
	}
}

func (r Result) per(v float64) string { return fmt.Sprintf("%.1f", v/float64(r.Objects)) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

func ms(v float64) string { return fmt.Sprintf("%.0f", v) }
