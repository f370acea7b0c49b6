package command

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidbcloud/infra-orchestrator/activities/balancing"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
	"github.com/tidbcloud/infra-orchestrator/workers"
)

// balancer serves the task queue of the Balancers: all namespaces of the
// management cluster, apart from everything else that the process does. It
// begins when its caches are synced, and nothing waits for that.
type balancer struct {
	cache      *balancing.InformerCache
	activities *balancing.Activities
	events     record.EventBroadcaster
	sink       *typedcorev1.EventSinkImpl
	synced     chan struct{} // closed when the cache is
}

// wantsBalancing tells whether a worker of these queues serves Balancers.
func wantsBalancing(queues []string) bool { return slices.Contains(queues, contract.QueueBalancing) }

// onlyBalancing tells whether it serves nothing else: it then needs neither
// garden nor config-service.
func onlyBalancing(queues []string) bool { return wantsBalancing(queues) && len(queues) == 1 }

func newBalancer(kubeconfig string) (*balancer, error) {
	rc, err := runtime.RESTConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	// The queue of the API server is fairer than ours: 100 Balancers that change
	// at once are a few hundred requests.
	rc.QPS, rc.Burst = 400, 800
	scheme := k8sruntime.NewScheme()
	if err := balancing.AddToScheme(scheme); err != nil {
		return nil, err
	}
	b := &balancer{synced: make(chan struct{})}
	if b.cache, err = balancing.NewInformerCache(rest.CopyConfig(rc), scheme); err != nil {
		return nil, err
	}
	live, err := client.New(rc, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	core, err := typedcorev1.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	m, err := balancing.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	b.events, b.sink = record.NewBroadcaster(), &typedcorev1.EventSinkImpl{Interface: core.Events("")}
	b.activities = &balancing.Activities{
		Cache: b.cache, Client: live, Scales: balancing.LiveScales{Client: live}, Writers: balancing.LiveWriters{Client: live}, Metrics: m,
		Events: b.events.NewRecorder(scheme, corev1.EventSource{Component: balancing.Component}),
	}
	return b, nil
}

// serve runs until ctx ends.
func (b *balancer) serve(ctx context.Context, o workers.Options) error {
	o.Queues, o.Activities = []string{contract.QueueBalancing}, []workers.Registrar{b.activities}
	b.events.StartRecordingToSink(b.sink)
	defer b.events.Shutdown()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	running := false
	err := b.cache.Run(ctx, o.Log, func() {
		running = true
		close(b.synced)
		go func() {
			served <- workers.Run(ctx, o)
			cancel() // without a worker the cache is of no use
		}()
	})
	cancel()
	if running {
		if serveErr := <-served; serveErr != nil {
			return serveErr
		}
	}
	return err
}
