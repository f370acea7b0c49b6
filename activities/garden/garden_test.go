package garden

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

type fixedCredentials struct{ id, key string }

func (c *fixedCredentials) AWS(context.Context, string, string) (string, string, string, error) {
	return c.id, c.key, "1", nil
}

func networkPlan() contract.NetworkPlan {
	zones := []string{"us-west-2a", "us-west-2b"}
	return contract.NetworkPlan{
		Ref:     contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1", ID: "0123456789abcdef"},
		Account: contract.CloudAccount{Namespace: "infra", Provider: "core-aws"},
		Cloud:   "AWS", Env: "dev", Project: "core",
		Shoot:           contract.ShootRef{Namespace: "garden-core", Name: "n-3f9ac21"},
		CredentialsKind: "CredentialsBinding", BindingName: "core-aws-89abcdef",
		CloudProfileKind: "CloudProfile", CloudProfile: "aws", NetworkingType: "calico",
		Region: "us-west-2", Zones: zones, VPCCIDR: "10.250.0.0/16", PodsCIDR: "100.64.0.0/11", ServicesCIDR: "100.104.0.0/13",
		KubernetesVersion: "1.33", Purpose: "production",
		SystemPool: contract.MachinePool{Name: "system", MachineType: "m5.xlarge", Minimum: 2, Maximum: 3, Zones: zones, VolumeType: "gp3", VolumeSize: "50Gi"},
	}
}

func shootInput() contract.ShootInput {
	p := networkPlan()
	return contract.ShootInput{Object: p.Ref, Owner: p.Ref, Shoot: p.Shoot}
}

func activities(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *Activities {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, AddToScheme(s))
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return &Activities{Client: c, Live: c, Credentials: &fixedCredentials{"id", "key"}}
}

// lostCreate lets the create of a kind take effect and then fail.
func lostCreate(t *testing.T, times *int) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if err := c.Create(ctx, o, options...); err != nil {
			return err
		}
		if _, ok := o.(*gardencorev1beta1.Shoot); ok && *times == 0 {
			*times++
			return errors.New("http2: client connection lost")
		}
		return nil
	}}
}

func TestEnsureShootAdoptsAfterALostResponse(t *testing.T) {
	lost := 0
	a := activities(t, lostCreate(t, &lost))
	_, err := a.EnsureShoot(context.Background(), networkPlan())
	require.True(t, faults.Is(err, faults.Transient), "%v", err)
	out, err := a.EnsureShoot(context.Background(), networkPlan())
	require.NoError(t, err)
	require.Equal(t, "garden-core/n-3f9ac21", out.Resource.ID)

	var shoots gardencorev1beta1.ShootList
	require.NoError(t, a.Client.List(context.Background(), &shoots))
	require.Len(t, shoots.Items, 1)
	var bindings securityv1alpha1.CredentialsBindingList
	require.NoError(t, a.Client.List(context.Background(), &bindings))
	require.Len(t, bindings.Items, 1)
}

// What Gardener would refuse is told with all reasons, and nothing is created:
// not even the binding.
func TestEnsureShootChecksFirst(t *testing.T) {
	a := activities(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		t.Error("created something")
		return nil
	}})
	plan := networkPlan()
	plan.KubernetesVersion, plan.SystemPool.Maximum, plan.SystemPool.VolumeSize = "1.31", 1, "1Ti"
	_, err := a.EnsureShoot(context.Background(), plan)
	require.True(t, faults.Is(err, faults.Invalid), "%v", err)
	for _, path := range []string{"spec.kubernetes.version \"1.31\"", "spec.provider.workers[0].maximum 1", "spec.provider.workers[0].volume.size \"1Ti\""} {
		require.ErrorContains(t, err, path)
	}
}

func TestAForeignShootIsLeftAlone(t *testing.T) {
	ctx := context.Background()
	other := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden-core", Name: "n-3f9ac21",
		Annotations: map[string]string{v1.TagID: "ffffffffffffffff", v1.TagKind: "Network", v1.TagName: "infra/other"},
	}}
	a := activities(t, interceptor.Funcs{}, other)
	_, err := a.EnsureShoot(ctx, networkPlan())
	require.True(t, faults.Is(err, faults.Conflict))
	require.ErrorContains(t, err, "infra/other")

	s, err := a.ObserveShoot(ctx, shootInput())
	require.NoError(t, err)
	require.False(t, s.Exists)
	_, err = a.DeleteShoot(ctx, shootInput())
	require.NoError(t, err)
	_, err = a.WaitShootGone(ctx, shootInput())
	require.NoError(t, err)
	require.NoError(t, a.Client.Get(ctx, client.ObjectKeyFromObject(other), &gardencorev1beta1.Shoot{}), "it is still there")
}

