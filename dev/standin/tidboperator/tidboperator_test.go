package tidboperator

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

const clusterYAML = `
apiVersion: pingcap.com/v1alpha1
kind: TidbCluster
metadata: {name: db, namespace: tidb-1, uid: 11112222-3333-4444-5555-666677778888}
spec:
  version: v8.5.2
  topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/zone, maxSkew: 1}]
  pd: {replicas: 1, requests: {cpu: 500m, storage: 10Gi}, storageClassName: standard, config: "a = 1"}
  tikv: {replicas: 2, requests: {cpu: "1", storage: 100Gi}, storageClassName: standard, serviceAccount: db}
  tidb: {replicas: 1, baseImage: registry/tidb, requests: {cpu: "1"}, service: {port: 4001}}
`

// world is a shoot in which a test plays StatefulSet controller and kubelet.
type world struct {
	t  *testing.T
	op *operator
	c  client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tc := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(clusterYAML), &tc.Object); err != nil {
		t.Fatal(err)
	}
	running := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorDeployment.Namespace, Name: operatorDeployment.Name},
		Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithStatusSubresource(&appsv1.StatefulSet{}, &corev1.Pod{}).
		WithObjects(tc, running).Build()
	return &world{t: t, c: c, op: &operator{
		client: c, live: c, faults: control.NewRegistry(), speed: 1e6, ready: map[string]time.Time{},
		shoot: gardenlet.ShootInfo{Name: "n-1", TechnicalID: "shoot--core--n-1"},
	}}
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// settle runs operator and the test's controllers until nothing is to do soon.
func (w *world) settle() *unstructured.Unstructured {
	w.t.Helper()
	for range 30 {
		_, err := w.op.reconcile(w.t.Context(), "TidbCluster", ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "tidb-1", Name: "db"}}, w.op.syncCluster)
		w.check(err)
		w.playControllers()
		time.Sleep(4 * time.Millisecond) // members start after 10 ms
	}
	return w.cluster()
}

func (w *world) cluster() *unstructured.Unstructured {
	w.t.Helper()
	tc := newObject("TidbCluster")
	w.check(w.c.Get(w.t.Context(), client.ObjectKey{Namespace: "tidb-1", Name: "db"}, tc))
	return tc
}

// sets lists the names of StatefulSets.
func (w *world) sets() []string {
	w.t.Helper()
	var list appsv1.StatefulSetList
	w.check(w.c.List(w.t.Context(), &list))
	var names []string
	for _, set := range list.Items {
		names = append(names, set.Name)
	}
	return names
}

// playControllers gives every StatefulSet ready Pods of its template, one step
// at a time, and removes those of deleted sets.
func (w *world) playControllers() {
	w.t.Helper()
	ctx := w.t.Context()
	var list appsv1.StatefulSetList
	w.check(w.c.List(ctx, &list))
	for i := range list.Items {
		set := &list.Items[i]
		for n := range *set.Spec.Replicas {
			w.playPod(ctx, set, n)
		}
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: set.Generation, Replicas: *set.Spec.Replicas, ReadyReplicas: *set.Spec.Replicas,
			CurrentRevision: set.Annotations[hashAnnotation], UpdateRevision: set.Annotations[hashAnnotation],
		}
		w.check(w.c.Status().Update(ctx, set))
	}
	var pods corev1.PodList
	w.check(w.c.List(ctx, &pods))
	for i := range pods.Items {
		if !slices.Contains(w.sets(), pods.Items[i].Annotations["set"]) {
			w.check(w.c.Delete(ctx, &pods.Items[i]))
		}
	}
}

