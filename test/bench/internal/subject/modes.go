package subject

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidbcloud/infra-orchestrator/activities/management"
	"github.com/tidbcloud/infra-orchestrator/activities/operations"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/bridge"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/bare"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/plain"
	"github.com/tidbcloud/infra-orchestrator/workers"
)

// Bare says what the bare mode runs.
type Bare struct {
	N      int                   `json:"n"`
	Shapes map[string]bare.Shape `json:"shapes"`
}

func kindName(o v1.Object) string {
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."))
}

func kindOf(id string) string {
	kind, _, _ := strings.Cut(id, "/")
	return kind
}

// product runs bridge and worker as their processes do, in one process, with
// the null cloud in place of the activities on clouds, garden and shoots.
func (s *subject) product(ctx context.Context) error {
	if err := workers.EnsureSearchAttributes(ctx, s.temporal, s.o.Namespace); err != nil {
		return err
	}
	if err := s.worker(ctx); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	mgr, err := s.newManager("bridge")
	if err != nil {
		return err
	}
	signaller := bridge.NewSignaller(s.temporal, mgr.GetEventRecorder("infra-bridge"), s.log)
	if err := bridge.Setup(mgr, signaller, s.o.Resync); err != nil {
		return err
	}
	s.resync = func(ctx context.Context) error { return signalAll(ctx, mgr.GetClient(), signaller) }
	if err := s.start(ctx, mgr); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	return bridge.WaitForCaches(ctx, mgr.GetCache())
}

func (s *subject) worker(ctx context.Context) error {
	mgr, err := s.newManager("worker")
	if err != nil {
		return err
	}
	if err := management.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	acts := &management.Activities{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Wake: &wake.Hub{References: management.References}, Env: "bench", DefaultProject: "core"}
	if err := s.start(ctx, mgr); err != nil {
		return err
	}
	if err := acts.Wake.Watch(ctx, mgr.GetCache(), management.Kinds()...); err != nil {
		return err
	}
	if err := s.watchReady(ctx, mgr.GetCache(), &v1.Provider{}, &v1.Network{}, &v1.Cluster{}); err != nil {
		return err
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	m, err := workers.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	options := workers.Options{
		Client: s.temporal, Metrics: m, Log: slog.New(s.log.Handler()),
		Activities: []workers.Registrar{acts, s.cloud, &operations.Activities{Temporal: s.temporal}},
		Teller:     management.Teller{Activities: acts},
	}
	go func() {
		if err := workers.Run(ctx, options); err != nil {
			s.log.Error("worker ended", "error", err)
		}
	}()
	return nil
}

// signalAll signals every Network and Cluster, as the bridge's resync does in
// the course of ten minutes.
func signalAll(ctx context.Context, c client.Client, signaller *bridge.Signaller) error {
	for _, kind := range []string{v1.KindNetwork, v1.KindCluster} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1.GroupVersion.WithKind(kind + "List"))
		if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			if retry := signaller.Signal(ctx, kind, &list.Items[i]); retry > 0 {
				return fmt.Errorf("%s %s: Temporal did not take the signal", kind, list.Items[i].Name)
			}
		}
	}
	return nil
}

// plain runs the plain reconcilers.
func (s *subject) plain(ctx context.Context) error {
	mgr, err := s.newManager("plain")
	if err != nil {
		return err
	}
	again, err := plain.Setup(ctx, mgr, s.cloud, s.o.Resync)
	if err != nil {
		return err
	}
	if err := s.watchReady(ctx, mgr.GetCache(), &v1.Network{}, &v1.Cluster{}); err != nil {
		return err
	}
	s.resync = func(ctx context.Context) error {
		var networks v1.NetworkList
		var clusters v1.ClusterList
		if err := mgr.GetClient().List(ctx, &networks, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		if err := mgr.GetClient().List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range networks.Items {
			again.Networks <- event.GenericEvent{Object: &networks.Items[i]}
		}
		for i := range clusters.Items {
			again.Clusters <- event.GenericEvent{Object: &clusters.Items[i]}
		}
		return nil
	}
	return s.start(ctx, mgr)
}

// bare runs empty workflows; POST /run says how many.
func (s *subject) bare(ctx context.Context) error {
	s.run = func(ctx context.Context, b Bare) error { return bare.Run(ctx, s.temporal, b.N, b.Shapes) }
	return bare.Start(ctx, s.temporal)
}