func TestDeleteShootConfirmsAgain(t *testing.T) {
	refused := 0
	funcs := interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
		have := &gardencorev1beta1.Shoot{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
			return err
		}
		if refused == 0 || have.Annotations["confirmation.gardener.cloud/deletion"] != "true" {
			refused++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "shoots"}, o.GetName(), errors.New("annotation to confirm the deletion is missing"))
		}
		return c.Delete(ctx, o)
	}}
	p := networkPlan()
	a := activities(t, funcs)
	_, err := a.EnsureShoot(context.Background(), p)
	require.NoError(t, err)
	_, err = a.DeleteShoot(context.Background(), shootInput())
	require.NoError(t, err)
	require.Equal(t, 1, refused)
	_, err = a.DeleteShoot(context.Background(), shootInput())
	require.NoError(t, err, "again is success")
	_, err = a.WaitShootGone(context.Background(), shootInput())
	require.NoError(t, err)
}

func TestBindingFollowsTheCredentialsAndItsUsers(t *testing.T) {
	ctx, p := context.Background(), networkPlan()
	a := activities(t, interceptor.Funcs{})
	_, err := a.EnsureBinding(ctx, p)
	require.NoError(t, err)
	a.Credentials = &fixedCredentials{"id2", "key2"}
	_, err = a.EnsureBinding(ctx, p)
	require.NoError(t, err)
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: p.Shoot.Namespace, Name: p.BindingName}
	require.NoError(t, a.Client.Get(ctx, key, secret))
	require.Equal(t, "key2", string(secret.Data["secretAccessKey"]))

	_, err = a.EnsureShoot(ctx, p)
	require.NoError(t, err)
	_, err = a.DeleteBinding(ctx, p)
	require.NoError(t, err)
	require.NoError(t, a.Client.Get(ctx, key, secret), "a Shoot uses it")
	require.NoError(t, a.Client.Delete(ctx, &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: p.Shoot.Namespace, Name: p.Shoot.Name}}))
	for range 2 {
		_, err = a.DeleteBinding(ctx, p)
		require.NoError(t, err)
		require.True(t, apierrors.IsNotFound(a.Client.Get(ctx, key, secret)))
		require.True(t, apierrors.IsNotFound(a.Client.Get(ctx, key, &securityv1alpha1.CredentialsBinding{})))
	}

	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	a = activities(t, interceptor.Funcs{}, foreign)
	_, err = a.EnsureBinding(ctx, p)
	require.True(t, faults.Is(err, faults.Conflict))
}

func TestRetryShootOnlyInFailed(t *testing.T) {
	for state, want := range map[gardencorev1beta1.LastOperationState]string{"Failed": "retry", "Error": "", "Processing": ""} {
		shoot := &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-core", Name: "n-3f9ac21", Annotations: map[string]string{v1.TagID: "0123456789abcdef"}},
			Status:     gardencorev1beta1.ShootStatus{LastOperation: &gardencorev1beta1.LastOperation{State: state}},
		}
		a := activities(t, interceptor.Funcs{}, shoot)
		_, err := a.RetryShoot(context.Background(), shootInput())
		require.NoError(t, err)
		require.NoError(t, a.Client.Get(context.Background(), client.ObjectKeyFromObject(shoot), shoot))
		require.Equal(t, want, shoot.Annotations["gardener.cloud/operation"], state)
	}
}

