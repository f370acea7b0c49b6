package gardenlet

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

var testMachines = map[string]gardencorev1beta1.MachineType{
	"m5.large":  {Name: "m5.large", CPU: resource.MustParse("2"), Memory: resource.MustParse("8Gi")},
	"m5.xlarge": {Name: "m5.xlarge", CPU: resource.MustParse("4"), Memory: resource.MustParse("16Gi")},
}

func testPool() gardencorev1beta1.Worker {
	return gardencorev1beta1.Worker{
		Name: "kv-012345-a", Minimum: 4, Maximum: 9, Zones: []string{"us-west-2a", "us-west-2b", "us-west-2c"},
		Machine: gardencorev1beta1.Machine{Type: "m5.xlarge", Image: &gardencorev1beta1.ShootMachineImage{Name: "gardenlinux", Version: new("1592.4.0")}},
		Volume:  &gardencorev1beta1.Volume{VolumeSize: "80Gi"},
		Labels:  map[string]string{"dedicated": "tikv"},
		Taints:  []corev1.Taint{{Key: "dedicated", Value: "tikv", Effect: corev1.TaintEffectNoSchedule}},
	}
}

func plan(t *testing.T, pools ...gardencorev1beta1.Worker) []corev1.Node {
	t.Helper()
	nodes, err := desiredNodes("shoot--core--n1", "us-west-2", pools, testMachines)
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

func names(nodes []corev1.Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}

func TestDesiredNodes(t *testing.T) {
	nodes := plan(t, testPool())
	zones := map[string]int{}
	form := regexp.MustCompile(`^shoot--core--n1-kv-012345-a-z[123]-[0-9a-f]{5}$`)
	for _, n := range nodes {
		zones[n.Labels[corev1.LabelTopologyZone]]++
		if !form.MatchString(n.Name) {
			t.Errorf("name %s", n.Name)
		}
		for key, want := range map[string]string{
			poolLabel: "kv-012345-a", "dedicated": "tikv", corev1.LabelTopologyRegion: "us-west-2",
			corev1.LabelInstanceTypeStable: "m5.xlarge", corev1.LabelHostname: n.Name,
		} {
			if n.Labels[key] != want {
				t.Errorf("label %s = %q, want %q", key, n.Labels[key], want)
			}
		}
		if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Value != "tikv" {
			t.Errorf("taints %v", n.Spec.Taints)
		}
		for list, want := range map[*corev1.ResourceList][3]string{
			&n.Status.Capacity: {"4", "16Gi", "80Gi"}, &n.Status.Allocatable: {"3920m", "15Gi", "80Gi"},
		} {
			got := [3]string{list.Cpu().String(), list.Memory().String(), list.StorageEphemeral().String()}
			if got != want {
				t.Errorf("resources %v, want %v", got, want)
			}
		}
	}
	if want := map[string]int{"us-west-2a": 2, "us-west-2b": 1, "us-west-2c": 1}; !maps.Equal(zones, want) {
		t.Errorf("zones %v, want %v", zones, want)
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(names(nodes)))); len(unique) != 4 {
		t.Errorf("names %v", names(nodes))
	}
}

// What makes a machine decides whether it is replaced.
func TestNodesAreKeptOrReplaced(t *testing.T) {
	before := names(plan(t, testPool()))
	for name, tc := range map[string]struct {
		change func(*gardencorev1beta1.Worker)
		kept   int
	}{
		"labels":       {func(p *gardencorev1beta1.Worker) { p.Labels = nil }, 4},
		"taints":       {func(p *gardencorev1beta1.Worker) { p.Taints = nil }, 4},
		"grows":        {func(p *gardencorev1beta1.Worker) { p.Minimum = 6 }, 4},
		"shrinks":      {func(p *gardencorev1beta1.Worker) { p.Minimum = 3 }, 3},
		"machine type": {func(p *gardencorev1beta1.Worker) { p.Machine.Type = "m5.large" }, 0},
		"volume size":  {func(p *gardencorev1beta1.Worker) { p.Volume.VolumeSize = "90Gi" }, 0},
		"volume type":  {func(p *gardencorev1beta1.Worker) { p.Volume.Type = new("io1") }, 0},
		"image":        {func(p *gardencorev1beta1.Worker) { p.Machine.Image.Version = new("1592.5.0") }, 0},
	} {
		pool := testPool()
		tc.change(&pool)
		kept := 0
		for _, n := range plan(t, pool) {
			if slices.Contains(before, n.Name) {
				kept++
			}
		}
		if kept != tc.kept {
			t.Errorf("%s: %d nodes are kept, want %d", name, kept, tc.kept)
		}
	}
}

