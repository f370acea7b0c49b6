package shoot

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/audited/auditedtest"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Activities without an external id in their output say what they change.

func TestBootstrapIsAudited(t *testing.T) {
	var log auditedtest.Log
	applied := 0
	a, _ := activities(interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		if applied++; applied == 2 {
			return errors.New("connection lost")
		}
		return nil
	}})
	manifest := func(version, kind, namespace, name string) unstructured.Unstructured {
		u := unstructured.Unstructured{}
		u.SetAPIVersion(version)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	a.Documents = documents{manifests: []unstructured.Unstructured{
		manifest("apps/v1", "Deployment", "tidb-admin", "operator"), manifest("v1", "Namespace", "", "tidb-admin"),
	}}
	_, err := a.BootstrapShoot(audited.With(t.Context(), &log), contract.BootstrapInput{Shoot: input().Plan.Shoot})
	require.Error(t, err)
	require.Equal(t, auditedtest.Log{"Namespace tidb-admin Present", "Deployment tidb-admin/operator failed"}, log)
}

func TestCleaningIsAudited(t *testing.T) {
	var log auditedtest.Log
	ctx := audited.With(t.Context(), &log)
	a, o := activities(interceptor.Funcs{},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "tidb", Name: "db"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "tidb", Name: "internal"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tidb", Name: "data"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-2"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}})
	c, err := a.open(ctx, input().Plan.Shoot)
	require.NoError(t, err)
	_, _, err = c.clean(ctx)
	require.NoError(t, err)
	want := auditedtest.Log{"Service tidb/db Deleting", "PersistentVolume pv-1 Present", "PersistentVolumeClaim tidb/data Deleting"}
	require.Equal(t, want, log)

	// Whoever deletes the volumes is the shoot; a second look changes nothing.
	for _, name := range []string{"pv-1", "pv-2"} {
		require.NoError(t, o.Delete(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	done, _, err := c.clean(ctx)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, want, log)
}

func TestRootPasswordIsAudited(t *testing.T) {
	var log auditedtest.Log
	ctx, stop := context.WithCancel(audited.With(t.Context(), &log))
	a, _ := activities(interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		defer stop()
		return c.Apply(ctx, o, options...)
	}})
	_, err := a.EnsureRootPassword(ctx, input())
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, auditedtest.Log{"TidbInitializer tidb-fedcba98/root-password Present"}, log)
}

func TestKindsOfTypedObjects(t *testing.T) {
	require.Equal(t, "StorageClass", kindOf(&storagev1.StorageClass{}))
	require.Equal(t, "Namespace", kindOf(&corev1.Namespace{}))
	require.Equal(t, "TidbCluster", kindOf(pingcap("TidbCluster")))
	require.Equal(t, "object", kindOf(&corev1.Node{}))
}
