package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/bare"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/load"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/report"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/stack"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/subject"
)

const (
	// poll is how often a subject is asked how far it is.
	poll = 200 * time.Millisecond
	// stillFor is how long nothing must be counted for a phase to be over.
	stillFor = 2 * time.Second
	// profileSeconds is the length of a CPU profile.
	profileSeconds = 30
)

// moment is everything that is counted, at one time.
type moment struct {
	at    time.Time
	cpu   map[string]time.Duration
	stats subject.Stats
}

func (g *rig) now(ctx context.Context) (m moment, err error) {
	m = moment{at: time.Now(), cpu: map[string]time.Duration{}}
	for name, pid := range g.pids() {
		u, err := stack.UsageOf(pid)
		if err != nil {
			return m, err
		}
		m.cpu[name] = u.CPU
	}
	m.stats, err = g.subject.stats(ctx, false)
	return m, err
}

func (g *rig) pids() map[string]int {
	pids := map[string]int{"driver": os.Getpid()}
	for name, p := range g.processes {
		pids[name] = p.PID()
	}
	return pids
}

func (g *rig) resident() (map[string]int64, error) {
	out := map[string]int64{}
	for name, pid := range g.pids() {
		u, err := stack.UsageOf(pid)
		if err != nil {
			return nil, err
		}
		out[name] = u.RSS >> 20
	}
	return out, nil
}

// phase measures f. The wall time is f's; what was counted includes what
// follows from it, until all is still.
func (g *rig) phase(ctx context.Context, name string, f func() error) (p report.Phase, err error) {
	before, err := g.now(ctx)
	if err != nil {
		return p, err
	}
	profiled := g.profile(ctx, name)
	if err := f(); err != nil {
		return p, err
	}
	p.Wall = time.Since(before.at)
	if err := g.settle(ctx); err != nil {
		return p, err
	}
	after, err := g.now(ctx)
	if err != nil {
		return p, err
	}
	p.CPU = map[string]time.Duration{}
	for name, cpu := range after.cpu {
		p.CPU[name] = cpu - before.cpu[name]
	}
	p.Requests = difference(after.stats.Requests, before.stats.Requests)
	p.Temporal = difference(after.stats.Temporal, before.stats.Temporal)
	p.Calls = after.stats.Calls - before.stats.Calls
	say("  %s: %.1f s, CPU %.1f s", name, p.Wall.Seconds(), p.CPUOf(report.Processes[:3]...).Seconds())
	return p, <-profiled
}

func difference(after, before map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, v := range after {
		if d := v - before[name]; d != 0 {
			out[name] = d
		}
	}
	return out
}

// await waits until the subject's own counts say that what is awaited is there.
func (g *rig) await(ctx context.Context, what string, done func(subject.Stats) bool) error {
	ctx, cancel := context.WithTimeout(ctx, g.o.timeout)
	defer cancel()
	for {
		s, err := g.subject.stats(ctx, false)
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if done(s) {
			return nil
		}
		if err := pause(ctx, poll); err != nil {
			return fmt.Errorf("waiting for %s, Ready are %v: %w", what, s.Ready, err)
		}
	}
}

// settle waits until nothing has been counted for a while.
func (g *rig) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.o.timeout)
	defer cancel()
	var last int64 = -1
	since := time.Now()
	for {
		s, err := g.subject.stats(ctx, false)
		if err != nil {
			return err
		}
		p := report.Phase{Requests: s.Requests, Temporal: s.Temporal}
		if sum := s.Calls + p.Wrote() + p.WorkflowTasks() + p.Workflows(); sum != last {
			last, since = sum, time.Now()
		}
		if time.Since(since) >= stillFor {
			return nil
		}
		if err := pause(ctx, poll); err != nil {
			return fmt.Errorf("waiting until all is still: %w", err)
		}
	}
}

