package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	temporalclient "go.temporal.io/sdk/client"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tidbcloud/infra-orchestrator/bridge"
)

// balancerOptions are about the Balancers of all namespaces.
type balancerOptions struct {
	on          bool
	period      time.Duration
	concurrency int
}

func (o *balancerOptions) addTo(fs *pflag.FlagSet) {
	fs.BoolVar(&o.on, "balancers", true, "keep the Schedule of the Balancers and trigger it when one changes")
	fs.DurationVar(&o.period, "balancer-period", bridge.DefaultBalancerPeriod, "time between two sweeps over all Balancers")
	fs.IntVar(&o.concurrency, "balancer-concurrency", bridge.DefaultBalancerConcurrency, "Balancers that a sweep changes at a time")
}

func (o *balancerOptions) validate() error {
	var errs []error
	if o.period < time.Second {
		errs = append(errs, fmt.Errorf("--balancer-period is %s, want at least 1s", o.period))
	}
	if o.concurrency < 1 {
		errs = append(errs, fmt.Errorf("--balancer-concurrency is %d, want at least 1", o.concurrency))
	}
	return errors.Join(errs...)
}

// setup adds what looks at Balancers to the manager. Its cache is of its own:
// the manager's has one namespace.
func (o *balancerOptions) setup(mgr manager.Manager, temporal temporalclient.Client, log *slog.Logger) error {
	if !o.on {
		return nil
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("cache of Balancers: %w", err)
	}
	return mgr.Add(&bridge.Balancers{
		Schedules: temporal.ScheduleClient(), Cache: c, Period: o.period, Concurrency: o.concurrency, Log: log,
	})
}
