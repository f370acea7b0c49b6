package tidboperator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// syncInitializer runs a TidbInitializer: Pending until its Secret is there
// and TiDB is healthy, Running, Completed. Then TiDB's status says that the
// password is set (T1: pkg/manager/member/tidb_init_manager.go).
func (o *operator) syncInitializer(ctx context.Context, ti *unstructured.Unstructured) error {
	phase, _, _ := unstructured.NestedString(ti.Object, "status", "phase")
	if phase == "Completed" || phase == "Failed" || ti.GetDeletionTimestamp() != nil {
		return nil
	}
	next := "Pending"
	name, _, _ := unstructured.NestedString(ti.Object, "spec", "cluster", "name")
	tc := &unstructured.Unstructured{}
	tc.SetGroupVersionKind(pingcap("TidbCluster"))
	err := o.client.Get(ctx, client.ObjectKey{Namespace: ti.GetNamespace(), Name: name}, tc)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && o.initializable(ctx, ti, tc) {
		next = "Running"
		if o.elapsed(string(ti.GetUID()), initTime) && !o.stuck(tc, "initializer") {
			next = "Completed"
		}
	}
	if next == "Completed" {
		if err := unstructured.SetNestedField(tc.Object, true, "status", "tidb", "passwordInitialized"); err != nil {
			return err
		}
		if err := o.client.Update(ctx, tc); err != nil {
			return err
		}
	}
	if next == phase {
		return nil
	}
	if err := unstructured.SetNestedField(ti.Object, next, "status", "phase"); err != nil {
		return err
	}
	return o.client.Update(ctx, ti)
}

// initializable says whether the initializer's Job could start and connect.
func (o *operator) initializable(ctx context.Context, ti, tc *unstructured.Unstructured) bool {
	if secret, ok, _ := unstructured.NestedString(ti.Object, "spec", "passwordSecret"); ok {
		var s corev1.Secret
		if o.client.Get(ctx, client.ObjectKey{Namespace: ti.GetNamespace(), Name: secret}, &s) != nil {
			return false
		}
	}
	conditions, _, _ := unstructured.NestedSlice(tc.Object, "status", "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == "Ready" && m["status"] == "True" {
			return true
		}
	}
	return false
}

const backupFinalizer = "tidb.pingcap.com/backup-protection"

// syncBackup keeps v1's finalizer rule: a Backup of mode log, or whose
// cleanPolicy cleans, has a finalizer that only the operator removes. Backups
// themselves are not run: the product takes none yet.
func (o *operator) syncBackup(ctx context.Context, b *unstructured.Unstructured) error {
	mode, _, _ := unstructured.NestedString(b.Object, "spec", "backupMode")
	clean, _, _ := unstructured.NestedString(b.Object, "spec", "cleanPolicy")
	wanted := b.GetDeletionTimestamp() == nil && (mode == "log" || clean == "Delete" || clean == "OnFailure")
	changed := false
	switch {
	case wanted:
		changed = controllerutil.AddFinalizer(b, backupFinalizer)
	case b.GetDeletionTimestamp() != nil:
		changed = controllerutil.RemoveFinalizer(b, backupFinalizer)
	}
	if !changed {
		return nil
	}
	if err := o.client.Update(ctx, b); err != nil && !meta.IsNoMatchError(err) {
		return client.IgnoreNotFound(err)
	}
	return nil
}
