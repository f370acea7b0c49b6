package object

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

func lease(name, uid string, shared bool) contract.LeaseRequest {
	return contract.LeaseRequest{Name: name, Shared: shared, Holder: contract.Holder{UID: uid, Object: contract.ObjectRef{Kind: "Cluster", Name: uid}}}
}

func TestLeasesQueueDeduplicateAndRelease(t *testing.T) {
	now := metav1.NewTime(time.Unix(100, 0))
	var l leases
	a, b, c := lease("shoot", "a", false), lease("shoot", "b", false), lease("shoot", "c", false)
	assert.True(t, l.acquire(a, now))
	assert.True(t, l.acquire(a, now), "asking again changes nothing")
	assert.False(t, l.acquire(b, now))
	assert.False(t, l.acquire(c, now))
	assert.False(t, l.acquire(b, now), "nor does it lose the place in the queue")
	assert.Len(t, l.Waiting, 2)

	l.release(c, now)
	assert.Len(t, l.Waiting, 1, "a request that waits can be withdrawn")
	l.release(a, now)
	assert.True(t, l.holds(b), "the next one is granted at once")
	l.release(b, now)
	l.release(b, now)
	assert.Empty(t, l.Granted)
}

func TestLeasesSharedAndExclusive(t *testing.T) {
	now := metav1.NewTime(time.Unix(100, 0))
	var l leases
	assert.True(t, l.acquire(lease("running", "c1", true), now))
	assert.True(t, l.acquire(lease("running", "c2", true), now), "shared ones go together")
	assert.False(t, l.acquire(lease("running", "hibernation", false), now), "a lease vetoes what needs it alone")
	assert.False(t, l.acquire(lease("running", "c3", true), now), "and one that waits is not starved by new ones")
	assert.True(t, l.acquire(lease("shoot", "c3", false), now), "names are independent")
	l.release(lease("running", "c1", true), now)
	assert.False(t, l.holds(lease("running", "hibernation", false)))
	l.release(lease("running", "c2", true), now)
	assert.True(t, l.holds(lease("running", "hibernation", false)))
	assert.False(t, l.holds(lease("running", "c3", true)))
	l.release(lease("running", "hibernation", false), now)
	assert.True(t, l.holds(lease("running", "c3", true)))
}

func TestLeasesSweep(t *testing.T) {
	now := metav1.NewTime(time.Unix(100, 0))
	var l leases
	l.acquire(lease("shoot", "dead", false), now)
	l.acquire(lease("running", "dead", true), now)
	l.acquire(lease("running", "alive", true), now)
	l.acquire(lease("shoot", "alive", false), now)
	l.acquire(lease("shoot", "dead too", false), now)
	asked := l.holders()
	assert.Len(t, asked, 5)
	gone := l.sweep([]int{0, 1, 4}, asked, now)
	assert.Equal(t, []string{"shoot of Cluster/dead/dead", "running of Cluster/dead/dead", "shoot of Cluster/dead too/dead too"}, gone)
	assert.True(t, l.holds(lease("shoot", "alive", false)), "what they held goes to who waits")
	assert.Len(t, l.Granted, 2)
	assert.Empty(t, l.Waiting)
	assert.Empty(t, l.sweep(nil, l.holders(), now))
}

func TestLeasesNewerOperationOfTheSameHolder(t *testing.T) {
	now := metav1.NewTime(time.Unix(100, 0))
	var l leases
	old := lease("shoot", "a", false)
	old.Holder.Operation = "cluster/infra/a/create/1.1"
	l.acquire(old, now)
	newer := old
	newer.Holder.Operation = "cluster/infra/a/delete/2.1"
	assert.True(t, l.acquire(newer, now), "an object runs one operation at a time, so the lock is its own")
	assert.Equal(t, newer.Holder.Operation, l.Granted[0].Holder.Operation)
	assert.Empty(t, l.sweep([]int{0}, []contract.Holder{old.Holder}, now), "what was asked about the older one does not hit the newer")
}

// The worker that was to release it was slow, and the operation terminated: by
// now the lock is the next operation's.
func TestLeasesLateRelease(t *testing.T) {
	now := metav1.NewTime(time.Unix(100, 0))
	var l leases
	first, second, other := lease("shoot", "a", false), lease("shoot", "a", false), lease("shoot", "b", false)
	first.Holder.Operation, second.Holder.Operation, other.Holder.Operation = "cluster/x/a/update/4.1", "cluster/x/a/update/4.2", "cluster/x/b/create/1.1"
	assert.True(t, l.acquire(first, now))
	assert.True(t, l.acquire(second, now))
	l.release(first, now)
	assert.True(t, l.acquire(first, now), "who asks late")
	assert.Equal(t, second.Holder.Operation, l.Granted[0].Holder.Operation, "does not get it back")
	l.withdraw(first, now)
	l.release(first, now)
	assert.False(t, l.acquire(other, now), "it is held")
	l.release(second, now)
	assert.True(t, l.holds(other))
}
