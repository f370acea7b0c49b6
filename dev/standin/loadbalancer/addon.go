// Package loadbalancer stands in for the AWS Load Balancer Controller that
// Gardener runs for a shoot: a Service of type LoadBalancer gets a network load
// balancer in the emulator, with listener and target group for each port, and
// loses them when it goes.
//
// It follows the real controller in names (k8s-<namespace>-<name>-<hash>), in
// the finalizer service.k8s.aws/resources, and in the annotations type, scheme,
// nlb-target-type and additional-resource-tags below
// service.beta.kubernetes.io/aws-load-balancer-. Targets are not registered, as
// no packet flows.
package loadbalancer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// clientName is how the calls appear in the proxy's records.
const clientName = "load-balancer-controller"

// Options of the stand-in.
type Options struct {
	// Config gives an SDK configuration with the credentials of a Shoot;
	// awsinfra.Infrastructure.ConfigFor. Required.
	Config func(ctx context.Context, namespace, shoot, clientName string) (aws.Config, error)
	// Faults may be nil.
	Faults *control.Registry
	// Log may be nil.
	Log *slog.Logger
}

// Addon returns the controller for gardenlet.Options.Addons.
func Addon(o Options) gardenlet.ShootAddon {
	if o.Faults == nil {
		o.Faults = control.NewRegistry()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return func(ctx context.Context, shoot gardenlet.ShootInfo) error { return run(ctx, o, shoot) }
}

// run serves one shoot until ctx ends.
func run(ctx context.Context, o Options, shoot gardenlet.ShootInfo) error {
	logger := logr.FromSlogHandler(o.Log.With("shoot", shoot.TechnicalID).Handler())
	manager, err := ctrl.NewManager(shoot.Config, ctrl.Options{
		Scheme: clientgoscheme.Scheme, Logger: logger, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return fmt.Errorf("load-balancer controller: %w", err)
	}
	r := &reconciler{
		client: manager.GetClient(), shoot: shoot, faults: o.Faults,
		events: manager.GetEventRecorder("service"),
		cloud: func(ctx context.Context) (*cloud, error) {
			cfg, err := o.Config(ctx, shoot.Namespace, shoot.Name, clientName)
			if err != nil {
				return nil, err
			}
			return newCloud(cfg, shoot.TechnicalID), nil
		},
	}
	skip := true // each shoot has a controller of this name in the one process
	err = ctrl.NewControllerManagedBy(manager).Named("service").For(&corev1.Service{}).
		WithOptions(controller.Options{
			SkipNameValidation: &skip, MaxConcurrentReconciles: 2,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](200*time.Millisecond, 10*time.Second),
		}).Complete(r)
	if err != nil {
		return fmt.Errorf("load-balancer controller: %w", err)
	}
	return manager.Start(log.IntoContext(ctx, logger))
}
