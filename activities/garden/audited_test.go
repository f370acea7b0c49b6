package garden

import (
	"context"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/audited/auditedtest"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// throttled is our Shoot, which has failed by rate limits a while ago.
func throttled(operation gardencorev1beta1.LastOperationType) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-core", Name: "n-3f9ac21", Annotations: map[string]string{v1.TagID: "0123456789abcdef"}},
		Status: gardencorev1beta1.ShootStatus{
			LastOperation: &gardencorev1beta1.LastOperation{Type: operation, State: gardencorev1beta1.LastOperationStateFailed,
				LastUpdateTime: metav1.NewTime(time.Now().Add(-throttlePause - 2*time.Minute))},
			LastErrors: []gardencorev1beta1.LastError{{Description: "slow down", Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraRateLimitsExceeded}}},
		},
	}
	if operation == gardencorev1beta1.LastOperationTypeDelete {
		s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: time.Now()}, []string{"gardener"}
	}
	return s
}

// A wait that asks Gardener to try again changes the Shoot, and says so.
func TestRetriesOfWaitsAreAudited(t *testing.T) {
	waits := map[gardencorev1beta1.LastOperationType]func(*Activities, context.Context) error{
		"Reconcile": func(a *Activities, ctx context.Context) error {
			_, err := a.WaitShootReady(ctx, shootInput())
			return err
		},
		"Delete": func(a *Activities, ctx context.Context) error {
			_, err := a.WaitShootGone(ctx, shootInput())
			return err
		},
	}
	for operation, wait := range waits {
		t.Run(string(operation), func(t *testing.T) {
			var log auditedtest.Log
			ctx, stop := context.WithCancel(audited.With(t.Context(), &log))
			patched := 0
			a := activities(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				defer stop()
				patched++
				return c.Patch(ctx, o, p, options...)
			}}, throttled(operation))
			require.ErrorIs(t, wait(a, ctx), context.Canceled)
			require.Equal(t, 1, patched)
			require.Equal(t, auditedtest.Log{"Shoot garden-core/n-3f9ac21 Present"}, log)
		})
	}
}

func TestWaitsThatOnlyWaitAreNotAudited(t *testing.T) {
	var log auditedtest.Log
	a := activities(t, interceptor.Funcs{})
	_, err := a.WaitShootGone(audited.With(t.Context(), &log), shootInput())
	require.NoError(t, err)
	require.Empty(t, log)
}

func TestRetryShootIsAudited(t *testing.T) {
	var log auditedtest.Log
	a := activities(t, interceptor.Funcs{}, throttled("Reconcile"))
	_, err := a.RetryShoot(audited.With(t.Context(), &log), shootInput())
	require.NoError(t, err)
	require.Equal(t, auditedtest.Log{"Shoot garden-core/n-3f9ac21 Present"}, log)
}
