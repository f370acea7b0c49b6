package tidboperator

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Phases of a component.
const (
	phaseNormal  = "Normal"
	phaseUpgrade = "Upgrade"
	phaseScale   = "Scale"
	phaseSuspend = "Suspend"
)

// state is one look at one component.
type state struct {
	c     *component
	phase string
	set   *appsv1.StatefulSet // nil when there is none
	pods  []corev1.Pod        // by ordinal
	// well are the names of Pods whose members are healthy.
	well []string
}

// complete reports whether all wanted members are healthy.
func (s *state) complete() bool {
	return s != nil && s.set != nil && len(s.well) >= int(s.c.Replicas) && s.c.Replicas > 0
}

// settled reports whether the StatefulSet is what it should be.
func (s *state) settled() bool {
	return s.set != nil && s.set.Status.ObservedGeneration >= s.set.Generation &&
		s.set.Status.CurrentRevision == s.set.Status.UpdateRevision && s.set.Status.Replicas == *s.set.Spec.Replicas
}

// busy reports whether Pods are still being made, replaced or started.
func (s *state) busy() bool {
	return s.set != nil && (!s.settled() || len(s.well) < int(*s.set.Spec.Replicas))
}

// syncCluster brings one TidbCluster a step forward and tells its status.
func (op *operator) syncCluster(ctx context.Context, tc *unstructured.Unstructured) (time.Duration, error) {
	s, components, err := decode(tc)
	if err != nil {
		return 0, err
	}
	if s.Paused || tc.GetDeletionTimestamp() != nil {
		return resync, nil
	}
	states := map[string]*state{}
	for _, name := range startOrder {
		c := components[name]
		if c == nil {
			continue
		}
		if states[name], err = op.look(ctx, tc, c); err != nil {
			return 0, err
		}
	}
	for _, name := range startOrder {
		if states[name] == nil {
			continue
		}
		if err := op.syncComponent(ctx, tc, s, states, states[name]); err != nil {
			return 0, err
		}
	}
	if err := op.syncVolumes(ctx, tc, s); err != nil {
		return 0, err
	}
	status := buildStatus(tc, s, states)
	if err := op.writeStatus(ctx, tc, status); err != nil {
		return 0, err
	}
	for _, st := range states {
		if !s.suspended(st.c) && !st.complete() || st.phase == phaseUpgrade || st.phase == phaseScale {
			return op.scaled(pollBusy), nil
		}
	}
	return resync, nil
}