func TestJudgeReady(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	base := func() *gardencorev1beta1.Shoot {
		return &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-core", Name: "n", Generation: 2},
			Status: gardencorev1beta1.ShootStatus{
				ObservedGeneration: 2,
				LastOperation:      &gardencorev1beta1.LastOperation{Type: "Create", State: "Succeeded", Progress: 100, LastUpdateTime: metav1.NewTime(now.Add(-time.Minute))},
				Conditions:         []gardencorev1beta1.Condition{{Type: "APIServerAvailable", Status: "True"}, {Type: "EveryNodeReady", Status: "True"}},
			},
		}
	}
	failed := func(s *gardencorev1beta1.Shoot, state, code string) {
		s.Status.LastOperation.State = gardencorev1beta1.LastOperationState(state)
		s.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "boom", Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorCode(code)}}}
	}
	for _, tc := range []struct {
		name   string
		change func(*gardencorev1beta1.Shoot)
		done   bool
		says   string
		class  faults.Class
		retry  bool
	}{
		{"ready", func(*gardencorev1beta1.Shoot) {}, true, "", "", false},
		{"not scheduled", func(s *gardencorev1beta1.Shoot) { s.Status.LastOperation = nil }, false, "scheduled", "", false},
		{"succeeded, but before the change", func(s *gardencorev1beta1.Shoot) { s.Generation = 3 }, false, "noticed the change", "", false},
		{"failed, but before the change", func(s *gardencorev1beta1.Shoot) {
			failed(s, "Failed", "ERR_INFRA_QUOTA_EXCEEDED")
			s.Generation = 3
		}, false, "noticed the change", "", false},
		{"processing", func(s *gardencorev1beta1.Shoot) {
			s.Status.LastOperation.State, s.Status.LastOperation.Progress, s.Status.LastOperation.Description = "Processing", 45, "waiting until workers have joined"
		}, false, "shoot garden-core/n 45 %: waiting until workers have joined", "", false},
		{"hourly reconcile", func(s *gardencorev1beta1.Shoot) {
			s.Status.LastOperation.Type, s.Status.LastOperation.State = "Reconcile", "Processing"
		}, false, "Reconcile is Processing", "", false},
		{"condition progressing", func(s *gardencorev1beta1.Shoot) { s.Status.Conditions[1].Status = "Progressing" }, false, "EveryNodeReady (Progressing)", "", false},
		{"no conditions", func(s *gardencorev1beta1.Shoot) { s.Status.Conditions = nil }, false, "health", "", false},
		{"meant to sleep, awake", func(s *gardencorev1beta1.Shoot) {
			s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
		}, false, "asleep", "", false},
		{"asleep as meant", func(s *gardencorev1beta1.Shoot) {
			s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
			s.Status.IsHibernated, s.Status.Conditions = true, nil
		}, true, "", "", false},
		{"asleep, meant awake", func(s *gardencorev1beta1.Shoot) { s.Status.IsHibernated = true }, false, "awake", "", false},
		{"quota", func(s *gardencorev1beta1.Shoot) { failed(s, "Failed", "ERR_INFRA_QUOTA_EXCEEDED") }, false, "", faults.Quota, false},
		{"capacity, told before", func(s *gardencorev1beta1.Shoot) { failed(s, "Error", "ERR_INFRA_RESOURCES_DEPLETED") }, false, "still retries", "", false},
		{"capacity, news", func(s *gardencorev1beta1.Shoot) {
			failed(s, "Error", "ERR_INFRA_RESOURCES_DEPLETED")
			s.Status.LastOperation.LastUpdateTime = metav1.NewTime(now)
		}, false, "", faults.Capacity, false},
		{"unknown error", func(s *gardencorev1beta1.Shoot) { failed(s, "Error", "") }, false, "retries after an error", "", false},
		{"throttled just now", func(s *gardencorev1beta1.Shoot) { failed(s, "Failed", "ERR_INFRA_RATE_LIMITS_EXCEEDED") }, false, "throttles", "", false},
		{"throttled long ago", func(s *gardencorev1beta1.Shoot) {
			failed(s, "Failed", "ERR_INFRA_RATE_LIMITS_EXCEEDED")
			s.Status.LastOperation.LastUpdateTime = metav1.NewTime(now.Add(-12 * time.Minute))
		}, false, "throttles", "", true},
		{"being deleted", func(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: now} }, false, "", faults.Dependency, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := base()
			tc.change(s)
			v := judgeReady(s, now.Add(-30*time.Second), now)
			require.Equal(t, tc.done, v.done)
			require.Equal(t, tc.retry, v.retry)
			require.Contains(t, v.sentence, tc.says)
			if tc.class == "" {
				require.Nil(t, v.fault)
				require.Equal(t, tc.done, v.sentence == "", "a wait always says something")
			} else {
				require.Equal(t, tc.class, v.fault.Class)
			}
		})
	}
}

func TestJudgeGone(t *testing.T) {
	now := time.Now()
	s := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-core", Name: "n", Generation: 3}}
	require.Equal(t, faults.Dependency, judgeGone(s, now, now).fault.Class, "never accepted")
	s.DeletionTimestamp = &metav1.Time{Time: now}
	require.Contains(t, judgeGone(s, now, now).sentence, "noticed the deletion")
	s.Status.ObservedGeneration = 3
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Create", State: "Failed"}
	require.Nil(t, judgeGone(s, now, now).fault, "that was the creation")
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Delete", State: "Processing", Progress: 70, Description: "Destroying infrastructure"}
	require.Equal(t, "shoot garden-core/n 70 %: Destroying infrastructure", judgeGone(s, now, now).sentence)
	s.Status.LastOperation.State = "Failed"
	s.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "DependencyViolation: vpc has dependencies", Codes: []gardencorev1beta1.ErrorCode{"ERR_INFRA_DEPENDENCIES"}}}
	require.Equal(t, faults.Dependency, judgeGone(s, now, now).fault.Class)
}

