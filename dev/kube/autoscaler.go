package kube

import (
	"context"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// AnnotationCPULoad on a Namespace is the CPU (a quantity such as "2500m")
// that its ready pods use together, in equal parts: the simulated metric that
// HorizontalPodAutoscalers see.
const AnnotationCPULoad = "devstack.cloud.pingcap.com/cpu-load"

const (
	// autoscalerSync is how often autoscalers decide; upstream's 15 s would
	// make a test wait.
	autoscalerSync = 2 * time.Second
	// downscaleWindow replaces upstream's five minutes.
	downscaleWindow = 4 * time.Second
	// autoscalerTolerance is upstream's.
	autoscalerTolerance = 0.1
)

// addAutoscaler adds upstream's controller of HorizontalPodAutoscalers. Kinds
// are found by discovery, so an autoscaler may target any kind with /scale.
// Only the metrics are simulated; see AnnotationCPULoad.
func addAutoscaler(ctx context.Context, l *loops, c *Cluster) error {
	discovery := l.client.Discovery()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	scales, err := scale.NewForConfig(c.Config(), mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery))
	if err != nil {
		return err
	}
	core := l.shared.Core().V1()
	load := &namespaceLoad{pods: core.Pods().Lister(), namespaces: core.Namespaces().Lister()}
	autoscalers := podautoscaler.NewHorizontalController(ctx, l.client.CoreV1(), scales, l.client.AutoscalingV2(), mapper, load,
		l.shared.Autoscaling().V2().HorizontalPodAutoscalers(), core.Pods(),
		autoscalerSync, downscaleWindow, autoscalerTolerance, 0, 0)
	l.add(
		func(ctx context.Context) { autoscalers.Run(ctx, workers) },
		// As the controller manager does: kinds come later, too.
		func(ctx context.Context) {
			wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, 10*time.Second)
		},
	)
	return nil
}

// namespaceLoad is a metrics API with one metric: CPU.
type namespaceLoad struct {
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
}

var _ metrics.MetricsClient = (*namespaceLoad)(nil)

// GetResourceMetric implements metrics.MetricsClient: the load of the
// namespace, divided by all of its ready pods.
func (n *namespaceLoad) GetResourceMetric(_ context.Context, name corev1.ResourceName, namespace string,
	selector labels.Selector, _ string,
) (metrics.PodMetricsInfo, time.Time, error) {
	ns, err := n.namespaces.Get(namespace)
	if err != nil {
		return nil, time.Time{}, err
	}
	if name != corev1.ResourceCPU {
		return nil, time.Time{}, unknownMetric(string(name))
	}
	load, err := resource.ParseQuantity(ns.Annotations[AnnotationCPULoad])
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("annotation %s of namespace %s: %w", AnnotationCPULoad, namespace, err)
	}
	pods, err := n.pods.Pods(namespace).List(labels.Everything())
	if err != nil {
		return nil, time.Time{}, err
	}
	var ready []*corev1.Pod
	for _, p := range pods {
		if p.DeletionTimestamp == nil && podutil.IsPodReady(p) {
			ready = append(ready, p)
		}
	}
	now, info := time.Now(), metrics.PodMetricsInfo{}
	for _, p := range ready {
		if selector.Matches(labels.Set(p.Labels)) {
			info[p.Name] = metrics.PodMetric{Timestamp: now, Window: autoscalerSync, Value: load.MilliValue() / int64(len(ready))}
		}
	}
	if len(info) == 0 {
		return nil, time.Time{}, fmt.Errorf("no ready pod of namespace %s matches %s", namespace, selector)
	}
	return info, now, nil
}

// GetRawMetric implements metrics.MetricsClient; there is no such metric.
func (*namespaceLoad) GetRawMetric(name, _ string, _, _ labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return nil, time.Time{}, unknownMetric(name)
}

// GetObjectMetric implements metrics.MetricsClient; there is no such metric.
func (*namespaceLoad) GetObjectMetric(name, _ string, _ *autoscalingv2.CrossVersionObjectReference, _ labels.Selector) (int64, time.Time, error) {
	return 0, time.Time{}, unknownMetric(name)
}

// GetExternalMetric implements metrics.MetricsClient; there is no such metric.
func (*namespaceLoad) GetExternalMetric(name, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	return nil, time.Time{}, unknownMetric(name)
}

func unknownMetric(name string) error {
	return fmt.Errorf("the devstack has no metric %q: it simulates cpu of pods only", name)
}
