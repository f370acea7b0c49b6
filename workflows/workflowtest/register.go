package workflowtest

import (
	"context"
	"slices"

	"go.temporal.io/sdk/activity"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Register registers every activity of the contract.
func (w *World) Register(r contract.Registry) {
	contract.Register(r, contract.ReadObject, w.read)
	contract.Register(r, contract.ApplyObjectStatus, w.applyObject)
	contract.Register(r, contract.ApplyOperationStatus, w.applyOperation)
	fake(w, r, contract.RemoveFinalizer, func(contract.ObjectRef) contract.None {
		w.Change(func(s *contract.ObjectState) { *s = contract.ObjectState{} })
		return contract.None{}
	})
	contract.Register(r, contract.AnswerVerb, w.answer)
	w.registerManagement(r)
	w.registerWaits(r)
	w.registerAWS(r)
	w.registerGarden(r)
	w.registerShoot(r)
}

func (w *World) registerManagement(r contract.Registry) {
	none(w, r, contract.PlanProviderType)
	none(w, r, contract.WaitNetworkReady)
	none(w, r, contract.WaitUnused)
	fake(w, r, contract.PlanProvider, func(contract.ObjectRef) contract.ProviderPlan {
		return contract.ProviderPlan{Ref: w.Object, Account: w.Network.Account, Cloud: "AWS", Project: "core", CredentialsHash: "abc"}
	})
	fake(w, r, contract.PlanNetwork, func(contract.ObjectRef) contract.NetworkPlan { return w.Network })
	fake(w, r, contract.PlanCluster, func(contract.ObjectRef) contract.ClusterPlan { return w.Cluster })
	fake(w, r, contract.FetchNetworkConfig, func(contract.ConfigQuery) contract.ConfigRef { return contract.ConfigRef{Hash: "n"} })
	fake(w, r, contract.FetchClusterConfig, func(contract.ConfigQuery) contract.ConfigRef { return contract.ConfigRef{Hash: "c"} })
	fake(w, r, contract.WaitOperation, func(in contract.OperationRun) contract.OperationEnd {
		if w.Attached != nil {
			return w.Attached(in)
		}
		return contract.OperationEnd{Failure: "terminated"}
	})
}

// registerWaits registers what is waited for beside a step's own work.
func (w *World) registerWaits(r contract.Registry) {
	contract.Register(r, contract.WaitDependencies, func(context.Context, contract.DependenciesInput) (contract.Change, error) {
		if w.Mended != "" {
			return contract.Change{What: w.Mended}, nil
		}
		return contract.Change{}, activity.ErrResultPending // nothing ever changes
	})
	fake(w, r, contract.AcquireLease, func(in contract.LeaseRequest) (a contract.LeaseAnswer) {
		if w.Queue != nil {
			a = w.Queue(in)
		}
		return a
	})
	none(w, r, contract.ReleaseLease)
}

func (w *World) registerAWS(r contract.Registry) {
	fake(w, r, contract.AWS.VerifyCredentials, func(a contract.CloudAccount) contract.CloudIdentity {
		return contract.CloudIdentity{Principal: "arn:aws:iam::" + a.AccountID + ":user/test", AccountID: a.AccountID}
	})
	made(w, r, contract.AWS.EnsureBucket)
	made(w, r, contract.AWS.DeleteBucket)
	fake(w, r, contract.AWS.DiscoverVPC, func(contract.DiscoverVPCInput) contract.VPC {
		return contract.VPC{ID: "vpc-1", CIDR: "10.250.0.0/16", RouteTableIDs: []string{"rtb-1"}, Zones: []string{"us-west-2a"}}
	})
	made(w, r, contract.AWS.EnsureIssuer)
	none(w, r, contract.AWS.DeleteIssuer)
	fake(w, r, contract.AWS.EnsureZone, func(in contract.ZoneInput) contract.Zone {
		return contract.Zone{ID: "Z1", Name: in.Name, Resource: resource(contract.AWS.EnsureZone.Name, "Z1")}
	})
	none(w, r, contract.AWS.DeleteZone)
	made(w, r, contract.AWS.EnsureKey)
	made(w, r, contract.AWS.DeleteKey)
	made(w, r, contract.AWS.EnsureIdentity)
	none(w, r, contract.AWS.DeleteIdentity)
	fake(w, r, contract.AWS.WaitLoadBalancerActive, func(in contract.LoadBalancerInput) contract.LoadBalancer {
		return contract.LoadBalancer{ID: "arn:nlb", Hostname: in.Hostname}
	})
	none(w, r, contract.AWS.WaitLoadBalancerGone)
	fake(w, r, contract.AWS.EnsureEndpointService, func(contract.EndpointServiceInput) contract.EndpointService {
		return contract.EndpointService{ID: "vpce-svc-1", ServiceName: "com.amazonaws.vpce.us-west-2.vpce-svc-1", State: "Available",
			Resource: resource(contract.AWS.EnsureEndpointService.Name, "vpce-svc-1")}
	})
	none(w, r, contract.AWS.DeleteEndpointService)
	made(w, r, contract.AWS.EnsureRecords)
	none(w, r, contract.AWS.DeleteRecords)
	fake(w, r, contract.AWS.Sweep, func(in contract.SweepInput) contract.Leftovers {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Swept = in
		return contract.Leftovers{Resources: w.Left}
	})
	fake(w, r, contract.AWS.DeleteVolumes, func(contract.SweepInput) (out contract.Outcome) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Left = slices.DeleteFunc(slices.Clone(w.Left), func(r v1.Resource) bool {
			if r.Type == "EC2::Volume" {
				out.Resource, out.Note = r, "deleted "+r.ID
			}
			return r.Type == "EC2::Volume"
		})
		return out
	})
	fake(w, r, contract.AWS.ListVPCDependents, func(contract.DiscoverVPCInput) contract.Leftovers { return contract.Leftovers{} })
}

