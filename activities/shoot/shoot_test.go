package shoot

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

func input() contract.DatabaseInput {
	return contract.DatabaseInput{ConfigHash: "h", Plan: contract.ClusterPlan{
		Ref:   contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "c1", ID: "fedcba9876543210"},
		Cloud: "AWS", Shoot: contract.ShootRef{Namespace: "garden-core", Name: "n"}, Version: "v8.5.2", Namespace: "tidb-fedcba98", Name: "db", Port: 4000,
		Components: []contract.Component{
			{Name: "pd", Replicas: 3, VCPU: 4, Memory: "16Gi", StorageSize: "20Gi", StorageClass: "s"},
			{Name: "tikv", Replicas: 3, VCPU: 8, Memory: "32Gi", StorageSize: "500Gi", StorageClass: "s"},
			{Name: "tidb", Replicas: 2, VCPU: 8, Memory: "32Gi"},
		},
		EncryptionMode: "None", RootPasswordSecret: "c1-root",
	}}
}

type documents struct{ manifests []unstructured.Unstructured }

func (d documents) NetworkConfig(context.Context, string) (*configservice.NetworkConfig, error) {
	return &configservice.NetworkConfig{Manifests: d.manifests}, nil
}

func (documents) ClusterConfig(context.Context, string) (*configservice.ClusterConfig, error) {
	return &configservice.ClusterConfig{Images: configservice.Images{
		PD: "pingcap/pd:v8.5.2", TiKV: "pingcap/tikv:v8.5.2", TiDB: "pingcap/tidb:v8.5.2", Initializer: "init:1",
	}}, nil
}

type opener struct {
	client.WithWatch
	err       error
	forgotten int
}

func (o *opener) Client(context.Context, contract.ShootRef) (client.WithWatch, error) {
	return o.WithWatch, o.err
}
func (o *opener) Forget(context.Context, contract.ShootRef) { o.forgotten++ }

func activities(funcs interceptor.Funcs, objects ...client.Object) (*Activities, *opener) {
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s)
	for _, kind := range []string{"TidbCluster", "TidbInitializer", "Backup", "BackupSchedule"} {
		gvk := schema.GroupVersionKind{Group: "pingcap.com", Version: "v1alpha1", Kind: kind}
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		gvk.Kind += "List"
		s.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
	}
	crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	s.AddKnownTypeWithName(crd, &unstructured.Unstructured{})
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	o := &opener{WithWatch: c}
	return &Activities{Open: o, Documents: documents{}, Management: c, Poll: 5 * time.Millisecond}, o
}

// readyCluster is a TidbCluster as the operator reports it when all is well.
func readyCluster() *unstructured.Unstructured {
	tc := pingcap("TidbCluster")
	tc.SetNamespace("tidb-fedcba98")
	tc.SetName("db")
	tc.SetAnnotations(map[string]string{v1.TagID: "fedcba9876543210"})
	status := map[string]any{"clusterID": "7001", "conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready"}}}
	for name, replicas := range map[string]int64{"pd": 3, "tikv": 3, "tidb": 2} {
		status[name] = map[string]any{"phase": "Normal", "image": "pingcap/" + name + ":v8.5.2", "statefulSet": map[string]any{
			"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas, "currentRevision": "r1", "updateRevision": "r1",
		}}
	}
	tc.Object["spec"] = map[string]any{"version": "v8.5.2"}
	tc.Object["status"] = status
	return tc
}

