package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidbcloud/infra-orchestrator/dev/kube"
)

// Pace says how long operations take. The zero value is the default.
type Pace struct {
	// Create, Reconcile and Delete are the durations of whole operations
	// (Create also for waking up, Reconcile also for hibernating). Real work
	// that takes longer than its share stretches them. Defaults: 10 s, 2 s, 6 s.
	Create, Reconcile, Delete time.Duration
	// Factor scales all durations, also those of faults and pauses between
	// attempts: 0.1 is ten times as fast. Default 1.
	Factor float64
}

func (p Pace) withDefaults() Pace {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&p.Create, 10 * time.Second}, {&p.Reconcile, 2 * time.Second}, {&p.Delete, 6 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if p.Factor == 0 {
		p.Factor = 1
	}
	return p
}

func (p Pace) scale(d time.Duration) time.Duration { return time.Duration(float64(d) * p.Factor) }

// total is how long an operation of the given phase takes.
func (p Pace) total(phase string) time.Duration {
	switch phase {
	case PhaseCreate, PhaseWake:
		return p.scale(p.Create)
	case PhaseDelete:
		return p.scale(p.Delete)
	default:
		return p.scale(p.Reconcile)
	}
}

// Options of the stand-in.
type Options struct {
	// Garden reaches the management cluster, which serves the Shoots. Required.
	Garden *rest.Config
	// Etcd stores the shoot clusters, each under "/<technicalID>". Required.
	Etcd *kube.Etcd
	// Dir keeps a folder for each shoot cluster. Required.
	Dir string
	// SeedName is the Seed that Shoots are bound to. Required.
	SeedName string
	// ClusterIdentity is that of the gardener-apiserver.
	ClusterIdentity string
	// Infrastructure makes the cloud side. Required.
	Infrastructure Infrastructure
	// Volumes makes the disks of claims in shoots; nil: they exist in the API only.
	Volumes func(ShootInfo) kube.VolumeBackend
	// Addons run inside each shoot cluster.
	Addons []ShootAddon
	// Faults may be nil.
	Faults Faults
	// Pace of operations.
	Pace Pace
	// Log of the stand-in.
	Log logr.Logger
}

// Gardenlet is the running stand-in.
type Gardenlet struct {
	clusters *clusters
	cancel   context.CancelFunc
	done     chan struct{}
	err      error
}

// Start runs the stand-in: shoot clusters of an earlier run come up again,
// unfinished operations start over. ctx bounds the start only; Stop ends it.
func Start(ctx context.Context, opts Options) (*Gardenlet, error) {
	if opts.Garden == nil || opts.Etcd == nil || opts.Dir == "" || opts.SeedName == "" || opts.Infrastructure == nil {
		return nil, errors.New("gardenlet: needs Garden, Etcd, Dir, SeedName and Infrastructure")
	}
	var err error
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	opts.Pace = opts.Pace.withDefaults()

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gardencorev1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(opts.Garden, ctrl.Options{
		Scheme:  scheme,
		Logger:  opts.Log,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Read rarely, and right after they were written.
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&gardencorev1beta1.InternalSecret{}, &corev1.ConfigMap{}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("gardenlet: %w", err)
	}
	g := &Gardenlet{clusters: newClusters(opts), done: make(chan struct{})}
	r := &reconciler{
		opts:     opts,
		client:   manager.GetClient(),
		live:     manager.GetAPIReader(),
		clusters: g.clusters,
		attempts: map[string]int{},
	}
	if err := r.announceSeed(ctx); err != nil {
		return nil, fmt.Errorf("gardenlet: seed %s: %w", opts.SeedName, err)
	}
	// Each running operation occupies one worker, as in gardenlet.
	err = ctrl.NewControllerManagedBy(manager).Named("shoot").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(wanted())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 20, SkipNameValidation: new(true)}).
		Complete(r)
	if err != nil {
		return nil, fmt.Errorf("gardenlet: %w", err)
	}
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.cancel = cancel
	go func() {
		defer close(g.done)
		g.err = manager.Start(runCtx)
	}()
	return g, nil
}

// Stop ends running operations and every shoot cluster. Their data stays.
func (g *Gardenlet) Stop() error {
	g.cancel()
	<-g.done
	return errors.Join(g.err, g.clusters.stopAll())
}

// Shoots returns the clusters that are up, sorted by technical id.
func (g *Gardenlet) Shoots() []ShootInfo { return g.clusters.infos() }