func (w *world) playPod(ctx context.Context, set *appsv1.StatefulSet, n int32) {
	w.t.Helper()
	name := set.Name + "-" + string('0'+rune(n))
	var pod corev1.Pod
	err := w.c.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, &pod)
	if err == nil && pod.Spec.Containers[0].Image == set.Spec.Template.Spec.Containers[0].Image {
		return
	}
	if err == nil {
		w.check(w.c.Delete(ctx, &pod))
	} else if !apierrors.IsNotFound(err) {
		w.check(err)
	}
	pod = corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: set.Spec.Template.Labels,
			UID: types.UID(name + set.Annotations[hashAnnotation]), Annotations: map[string]string{"set": set.Name}},
		Spec: set.Spec.Template.Spec,
	}
	w.check(w.c.Create(ctx, &pod))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.check(w.c.Status().Update(ctx, &pod))
}

func (w *world) set(value any, path ...string) {
	w.t.Helper()
	tc := w.cluster()
	w.check(unstructured.SetNestedField(tc.Object, value, path...))
	w.check(w.c.Update(w.t.Context(), tc))
}

func at(tc *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(tc.Object, path...)
	return value
}

func ready(tc *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(tc.Object, "status", "conditions")
	if len(list) != 1 {
		return "none"
	}
	c := list[0].(map[string]any)
	return c["status"].(string) + " " + c["reason"].(string)
}

func TestClusterStartsInOrder(t *testing.T) {
	w := newWorld(t)
	_, err := w.op.faults.Add(control.Fault{Target: control.TargetTiDB, Kind: control.KindStuck, Component: "tikv", Shoot: "n-1"})
	w.check(err)
	tc := w.settle()
	if got := strings.Join(w.sets(), " "); got != "db-pd db-tikv" || ready(tc) != "False TiKVStoreNotUp" && ready(tc) != "False StatefulSetNotUpToDate" {
		t.Fatalf("with a stuck TiKV: sets %q, ready %q", got, ready(tc))
	}
	if at(tc, "status", "tikv", "statefulSet", "readyReplicas") != nil {
		t.Error("a stuck component shows ready replicas")
	}
	w.op.faults.Clear("")
	tc = w.settle()
	if got := ready(tc); got != "True Ready" {
		t.Fatalf("ready %q", got)
	}
	for path, want := range map[string]any{
		"pd phase": phaseNormal, "tidb image": "registry/tidb:v8.5.2", "tikv statefulSet readyReplicas": int64(2), "pd image": "pingcap/pd:v8.5.2",
	} {
		if got := at(tc, append([]string{"status"}, strings.Fields(path)...)...); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	stores, _ := at(tc, "status", "tikv", "stores").(map[string]any)
	if len(stores) != 2 || at(tc, "status", "clusterID") == nil || at(tc, "status", "pd", "leader", "clientURL") == nil {
		t.Errorf("status %v", at(tc, "status"))
	}
}

func TestNothingHappensWithoutTheOperator(t *testing.T) {
	w := newWorld(t)
	var d appsv1.Deployment
	w.check(w.c.Get(t.Context(), operatorDeployment, &d))
	d.Status.Conditions[0].Status = corev1.ConditionFalse
	w.check(w.c.Status().Update(t.Context(), &d))
	if w.settle(); len(w.sets()) != 0 {
		t.Errorf("made %v without a running operator", w.sets())
	}
}

func TestUpgradeScaleSuspend(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.set("v8.5.3", "spec", "version")
	if tc := w.settle(); ready(tc) != "True Ready" || at(tc, "status", "tidb", "image") != "registry/tidb:v8.5.3" {
		t.Fatalf("after the upgrade: %s, %v", ready(tc), at(tc, "status", "tidb", "image"))
	}
	w.set(int64(4), "spec", "tikv", "replicas")
	if tc := w.settle(); ready(tc) != "True Ready" || at(tc, "status", "tikv", "statefulSet", "readyReplicas") != int64(4) {
		t.Fatalf("after scaling: %s, %v", ready(tc), at(tc, "status", "tikv", "statefulSet"))
	}
	w.set(true, "spec", "suspendAction", "suspendStatefulSet")
	tc := w.settle()
	for _, name := range startOrder {
		if at(tc, "spec", name) != nil && (at(tc, "status", name, "phase") != phaseSuspend || at(tc, "status", name, "statefulSet") != nil) {
			t.Errorf("%s is not suspended: %v", name, at(tc, "status", name))
		}
	}
	if len(w.sets()) != 0 {
		t.Errorf("suspended, but %v exist", w.sets())
	}
	w.set(false, "spec", "suspendAction", "suspendStatefulSet")
	if tc := w.settle(); ready(tc) != "True Ready" {
		t.Errorf("after resuming: %s", ready(tc))
	}
	w.set(true, "spec", "paused")
	w.set(int64(5), "spec", "tikv", "replicas")
	if tc := w.settle(); at(tc, "status", "tikv", "statefulSet", "replicas") != int64(4) {
		t.Error("a paused cluster was scaled")
	}
}

func TestHeldBack(t *testing.T) {
	busy := &state{c: &component{name: "pd"}, phase: phaseNormal, set: &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32)}}}
	kv := &state{c: &component{name: "tikv"}}
	if !heldBack(map[string]*state{"pd": busy, "tikv": kv}, kv) {
		t.Error("TiKV goes on while PD's StatefulSet has not been looked at")
	}
	busy.set.Status.ObservedGeneration = 2
	if heldBack(map[string]*state{"pd": busy, "tikv": kv}, kv) {
		t.Error("TiKV is held back by a PD at rest")
	}
}

