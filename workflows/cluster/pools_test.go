package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/cluster"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// allocations answers each allocation with another name, and keeps what was
// asked.
type allocations struct {
	asked []contract.AllocateWorkerPoolsInput
}

func (a *allocations) next(in contract.AllocateWorkerPoolsInput) contract.WorkerPools {
	a.asked = append(a.asked, in)
	out := contract.WorkerPools{Pools: []contract.MachinePool{{
		Name: fmt.Sprint("kv-", len(a.asked)), MachineType: "m5.xlarge", Minimum: 1, Zones: []string{"us-west-2a"}, Dedicated: "tikv"}}}
	if n := len(a.asked); n > 1 {
		out.Retire, out.Shrinks = []string{fmt.Sprint("kv-", n-1)}, true
	}
	return out
}

func pool(n int, retiring bool) v1.WorkerPool {
	return v1.WorkerPool{Name: fmt.Sprint("kv-", n), Component: "tikv", Zone: "us-west-2a", MachineType: "m5.xlarge", Nodes: 1, Retiring: retiring}
}

// Between allocation and use the operation stalls, for hours; the names are
// those that were allocated, once.
func TestPoolNamesAreFixedBeforeTheirUse(t *testing.T) {
	e, a := workflowtest.NewEnv(t, cluster.Kind()), &allocations{}
	e.Allocate = a.next
	e.Before = func(name string, times int) error {
		if name == contract.EnsureWorkerPools.Name && times < 3 {
			return faults.New(faults.Quota, "LimitExceeded", "the shoot", "no more pools")
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	require.Equal(t, v1.PhaseAvailable, e.Current().Phase)
	require.Len(t, a.asked, 1)
	require.Equal(t, []string{"ensure kv-1"}, e.Pools(), "and nothing is retired where nothing was replaced")
	require.JSONEq(t, `[{"name":"kv-1","component":"tikv","zone":"us-west-2a","machineType":"m5.xlarge","nodes":1}]`, string(e.Current().Details["pools"]))
}

// An operation that another one follows before it has retired the old pools
// tells it which are which.
func TestTheNextOperationKnowsThePools(t *testing.T) {
	e, a := workflowtest.NewEnv(t, cluster.Kind()), &allocations{}
	e.Allocate = a.next
	change := func() {
		e.Change(func(s *contract.ObjectState) { s.Generation++ })
		e.RegisterDelayedCallback(e.Nudge, 0)
	}
	e.RegisterDelayedCallback(change, time.Hour) // after the creation
	e.Before = func(name string, times int) error {
		if name == contract.EnsureWorkerPools.Name && times == 2 { // in the middle of the update
			change()
			return faults.New(faults.Quota, "LimitExceeded", "the shoot", "no more pools")
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	require.Equal(t, v1.PhaseAvailable, e.Current().Phase)
	require.EqualValues(t, 3, e.Current().ObservedGeneration)
	require.Len(t, a.asked, 3)
	require.Empty(t, a.asked[0].Known)
	require.Equal(t, []v1.WorkerPool{pool(1, false)}, a.asked[1].Known)
	require.Equal(t, []v1.WorkerPool{pool(2, false), pool(1, true)}, a.asked[2].Known)
	require.Equal(t, []string{"ensure kv-1", "ensure kv-3", "retire kv-3"}, e.Pools(), "retired only by the one that got that far")
}

// The old pools go when the new ones and the database are ready, and the
// database is waited for once more after that.
func TestOldPoolsGoLast(t *testing.T) {
	e := workflowtest.NewEnv(t, cluster.Kind())
	e.Rest(time.Hour)
	e.RunObject()
	var order []string
	for _, name := range e.Journal() {
		switch name {
		case contract.AllocateWorkerPools.Name, contract.EnsureWorkerPools.Name, contract.WaitShootReady.Name,
			contract.WaitDatabaseReady.Name, contract.RetireWorkerPools.Name:
			order = append(order, name)
		}
	}
	require.Equal(t, []string{
		contract.AllocateWorkerPools.Name, contract.EnsureWorkerPools.Name, contract.WaitShootReady.Name, contract.WaitDatabaseReady.Name,
		contract.RetireWorkerPools.Name, contract.WaitShootReady.Name, contract.WaitDatabaseReady.Name,
	}, order)
}