func TestJudgeDatabase(t *testing.T) {
	config, _ := documents{}.ClusterConfig(context.Background(), "")
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) }
	}
	for _, tc := range []struct {
		name   string
		change func(*unstructured.Unstructured)
		says   string
	}{
		{"ready", func(*unstructured.Unstructured) {}, ""},
		{"nothing reported", func(u *unstructured.Unstructured) { delete(u.Object, "status") }, "pd: waiting until the operator has started it"},
		{"no set", func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "status", "tikv", "statefulSet")
		}, "tikv: waiting until its 3 Pods are made"},
		{"pods missing", set(int64(2), "status", "tikv", "statefulSet", "readyReplicas"), "tikv: 2 of 3 Pods are ready"},
		{"Ready of the previous size", set(int64(1), "status", "tidb", "statefulSet", "replicas"), "tidb: "},
		{"rolling", set("r2", "status", "pd", "statefulSet", "updateRevision"), "pd: rolling"},
		{"upgrading", set("Upgrade", "status", "tikv", "phase"), "tikv: in phase Upgrade"},
		{"old image", set("pingcap/tidb:v8.1.0", "status", "tidb", "image"), "tidb: image"},
		{"condition", set([]any{map[string]any{"type": "Ready", "status": "False", "reason": "TiKVStoreNotUp", "message": "TiKV store(s) are not up"}}, "status", "conditions"), "TiKVStoreNotUp"},
		{"no condition", set([]any{}, "status", "conditions"), "has not reported"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := readyCluster()
			tc.change(u)
			got := judgeDatabase(u, input().Plan, config)
			if tc.says == "" {
				require.Empty(t, got)
			} else {
				require.Contains(t, got, tc.says)
			}
		})
	}
}

func TestSteady(t *testing.T) {
	var s steady
	at := time.Unix(100, 0)
	require.False(t, s.look(true, at, 0), "one look is not enough")
	require.True(t, s.look(true, at, 0))
	require.False(t, s.look(false, at, 0))
	require.False(t, s.look(true, at, 5*time.Second))
	require.False(t, s.look(true, at.Add(4*time.Second), 5*time.Second))
	require.True(t, s.look(true, at.Add(5*time.Second), 5*time.Second))
}

func TestWaitDatabaseReady(t *testing.T) {
	a, _ := activities(interceptor.Funcs{}, readyCluster())
	out, err := a.WaitDatabaseReady(context.Background(), input())
	require.NoError(t, err)
	require.Equal(t, "7001", out.ClusterID)
	require.Equal(t, contract.ComponentStatus{Replicas: 3, Ready: 3, Image: "pingcap/tikv:v8.5.2"}, out.Components["tikv"])

	a, _ = activities(interceptor.Funcs{})
	_, err = a.WaitDatabaseReady(context.Background(), input())
	require.True(t, faults.Is(err, faults.Gone), "%v", err)
}

func TestEnsureDatabaseAdoptsAfterALostResponse(t *testing.T) {
	lost := false
	a, o := activities(interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, ac runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		err := c.Apply(ctx, ac, options...)
		if err == nil && !lost {
			lost = true
			return errors.New("connection reset by peer")
		}
		return err
	}})
	_, err := a.EnsureDatabase(context.Background(), input())
	require.True(t, faults.Is(err, faults.Transient), "%v", err)
	_, err = a.EnsureDatabase(context.Background(), input())
	require.NoError(t, err)
	list := pingcapList("TidbCluster")
	require.NoError(t, o.List(context.Background(), list))
	require.Len(t, list.Items, 1)
}

