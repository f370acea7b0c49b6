package management

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

func TestAnswerVerb(t *testing.T) {
	ctx := context.Background()
	a, _ := activities(t, interceptor.Funcs{}, network())
	annotations := func() map[string]string {
		n := network()
		require.NoError(t, a.Client.Get(ctx, client.ObjectKeyFromObject(n), n))
		return n.Annotations
	}
	yes, no := true, false
	answer := func(in contract.VerbAnswer) {
		t.Helper()
		in.Ref = networkRef
		_, err := a.AnswerVerb(ctx, in)
		require.NoError(t, err)
	}
	answer(contract.VerbAnswer{UID: "another", Consume: "retry", Pause: &yes})
	require.Equal(t, "retry", annotations()[v1.AnnotationOperation], "another object has the name: it is left alone")
	answer(contract.VerbAnswer{UID: "uid-1", Consume: "cancel"})
	require.Equal(t, "retry", annotations()[v1.AnnotationOperation], "a newer verb is not taken away unread")
	answer(contract.VerbAnswer{UID: "uid-1", Consume: "retry", Pause: &yes, Events: []contract.Event{{Key: "k", Reason: "VerbAccepted", Message: "alice asked for retry"}}})
	require.NotContains(t, annotations(), v1.AnnotationOperation)
	require.Equal(t, "true", annotations()[v1.AnnotationPaused])
	require.Equal(t, id, annotations()[v1.AnnotationID], "all else stays")
	answer(contract.VerbAnswer{UID: "uid-1", Consume: "retry", Pause: &yes}) // again, after a lost answer
	answer(contract.VerbAnswer{UID: "uid-1", Pause: &no})
	require.NotContains(t, annotations(), v1.AnnotationPaused)
	answer(contract.VerbAnswer{UID: "uid-1", Pause: &no})
	var events corev1.EventList
	require.NoError(t, a.Client.List(ctx, &events))
	require.Len(t, events.Items, 1)

	_, err := a.AnswerVerb(ctx, contract.VerbAnswer{Ref: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "gone"}, UID: "x", Pause: &yes})
	require.NoError(t, err, "an object that is gone needs no answer")
}

func TestAnnotationPatchOfAnObjectWithoutAnnotations(t *testing.T) {
	yes := true
	require.Equal(t, map[string]any{v1.AnnotationPaused: "true"},
		annotationPatch(nil, contract.VerbAnswer{Pause: &yes}))
}

func TestDifference(t *testing.T) {
	of := func(version string) []dependency {
		return []dependency{{name: "secret infra/core-aws", version: version}}
	}
	require.Empty(t, difference(of("1"), of("1")))
	require.Empty(t, difference(of(""), of("")))
	require.Equal(t, "secret infra/core-aws has changed", difference(of("1"), of("2")))
	require.Equal(t, "secret infra/core-aws exists now", difference(of(""), of("2")))
	require.Equal(t, "secret infra/core-aws is gone", difference(of("1"), of("")))
	require.Equal(t, "it refers to secret infra/core-aws now", difference(nil, of("1")))
}

func TestChangedSince(t *testing.T) {
	at := time.Date(2026, 11, 30, 8, 0, 5, 0, time.UTC)
	now := []dependency{{name: "provider infra/core-aws", at: at.Add(-time.Hour)}, {name: "secret infra/core-aws", at: at}}
	require.Equal(t, "secret infra/core-aws has changed", changedSince(now, nil, at.Add(-time.Second)), "mended before the wait began")
	require.Equal(t, "secret infra/core-aws has changed", changedSince(now, nil, at.Add(300*time.Millisecond)), "the API server keeps whole seconds")
	require.Empty(t, changedSince(now, nil, at.Add(time.Second)))
	require.Empty(t, changedSince(now, nil, time.Time{}))
}

func TestWrittenAt(t *testing.T) {
	at := func(s int64) *metav1.Time { m := metav1.Unix(s, 0); return &m }
	n := network()
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Time: at(10)}, {Time: at(20), Subresource: "status"}, {Time: nil}}
	require.EqualValues(t, 10, writtenAt(n).Unix(), "our own writes of status do not count")
	n.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, LastTransitionTime: *at(30)}}
	require.EqualValues(t, 30, writtenAt(n).Unix(), "but that it became Ready does")
}

func TestDependenciesOfEachKind(t *testing.T) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "core-aws"}, Spec: v1.ProviderSpec{Type: "aws-gardener", Account: "acme",
		Credentials: v1.ProviderCredentials{SecretRef: &v1.SecretReference{Name: "core-aws-keys"}}}}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "core-aws-keys", UID: "s-1"}}
	a, _ := activities(t, interceptor.Funcs{}, network(), cluster("c1", "n1"), p, s)
	names := func(kind, name string) (all []string) {
		list, err := a.dependencies(context.Background(), a.Client, contract.ObjectRef{Kind: kind, Namespace: "infra", Name: name})
		require.NoError(t, err)
		for _, d := range list {
			all = append(all, d.name)
		}
		return all
	}
	below := []string{"provider type infra/aws-gardener", "account infra/acme", "secret infra/core-aws-keys"}
	require.Equal(t, append([]string{"network infra/n1", "provider infra/core-aws"}, below...), names("Cluster", "c1"))
	require.Equal(t, append([]string{"provider infra/core-aws"}, below...), names("Network", "n1"))
	require.Equal(t, below, names("Provider", "core-aws"))
	require.Empty(t, names("Provider", "none"))
}

// Correcting an annotation gives no new generation; a verb's pause is no
// correction.
func TestCorrectedAnnotationsAreAChange(t *testing.T) {
	n := network()
	rules := func(paused string) []dependency {
		n.Annotations[v1.AnnotationPaused] = paused
		a, _ := activities(t, interceptor.Funcs{}, n)
		list, err := a.annotationRules(context.Background(), a.Client, networkRef)
		require.NoError(t, err)
		return list
	}
	require.Equal(t, "what is wrong with its annotations has changed", difference(rules("yes"), rules("false")))
	require.Empty(t, difference(rules("false"), rules("true")))
	require.Empty(t, changedSince(rules("yes"), nil, time.Unix(1, 0)), "it is no write of a dependency")
}