func TestWorkerPools(t *testing.T) {
	ctx := context.Background()
	conflicts := 2
	a := activities(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
		if conflicts > 0 {
			conflicts--
			return apierrors.NewConflict(schema.GroupResource{Resource: "shoots"}, o.GetName(), errors.New("modified"))
		}
		return c.Patch(ctx, o, patch, options...)
	}})
	_, err := a.EnsureShoot(ctx, networkPlan())
	require.NoError(t, err)
	in := contract.WorkerPoolsInput{
		Cluster: contract.ObjectRef{Kind: "Cluster", ID: "fedcba9876543210"}, Shoot: networkPlan().Shoot,
		Pools: []contract.MachinePool{{Name: "kv-fedcba-a", MachineType: "m5.2xlarge", Minimum: 1, Maximum: 1, Zones: []string{"us-west-2a"}, VolumeType: "gp3", VolumeSize: "50Gi", Dedicated: "tikv"}},
	}
	pools := func() (names []string) {
		s, err := read(ctx, a.Live, in.Shoot)
		require.NoError(t, err)
		for _, w := range s.Spec.Provider.Workers {
			names = append(names, w.Name)
		}
		return names
	}
	for range 2 {
		_, err = a.EnsureWorkerPools(ctx, in)
		require.NoError(t, err)
		require.Equal(t, []string{"system", "kv-fedcba-a"}, pools())
	}
	other := in
	other.Cluster.ID = "0000000000000000"
	_, err = a.EnsureWorkerPools(ctx, other)
	require.True(t, faults.Is(err, faults.Conflict))
	_, err = a.DeleteWorkerPools(ctx, other)
	require.NoError(t, err)
	require.Len(t, pools(), 2, "another cluster's pools stay")
	for range 2 {
		_, err = a.DeleteWorkerPools(ctx, in)
		require.NoError(t, err)
		require.Equal(t, []string{"system"}, pools())
	}
	in.Shoot.Name = "gone"
	_, err = a.DeleteWorkerPools(ctx, in)
	require.NoError(t, err)
	_, err = a.EnsureWorkerPools(ctx, in)
	require.True(t, faults.Is(err, faults.Dependency))
}

// A Shoot on one cloud with the configuration of another, for pools: the Shoot's own cloud decides what they are made of.
func TestWorkerPoolsFollowTheShootsCloud(t *testing.T) {
	ctx := context.Background()
	a := activities(t, interceptor.Funcs{}, &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-core", Name: "n-3f9ac21"},
		Spec:       gardencorev1beta1.ShootSpec{Provider: gardencorev1beta1.Provider{Type: "gcp"}},
	}, &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-core", Name: "other"},
		Spec:       gardencorev1beta1.ShootSpec{Provider: gardencorev1beta1.Provider{Type: "azure"}},
	})
	in := contract.WorkerPoolsInput{
		Cluster: contract.ObjectRef{Kind: "Cluster", ID: "fedcba9876543210"}, Shoot: networkPlan().Shoot,
		Pools: []contract.MachinePool{{Name: "kv-fedcba-a", VolumeType: "pd-ssd", VolumeSize: "50Gi"}},
	}
	_, err := a.EnsureWorkerPools(ctx, in)
	require.NoError(t, err)
	shoot, err := read(ctx, a.Live, in.Shoot)
	require.NoError(t, err)
	require.Contains(t, string(shoot.Spec.Provider.Workers[0].ProviderConfig.Raw), "gcp.provider.extensions.gardener.cloud")

	in.Shoot.Name = "other"
	_, err = a.EnsureWorkerPools(ctx, in)
	require.True(t, faults.Is(err, faults.Invalid), "%v", err)
}

func TestStatusOf(t *testing.T) {
	a := activities(t, interceptor.Funcs{})
	_, err := a.EnsureShoot(context.Background(), networkPlan())
	require.NoError(t, err)
	shoot, err := read(context.Background(), a.Live, networkPlan().Shoot)
	require.NoError(t, err)
	shoot.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://api"}, {Name: "service-account-issuer", URL: "https://issuer"}}
	shoot.Status.TechnicalID = "shoot--core--n-3f9ac21"
	s := statusOf(shoot)
	require.Equal(t, "https://issuer", s.Issuer)
	require.Equal(t, []string{"us-west-2a", "us-west-2b"}, s.Zones)
	require.True(t, strings.HasSuffix(s.TechnicalID, "n-3f9ac21"))
}
