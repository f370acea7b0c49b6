package management

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

func credentialsOf(provider, secret string) *v1.Provider {
	return &v1.Provider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: provider, UID: types.UID("uid-" + provider), Finalizers: []string{v1.Finalizer("Provider")}},
		Spec:       v1.ProviderSpec{Credentials: v1.ProviderCredentials{SecretRef: &v1.SecretReference{Name: secret}}},
	}
}

func secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name, UID: types.UID("uid-" + name)}, Data: map[string][]byte{"accessKeyID": []byte("id")}}
}

// holdWorld is an API server with Secrets and Providers, and what the
// controller would be asked.
type holdWorld struct {
	t *testing.T
	a *Activities
	h *CredentialsHold
}

func newHoldWorld(t *testing.T, objects ...client.Object) *holdWorld {
	a, _ := activities(t, interceptor.Funcs{}, objects...)
	return &holdWorld{t: t, a: a, h: &CredentialsHold{Activities: a}}
}

func (w *holdWorld) reconcile(secrets ...string) {
	w.t.Helper()
	for _, name := range secrets {
		_, err := w.h.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "infra", Name: name}})
		require.NoError(w.t, err)
	}
}

// secret is the Secret as it is; nil when it is gone.
func (w *holdWorld) secret(name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	err := w.a.Client.Get(w.t.Context(), types.NamespacedName{Namespace: "infra", Name: name}, s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	return s
}

// letGo is what the last step of a Provider's deletion does, or somebody in a
// hurry.
func (w *holdWorld) letGo(p *v1.Provider) {
	w.t.Helper()
	require.NoError(w.t, client.IgnoreNotFound(w.a.Client.Delete(w.t.Context(), p.DeepCopy())))
	require.NoError(w.t, client.IgnoreNotFound(w.a.Client.Patch(w.t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
}

func TestSecretIsHeldWhileAProviderRefersToIt(t *testing.T) {
	one, two := credentialsOf("one", "s"), credentialsOf("two", "s")
	w := newHoldWorld(t, one, two, secretNamed("s"), secretNamed("other"))
	w.reconcile("s", "other", "absent")
	require.Equal(t, []string{v1.FinalizerCredentials}, w.secret("s").Finalizers)
	require.Equal(t, "id", string(w.secret("s").Data["accessKeyID"]))
	require.Empty(t, w.secret("other").Finalizers, "not ours")

	require.NoError(t, w.a.Client.Delete(t.Context(), w.secret("s")))
	w.reconcile("s")
	require.NotNil(t, w.secret("s"), "two Providers need it")
	require.NotNil(t, w.secret("s").DeletionTimestamp)

	w.letGo(one)
	w.reconcile("s")
	require.NotNil(t, w.secret("s"), "one Provider needs it")
	w.letGo(two)
	w.reconcile("s")
	require.Nil(t, w.secret("s"))
}

func TestSecretIsLetGoWhenTheReferenceChanges(t *testing.T) {
	p := credentialsOf("one", "old")
	w := newHoldWorld(t, p, secretNamed("old"), secretNamed("new"))
	w.reconcile("old")
	p = credentialsOf("one", "new")
	require.NoError(t, w.a.Client.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"credentials":{"secretRef":{"name":"new"}}}}`))))
	w.reconcile("old", "new")
	require.Empty(t, w.secret("old").Finalizers)
	require.Equal(t, []string{v1.FinalizerCredentials}, w.secret("new").Finalizers)
}

// What the cache has not seen yet counts: a Provider that came a moment ago.
func TestSecretIsLetGoAfterALiveLookOnly(t *testing.T) {
	s := secretNamed("s")
	s.Finalizers = []string{v1.FinalizerCredentials}
	stale := newHoldWorld(t, s)
	fresh := newHoldWorld(t, s, credentialsOf("one", "s"))
	stale.a.Live = fresh.a.Client
	stale.reconcile("s")
	require.Equal(t, []string{v1.FinalizerCredentials}, stale.secret("s").Finalizers)
}

func TestDeletionOfASecretInUseIsTold(t *testing.T) {
	stays, goes := credentialsOf("stays", "s"), credentialsOf("goes", "s")
	w := newHoldWorld(t, stays, goes, secretNamed("s"))
	w.reconcile("s")
	require.NoError(t, w.a.Client.Delete(t.Context(), goes.DeepCopy()))
	require.NoError(t, w.a.Client.Delete(t.Context(), w.secret("s")))
	w.reconcile("s", "s")
	var events corev1.EventList
	require.NoError(t, w.a.Client.List(t.Context(), &events))
	require.Len(t, events.Items, 1, "once, and not on what is to go, too")
	e := events.Items[0]
	require.Equal(t, []string{"stays", "Warning", "CredentialsDeleted"}, []string{e.InvolvedObject.Name, e.Type, e.Reason})
	require.Contains(t, e.Message, "secret infra/s has been deleted")
	require.Contains(t, e.Message, "spec.credentials.secretRef")
}

// Whatever the order in which a folder or a namespace is deleted, the Secret
// goes after the last Provider and is not left behind.
func TestSecretGoesLastInAnyOrder(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		providers := []*v1.Provider{credentialsOf("a", "s"), credentialsOf("b", "s"), credentialsOf("c", "s")}
		w := newHoldWorld(t, providers[0], providers[1], providers[2], secretNamed("s"))
		w.reconcile("s")
		steps := []func(){func() { require.NoError(t, w.a.Client.Delete(context.Background(), w.secret("s"))) }}
		left := len(providers)
		for _, p := range providers {
			steps = append(steps, func() { w.letGo(p); left-- })
		}
		random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for i, step := range steps {
			step()
			if random.IntN(2) == 0 || i == len(steps)-1 { // events may come late, and together
				w.reconcile("s")
			}
			require.False(t, left > 0 && w.secret("s") == nil, "seed %d: gone while %d Providers need it", seed, left)
		}
		require.Nil(t, w.secret("s"), "seed %d: left behind", seed)
	}
}

// A namespace that is being deleted takes no Events: an operation goes on, and
// what they would have said is in the log.
func TestEventsOfANamespaceThatGoesAreLogged(t *testing.T) {
	var log bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(was) })
	a, _ := activities(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "n1.x", errors.New("unable to create new content in namespace infra because it is being terminated"))
	}})
	require.NoError(t, a.report(t.Context(), networkRef, "uid-1", []contract.Event{{Key: "k", Reason: "LeftBehind", Message: "force-delete leaves behind: bucket b"}}))
	require.Contains(t, log.String(), "force-delete leaves behind: bucket b")
}