// latencies of the pairs from first on: from the apply of each Network to its
// first call, and to the later of both being Ready. In milliseconds.
func (g *rig) latencies(ctx context.Context, first, n int) (call, ready report.Percentiles, err error) {
	s, err := g.subject.stats(ctx, true)
	if err != nil {
		return call, ready, err
	}
	var calls, readies []float64
	for i := first; i < first+n; i++ {
		network := temporal.ObjectID(v1.KindNetwork, load.Namespace, fmt.Sprintf("n%d", i))
		cluster := temporal.ObjectID(v1.KindCluster, load.Namespace, fmt.Sprintf("c%d", i))
		applied, ok := g.load.AppliedAt(network)
		if !ok || s.First[network] == 0 || s.ReadyAt[network] == 0 || s.ReadyAt[cluster] == 0 {
			return call, ready, fmt.Errorf("%s has no times", network)
		}
		since := func(ns int64) float64 { return float64(ns-applied.UnixNano()) / 1e6 }
		calls = append(calls, since(s.First[network]))
		readies = append(readies, since(max(s.ReadyAt[network], s.ReadyAt[cluster])))
	}
	return report.Of(calls), report.Of(readies), nil
}

// histories looks at one example of each workflow.
func (g *rig) histories(ctx context.Context, into map[string]int64) error {
	for what, id := range map[string]string{
		"network":        temporal.ObjectID(v1.KindNetwork, load.Namespace, "n0"),
		"cluster":        temporal.ObjectID(v1.KindCluster, load.Namespace, "c0"),
		"network/create": temporal.OperationID(temporal.ObjectID(v1.KindNetwork, load.Namespace, "n0"), "create", 1, 1),
		"cluster/create": temporal.OperationID(temporal.ObjectID(v1.KindCluster, load.Namespace, "c0"), "create", 1, 1),
	} {
		d, err := g.temporal.DescribeWorkflow(ctx, id, "")
		if err != nil {
			return fmt.Errorf("workflow %s: %w", id, err)
		}
		into[what] = int64(d.HistoryLength)
	}
	for kind := range shapes {
		name := string(kind[0]) + "0"
		shape, err := g.shapeOf(ctx, temporal.OperationID(temporal.ObjectID(kind, load.Namespace, name), "create", 1, 1))
		if err != nil {
			return err
		}
		shapes[kind] = shape
	}
	return nil
}

// shapeOf counts the activities of an operation.
func (g *rig) shapeOf(ctx context.Context, id string) (s bare.Shape, err error) {
	for it := g.temporal.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			return s, err
		}
		switch a := e.GetActivityTaskScheduledEventAttributes(); {
		case a == nil:
		case contract.IsWaits(a.GetTaskQueue().GetName()):
			s.Waits++
		default:
			s.Quick++
		}
	}
	return s, nil
}

// profile takes a CPU profile at the beginning of a phase, and a heap profile
// after it, when profiles are wanted.
func (g *rig) profile(ctx context.Context, phase string) <-chan error {
	done := make(chan error, 1)
	if g.o.profile == "" || phase == "idle" {
		done <- nil
		return done
	}
	go func() {
		name := filepath.Join(g.o.profile, fmt.Sprintf("%s-%d-%s", g.mode, g.n, phase))
		err := g.subject.save(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileSeconds), name+".cpu")
		if err == nil {
			err = g.subject.save(ctx, "/debug/pprof/heap", name+".heap")
		}
		done <- err
	}()
	return done
}

// subjectClient asks a subject; it is the subject's URL.
type subjectClient string

func (c subjectClient) stats(ctx context.Context, times bool) (s subject.Stats, err error) {
	path := "/stats"
	if times {
		path += "?times=1"
	}
	body, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

func (c subjectClient) post(ctx context.Context, path string, in any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, http.MethodPost, path, body)
	return err
}

func (c subjectClient) save(ctx context.Context, path, file string) error {
	body, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return os.WriteFile(file, body, 0o600)
}

func (c subjectClient) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, string(c)+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	return answer, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
