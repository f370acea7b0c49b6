package gardenlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	poolLabel = "worker.gardener.cloud/pool"
	// nodeReadyTimeout is gardenlet's for workers.
	nodeReadyTimeout = 10 * time.Minute
	maxPods          = "110"
	defaultDisk      = "50Gi"
)

// Gardener's defaults of kubeReserved: not for pods.
var (
	reservedCPU    = resource.MustParse("80m")
	reservedMemory = resource.MustParse("1Gi")
)

// desiredNodes are the nodes that the pools ask for: the minimum of each pool,
// dealt out over its zones, the first zones first. A node's name follows from
// what makes a machine, so that a pool with another machine type, image or volume
// gets new nodes, and everything else keeps its own.
func desiredNodes(technicalID, region string, pools []gardencorev1beta1.Worker, machines map[string]gardencorev1beta1.MachineType) ([]corev1.Node, error) {
	var nodes []corev1.Node
	for _, pool := range pools {
		machine, ok := machines[pool.Machine.Type]
		if !ok {
			return nil, &InfraError{
				Code:    string(gardencorev1beta1.ErrorConfigurationProblem),
				Message: fmt.Sprintf("worker pool %s: machine type %q is not in the CloudProfile", pool.Name, pool.Machine.Type),
			}
		}
		for i := range int(pool.Minimum) {
			zone, index := region, 0
			if n := len(pool.Zones); n > 0 {
				zone, index = pool.Zones[i%n], i%n
			}
			nodes = append(nodes, newNode(technicalID, region, zone, index, i, pool, machine))
		}
	}
	return nodes, nil
}

func newNode(technicalID, region, zone string, zoneIndex, ordinal int, pool gardencorev1beta1.Worker, machine gardencorev1beta1.MachineType) corev1.Node {
	image := ""
	if pool.Machine.Image != nil {
		image = pool.Machine.Image.Name
		if v := pool.Machine.Image.Version; v != nil {
			image += "-" + *v
		}
	}
	disk := ""
	if v := pool.Volume; v != nil {
		disk = v.VolumeSize
		if v.Type != nil {
			disk = *v.Type + "-" + disk
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%d/%s/%s/%s", technicalID, pool.Name, zone, ordinal, pool.Machine.Type, image, disk))
	hash := hex.EncodeToString(sum[:])
	name := fmt.Sprintf("%s-%s-z%d-%s", technicalID, pool.Name, zoneIndex+1, hash[:5])
	labels := map[string]string{
		"node.kubernetes.io/role":         "node",
		poolLabel:                         pool.Name,
		"worker.garden.sapcloud.io/group": pool.Name,
		"topology.ebs.csi.aws.com/zone":   zone,
		corev1.LabelHostname:              name,
		corev1.LabelOSStable:              "linux",
		corev1.LabelArchStable:            "amd64",
		corev1.LabelInstanceTypeStable:    pool.Machine.Type,
		corev1.LabelTopologyZone:          zone,
		corev1.LabelTopologyRegion:        region,
	}
	if pool.SystemComponents == nil || pool.SystemComponents.Allow {
		labels["worker.gardener.cloud/system-components"] = "true"
	}
	maps.Copy(labels, pool.Labels)
	capacity, allocatable := machineResources(pool, machine)
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: maps.Clone(pool.Annotations)},
		Spec: corev1.NodeSpec{
			ProviderID: fmt.Sprintf("aws:///%s/i-%s", zone, hash[:17]),
			Taints:     slices.Clone(pool.Taints),
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: allocatable},
	}
}

func machineResources(pool gardencorev1beta1.Worker, machine gardencorev1beta1.MachineType) (capacity, allocatable corev1.ResourceList) {
	disk := defaultDisk
	if pool.Volume != nil && pool.Volume.VolumeSize != "" {
		disk = pool.Volume.VolumeSize
	}
	storage, err := resource.ParseQuantity(disk)
	if err != nil { // the gardener-apiserver has validated it
		storage = resource.MustParse(defaultDisk)
	}
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:              machine.CPU,
		corev1.ResourceMemory:           machine.Memory,
		corev1.ResourceEphemeralStorage: storage,
		corev1.ResourcePods:             resource.MustParse(maxPods),
	}
	allocatable = capacity.DeepCopy()
	for name, reserved := range map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceCPU: reservedCPU, corev1.ResourceMemory: reservedMemory,
	} {
		quantity := allocatable[name]
		quantity.Sub(reserved)
		allocatable[name] = quantity
	}
	return capacity, allocatable
}

