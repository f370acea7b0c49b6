package network_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// answer is what came of a request for a lease.
type answer struct {
	contract.LeaseAnswer
	failed error
	done   bool
}

func (a *answer) Accept()          {}
func (a *answer) Reject(err error) { a.failed, a.done = err, true }
func (a *answer) Complete(success any, err error) {
	a.failed, a.done = err, true
	if is, ok := success.(contract.LeaseAnswer); ok {
		a.LeaseAnswer = is
	}
}

// keeper is a Network whose leases are asked for.
type keeper struct {
	*workflowtest.Env
	called []string // workflows that were told of their turn
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{Env: workflowtest.NewEnv(t, network.Kind())}
	k.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_, workflow, _, _ string, arg any) error {
			raw, err := json.Marshal(arg)
			require.NoError(t, err)
			if string(raw) == `{"do":"granted"}` {
				k.called = append(k.called, workflow)
			}
			return nil
		})
	return k
}

func (k *keeper) request(name, cluster string, shared bool) contract.LeaseRequest {
	return contract.LeaseRequest{Keeper: k.Object, Name: name, Shared: shared, Waiter: "cluster/infra/" + cluster + "/create/1.1",
		Holder: contract.Holder{Object: contract.ObjectRef{Kind: v1.KindCluster, Namespace: "infra", Name: cluster}, UID: cluster}}
}

func (k *keeper) ask(after time.Duration, in contract.LeaseRequest) *answer {
	a := &answer{}
	k.RegisterDelayedCallback(func() {
		k.UpdateWorkflow(temporal.UpdateAcquire, fmt.Sprint(in.Name, in.Holder.UID, after), a, in)
	}, after)
	return a
}

func (k *keeper) giveBack(after time.Duration, in contract.LeaseRequest) {
	k.RegisterDelayedCallback(func() { k.SignalWorkflow(temporal.SignalRelease, in) }, after)
}

// Leases are granted, queued and given back by the Network's object workflow.
func TestLeasesOfANetwork(t *testing.T) {
	k := newKeeper(t)
	a := k.ask(1*time.Minute, k.request(contract.LockShoot, "a", false))
	b := k.ask(2*time.Minute, k.request(contract.LockShoot, "b", false))
	c := k.ask(2*time.Minute, k.request(contract.LockShoot, "c", false))
	run := k.ask(3*time.Minute, k.request(contract.LeaseRunning, "a", true))
	k.RegisterDelayedCallback(func() {
		require.True(t, a.done && b.done && c.done, "each is answered at once")
		require.Equal(t, contract.LeaseAnswer{}, a.LeaseAnswer)
		require.Equal(t, contract.LeaseAnswer{Place: 1, Holds: "Cluster a"}, b.LeaseAnswer)
		require.Equal(t, contract.LeaseAnswer{Place: 2, Behind: "Cluster b", Holds: "Cluster a"}, c.LeaseAnswer)
		leases := k.Current().Leases
		require.Len(t, leases, 1)
		require.Equal(t, "Cluster/a/a", leases[0].Holder)
		require.EqualValues(t, 1, k.Current().Clusters.Running)
	}, 4*time.Minute)
	k.giveBack(5*time.Minute, k.request(contract.LockShoot, "a", false))
	again := k.ask(6*time.Minute, k.request(contract.LockShoot, "b", false))
	k.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"cluster/infra/b/create/1.1"}, k.called, "the next one is told")
		require.Equal(t, contract.LeaseAnswer{}, again.LeaseAnswer)
		k.Vanish("b")
		k.Vanish("a")
		k.Nudge() // a resync sweeps
	}, 7*time.Minute)
	k.RegisterDelayedCallback(func() {
		require.Empty(t, k.Current().Leases, "a holder that is no more holds nothing")
		require.Equal(t, "cluster/infra/c/create/1.1", k.called[len(k.called)-1], "and holds nobody up")
	}, 8*time.Minute)
	k.Rest(time.Hour)
	k.RunObject()
	for _, one := range []*answer{a, b, c, run, again} {
		require.NoError(t, one.failed)
	}
}

// Whoever waits asks again in case that nobody has called; the holders are
// looked at then, without a resync and without a timer of the Network's.
func TestARequestThatWaitsFindsOutThatTheHolderIsNoMore(t *testing.T) {
	k := newKeeper(t)
	waits := k.request(contract.LockShoot, "b", false)
	k.ask(1*time.Minute, k.request(contract.LockShoot, "a", false))
	k.ask(2*time.Minute, waits)
	k.RegisterDelayedCallback(func() { k.Vanish("a") }, 150*time.Second)
	waits.Queued = true
	k.ask(3*time.Minute, waits)
	k.RegisterDelayedCallback(func() { require.Equal(t, []string{"cluster/infra/b/create/1.1"}, k.called) }, 4*time.Minute)
	k.Rest(time.Hour)
	k.RunObject()
	require.NotEmpty(t, k.called)
}

// An outage of the API server holds up the Network's own look, and nobody who
// asks for a lease, has one to give back, or whose turn comes.
func TestLeasesDuringAnOutageOfTheAPIServer(t *testing.T) {
	k := newKeeper(t)
	k.ask(1*time.Minute, k.request(contract.LockShoot, "a", false))
	k.RegisterDelayedCallback(func() {
		k.Refuse(contract.ReadObject.Name, true)
		k.Nudge()
	}, 2*time.Minute)
	b := k.ask(3*time.Minute, k.request(contract.LockShoot, "b", false))
	k.giveBack(4*time.Minute, k.request(contract.LockShoot, "a", false))
	k.RegisterDelayedCallback(func() {
		require.Equal(t, 1, b.Place)
		require.Equal(t, []string{"cluster/infra/b/create/1.1"}, k.called)
		k.Refuse(contract.ReadObject.Name, false)
	}, 5*time.Minute)
	k.Rest(time.Hour)
	k.RunObject()
	require.NotEmpty(t, k.called)
}

// Two hundred at once: what the Network's workflow remembers, tells and carries
// stays within bounds.
func TestTwoHundredHoldersOfOneNetwork(t *testing.T) {
	const holders = 200
	k := newKeeper(t)
	for i := range holders {
		name := fmt.Sprintf("cluster-with-a-long-name-%03d", i)
		at := time.Minute + time.Duration(i)*time.Millisecond
		k.ask(at, k.request(contract.LeaseRunning, name, true))
		k.ask(at, k.request(contract.LockShoot, name, false))
		k.giveBack(2*time.Minute+time.Duration(i)*time.Second, k.request(contract.LockShoot, name, false))
	}
	k.RegisterDelayedCallback(func() {
		require.Len(t, k.called, holders-1, "each has had its turn")
		s := k.Current()
		require.EqualValues(t, holders, s.Clusters.Running)
		raw, err := json.Marshal(s.Leases)
		require.NoError(t, err)
		require.Less(t, len(raw), 40<<10, "bytes of status")
		require.Less(t, len(k.Statuses()), 3*holders, "a write for each change at most")
	}, 30*time.Minute)
	k.Rest(time.Hour)
	k.RunObject()
	require.Len(t, k.called, holders-1)
}
