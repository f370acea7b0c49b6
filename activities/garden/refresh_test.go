package garden

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/audited/auditedtest"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// revoked is a garden in which a Shoot has failed, since the copy of its
// credentials is an old key: the Provider has another one by now.
func revoked(t *testing.T, kind string, operation gardencorev1beta1.LastOperationType) *Activities {
	t.Helper()
	ctx, p := t.Context(), networkPlan()
	p.CredentialsKind = kind
	shoot := throttled(operation)
	if shoot.Spec.CredentialsBindingName = &p.BindingName; kind == "SecretBinding" {
		shoot.Spec.CredentialsBindingName, shoot.Spec.SecretBindingName = nil, &p.BindingName
	}
	shoot.Status.LastErrors[0].Codes = []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthenticated}
	a := activities(t, interceptor.Funcs{}, shoot)
	_, err := a.EnsureBinding(ctx, p)
	require.NoError(t, err)
	a.Credentials = &fixedCredentials{"id2", "key2"}
	return a
}

func copied(t *testing.T, a *Activities) string {
	t.Helper()
	p, secret := networkPlan(), &corev1.Secret{}
	require.NoError(t, a.Client.Get(t.Context(), types.NamespacedName{Namespace: p.Shoot.Namespace, Name: p.BindingName}, secret))
	return string(secret.Data["secretAccessKey"])
}

func shootNow(t *testing.T, a *Activities) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot, err := read(t.Context(), a.Client, networkPlan().Shoot)
	require.NoError(t, err)
	return shoot
}

func TestRetryShootRefreshesTheCredentialsFirst(t *testing.T) {
	for _, kind := range []string{"CredentialsBinding", "SecretBinding"} {
		for _, operation := range []gardencorev1beta1.LastOperationType{"Create", "Delete"} {
			t.Run(kind+"/"+string(operation), func(t *testing.T) {
				a := revoked(t, kind, operation)
				var log auditedtest.Log
				for range 2 {
					_, err := a.RetryShoot(audited.With(t.Context(), &log), shootInput())
					require.NoError(t, err)
				}
				require.Equal(t, "key2", copied(t, a))
				require.Equal(t, "retry", shootNow(t, a).Annotations[constants.GardenerOperation])
				require.Equal(t, "Secret garden-core/core-aws-89abcdef Present", log[0], "before Gardener tries again")
				require.Equal(t, "Shoot garden-core/n-3f9ac21 Present", log[1])
				require.NotContains(t, log[2:], log[0], "once")
			})
		}
	}
}

func TestRetryShootMakesTheCopyAgain(t *testing.T) {
	a, p := revoked(t, "CredentialsBinding", "Delete"), networkPlan()
	require.NoError(t, a.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Shoot.Namespace, Name: p.BindingName}}))
	_, err := a.RetryShoot(t.Context(), shootInput())
	require.NoError(t, err)
	require.Equal(t, "key2", copied(t, a))
}

type noCredentials struct{ err error }

func (n noCredentials) AWS(context.Context, string, string) (string, string, string, error) {
	return "", "", "", n.err
}

// Without the Provider's Secret the copy stays, which may be good; while it
// cannot be read nothing is decided.
func TestRetryShootWithoutCredentials(t *testing.T) {
	a := revoked(t, "CredentialsBinding", "Delete")
	a.Credentials = noCredentials{faults.New(faults.Auth, "CredentialsMissing", "provider infra/core-aws", "its Secret does not exist")}
	_, err := a.RetryShoot(t.Context(), shootInput())
	require.NoError(t, err)
	require.Equal(t, "key", copied(t, a))
	require.Equal(t, "retry", shootNow(t, a).Annotations[constants.GardenerOperation])

	a = revoked(t, "CredentialsBinding", "Delete")
	a.Credentials = noCredentials{errors.New("no answer")}
	_, err = a.RetryShoot(t.Context(), shootInput())
	require.Error(t, err)
	require.Empty(t, shootNow(t, a).Annotations[constants.GardenerOperation])
}

// A wait that finds the copy old goes on with the new one, without a stall; one
// that finds it right tells what the cloud says of it.
func TestAWaitRefreshesRefusedCredentials(t *testing.T) {
	judges := map[gardencorev1beta1.LastOperationType]func(*gardencorev1beta1.Shoot, time.Time, time.Time) verdict{
		"Create": judgeReady, "Delete": judgeGone,
	}
	for operation, judge := range judges {
		t.Run(string(operation), func(t *testing.T) {
			ctx, a := t.Context(), revoked(t, "CredentialsBinding", operation)
			w := &shootWait{activities: a, in: shootInput(), since: time.Now().Add(-time.Hour), judge: judge}
			for range 2 { // until Gardener has tried again
				done, sentence, err := w.look(ctx)
				require.NoError(t, err)
				require.False(t, done)
				require.Contains(t, sentence, "Gardener tries again with the Provider's credentials")
			}
			require.Equal(t, "key2", copied(t, a))
			shoot := shootNow(t, a)
			require.Equal(t, "retry", shoot.Annotations[constants.GardenerOperation])

			// It has, and the new ones are refused, too.
			delete(shoot.Annotations, constants.GardenerOperation)
			shoot.Status.LastOperation.LastUpdateTime = metav1.NewTime(time.Now().Add(time.Minute))
			require.NoError(t, a.Client.Update(ctx, shoot))
			_, _, err := w.look(ctx)
			require.True(t, faults.Is(err, faults.Auth), "%v", err)
			require.Empty(t, shootNow(t, a).Annotations[constants.GardenerOperation])
		})
	}
}

// An answer that is lost, to the copy or to the word to Gardener after it, does
// not leave the Shoot failed: what looks next is another attempt, maybe in
// another worker.
func TestAWaitAsksAgainAfterALostAnswer(t *testing.T) {
	for _, of := range []client.Object{&corev1.Secret{}, &gardencorev1beta1.Shoot{}} {
		t.Run(reflect.TypeOf(of).Elem().Name(), func(t *testing.T) {
			a := revoked(t, "CredentialsBinding", "Delete")
			a.Client = &losing{Client: a.Client, of: reflect.TypeOf(of)}
			attempt := func() error {
				w := &shootWait{activities: a, in: shootInput(), since: time.Now().Add(-time.Hour), judge: judgeGone}
				_, _, err := w.look(t.Context())
				return err
			}
			require.ErrorContains(t, attempt(), "no answer")
			require.Equal(t, "key2", copied(t, a))
			shoot := shootNow(t, a)
			delete(shoot.Annotations, constants.GardenerOperation) // Gardener is slow to try
			require.NoError(t, a.Client.Update(t.Context(), shoot))
			require.NoError(t, attempt())
			require.Equal(t, "retry", shootNow(t, a).Annotations[constants.GardenerOperation])
		})
	}
}

// losing loses the answer to the first patch of one kind.
type losing struct {
	client.Client
	of   reflect.Type
	lost bool
}

func (l *losing) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.PatchOption) error {
	err := l.Client.Patch(ctx, o, p, options...)
	if reflect.TypeOf(o) == l.of && !l.lost {
		l.lost = true
		return errors.New("no answer")
	}
	return err
}
