package chaos

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// Clusters of a crowd: all of them, and in the short subset more than the ten
// updates that Temporal lets a workflow have in flight.
const (
	crowdAll   = 30
	crowdShort = 12
)

// crowdPatience bounds each of a crowd's three moves. Its members change one
// Shoot one after the other.
const crowdPatience = 15 * time.Minute

// queued is how a wait says its place in the queue, and who is ahead.
var queued = regexp.MustCompile(`\d+(st|nd|rd|th) for the Shoot of Network .*, (behind|which) Cluster \S+`)

// TestCrowd has many Clusters on one Network created, reconciled and deleted at
// once, with a garden that holds its answers for 20 s in the middle of each.
// Nobody is stuck, and who waits says behind whom.
func TestCrowd(t *testing.T) {
	n := crowdShort
	if full() {
		n = crowdAll
	}
	ownStack(t)
	l := newLane(t, "crowd")
	unlimited(t, l)
	j := &journey{lane: l, part: "crowd", expect: newStates()}
	require.NoError(t, steps(j.creates(v1.KindProviderType), j.creates(v1.KindProvider), j.creates(v1.KindNetwork)))
	c := &crowd{t: t, lane: l}
	for i := range n {
		c.keys = append(c.keys, l.Named(v1.KindCluster, fmt.Sprintf("c%d", i)))
	}
	network := l.Key(v1.KindNetwork).Name
	c.all("create", func(ctx context.Context, key invariants.Key) error { return l.Create(ctx, key, lab.In(network)) },
		func(ctx context.Context, key invariants.Key) error { _, err := l.AwaitReady(ctx, key); return err })
	require.True(t, c.told, "nobody said its place in the queue, and who is ahead")
	c.all("update", func(ctx context.Context, key invariants.Key) error { _, err := l.Change(ctx, key); return err },
		func(ctx context.Context, key invariants.Key) error {
			generation, err := l.Generation(ctx, key)
			if err == nil {
				_, err = l.AwaitGeneration(ctx, key, generation)
			}
			return err
		})
	c.all("delete", l.Delete, l.AwaitGone)
	require.NoError(t, steps(j.removes(v1.KindNetwork), j.removes(v1.KindProvider), j.removes(v1.KindProviderType)))
	require.NoError(t, checker.Look(t.Context()))
}

type crowd struct {
	t    *testing.T
	lane *lab.Lane
	keys []invariants.Key
	mu   sync.Mutex
	told bool // a wait has said its place
}

// all asks the same of all at once, and waits until each has got it.
func (c *crowd) all(what string, ask, settled func(context.Context, invariants.Key) error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), crowdPatience)
	defer cancel()
	begin := time.Now()
	var wg sync.WaitGroup
	for _, key := range c.keys {
		if !c.told {
			wg.Go(func() { c.listen(ctx, key) })
		}
		wg.Go(func() {
			err := ask(ctx, key)
			if err == nil {
				err = settled(ctx, key)
			}
			run := lab.Run{Part: "crowd", Operation: what, What: fmt.Sprintf("one of %d", len(c.keys)), Converged: err == nil, Took: time.Since(begin)}
			if err != nil {
				run.Problem = fmt.Sprintf("%s %s: %v", what, key, err)
				c.t.Error(run.Problem)
			}
			table.Add(run)
		})
	}
	time.AfterFunc(5*time.Second, func() { c.lane.Gate.Hold(lab.Garden, 20*time.Second) })
	wg.Wait()
	fmt.Printf("crowd: %s of %d Clusters took %s\n", what, len(c.keys), time.Since(begin).Round(time.Second))
}

// listen watches what an object waits for until it is Ready or gone.
func (c *crowd) listen(ctx context.Context, key invariants.Key) {
	_, _ = c.lane.Checker.Await(ctx, key, func(o v1.Object) bool {
		if o == nil {
			return false
		}
		if op := o.Common().Operation; op != nil && queued.MatchString(op.WaitingFor) {
			c.mu.Lock()
			c.told = true
			c.mu.Unlock()
			return true
		}
		return invariants.IsReady(o)
	})
}

// unlimited gives the lane's Account quotas that no crowd reaches.
func unlimited(t *testing.T, l *lab.Lane) {
	account := &unstructured.Unstructured{Object: map[string]any{}}
	account.SetAPIVersion(v1.GroupVersion.String())
	account.SetKind(v1.KindAccount)
	account.SetNamespace(l.Name)
	account.SetName("acme")
	require.NoError(t, unstructured.SetNestedField(account.Object, "1372813089", "spec", "tenantID"))
	quotas := map[string]any{}
	for _, of := range []string{"networks", "clusters", "tidbNodes", "tikvNodes", "tiflashNodes", "peers"} {
		quotas[of] = int64(1000)
	}
	require.NoError(t, unstructured.SetNestedMap(account.Object, quotas, "spec", "quotas"))
	require.NoError(t, l.Stack.Apply(t.Context(), account))
}
