package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/bare"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/load"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/report"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/stack"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/subject"
)

// rig is the processes of one run.
type rig struct {
	o         options
	mode      string
	n         int
	processes map[string]*stack.Process // by the names of report.Processes
	stops     []func() error
	subject   subjectClient
	load      *load.Load
	temporal  sdk.Client
}

func runOne(ctx context.Context, o options, mode string, n int) (r report.Result, err error) {
	err = inRig(ctx, o, mode, n, func(g *rig) error {
		if mode == subject.ModeBare {
			r, err = g.measureBare(ctx)
		} else {
			r, err = g.measure(ctx)
		}
		return err
	})
	return r, err
}

// inRig starts what a mode needs, measures, and stops it.
func inRig(ctx context.Context, o options, mode string, n int, measure func(*rig) error) (err error) {
	dir, err := os.MkdirTemp("", "bench-"+mode+"-")
	if err != nil {
		return err
	}
	g := &rig{o: o, mode: mode, n: n, processes: map[string]*stack.Process{}}
	defer func() {
		for i := len(g.stops) - 1; i >= 0; i-- {
			err = errors.Join(err, g.stops[i]())
		}
		if err == nil {
			err = os.RemoveAll(dir)
		}
	}()
	say("%s, %d: starting", mode, n)
	if err = g.start(ctx, dir); err != nil {
		return err
	}
	return measure(g)
}

