package management

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/reads"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// A write costs who needs what it writes: 2,000 objects are stalled, and others
// write 300 times, for which 2.3 million reads were made before.
func TestAWriteCostsWhoNeedsIt(t *testing.T) {
	const stalled, writes = 2000, 300
	n := network()
	mine := cluster("mine", "n1")
	mine.Spec.RootPasswordSecretRef = &v1.SecretReference{Name: "root"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "root", UID: "s"}}
	objects := []client.Object{n, mine, secret}
	for i := range stalled {
		objects = append(objects, cluster(fmt.Sprint("c", i), "n1"))
	}
	var reads atomic.Int64
	a, _ := activities(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		reads.Add(1)
		return c.Get(ctx, key, o, options...)
	}}, objects...)
	a.Wake = &wake.Hub{References: References}

	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer func() { cancel(); all.Wait() }()
	waitFor := func(name string) <-chan contract.Change {
		changed := make(chan contract.Change, 1)
		all.Go(func() {
			c, err := a.WaitDependencies(ctx, contract.DependenciesInput{Ref: contract.ObjectRef{Kind: v1.KindCluster, Namespace: "infra", Name: name}, Since: metav1.Now()})
			if err == nil {
				changed <- c
			}
		})
		return changed
	}
	for i := range stalled {
		waitFor(fmt.Sprint("c", i))
	}
	changed := waitFor("mine")
	settled := func() int64 {
		last := int64(-1)
		require.Eventually(t, func() bool {
			now := reads.Load()
			same := now == last
			last = now
			return same
		}, time.Minute, 300*time.Millisecond)
		return last
	}
	before := settled()
	require.Greater(t, before, int64(2*stalled), "all of them wait")
	for i := range writes {
		n.Status.Phase = v1.Phase(fmt.Sprint("phase ", i)) // everybody's Network, but nothing that they need of it
		a.Wake.Notify(n, n)
		a.Wake.Notify(nil, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: fmt.Sprint("other", i)}})
		a.Wake.Notify(nil, cluster(fmt.Sprint("new", i), "n1"))
	}
	require.Equal(t, before, settled(), "reads for writes that concern nobody")

	secret.Data = map[string][]byte{"password": []byte("long enough")}
	require.NoError(t, a.Client.Update(t.Context(), secret))
	a.Wake.Notify(nil, secret)
	require.Equal(t, contract.Change{What: "secret infra/root has changed"}, <-changed, "the root password is a dependency")
	require.LessOrEqual(t, settled()-before, int64(10), "one look of the one that needs it")
}

// A cause is mended before the wait begins: in the second in which the attempt
// began, or long before, but not seen by the cache that it used.
func TestAMendedSecretIsNotMissed(t *testing.T) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "core-aws", UID: "p", Generation: 1},
		Spec: v1.ProviderSpec{Credentials: v1.ProviderCredentials{SecretRef: &v1.SecretReference{Name: "key"}}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "key", UID: "s"}}
	a, _ := activities(t, interceptor.Funcs{}, network(), p, secret)
	attempt := reads.Note(t.Context())
	_, _, _, err := Credentials{Activities: a}.AWS(attempt, "infra", "core-aws")
	require.True(t, faults.Is(err, faults.Auth), "%v", err)
	used := reads.Of(attempt)
	require.Contains(t, used, "Secret/key")

	wait := func(used map[string]string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		c, _ := a.WaitDependencies(ctx, contract.DependenciesInput{Ref: networkRef, Since: metav1.NewTime(time.Now().Add(time.Hour)), Used: used})
		return c.What
	}
	require.Empty(t, wait(used), "nothing has changed")
	secret.Data = map[string][]byte{"accessKeyID": []byte("AKIA")}
	require.NoError(t, a.Client.Update(t.Context(), secret))
	require.Equal(t, "secret infra/key has changed", wait(used))
	require.Empty(t, wait(nil), "by time alone it is missed")
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		used, now string
		want      bool
	}{
		{"u/1", "u/1", false}, {"u/1", "u/2", true}, {"u/10", "u/9", false}, {"u/1", "v/1", true},
		{"", "u/1", true}, {"u/1", "", true}, {"u/1/false", "u/1/true", true}, {"problems/ab", "problems/cd", true},
	} {
		require.Equal(t, c.want, newer(c.used, c.now), "%+v", c)
	}
}
