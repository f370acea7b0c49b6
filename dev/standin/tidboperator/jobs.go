package tidboperator

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// syncInitializer takes a TidbInitializer from Pending (until TiDB serves and
// the password Secret is there) over Running to Completed, and says so in the
// TidbCluster.
func (op *operator) syncInitializer(ctx context.Context, ti *unstructured.Unstructured) (time.Duration, error) {
	phase, _, _ := unstructured.NestedString(ti.Object, "status", "phase")
	if phase == "Completed" || phase == "Failed" || ti.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	name, _, _ := unstructured.NestedString(ti.Object, "spec", "cluster", "name")
	namespace, _, _ := unstructured.NestedString(ti.Object, "spec", "cluster", "namespace")
	if namespace == "" {
		namespace = ti.GetNamespace()
	}
	tc := newObject("TidbCluster")
	if err := op.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, tc); client.IgnoreNotFound(err) != nil {
		return 0, err
	}
	ready, err := op.passwordThere(ctx, ti)
	if err != nil {
		return 0, err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	status := map[string]any{"phase": "Pending"}
	switch {
	case !ready || !serving(tc):
	case phase != "Running":
		status = map[string]any{"phase": "Running", "active": int64(1), "startTime": now}
	case op.stuck(ti, "initializer") || op.since(string(ti.GetUID()), "running") < op.scaled(initializer):
		status, _, _ = unstructured.NestedMap(ti.Object, "status")
	default:
		start, _, _ := unstructured.NestedString(ti.Object, "status", "startTime")
		status = map[string]any{"phase": "Completed", "succeeded": int64(1), "startTime": start, "completionTime": now}
		if err := op.markInitialized(ctx, tc); err != nil {
			return 0, err
		}
	}
	return op.scaled(pollBusy), op.writeStatus(ctx, ti, status)
}

// passwordThere reports whether the Secret of the initializer exists; none is
// needed when only SQL is run.
func (op *operator) passwordThere(ctx context.Context, ti *unstructured.Unstructured) (bool, error) {
	name, _, _ := unstructured.NestedString(ti.Object, "spec", "passwordSecret")
	if name == "" {
		return true, nil
	}
	var secret corev1.Secret
	// Not from the cache, which would hold every Secret of the shoot.
	err := op.live.Get(ctx, client.ObjectKey{Namespace: ti.GetNamespace(), Name: name}, &secret)
	return err == nil, client.IgnoreNotFound(err)
}

// serving reports whether some TiDB answers.
func serving(tc *unstructured.Unstructured) bool {
	members, _, _ := unstructured.NestedMap(tc.Object, "status", "tidb", "members")
	for _, m := range members {
		if entry, ok := m.(map[string]any); ok && entry["health"] == true {
			return true
		}
	}
	return false
}

func (op *operator) markInitialized(ctx context.Context, tc *unstructured.Unstructured) error {
	status, _, _ := unstructured.NestedMap(tc.Object, "status")
	if err := unstructured.SetNestedField(status, true, "tidb", "passwordInitialized"); err != nil {
		return err
	}
	return op.writeStatus(ctx, tc, status)
}

// backupFinalizer is set for backups that leave something to clean up.
const backupFinalizer = "tidb.pingcap.com/backup-protection"

// syncBackup sets and drops the finalizer and walks through the conditions
// Scheduled, Running and Complete, which accumulate. A log backup runs for
// ever.
func (op *operator) syncBackup(ctx context.Context, b *unstructured.Unstructured) (time.Duration, error) {
	mode, _, _ := unstructured.NestedString(b.Object, "spec", "backupMode")
	policy, _, _ := unstructured.NestedString(b.Object, "spec", "cleanPolicy")
	protect := mode == "log" || policy == "Delete" || policy == "OnFailure"
	if b.GetDeletionTimestamp() != nil {
		if !controllerutil.ContainsFinalizer(b, backupFinalizer) {
			return 0, nil
		}
		if op.since(string(b.GetUID()), "cleaning") < op.scaled(initializer) {
			return op.scaled(pollBusy), nil
		}
		next := b.DeepCopy()
		controllerutil.RemoveFinalizer(next, backupFinalizer)
		return 0, op.client.Update(ctx, next)
	}
	if protect && !controllerutil.ContainsFinalizer(b, backupFinalizer) {
		next := b.DeepCopy()
		controllerutil.AddFinalizer(next, backupFinalizer)
		return 0, op.client.Update(ctx, next) // the update brings it back here
	}
	phase, _, _ := unstructured.NestedString(b.Object, "status", "phase")
	switch phase {
	case "":
		return op.scaled(pollBusy), op.writeStatus(ctx, b, withCondition(b, "Scheduled", nil))
	case "Scheduled":
		return op.scaled(pollBusy), op.writeStatus(ctx, b, withCondition(b, "Running", map[string]any{"timeStarted": now()}))
	case "Running":
		if mode == "log" || op.since(string(b.GetUID()), "running") < op.scaled(backupRun) {
			return op.scaled(pollBusy), nil
		}
		return 0, op.writeStatus(ctx, b, withCondition(b, "Complete", map[string]any{"timeCompleted": now()}))
	}
	return 0, nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// withCondition adds a condition that is True and makes it the phase.
func withCondition(o *unstructured.Unstructured, condition string, more map[string]any) map[string]any {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	list = slices.DeleteFunc(list, func(item any) bool {
		have, ok := item.(map[string]any)
		return ok && have["type"] == condition
	})
	status["conditions"] = append(list, map[string]any{
		"type": condition, "status": "True", "reason": condition, "message": "", "lastTransitionTime": now(),
	})
	status["phase"] = condition
	for key, value := range more {
		status[key] = value
	}
	return status
}