// look reads what exists of a component.
func (op *operator) look(ctx context.Context, tc *unstructured.Unstructured, c *component) (*state, error) {
	st := &state{c: c}
	st.phase, _, _ = unstructured.NestedString(tc.Object, "status", c.name, "phase")
	var set appsv1.StatefulSet
	err := op.client.Get(ctx, client.ObjectKey{Namespace: tc.GetNamespace(), Name: tc.GetName() + "-" + c.name}, &set)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || !metav1.IsControlledBy(&set, tc) {
		return st, nil
	}
	st.set = &set
	var pods corev1.PodList
	if err := op.client.List(ctx, &pods, client.InNamespace(tc.GetNamespace()), client.MatchingLabels(labels(tc.GetName(), c.name))); err != nil {
		return nil, err
	}
	st.pods = pods.Items
	slices.SortFunc(st.pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if op.stuck(tc, c.name) {
		return st, nil
	}
	for i := range st.pods {
		if op.healthy(&st.pods[i]) {
			st.well = append(st.well, st.pods[i].Name)
		}
	}
	return st, nil
}

// syncComponent makes, changes or removes the StatefulSet of one component.
func (op *operator) syncComponent(ctx context.Context, tc *unstructured.Unstructured, s *spec, states map[string]*state, st *state) error {
	if err := op.ensureParts(ctx, tc, st.c); err != nil {
		return err
	}
	if s.suspended(st.c) {
		return op.suspend(ctx, s, states, st)
	}
	want, err := statefulSet(tc, s, st.c)
	if err != nil {
		return err
	}
	if st.set == nil {
		for _, name := range needs[st.c.name] {
			if !states[name].complete() {
				st.phase = phaseNormal
				return nil
			}
		}
		st.phase = phaseNormal
		if err := op.client.Create(ctx, want); err != nil {
			return client.IgnoreAlreadyExists(err)
		}
		st.set = want
		return nil
	}
	return op.change(ctx, states, st, want)
}

// change rolls out a new template or moves the number of replicas by one, when
// nothing before it in the order is being changed.
func (op *operator) change(ctx context.Context, states map[string]*state, st *state, want *appsv1.StatefulSet) error {
	stale := st.set.Annotations[hashAnnotation] != want.Annotations[hashAnnotation]
	delta := st.c.Replicas - *st.set.Spec.Replicas
	rolling := st.set.Status.CurrentRevision != st.set.Status.UpdateRevision
	switch {
	case stale || rolling || st.phase == phaseUpgrade && st.busy():
		st.phase = phaseUpgrade
	case delta != 0 || st.phase == phaseScale && st.busy():
		st.phase = phaseScale
	default:
		st.phase = phaseNormal
		return nil
	}
	if st.busy() || heldBack(states, st) {
		return nil
	}
	next := st.set.DeepCopy()
	switch {
	case stale:
		next.Annotations[hashAnnotation] = want.Annotations[hashAnnotation]
		next.Spec.Template = want.Spec.Template
	case delta > 0:
		*next.Spec.Replicas++
	case delta < 0:
		*next.Spec.Replicas--
	default:
		return nil
	}
	if err := op.client.Update(ctx, next); err != nil {
		return err
	}
	st.set = next
	return nil
}

// heldBack reports whether a component earlier in the order is being changed;
// busy covers the moment in which its StatefulSet's controller has not looked.
func heldBack(states map[string]*state, st *state) bool {
	for _, name := range startOrder {
		if name == st.c.name {
			return false
		}
		if other := states[name]; other != nil && (other.busy() || other.phase == phaseUpgrade || other.phase == phaseScale) {
			return true
		}
	}
	return false
}

// suspend removes the StatefulSet with foreground propagation, if the component
// is at rest and those before it are suspended. One in Upgrade or Scale waits
// for ever, as in v1.
func (op *operator) suspend(ctx context.Context, s *spec, states map[string]*state, st *state) error {
	if st.phase != phaseNormal && st.phase != phaseSuspend {
		return nil
	}
	for _, name := range suspendOrder {
		if name == st.c.name {
			break
		}
		if other := states[name]; other != nil && s.suspended(other.c) && other.set != nil {
			return nil
		}
	}
	st.phase = phaseSuspend
	if st.set == nil {
		return nil
	}
	foreground := metav1.DeletePropagationForeground
	err := op.client.Delete(ctx, st.set, &client.DeleteOptions{PropagationPolicy: &foreground})
	return client.IgnoreNotFound(err)
}

// ensureParts makes services and configuration; a ConfigMap follows the spec.
func (op *operator) ensureParts(ctx context.Context, tc *unstructured.Unstructured, c *component) error {
	for _, service := range services(tc, c) {
		var have corev1.Service
		err := op.client.Get(ctx, client.ObjectKeyFromObject(service), &have)
		if apierrors.IsNotFound(err) {
			err = client.IgnoreAlreadyExists(op.client.Create(ctx, service))
		}
		if err != nil {
			return err
		}
	}
	want := configMap(tc, c)
	var have corev1.ConfigMap
	err := op.client.Get(ctx, client.ObjectKeyFromObject(want), &have)
	switch {
	case apierrors.IsNotFound(err):
		return client.IgnoreAlreadyExists(op.client.Create(ctx, want))
	case err != nil:
		return err
	case have.Data["config-file"] == want.Data["config-file"]:
		return nil
	}
	have.Data = want.Data
	return op.client.Update(ctx, &have)
}

// syncVolumes keeps labels and reclaim policy of the cluster's volumes.
func (op *operator) syncVolumes(ctx context.Context, tc *unstructured.Unstructured, s *spec) error {
	var claims corev1.PersistentVolumeClaimList
	own := client.MatchingLabels{"app.kubernetes.io/managed-by": "tidb-operator", "app.kubernetes.io/instance": tc.GetName()}
	if err := op.client.List(ctx, &claims, client.InNamespace(tc.GetNamespace()), own); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if claim.Spec.VolumeName == "" {
			continue
		}
		var volume corev1.PersistentVolume
		if err := op.client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &volume); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return err
		}
		if volume.Spec.PersistentVolumeReclaimPolicy == s.PVReclaimPolicy && volume.Labels["app.kubernetes.io/instance"] == tc.GetName() {
			continue
		}
		before := volume.DeepCopy()
		volume.Spec.PersistentVolumeReclaimPolicy = s.PVReclaimPolicy
		volume.Labels = merged(volume.Labels, labels(tc.GetName(), claim.Labels["app.kubernetes.io/component"]),
			map[string]string{"app.kubernetes.io/namespace": tc.GetNamespace()})
		if err := op.client.Patch(ctx, &volume, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}