// syncNodes makes the cluster's nodes those of the pools: new ones first, then
// it waits for them, then surplus ones go, as machine-controller-manager rolls.
func (op *operation) syncNodes(ctx context.Context, pools []gardencorev1beta1.Worker) error {
	info, ok := op.clusters.info(op.technicalID)
	if !ok {
		return fmt.Errorf("the API server of %s is not running", op.technicalID)
	}
	shoot, err := kubernetes.NewForConfig(info.Config)
	if err != nil {
		return err
	}
	machines, err := op.machineTypes(ctx)
	if err != nil {
		return err
	}
	desired, err := desiredNodes(op.technicalID, op.shoot.Spec.Region, pools, machines)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for i := range desired {
		keep[desired[i].Name] = true
		if err := ensureNode(ctx, shoot, &desired[i]); err != nil {
			return fmt.Errorf("node %s: %w", desired[i].Name, err)
		}
	}
	if err := waitNodesReady(ctx, shoot, keep); err != nil {
		return err
	}
	return removeNodes(ctx, shoot, keep)
}

// machineTypes of the Shoot's CloudProfile, by name. The deletion of nodes does
// not need them: a profile may be gone by then.
func (op *operation) machineTypes(ctx context.Context) (map[string]gardencorev1beta1.MachineType, error) {
	types := map[string]gardencorev1beta1.MachineType{}
	name := ""
	if ref := op.shoot.Spec.CloudProfile; ref != nil {
		name = ref.Name
	} else if op.shoot.Spec.CloudProfileName != nil {
		name = *op.shoot.Spec.CloudProfileName
	}
	profile := &gardencorev1beta1.CloudProfile{}
	err := op.live.Get(ctx, client.ObjectKey{Name: name}, profile)
	if apierrors.IsNotFound(err) {
		return types, nil
	}
	for _, t := range profile.Spec.MachineTypes {
		types[t.Name] = t
	}
	return types, err
}

// ensureNode creates a node, or brings its pool's labels and taints to it.
func ensureNode(ctx context.Context, shoot kubernetes.Interface, want *corev1.Node) error {
	nodes := shoot.CoreV1().Nodes()
	_, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// kwok and the node controllers write to nodes, too.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		have, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !alignNode(have, want) {
			return nil
		}
		_, err = nodes.Update(ctx, have, metav1.UpdateOptions{})
		return err
	})
}

// alignNode gives a node the labels and taints that its pool asks for, and
// tells whether that changed anything. Labels of others stay, as do the taints
// by which Kubernetes marks a node's condition.
func alignNode(have, want *corev1.Node) bool {
	labels, taints := maps.Clone(have.Labels), slices.Clone(want.Spec.Taints)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want.Labels)
	for _, t := range have.Spec.Taints {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			taints = append(taints, t)
		}
	}
	if maps.Equal(labels, have.Labels) && sameTaints(taints, have.Spec.Taints) {
		return false
	}
	have.Labels, have.Spec.Taints = labels, taints
	return true
}

// sameTaints compares without regard to order and to when a taint was set.
func sameTaints(x, y []corev1.Taint) bool {
	return len(x) == len(y) && !slices.ContainsFunc(x, func(a corev1.Taint) bool {
		return !slices.ContainsFunc(y, func(b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value })
	})
}

func waitNodesReady(ctx context.Context, shoot kubernetes.Interface, names map[string]bool) error {
	var waiting []string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, nodeReadyTimeout, true, func(ctx context.Context) (bool, error) {
		nodes, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		ready := map[string]bool{}
		for i := range nodes.Items {
			ready[nodes.Items[i].Name] = nodeReady(&nodes.Items[i])
		}
		waiting = nil
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if !ready[name] {
				waiting = append(waiting, name)
			}
		}
		return len(waiting) == 0, nil
	})
	if err != nil && len(waiting) > 0 {
		return fmt.Errorf("%d machine(s) not ready, first %s: %w", len(waiting), waiting[0], err)
	}
	return err
}

// removeNodes deletes the nodes that no pool asks for, and their pods first: the
// owners make new ones elsewhere.
func removeNodes(ctx context.Context, shoot kubernetes.Interface, keep map[string]bool) error {
	nodes, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := shoot.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	cordon := []byte(`{"spec":{"unschedulable":true}}`)
	surplus := map[string]bool{}
	for _, node := range nodes.Items {
		if keep[node.Name] {
			continue
		}
		surplus[node.Name] = true
		if _, err := shoot.CoreV1().Nodes().Patch(ctx, node.Name, mergePatch, cordon, metav1.PatchOptions{}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for _, pod := range pods.Items {
		if !surplus[pod.Spec.NodeName] {
			continue
		}
		if err := shoot.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for name := range surplus {
		if err := shoot.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
