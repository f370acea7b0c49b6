package tidboperator

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// order in which components start and upgrade (T1: tidb_cluster_control.go).
var order = []string{"pd", "tikv", "tidb", "tiflash"}

// notReady is the reason of condition Ready while a component is not.
var notReady = map[string][2]string{
	"pd":      {"PDUnhealthy", "PD(s) are not healthy"},
	"tikv":    {"TiKVStoreNotUp", "TiKV store(s) are not up"},
	"tidb":    {"TiDBUnhealthy", "TiDB(s) are not healthy"},
	"tiflash": {"TiFlashStoreNotUp", "TiFlash store(s) are not up"},
}

// syncCluster does one round of a TidbCluster.
func (o *operator) syncCluster(ctx context.Context, tc *unstructured.Unstructured) error {
	if paused, _, _ := unstructured.NestedBool(tc.Object, "spec", "paused"); paused || tc.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := o.syncVolumes(ctx, tc); err != nil {
		return err
	}
	before := tc.DeepCopy()
	status, _, _ := unstructured.NestedMap(tc.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	waiting := ""
	for _, name := range order {
		c, ok, err := componentOf(tc, name)
		if err != nil {
			return err
		}
		if !ok || waiting != "" {
			continue
		}
		healthy, err := o.syncComponent(ctx, tc, c, status)
		if err != nil {
			return err
		}
		if !healthy {
			waiting = name
		}
	}
	if status["clusterID"] == nil && waiting != "pd" {
		status["clusterID"] = clusterID(tc)
	}
	setReady(status, waiting, time.Now())
	return o.writeStatus(ctx, before, tc, status)
}

// syncComponent brings one component to its spec and into status; healthy
// means that the next one may start.
func (o *operator) syncComponent(ctx context.Context, tc *unstructured.Unstructured, c component, status map[string]any) (healthy bool, err error) {
	for _, s := range services(tc, c) {
		if err := o.ensure(ctx, s); err != nil {
			return false, err
		}
	}
	want, err := statefulSet(tc, c)
	if err != nil {
		return false, err
	}
	set, phase, err := o.ensureStatefulSet(ctx, want)
	if err != nil {
		return false, err
	}
	ready := set.Status.ReadyReplicas == c.Replicas && set.Status.Replicas == c.Replicas &&
		set.Status.UpdatedReplicas == c.Replicas && set.Status.ObservedGeneration == set.Generation
	key := string(tc.GetUID()) + "/" + c.name
	if !ready {
		delete(o.since, key)
	}
	healthy = ready && o.elapsed(key, startTime) && !o.stuck(tc, c.name)
	if healthy {
		phase = "Normal"
	}
	old, _ := status[c.name].(map[string]any)
	status[c.name], err = componentStatus(tc, c, set, phase, healthy, old)
	return healthy, err
}

// ensureStatefulSet creates or updates the StatefulSet; phase is what the
// component does while it is not healthy.
func (o *operator) ensureStatefulSet(ctx context.Context, want *appsv1.StatefulSet) (*appsv1.StatefulSet, string, error) {
	var have appsv1.StatefulSet
	err := o.client.Get(ctx, client.ObjectKeyFromObject(want), &have)
	if client.IgnoreNotFound(err) != nil {
		return nil, "", err
	}
	if err != nil {
		return want, "Normal", o.client.Create(ctx, want)
	}
	phase := "Normal"
	changed := have.DeepCopy()
	if *have.Spec.Replicas != *want.Spec.Replicas {
		phase, changed.Spec.Replicas = "Scale", want.Spec.Replicas
	}
	if have.Spec.Template.Spec.Containers[0].Image != want.Spec.Template.Spec.Containers[0].Image {
		phase, changed.Spec.Template = "Upgrade", want.Spec.Template
	}
	if have.Status.CurrentRevision != have.Status.UpdateRevision {
		phase = "Upgrade"
	}
	if equality.Semantic.DeepEqual(have.Spec, changed.Spec) {
		return &have, phase, nil
	}
	return changed, phase, o.client.Update(ctx, changed)
}

// ensure creates an object that never changes afterwards.
func (o *operator) ensure(ctx context.Context, want client.Object) error {
	have := want.DeepCopyObject().(client.Object)
	err := o.client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if client.IgnoreNotFound(err) != nil || err == nil {
		return err
	}
	return o.client.Create(ctx, want)
}

// writeStatus writes as v1 does: a whole update of the object, since there is
// no status subresource; so metadata.generation grows with it.
func (o *operator) writeStatus(ctx context.Context, before, tc *unstructured.Unstructured, status map[string]any) error {
	if err := unstructured.SetNestedMap(tc.Object, runtime.DeepCopyJSON(status), "status"); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before.Object, tc.Object) {
		return nil
	}
	return o.client.Update(ctx, tc)
}

// setReady sets condition Ready; waiting is the component that is not healthy.
func setReady(status map[string]any, waiting string, now time.Time) {
	c := map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "TiDB cluster is fully up and running"}
	if waiting != "" {
		c["status"], c["reason"], c["message"] = "False", notReady[waiting][0], notReady[waiting][1]
	}
	stamp := now.UTC().Format(time.RFC3339)
	c["lastUpdateTime"], c["lastTransitionTime"] = stamp, stamp
	list, _ := status["conditions"].([]any)
	for i, one := range list {
		old, _ := one.(map[string]any)
		if old["type"] != "Ready" {
			continue
		}
		if old["status"] == c["status"] {
			c["lastTransitionTime"] = old["lastTransitionTime"]
			if old["reason"] == c["reason"] {
				c["lastUpdateTime"] = old["lastUpdateTime"]
			}
		}
		list[i] = c
		status["conditions"] = list
		return
	}
	status["conditions"] = append(list, c)
}

// clusterID is what PD makes up at bootstrap: a number of 19 digits.
func clusterID(tc *unstructured.Unstructured) string {
	var n uint64 = 7
	for _, b := range []byte(tc.GetUID()) {
		n = n*31 + uint64(b)
	}
	return fmt.Sprintf("7%018d", n%1e18)
}