// A pool that is removed takes its nodes along, and the Pods on them; those of
// its successor, and Pods that are nowhere yet, stay.
func TestRemovedPoolsTakeTheirNodes(t *testing.T) {
	ctx := context.Background()
	old, fresh := testPool(), testPool()
	fresh.Name, fresh.Machine.Type = "kv-012345-b", "m5.large"
	var objects []runtime.Object
	for _, n := range plan(t, old, fresh) {
		objects = append(objects, &n, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "on-" + n.Name}, Spec: corev1.PodSpec{NodeName: n.Name}})
	}
	objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "pending"}})
	shoot := fake.NewClientset(objects...)
	keep := map[string]bool{}
	for _, n := range plan(t, fresh) {
		keep[n.Name] = true
	}
	for range 2 {
		if err := removeNodes(ctx, shoot, keep); err != nil {
			t.Fatal(err)
		}
		nodes, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods, err := shoot.CoreV1().Pods("db").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes.Items) != len(keep) || len(pods.Items) != len(keep)+1 {
			t.Errorf("%d nodes and %d pods are left, want %d and one more", len(nodes.Items), len(pods.Items), len(keep))
		}
		for _, n := range nodes.Items {
			if !keep[n.Name] || n.Spec.Unschedulable {
				t.Errorf("node %s is left (unschedulable: %t)", n.Name, n.Spec.Unschedulable)
			}
		}
	}
}

func TestUnknownMachineTypeIsAConfigurationProblem(t *testing.T) {
	pool := testPool()
	pool.Machine.Type = "x1.none"
	_, err := desiredNodes("shoot--core--n1", "us-west-2", []gardencorev1beta1.Worker{pool}, testMachines)
	var infra *InfraError
	if !errors.As(err, &infra) || infra.Code != string(gardencorev1beta1.ErrorConfigurationProblem) {
		t.Errorf("error %v", err)
	}
}

func TestAlignNode(t *testing.T) {
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.Now())}
	want := plan(t, testPool())[0]
	for name, tc := range map[string]struct {
		change  func(*corev1.Node)
		changed bool
	}{
		"same":                {func(*corev1.Node) {}, false},
		"label of others":     {func(n *corev1.Node) { n.Labels["other"] = "x" }, false},
		"marked by a control": {func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, notReady) }, false},
		"label differs":       {func(n *corev1.Node) { n.Labels["dedicated"] = "pd" }, true},
		"taint missing":       {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{notReady} }, true},
		"taint of the past":   {func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "old"}) }, true},
	} {
		have := want.DeepCopy()
		tc.change(have)
		marked := slices.ContainsFunc(have.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) })
		if changed := alignNode(have, &want); changed != tc.changed {
			t.Errorf("%s: changed %t, want %t", name, changed, tc.changed)
		}
		if have.Labels["dedicated"] != "tikv" || !slices.ContainsFunc(have.Spec.Taints, func(t corev1.Taint) bool { return t.Value == "tikv" }) ||
			slices.ContainsFunc(have.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "old" }) {
			t.Errorf("%s: labels %v, taints %v", name, have.Labels, have.Spec.Taints)
		}
		if kept := slices.ContainsFunc(have.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) }); kept != marked {
			t.Errorf("%s: the not-ready taint is kept: %t, want %t", name, kept, marked)
		}
	}
}
