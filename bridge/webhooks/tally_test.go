package webhooks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// However Networks and Clusters come, change and go, in whatever order, the
// tally is what a count of them all would find.
func TestTallyIsACount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tally := newTally()
	events := tally.handler()
	networks, clusters := map[string]*v1.Network{}, map[string]*v1.Cluster{}
	providers := []*v1.Provider{}
	for i := range 3 {
		providers = append(providers, &v1.Provider{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: fmt.Sprintf("p%d", i)}, Spec: v1.ProviderSpec{Account: v1.ReferenceName(fmt.Sprintf("a%d", i))},
		})
	}
	for range 5000 {
		name := fmt.Sprint(random.IntN(20))
		switch random.IntN(5) {
		case 0:
			n := &v1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name}, Spec: v1.NetworkSpec{Provider: v1.ReferenceName(fmt.Sprintf("p%d", random.IntN(3)))}}
			networks[name] = n
			events.OnAdd(n, false)
		case 1:
			if n := networks[name]; n != nil {
				delete(networks, name)
				events.OnDelete(cache.DeletedFinalStateUnknown{Obj: n})
			}
		case 2:
			if c := clusters[name]; c != nil {
				delete(clusters, name)
				events.OnDelete(c)
			}
		default:
			c := &v1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name}, Spec: v1.ClusterSpec{Network: v1.ReferenceName(fmt.Sprint(random.IntN(20)))}}
			c.Spec.Topology.TiDB.Replicas, c.Spec.Topology.TiKV.Replicas = random.Int32N(5), 3*random.Int32N(3)
			if random.IntN(2) == 0 {
				c.Spec.Topology.TiFlash = &v1.TiFlashTopology{Replicas: random.Int32N(3)}
			}
			if old := clusters[name]; old != nil {
				events.OnUpdate(old, c)
			} else {
				events.OnAdd(c, false)
			}
			clusters[name] = c
		}
		for i := range 3 {
			want := plan.CountUsage(fmt.Sprintf("a%d", i), slices.Values(providers), maps.Values(networks), maps.Values(clusters), nil)
			require.Equal(t, want, tally.of("infra", fmt.Sprintf("p%d", i)))
		}
	}
}
