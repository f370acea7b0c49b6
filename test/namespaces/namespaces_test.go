package namespaces

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// TestFolder deletes the samples by the one command that everybody tries, with
// a creation under way: the credentials go before what needs them. The product
// has the roles that ship, in the namespace of the objects, which is not part of
// the folder: with it the roles would go first, and no deletion would ever end.
func TestFolder(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	create(ctx, t)
	c := &v1.Cluster{ObjectMeta: named("c1")}
	eventually(ctx, t, "the Cluster is half-way", func() error {
		if err := world.Kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if op := c.Status.Operation; op == nil || op.Step != "WaitDatabaseReady" {
			return errNotYet(op)
		}
		return nil
	})
	kubectl(ctx, t, "delete", "--timeout=6m", "-f", filepath.Join(stack.Root(), "deploy", "samples", "aws"))
	nothingLeft(ctx, t)
	ns := &corev1.Namespace{}
	require.NoError(t, world.Kube.Get(ctx, client.ObjectKey{Name: namespace}, ns))
	require.Equal(t, corev1.NamespaceActive, ns.Status.Phase, "the product's roles live in it")
}

// TestNamespace restores everything out of a backup, in the order of Velero,
// without its status and with it, and then deletes the namespace.
func TestNamespace(t *testing.T) {
	ctx := within(t, 14*time.Minute)
	create(ctx, t)
	require.NoError(t, rightsOutlive(ctx))
	ready(ctx, t)
	before := inventory(ctx, t)
	for _, withStatus := range []bool{false, true} {
		t.Logf("restore, with status: %t", withStatus)
		backup := backupOf(ctx, t)
		vanish(ctx, t)
		for _, o := range backup {
			restore(ctx, t, o, withStatus)
		}
		ready(ctx, t)
		require.Equal(t, before, inventory(ctx, t), "all is adopted, nothing is made twice")
	}
	kubectl(ctx, t, "delete", "namespace", namespace, "--timeout=6m")
	nothingLeft(ctx, t)
}

// inventory is what exists in AWS with an identity, by type and id.
func inventory(ctx context.Context, t *testing.T) (out []string) {
	t.Helper()
	all, err := world.Inventory(ctx)
	require.NoError(t, err)
	for _, r := range all {
		if r.Owner != "" && r.State != "PendingDeletion" {
			out = append(out, r.Owner+" "+r.Type+" "+r.ID)
		}
	}
	slices.Sort(out)
	require.NotEmpty(t, out)
	return out
}

// backupOf reads the namespace as Velero does, and returns it in the order in
// which Velero restores: what its default priorities name, then every resource
// by its name.
func backupOf(ctx context.Context, t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	kinds := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret")}
	for _, kind := range []string{v1.KindAccount, v1.KindCluster, v1.KindNetwork, v1.KindProvider, v1.KindProviderType} {
		kinds = append(kinds, v1.GroupVersion.WithKind(kind))
	}
	for _, gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		require.NoError(t, world.Kube.List(ctx, list, client.InNamespace(namespace)))
		require.NotEmpty(t, list.Items, gvk.Kind)
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all
}

// vanish makes everything go without a deletion of ours, as when the management
// cluster is lost: it is paused, so that nothing starts.
func vanish(ctx context.Context, t *testing.T) {
	t.Helper()
	merge := func(o client.Object, patch string) {
		require.NoError(t, client.IgnoreNotFound(world.Kube.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))))
	}
	objects := ours()
	for _, o := range objects {
		merge(o, `{"metadata":{"annotations":{"`+v1.AnnotationPaused+`":"true"}}}`)
	}
	for _, o := range objects {
		require.NoError(t, world.Kube.Delete(ctx, o))
		merge(o, `{"metadata":{"finalizers":null}}`)
		absent(ctx, t, o)
	}
	require.NoError(t, world.Kube.Delete(ctx, &v1.Account{ObjectMeta: named("acme")}))
	for _, name := range []string{"core-aws", "c1-root"} {
		s := &corev1.Secret{ObjectMeta: named(name)}
		require.NoError(t, world.Kube.Delete(ctx, s))
		absent(ctx, t, s) // nothing refers to it any more
	}
}

// restore creates an object as Velero does: without what the API server gave
// it, and with its status in a second write, if at all.
func restore(ctx context.Context, t *testing.T, o *unstructured.Unstructured, withStatus bool) {
	t.Helper()
	status, has := o.Object["status"]
	fresh := o.DeepCopy()
	delete(fresh.Object, "status")
	keep := []string{"name", "namespace", "labels", "annotations"}
	if withStatus { // newer versions leave finalizers, too
		keep = append(keep, "finalizers")
	}
	metadata, _ := fresh.Object["metadata"].(map[string]any)
	for field := range metadata {
		if !slices.Contains(keep, field) {
			delete(metadata, field)
		}
	}
	fresh.SetLabels(with(fresh.GetLabels(), "velero.io/restore-name", "r1"))
	require.NoError(t, world.Kube.Create(ctx, fresh), "%s %s is admitted", o.GetKind(), o.GetName())
	if !withStatus || !has {
		return
	}
	eventually(ctx, t, "the status of "+o.GetName()+" is restored", func() error {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		if err := world.Kube.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		now.Object["status"] = status
		return world.Kube.Status().Update(ctx, now)
	})
}

func with(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

// errNotYet says at which step an operation is.
func errNotYet(op *v1.OperationStatus) error {
	if op == nil {
		return errStep("it has not begun")
	}
	return errStep(strings.TrimSpace(op.Type + " is at step " + op.Step))
}

type errStep string

func (e errStep) Error() string { return string(e) }
