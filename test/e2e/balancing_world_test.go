package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
)

// shop is a namespace with two workloads, a and b, and a Balancer over them. The
// pods of each go to nodes of their own, so that a test can take the room away
// from one.
type shop struct {
	t         *testing.T
	kube      client.WithWatch
	namespace string
}

func newShop(t *testing.T, name string) *shop {
	t.Helper()
	rc, err := clientcmd.BuildConfigFromFlags("", world.State.Kubeconfig)
	require.NoError(t, err)
	rc.QPS, rc.Burst = 200, 400
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	s := &shop{t: t, namespace: "balancing-" + name}
	s.kube, err = client.NewWithWatch(rc, client.Options{Scheme: scheme})
	require.NoError(t, err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.create(ns)
	t.Cleanup(func() { _ = s.kube.Delete(context.Background(), ns) })
	return s
}

func (s *shop) create(o client.Object) {
	s.t.Helper()
	require.NoError(s.t, s.kube.Create(within(s.t, 30*time.Second), o))
}

// node makes a node with room for so many pods of workload a or b.
func (s *shop) node(workload string, pods int64) {
	s.t.Helper()
	room := corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
		corev1.ResourceCPU:  resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		GenerateName: s.namespace + "-" + workload + "-", Labels: map[string]string{"shop": s.namespace + "-" + workload},
	}}
	n.Status.Capacity, n.Status.Allocatable = room, room
	s.create(n)
	s.t.Cleanup(func() { _ = s.kube.Delete(context.Background(), n) })
}

func (s *shop) pods(workload string) corev1.PodTemplateSpec {
	var now int64
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"workload": workload, "shop": "web"}},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{"shop": s.namespace + "-" + workload},
			TerminationGracePeriodSeconds: &now,
			Containers: []corev1.Container{{Name: "web", Image: "web", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			}}},
		},
	}
}

func (s *shop) deployment(workload string, replicas int32) {
	s.t.Helper()
	s.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: workload},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: s.pods(workload),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"workload": workload}},
		},
	})
}

func (s *shop) statefulSet(workload string) {
	s.t.Helper()
	var none int32
	s.create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: workload},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &none, Template: s.pods(workload), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"workload": workload}},
		},
	})
}

// balancer makes the Balancer "web" over a and b, Deployments if not changed.
func (s *shop) balancer(replicas int32, change func(*v1alpha1.Balancer)) {
	s.t.Helper()
	target := func(name string) v1alpha1.BalancerTarget {
		return v1alpha1.BalancerTarget{Name: name, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}}
	}
	b := &v1alpha1.Balancer{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
		Spec: v1alpha1.BalancerSpec{
			Replicas: &replicas, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"shop": "web"}},
			Targets: []v1alpha1.BalancerTarget{target("a"), target("b")},
		},
	}
	change(b)
	s.create(b)
}

func proportions(a, b int32) v1alpha1.BalancerPolicy {
	return v1alpha1.BalancerPolicy{PolicyName: "proportional", Proportions: &v1alpha1.ProportionalPolicy{TargetProportions: map[string]int32{"a": a, "b": b}}}
}

func priorities(timeout int32, order ...string) v1alpha1.BalancerPolicy {
	return v1alpha1.BalancerPolicy{
		PolicyName: "priority", Priorities: &v1alpha1.PriorityPolicy{TargetOrder: order},
		Fallback: &v1alpha1.Fallback{StartupTimeoutSeconds: timeout},
	}
}

func (s *shop) get() *v1alpha1.Balancer {
	b := &v1alpha1.Balancer{}
	require.NoError(s.t, s.kube.Get(within(s.t, 30*time.Second), client.ObjectKey{Namespace: s.namespace, Name: "web"}, b))
	return b
}

// patch changes the Balancer as kubectl patch does.
func (s *shop) patch(json string) {
	s.t.Helper()
	b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	require.NoError(s.t, s.kube.Patch(within(s.t, 30*time.Second), b, client.RawPatch("application/merge-patch+json", []byte(json))))
}

// movement is what was seen of a shop's pods and workloads, event by event.
type movement struct {
	mu        sync.Mutex
	ready     map[string]map[string]bool // by workload and pod
	replicas  map[string]int32           // spec.replicas by workload
	sequence  map[string][]int32         // spec.replicas by workload, as they changed
	leastSeen int                        // ready pods together
	mostSeen  int32                      // spec.replicas together
	atShrink  []shrink
}

// shrink is what was ready when a workload was made smaller.
type shrink struct {
	workload string
	to       int32
	ready    map[string]int
}

// follow records what happens to Deployments and pods until the test ends.
func (s *shop) follow() *movement {
	s.t.Helper()
	m := &movement{ready: map[string]map[string]bool{}, replicas: map[string]int32{}, sequence: map[string][]int32{}, leastSeen: 1 << 30}
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.PodList{}} {
		w, err := s.kube.Watch(ctx, list, client.InNamespace(s.namespace))
		require.NoError(s.t, err)
		go func() {
			defer w.Stop()
			for e := range w.ResultChan() {
				switch o := e.Object.(type) {
				case *appsv1.Deployment:
					m.sized(o)
				case *corev1.Pod:
					m.saw(o, e.Type == "DELETED")
				}
			}
		}()
	}
	return m
}

func (m *movement) saw(p *corev1.Pod, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	workload := p.Labels["workload"]
	if m.ready[workload] == nil {
		m.ready[workload] = map[string]bool{}
	}
	ready := false
	for _, c := range p.Status.Conditions {
		ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	if ready && !gone {
		m.ready[workload][p.Name] = true
	} else {
		delete(m.ready[workload], p.Name)
	}
	m.leastSeen = min(m.leastSeen, len(m.ready["a"])+len(m.ready["b"]))
}

func (m *movement) sized(d *appsv1.Deployment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.replicas[d.Name]
	now := *d.Spec.Replicas
	if known && before == now {
		return
	}
	m.replicas[d.Name] = now
	m.sequence[d.Name] = append(m.sequence[d.Name], now)
	m.mostSeen = max(m.mostSeen, m.replicas["a"]+m.replicas["b"])
	if known && now < before {
		m.atShrink = append(m.atShrink, shrink{d.Name, now, map[string]int{"a": len(m.ready["a"]), "b": len(m.ready["b"])}})
	}
}

// look reads the record.
func (m *movement) look(f func(*movement)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

// fresh forgets the lowest and highest numbers: from now on they count.
func (m *movement) fresh() {
	m.look(func(m *movement) {
		m.leastSeen, m.mostSeen = len(m.ready["a"])+len(m.ready["b"]), m.replicas["a"]+m.replicas["b"]
	})
}

// settled waits until so many pods of a and b are ready, no more are wanted, and
// the Balancer's status says the same.
func (s *shop) settled(a, b int32) {
	s.t.Helper()
	eventually(s.t, time.Minute, fmt.Sprintf("%s: %d and %d replicas", s.namespace, a, b), func() error {
		bal := s.get()
		targets := bal.Status.Targets
		if len(targets) != 2 || len(bal.Status.Conditions) != 1 {
			return fmt.Errorf("status %+v", bal.Status)
		}
		c := bal.Status.Conditions[0]
		for i, want := range []int32{a, b} {
			if t := targets[i]; t.Desired != want || t.Observed != want || t.Ready != want {
				return fmt.Errorf("%s: %s; target %+v", c.Reason, c.Message, t)
			}
		}
		if c.Status != metav1.ConditionTrue || bal.Status.Replicas != a+b || bal.Status.ObservedGeneration != bal.Generation {
			return fmt.Errorf("status %+v", bal.Status)
		}
		return nil
	})
}
