// Package tidboperator stands in for TiDB Operator v1 in a shoot. It acts only
// while the Deployment tidb-admin/tidb-controller-manager is available there,
// and then does to TidbCluster, TidbInitializer and Backup what v1.6.6 does: it
// makes real StatefulSets, Services, ConfigMaps and claims with v1's names and
// labels, starts PD, then TiKV and TiFlash, then TiDB, upgrades and scales one
// component after the other, suspends in v1's order, and writes the status with
// plain updates, as the kinds have no status subresource.
//
// What it does not do: run a database. A member counts as healthy some time
// after its Pod is ready; the scaled times make a cluster take about 5 s.
package tidboperator

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// Options of the stand-in.
type Options struct {
	// Speed divides all times; 1 (also for 0) makes a cluster take about 5 s.
	Speed float64
	// Faults may be nil.
	Faults *control.Registry
	// Log may be nil.
	Log *slog.Logger
}

const (
	apiGroup   = "pingcap.com"
	apiVersion = "v1alpha1"
	// fieldManager is how v1's writes appear in managedFields.
	fieldManager = "tidb-controller-manager"
	// crdPoll is how often a shoot that is not bootstrapped yet is looked at.
	crdPoll = time.Second
)

// Addon returns the operator for gardenlet.Options.Addons.
func Addon(o Options) gardenlet.ShootAddon {
	if o.Speed <= 0 {
		o.Speed = 1
	}
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
	if err := waitForKinds(ctx, shoot); err != nil || ctx.Err() != nil {
		return err
	}
	logger := logr.FromSlogHandler(o.Log.With("shoot", shoot.TechnicalID).Handler())
	m, err := ctrl.NewManager(shoot.Config, ctrl.Options{
		Scheme: clientgoscheme.Scheme, Logger: logger, Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{FieldOwner: fieldManager, Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return fmt.Errorf("tidb operator: %w", err)
	}
	op := &operator{client: m.GetClient(), live: m.GetAPIReader(), shoot: shoot, faults: o.Faults, speed: o.Speed, ready: map[string]time.Time{}}
	for _, c := range []struct {
		kind string
		sync syncFunc
		owns []client.Object
	}{
		{"TidbCluster", op.syncCluster, []client.Object{&appsv1.StatefulSet{}}},
		{"TidbInitializer", op.syncInitializer, nil},
		{"Backup", op.syncBackup, nil},
	} {
		if err := op.control(m, c.kind, c.sync, c.owns); err != nil {
			return fmt.Errorf("tidb operator: %s: %w", c.kind, err)
		}
	}
	return m.Start(log.IntoContext(ctx, logger))
}

// waitForKinds returns when the kinds are served, which is when the product has
// bootstrapped the shoot.
func waitForKinds(ctx context.Context, shoot gardenlet.ShootInfo) error {
	client, err := discovery.NewDiscoveryClientForConfig(shoot.Config)
	if err != nil {
		return fmt.Errorf("tidb operator: %w", err)
	}
	want := map[string]bool{"tidbclusters": true, "tidbinitializers": true, "backups": true}
	for {
		list, err := client.ServerResourcesForGroupVersion(apiGroup + "/" + apiVersion)
		found := 0
		if err == nil {
			for _, r := range list.APIResources {
				if want[r.Name] {
					found++
				}
			}
		}
		if found == len(want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(crdPoll):
		}
	}
}

// syncFunc brings one object forward; after is when to look again, 0 for never.
type syncFunc func(ctx context.Context, o *unstructured.Unstructured) (after time.Duration, err error)

// control registers a controller of one kind.
func (op *operator) control(m manager.Manager, kind string, sync syncFunc, owns []client.Object) error {
	object := newObject(kind)
	skip := true // each shoot has a controller of this name in the one process
	b := ctrl.NewControllerManagedBy(m).Named(kind).For(object).WithOptions(controller.Options{
		SkipNameValidation: &skip, MaxConcurrentReconciles: 4,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, 5*time.Second),
	})
	for _, owned := range owns {
		b = b.Owns(owned, builder.MatchEveryOwner)
	}
	return b.Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		return op.reconcile(ctx, kind, req, sync)
	}))
}

func newObject(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: apiGroup, Version: apiVersion, Kind: kind})
	return o
}

// operatorDeployment must be available for anything to happen.
var operatorDeployment = client.ObjectKey{Namespace: "tidb-admin", Name: "tidb-controller-manager"}

// available reports whether the operator's Deployment is.
func (op *operator) available(ctx context.Context) (bool, error) {
	var d appsv1.Deployment
	if err := op.client.Get(ctx, operatorDeployment, &d); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}