func (w *World) registerGarden(r contract.Registry) {
	made(w, r, contract.EnsureBinding)
	none(w, r, contract.DeleteBinding)
	made(w, r, contract.EnsureShoot)
	shoot := func(contract.ShootInput) contract.ShootStatus { return w.Shoot }
	fake(w, r, contract.WaitShootReady, shoot)
	fake(w, r, contract.ObserveShoot, shoot)
	none(w, r, contract.RetryShoot)
	// One pool is new, one is to be replaced, in every operation.
	fake(w, r, contract.AllocateWorkerPools, func(in contract.AllocateWorkerPoolsInput) contract.WorkerPools {
		if w.Allocate != nil {
			return w.Allocate(in)
		}
		return contract.WorkerPools{Pools: []contract.MachinePool{{Name: "kv-012345-new00", Zones: []string{"us-west-2a"}, Dedicated: "tikv"}},
			Retire: []string{"kv-012345-old00"}, Shrinks: true}
	})
	fake(w, r, contract.EnsureWorkerPools, func(in contract.WorkerPoolsInput) contract.Outcome { return w.poolsOf("ensure", in) })
	fake(w, r, contract.RetireWorkerPools, func(in contract.WorkerPoolsInput) contract.Outcome { return w.poolsOf("retire", in) })
	none(w, r, contract.DeleteWorkerPools)
	none(w, r, contract.DeleteShoot)
	none(w, r, contract.WaitShootGone)
}

func (w *World) registerShoot(r contract.Registry) {
	none(w, r, contract.BootstrapShoot)
	none(w, r, contract.WaitBootstrapped)
	none(w, r, contract.CleanShoot)
	made(w, r, contract.EnsureStorageClasses)
	none(w, r, contract.DeleteStorageClasses)
	made(w, r, contract.EnsureClusterNamespace)
	none(w, r, contract.DeleteClusterNamespace)
	made(w, r, contract.EnsureDatabase)
	fake(w, r, contract.WaitDatabaseReady, func(contract.DatabaseInput) contract.DatabaseStatus {
		return contract.DatabaseStatus{Version: w.Cluster.Version, Components: map[string]contract.ComponentStatus{"pd": {Replicas: 1, Ready: 1}}}
	})
	none(w, r, contract.EnsureRootPassword)
	none(w, r, contract.DeleteDatabase)
	made(w, r, contract.EnsureService)
	fake(w, r, contract.WaitServiceAddress, func(contract.DatabaseInput) contract.ServiceAddress {
		return contract.ServiceAddress{Hostname: "lb.example", Port: 4000}
	})
	none(w, r, contract.DeleteService)
	made(w, r, contract.EnsureBackupSchedule)
	none(w, r, contract.DeleteBackups)
}

// poolsOf notes which pools were asked for.
func (w *World) poolsOf(verb string, in contract.WorkerPoolsInput) contract.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range in.Pools {
		w.pools = append(w.pools, verb+" "+p.Name)
	}
	return contract.Outcome{Resource: v1.Resource{Provider: "test", Type: "WorkerPools", ID: "pools", State: v1.ResourcePresent}}
}

// Pools lists the worker pools that were ensured, and those that were there to
// stay when others were retired, in order.
func (w *World) Pools() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.pools)
}