func TestForeignObjectsAreLeftAlone(t *testing.T) {
	tc := readyCluster()
	tc.SetAnnotations(nil)
	a, o := activities(interceptor.Funcs{}, tc, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tidb-fedcba98"}})
	_, err := a.EnsureDatabase(context.Background(), input())
	require.True(t, faults.Is(err, faults.Conflict), "%v", err)
	_, err = a.DeleteClusterNamespace(context.Background(), input())
	require.NoError(t, err)
	require.NoError(t, o.Get(context.Background(), client.ObjectKey{Name: "tidb-fedcba98"}, &corev1.Namespace{}))
}

func TestDeleteDatabaseFreesVolumes(t *testing.T) {
	ctx := context.Background()
	labels := map[string]string{"app.kubernetes.io/instance": "db", "app.kubernetes.io/managed-by": "tidb-operator"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tidb-fedcba98", Name: "tikv-db-tikv-0", Labels: labels}}
	volume := func(name, namespace string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, ClaimRef: &corev1.ObjectReference{Namespace: namespace},
		}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tidb-fedcba98", Name: "db-tikv-0", Labels: labels}}
	a, o := activities(interceptor.Funcs{}, readyCluster(), claim, volume("ours", "tidb-fedcba98"), volume("others", "tidb-00000000"), pod)
	c, err := a.open(ctx, input().Plan.Shoot)
	require.NoError(t, err)
	look := func() (bool, string) {
		done, says, err := c.freeDatabase(ctx, input().Plan)
		require.NoError(t, err)
		return done, says
	}
	policy := func(name string) corev1.PersistentVolumeReclaimPolicy {
		v := &corev1.PersistentVolume{}
		require.NoError(t, o.Get(ctx, client.ObjectKey{Name: name}, v))
		return v.Spec.PersistentVolumeReclaimPolicy
	}

	_, says := look()
	require.Contains(t, says, "TidbCluster is gone")
	require.Equal(t, corev1.PersistentVolumeReclaimDelete, policy("ours"))
	require.Equal(t, corev1.PersistentVolumeReclaimRetain, policy("others"))
	v := volume("ours", "tidb-fedcba98") // the operator puts it back, once more
	require.NoError(t, o.Get(ctx, client.ObjectKeyFromObject(v), v))
	v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	require.NoError(t, o.Update(ctx, v))

	_, says = look()
	require.Contains(t, says, "db-tikv-0")
	require.NoError(t, o.Get(ctx, client.ObjectKeyFromObject(claim), claim), "claims wait for the Pods")
	require.NoError(t, o.Delete(ctx, pod))
	_, says = look()
	require.Contains(t, says, "volume ours")
	require.Equal(t, corev1.PersistentVolumeReclaimDelete, policy("ours"))
	require.NoError(t, o.Delete(ctx, v)) // the provisioner's part
	done, _ := look()
	require.True(t, done)
	require.True(t, apierrors.IsNotFound(o.Get(ctx, client.ObjectKeyFromObject(claim), claim)))
}

func TestDeletionsSucceedWithoutAShoot(t *testing.T) {
	a, o := activities(interceptor.Funcs{})
	o.err = faults.New(faults.Gone, "NotFound", "shoot", "gone")
	ctx := context.Background()
	for name, do := range map[string]func(context.Context, contract.DatabaseInput) (contract.None, error){
		"database": a.DeleteDatabase, "namespace": a.DeleteClusterNamespace, "service": a.DeleteService,
		"classes": a.DeleteStorageClasses, "backups": a.DeleteBackups,
	} {
		_, err := do(ctx, input())
		require.NoError(t, err, name)
	}
}

func TestBackupsGoBeforeTheirNamespaceAndKeepFiles(t *testing.T) {
	ctx := context.Background()
	b := pingcap("Backup")
	b.SetNamespace("tidb-fedcba98")
	b.SetName("b1")
	b.SetFinalizers([]string{"tidb.pingcap.com/backup-protection"})
	b.Object["spec"] = map[string]any{"cleanPolicy": "Delete"}
	a, o := activities(interceptor.Funcs{}, b)
	in := input()
	in.Plan.RetainBackups = true
	c, err := a.open(ctx, in.Plan.Shoot)
	require.NoError(t, err)
	done, says, err := c.freeBackups(ctx, in.Plan)
	require.NoError(t, err)
	require.False(t, done)
	require.Contains(t, says, "b1")
	require.NoError(t, o.Get(ctx, client.ObjectKeyFromObject(b), b))
	require.NotNil(t, b.GetDeletionTimestamp())
	require.Len(t, b.GetFinalizers(), 1, "the operator's to remove")
	policy, _, _ := unstructured.NestedString(b.Object, "spec", "cleanPolicy")
	require.Equal(t, "Retain", policy)
}

func TestRootPassword(t *testing.T) {
	ctx := context.Background()
	a, o := activities(interceptor.Funcs{})
	_, err := a.EnsureClusterNamespace(ctx, input())
	require.True(t, faults.Is(err, faults.Dependency), "%v", err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "c1-root"}, Data: map[string][]byte{"password": []byte("short")}}
	require.NoError(t, o.Create(ctx, secret))
	_, err = a.EnsureClusterNamespace(ctx, input())
	require.True(t, faults.Is(err, faults.Invalid), "%v", err)
	require.NotContains(t, err.Error(), "short")
	secret.Data["password"] = []byte("long-enough")
	require.NoError(t, o.Update(ctx, secret))
	_, err = a.EnsureClusterNamespace(ctx, input())
	require.NoError(t, err)
	copied := &corev1.Secret{}
	require.NoError(t, o.Get(ctx, client.ObjectKey{Namespace: "tidb-fedcba98", Name: builders.RootPasswordName}, copied))
	require.Equal(t, "long-enough", string(copied.Data["root"]))
}

func TestInitializer(t *testing.T) {
	ctx := context.Background()
	a, o := activities(interceptor.Funcs{})
	c, err := a.open(ctx, input().Plan.Shoot)
	require.NoError(t, err)
	config, _ := documents{}.ClusterConfig(ctx, "")
	want, err := builders.TidbInitializer(input().Plan, config)
	require.NoError(t, err)
	phase := func(p string) {
		u := pingcap("TidbInitializer")
		require.NoError(t, o.Get(ctx, client.ObjectKeyFromObject(want), u))
		require.NoError(t, unstructured.SetNestedField(u.Object, p, "status", "phase"))
		require.NoError(t, o.Update(ctx, u))
	}
	done, _, err := c.initialize(ctx, want, true)
	require.NoError(t, err)
	require.False(t, done)
	phase("Failed")
	_, _, err = c.initialize(ctx, want, false)
	require.True(t, faults.Is(err, faults.Dependency), "%v", err)
	_, _, err = c.initialize(ctx, want, true)
	require.NoError(t, err, "a retry makes it again")
	_, _, err = c.initialize(ctx, want, false)
	require.NoError(t, err)
	phase("Completed")
	done, _, err = c.initialize(ctx, want, false)
	require.NoError(t, err)
	require.True(t, done)
}

func TestBootstrapOrder(t *testing.T) {
	object := func(kind, name string) unstructured.Unstructured {
		u := unstructured.Unstructured{}
		u.SetKind(kind)
		u.SetName(name)
		return u
	}
	var got []string
	for _, u := range sorted([]unstructured.Unstructured{object("Deployment", "d"), object("ServiceAccount", "s"), object("CustomResourceDefinition", "c"), object("Namespace", "n")}) {
		got = append(got, u.GetName())
	}
	require.Equal(t, []string{"c", "n", "s", "d"}, got)
}

func TestRollout(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}}
	require.NotEmpty(t, rollout(d, false))
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 2, AvailableReplicas: 2}
	require.NotEmpty(t, rollout(d, true), "that was the previous form")
	d.Status.ObservedGeneration = 2
	require.Empty(t, rollout(d, true))
	d.Status.UpdatedReplicas = 1
	require.Equal(t, "(1 of 2 updated)", rollout(d, true))
}

func TestEverReady(t *testing.T) {
	s := &gardencorev1beta1.Shoot{}
	require.False(t, everReady(s))
	s.Status.UID = "u"
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Create", State: "Failed"}
	require.False(t, everReady(s), "R2: nothing of ours is in it")
	s.Status.LastOperation.State = "Succeeded"
	require.True(t, everReady(s))
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Reconcile", State: "Failed"}
	require.True(t, everReady(s))
	s.DeletionTimestamp = &metav1.Time{}
	require.False(t, everReady(s))
}

func TestRefusedCredentialsAreReplaced(t *testing.T) {
	a, o := activities(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonUnauthorized, Code: http.StatusUnauthorized, Message: "Unauthorized"}}
	}})
	_, err := a.EnsureDatabase(context.Background(), input())
	require.True(t, faults.Is(err, faults.Transient), "%v", err)
	require.Equal(t, 1, o.forgotten)
}
