// Command bench measures what the product costs: N Networks with one Cluster
// each on a cloud that answers at once, made
//
//   - product: through bridge, Temporal and worker, all of them ours;
//   - plain: by reconcilers as operators usually have them, see internal/plain;
//   - bare: by as many workflows and activities with empty bodies, which is
//     the least that Temporal asks for.
//
// API server, Temporal and what is measured are a process each.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/report"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/subject"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := drive
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "subject" {
		run, args = runSubject, args[1:]
	}
	if err := run(ctx, args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func runSubject(ctx context.Context, args []string) error {
	var o subject.Options
	fs := flag.NewFlagSet("subject", flag.ContinueOnError)
	fs.StringVar(&o.Mode, "mode", "", "what to run")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "of the API server")
	fs.StringVar(&o.TemporalAddress, "temporal", "", "address of Temporal")
	fs.StringVar(&o.Namespace, "namespace", "", "of Kubernetes and of Temporal")
	fs.DurationVar(&o.Resync, "resync", 10*time.Minute, "mean time between two looks at an unchanged object")
	if err := fs.Parse(args); err != nil {
		return err
	}
	return subject.Run(ctx, o)
}

// options of the command line.
type options struct {
	sizes   []int
	crowds  []int
	modes   []string
	root    string
	idle    time.Duration
	alone   int
	delete  bool
	timeout time.Duration
	json    bool
	profile string
}

func drive(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	runtime.InstallLogger(slog.New(slog.DiscardHandler)) // of the libraries
	var results []report.Result
	for _, n := range o.sizes {
		for _, mode := range o.modes {
			r, err := runOne(ctx, o, mode, n)
			if err != nil {
				return fmt.Errorf("%s %d: %w", mode, n, err)
			}
			results = append(results, r)
		}
	}
	var crowds []report.Crowd
	for _, n := range o.crowds {
		c, err := runCrowd(ctx, o, n)
		if err != nil {
			return fmt.Errorf("%d Clusters in one Network: %w", n, err)
		}
		crowds = append(crowds, c)
	}
	if o.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Results []report.Result `json:"results"`
			Crowds  []report.Crowd  `json:"clustersInOneNetwork,omitempty"`
		}{results, crowds})
	}
	return errors.Join(report.Print(os.Stdout, results), report.PrintCrowds(os.Stdout, crowds))
}

func parse(args []string) (o options, err error) {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := fs.String("n", "200,1000", "numbers of Networks, each with one Cluster")
	crowds := fs.String("crowd", "30,200", "numbers of Clusters in one Network; empty leaves them out")
	modes := fs.String("modes", strings.Join([]string{subject.ModeProduct, subject.ModePlain, subject.ModeBare}, ","), "what to measure")
	fs.StringVar(&o.root, "root", "../..", "`folder` of the checkout; its bin has devstack and temporaldev")
	fs.DurationVar(&o.idle, "idle", time.Minute, "how long to watch the objects do nothing; 0 leaves it out, and the resync")
	fs.IntVar(&o.alone, "alone", 20, "how many further Networks to make one at a time")
	fs.BoolVar(&o.delete, "delete", false, "delete everything at the end, and see that it goes")
	fs.DurationVar(&o.timeout, "timeout", 30*time.Minute, "longest time for one phase of a run")
	fs.BoolVar(&o.json, "json", false, "print JSON with all counts in place of the table")
	fs.StringVar(&o.profile, "profile", "", "`folder` for CPU and heap profiles of what is measured")
	if err = fs.Parse(args); err != nil {
		return o, err
	}
	if o.sizes, err = numbers("-n", *sizes); err != nil {
		return o, err
	}
	if o.crowds, err = numbers("-crowd", *crowds); err != nil {
		return o, err
	}
	o.modes = strings.Split(*modes, ",")
	o.root, err = filepath.Abs(o.root)
	return o, err
}

// numbers reads a list of them.
func numbers(name, list string) (all []int, err error) {
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %s: want numbers from 1", name, list)
		}
		all = append(all, n)
	}
	return all, nil
}

// say tells on standard error how far a run is.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