// start starts what the mode needs.
func (g *rig) start(ctx context.Context, dir string) error {
	args := []string{"subject", "-mode", g.mode, "-namespace", load.Namespace}
	if g.mode != subject.ModePlain {
		var hello struct {
			Address string `json:"address"`
		}
		if err := g.process(ctx, dir, "temporal", &hello, filepath.Join(g.o.root, "bin", "temporaldev"), "--headless"); err != nil {
			return err
		}
		args = append(args, "-temporal", hello.Address)
		var err error
		g.temporal, err = sdk.Dial(sdk.Options{HostPort: hello.Address, Namespace: load.Namespace, Logger: quiet{}})
		if err != nil {
			return err
		}
		g.stops = append(g.stops, func() error { g.temporal.Close(); return nil })
	}
	if g.mode != subject.ModeBare {
		var hello struct {
			Kubeconfig string `json:"kubeconfig"`
		}
		if err := g.process(ctx, dir, "apiserver", &hello, filepath.Join(g.o.root, "bin", "devstack"), "kube", "--data-dir", filepath.Join(dir, "kube")); err != nil {
			return err
		}
		args = append(args, "-kubeconfig", hello.Kubeconfig)
		var err error
		if g.load, err = load.Connect(hello.Kubeconfig, g.o.root); err != nil {
			return err
		}
		if err := g.load.Prepare(ctx, filepath.Join(g.o.root, "config", "crd")); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var hello subject.Hello
	if err := g.process(ctx, dir, "subject", &hello, self, args...); err != nil {
		return err
	}
	g.subject = subjectClient(hello.URL)
	return nil
}

func (g *rig) process(ctx context.Context, dir, name string, hello any, program string, args ...string) error {
	p, err := stack.Start(ctx, dir, name, hello, program, args...)
	if err != nil {
		return err
	}
	g.processes[name] = p
	g.stops = append(g.stops, p.Stop)
	return nil
}

// measure makes the objects and looks at what it took.
func (g *rig) measure(ctx context.Context) (r report.Result, err error) {
	r = report.Result{Mode: g.mode, N: g.n, Objects: 2 * g.n, History: map[string]int64{}}
	if g.mode == subject.ModeProduct {
		if err := g.await(ctx, "the Provider", func(s subject.Stats) bool { return s.Ready["provider"] == 1 }); err != nil {
			return r, err
		}
		if err := g.settle(ctx); err != nil {
			return r, err
		}
	}
	if r.Create, err = g.phase(ctx, "create", func() error { return g.create(ctx, 0, g.n) }); err != nil {
		return r, err
	}
	if r.RSS, err = g.resident(); err != nil {
		return r, err
	}
	if r.FirstCall, _, err = g.latencies(ctx, 0, g.n); err != nil {
		return r, err
	}
	if err := g.rest(ctx, &r); err != nil {
		return r, err
	}
	for i := g.n; i < g.n+g.o.alone; i++ {
		if err := g.create(ctx, i, 1); err != nil {
			return r, err
		}
	}
	if r.Alone, r.AloneReady, err = g.latencies(ctx, g.n, g.o.alone); err != nil {
		return r, err
	}
	if g.mode == subject.ModeProduct {
		if err := g.histories(ctx, r.History); err != nil {
			return r, err
		}
	}
	if g.o.delete {
		return r, g.remove(ctx)
	}
	return r, nil
}

// runCrowd measures n Clusters of the product in one Network, whose Shoot they
// change one after the other: what it takes until all are Ready.
func runCrowd(ctx context.Context, o options, n int) (c report.Crowd, err error) {
	c.N = n
	err = inRig(ctx, o, subject.ModeProduct, n, func(g *rig) error {
		if err := g.await(ctx, "the Provider", func(s subject.Stats) bool { return s.Ready["provider"] == 1 }); err != nil {
			return err
		}
		if err := g.load.ApplyNetwork(ctx); err != nil {
			return err
		}
		if err := g.await(ctx, "the Network", func(s subject.Stats) bool { return s.Ready["network"] == 1 }); err != nil {
			return err
		}
		c.Create, err = g.phase(ctx, "create", func() error {
			if err := g.load.ApplyCrowd(ctx, n); err != nil {
				return err
			}
			return g.await(ctx, fmt.Sprintf("%d Clusters in one Network", n), func(s subject.Stats) bool { return s.Ready["cluster"] >= n })
		})
		return err
	})
	return c, err
}

// rest measures objects that have nothing to do, and one resync of each.
func (g *rig) rest(ctx context.Context, r *report.Result) error {
	if g.o.idle == 0 {
		return nil
	}
	idle, err := g.phase(ctx, "idle", func() error { return pause(ctx, g.o.idle) })
	if err != nil {
		return err
	}
	resync, err := g.phase(ctx, "resync", func() error { return g.subject.post(ctx, "/resync", nil) })
	r.Idle, r.Resync = &idle, &resync
	return err
}

// create applies n Networks with their Clusters and waits until all are Ready.
func (g *rig) create(ctx context.Context, first, n int) error {
	if err := g.load.Apply(ctx, first, n); err != nil {
		return err
	}
	want := first + n
	return g.await(ctx, fmt.Sprintf("%d Networks and Clusters", want), func(s subject.Stats) bool {
		return s.Ready["network"] >= want && s.Ready["cluster"] >= want
	})
}

func (g *rig) remove(ctx context.Context) error {
	say("  deleting")
	if err := g.load.Delete(ctx, 0, g.n+g.o.alone); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, g.o.timeout)
	defer cancel()
	for {
		left, err := g.load.Left(ctx)
		if left == 0 || err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("%d objects are left: %w", left, err)
		}
	}
}

// shapes are the operations of internal/bare: as many activities as
// CreateNetwork and CreateCluster run. Each run of the product counts them
// anew; these are from November 2026.
var shapes = map[string]bare.Shape{"network": {Quick: 10, Waits: 4}, "cluster": {Quick: 15, Waits: 8}}

func (g *rig) measureBare(ctx context.Context) (r report.Result, err error) {
	r = report.Result{Mode: g.mode, N: g.n, Objects: 2 * g.n}
	r.Create, err = g.phase(ctx, "run", func() error {
		if err := g.subject.post(ctx, "/run", subject.Bare{N: g.n, Shapes: shapes}); err != nil {
			return err
		}
		want := int64(2 * g.n)
		return g.await(ctx, "all workflows", func(s subject.Stats) bool {
			return s.Temporal["temporal_workflow_completed"] == want && s.Temporal["temporal_workflow_continue_as_new"] == want
		})
	})
	if err != nil {
		return r, err
	}
	r.RSS, err = g.resident()
	return r, err
}

// quiet drops the Temporal client's log lines.
type quiet struct{}

var _ log.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
