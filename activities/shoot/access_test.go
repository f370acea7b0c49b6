package shoot

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gardenauthenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
`

// gardenOf answers requests for kubeconfigs after a while, and counts them.
func gardenOf(t *testing.T, lifetime time.Duration, shoot *gardencorev1beta1.Shoot) (*Access, *atomic.Int32) {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, gardencorev1beta1.AddToScheme(s))
	requests := &atomic.Int32{}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(shoot).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _ client.Object, request client.Object, _ ...client.SubResourceCreateOption) error {
			requests.Add(1)
			time.Sleep(100 * time.Millisecond)
			status := &request.(*gardenauthenticationv1alpha1.AdminKubeconfigRequest).Status
			status.Kubeconfig, status.ExpirationTimestamp = []byte(kubeconfig), metav1.NewTime(time.Now().Add(lifetime))
			return nil
		},
	}).Build()
	return &Access{Garden: c, GardenLive: c}, requests
}

func TestAKubeconfigIsAskedForOnce(t *testing.T) {
	ref := contract.ShootRef{Namespace: "garden-core", Name: "n1"}
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: "1"}}
	a, requests := gardenOf(t, time.Hour, shoot)
	cancelled, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := a.Client(cancelled, ref)
	require.ErrorIs(t, err, context.DeadlineExceeded, "a caller waits no longer than it may")
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			c, err := a.Client(t.Context(), ref)
			require.NoError(t, err)
			require.NotNil(t, c)
		})
	}
	all.Wait()
	require.EqualValues(t, 1, requests.Load())

	a.Forget(t.Context(), ref)
	_, err = a.Client(t.Context(), ref)
	require.NoError(t, err)
	require.EqualValues(t, 2, requests.Load(), "a kubeconfig that was refused is replaced")

	require.NoError(t, a.Garden.Delete(t.Context(), shoot))
	_, err = a.Client(t.Context(), ref)
	require.True(t, faults.Is(err, faults.Gone), "%v", err)
	require.Zero(t, a.open.Len(), "the kubeconfig of a Shoot that is gone leaves memory")
}

func TestAKubeconfigThatExpiresIsReplaced(t *testing.T) {
	ref := contract.ShootRef{Namespace: "garden-core", Name: "n1"}
	a, requests := gardenOf(t, renewBefore, &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: "1"}})
	for range 2 {
		_, err := a.Client(t.Context(), ref)
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, requests.Load())
	require.Equal(t, 1, a.open.Len())
}