func TestInitializerAndBackup(t *testing.T) {
	w := newWorld(t)
	ti, backup := newObject("TidbInitializer"), newObject("Backup")
	for _, o := range []*unstructured.Unstructured{ti, backup} {
		o.SetNamespace("tidb-1")
		o.SetName("x")
		o.SetUID(types.UID(o.GetKind()))
	}
	w.check(unstructured.SetNestedField(ti.Object, "db", "spec", "cluster", "name"))
	w.check(unstructured.SetNestedField(ti.Object, "root", "spec", "passwordSecret"))
	w.check(unstructured.SetNestedField(backup.Object, "Delete", "spec", "cleanPolicy"))
	w.check(w.c.Create(t.Context(), ti))
	w.check(w.c.Create(t.Context(), backup))
	round := func(o *unstructured.Unstructured, sync syncFunc) string {
		for range 5 {
			_, err := w.op.reconcile(t.Context(), o.GetKind(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}, sync)
			w.check(err)
			time.Sleep(11 * time.Millisecond) // scaled times are 10 ms at least
		}
		if err := w.c.Get(t.Context(), client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) {
			return "gone"
		}
		phase, _ := at(o, "status", "phase").(string)
		return phase
	}
	w.settle()
	if phase := round(ti, w.op.syncInitializer); phase != "Pending" {
		t.Errorf("without its Secret: %s", phase)
	}
	w.check(w.c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tidb-1", Name: "root"}}))
	if phase := round(ti, w.op.syncInitializer); phase != "Completed" || at(w.cluster(), "status", "tidb", "passwordInitialized") != true {
		t.Errorf("with its Secret: %s", phase)
	}
	if phase := round(backup, w.op.syncBackup); phase != "Complete" || len(backup.GetFinalizers()) != 1 {
		t.Errorf("backup is %s with finalizers %v", phase, backup.GetFinalizers())
	}
	if list, _ := at(backup, "status", "conditions").([]any); len(list) != 3 {
		t.Errorf("conditions do not accumulate: %v", list)
	}
	w.check(w.c.Delete(t.Context(), backup))
	if phase := round(backup, w.op.syncBackup); phase != "gone" {
		t.Errorf("a deleted backup is %s", phase)
	}
}

func TestAddonEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	addon := Addon(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	go func() { done <- addon(ctx, gardenlet.ShootInfo{Config: deadEnd()}) }()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the addon goes on after its end")
	}
}

// deadEnd is an API server that does not exist.
func deadEnd() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }
