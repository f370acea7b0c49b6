package object

import (
	"errors"
	"slices"
	"strings"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// A keeper grants leases and locks to others' operations. Temporal lets a
// workflow have ten updates under way and refuses more, so nothing here waits in
// one for what another has to bring: a request is answered at once, with a place
// in the queue if need be, and what is given back comes as a signal, which is
// never refused (https://docs.temporal.io/cloud/limits#per-workflow-execution-update-limits).

// lookEvery is how often requests that wait have the holders looked at, at most.
const lookEvery = 50 * time.Second

// keep serves requests for leases from now on.
func (o *object) keep(ctx workflow.Context) error {
	o.releases = workflow.GetSignalChannel(ctx, temporal.SignalRelease)
	// Apart from the main loop, which may wait out an outage of the API server:
	// whoever has nothing to do with that goes on. It does not block in Receive: a
	// signal would be handed to it, and be lost with a run that ends in the same
	// task, before it has its turn.
	workflow.Go(ctx, func(ctx workflow.Context) {
		for workflow.Await(ctx, func() bool { return o.releases.Len() > 0 }) == nil {
			o.handOver(ctx)
		}
	})
	if err := workflow.SetUpdateHandler(ctx, temporal.UpdateAcquire, o.onAcquire); err != nil {
		return err
	}
	return workflow.SetUpdateHandler(ctx, temporal.UpdateRelease, func(ctx workflow.Context, in contract.LeaseRequest) error {
		o.release(ctx, in)
		return nil
	})
}

// onAcquire grants the lease or says which place the request has in the queue.
func (o *object) onAcquire(ctx workflow.Context, in contract.LeaseRequest) (contract.LeaseAnswer, error) {
	if o.gone {
		return contract.LeaseAnswer{}, faults.ToTemporal(faults.New(faults.Transient, "KeeperGone", o.ref.String(), "what %q is asked of is gone", in.Name))
	}
	o.early = slices.DeleteFunc(o.early, func(e contract.LeaseRequest) bool { return e.Name == in.Name && e.Holder == in.Holder })
	granted := o.carried.Leases.acquire(in, now(ctx))
	// Who has waited for a minute has the holders looked at: one that vanished
	// gives nothing back.
	due := workflow.Now(ctx).Sub(o.looked) >= lookEvery
	o.leased = o.leased || granted && in.Name == contract.LeaseRunning || !granted && in.Queued && due
	o.callTurns(ctx)
	return o.carried.Leases.answer(in), nil
}

// release takes back what is given back, or a request that is withdrawn.
func (o *object) release(ctx workflow.Context, in contract.LeaseRequest) {
	if o.carried.UID == "" { // what status says of leases is still to be read
		o.early = append(o.early, in)
	}
	if in.Withdraw {
		o.carried.Leases.withdraw(in, now(ctx))
	} else {
		o.carried.Leases.release(in, now(ctx))
		o.leased = o.leased || in.Name == contract.LeaseRunning
	}
	o.callTurns(ctx)
}

// callTurns lets those know whose turn has come. One that does not hear it, as
// its workflow has ended, is found by the next sweep.
func (o *object) callTurns(ctx workflow.Context) {
	turns := o.carried.Leases.turns
	o.carried.Leases.turns = nil
	for _, one := range turns {
		o.leased = o.leased || one.Name == contract.LeaseRunning
		if one.Waiter == "" {
			continue
		}
		told := workflow.SignalExternalWorkflow(ctx, one.Waiter, "", lifecycle.SignalControl, lifecycle.Control{Do: lifecycle.DoGranted})
		o.calling++ // a run that ends with it under way would take it along
		workflow.Go(ctx, func(ctx workflow.Context) {
			err := told.Get(ctx, nil)
			o.calling--
			var ended *sdk.UnknownExternalWorkflowExecutionError
			if errors.As(err, &ended) && one.Name != contract.LeaseRunning { // a lease is its object's, a lock its operation's
				o.release(ctx, contract.LeaseRequest{Name: one.Name, Holder: one.Holder})
			}
		})
	}
}

// dismiss lets all know who wait that this workflow grants nothing any more: they
// ask again, and hear of the object that has the name now, or that none has.
func (o *object) dismiss(ctx workflow.Context) {
	o.carried.Leases.turns = append(o.carried.Leases.turns, o.carried.Leases.Waiting...)
	o.carried.Leases.Waiting = nil
	o.callTurns(ctx)
}

// sweep ends what vanished holders held; and after this workflow was ended by
// hand it takes the leases over from status, where its predecessor wrote them.
func (o *object) sweep(ctx workflow.Context, s contract.ObjectState, asked []contract.Holder) {
	if gone := o.carried.Leases.sweep(s.Vanished, asked, now(ctx)); len(gone) > 0 {
		o.leased = true
		workflow.GetLogger(ctx).Info("leases ended, their holders are no more", "object", o.ref.String(), "leases", strings.Join(gone, ", "))
	}
	if o.carried.UID == "" && s.UID != "" {
		o.recover(ctx, s.Leases)
	}
	o.callTurns(ctx)
}

// recover takes leases over from status, but for those that were given back
// before status was read.
func (o *object) recover(ctx workflow.Context, told []v1.Lease) {
	for _, one := range told {
		part := strings.SplitN(one.Holder, "/", 3)
		if len(part) != 3 {
			continue
		}
		o.carried.Leases.acquire(contract.LeaseRequest{Name: contract.LeaseRunning, Shared: true, Holder: contract.Holder{
			Object: contract.ObjectRef{Kind: part[0], Namespace: o.ref.Namespace, Name: part[1]}, UID: part[2]}}, one.Since)
	}
	for _, in := range o.early {
		if !in.Withdraw {
			o.carried.Leases.release(in, now(ctx))
		}
	}
	o.early = nil
}

// handOver applies what has come before a run ends.
func (o *object) handOver(ctx workflow.Context) {
	var in contract.LeaseRequest
	for o.releases != nil && o.releases.ReceiveAsync(&in) {
		o.release(ctx, in)
		in = contract.LeaseRequest{}
	}
}

// kept is what a keeper's status shows.
func (o *object) kept(s contract.ObjectState) (*v1.NetworkClusters, []v1.Lease) {
	clusters := &v1.NetworkClusters{Total: s.Users}
	var list []v1.Lease
	for _, one := range o.carried.Leases.Granted {
		if one.Name != contract.LeaseRunning {
			continue
		}
		list = append(list, v1.Lease{Holder: one.Holder.String(), Purpose: "Running", Since: one.Since})
		if one.Holder.Object.Kind == v1.KindCluster {
			clusters.Running++
		}
	}
	return clusters, list
}
