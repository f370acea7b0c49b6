package contract

import v1 "github.com/tidbcloud/infra-orchestrator/api/v1"

// Gardener. Objects that we create carry the owner's tags as annotations, and
// v1.TagID also as a label.
var (
	// EnsureBinding copies the Provider's credentials into the project and
	// binds them. The Secret is updated when the credentials changed.
	EnsureBinding = Activity[NetworkPlan, Outcome]{Name: "garden.EnsureBinding"}
	// DeleteBinding removes binding and Secret unless another Shoot uses them.
	DeleteBinding = Activity[NetworkPlan, None]{Name: "garden.DeleteBinding"}

	// EnsureShoot creates the Shoot. One with another owner is a Conflict.
	EnsureShoot = Activity[NetworkPlan, Outcome]{Name: "garden.EnsureShoot"}
	// WaitShootReady watches until the Shoot's last operation of the current
	// generation has succeeded and its conditions are True. Codes of lastErrors
	// become faults (faults.FromShoot).
	WaitShootReady = Activity[ShootInput, ShootStatus]{Name: "garden.WaitShootReady", Wait: true}
	// RetryShoot gives the garden's copy of the credentials the content of the
	// Provider's Secret, and annotates gardener.cloud/operation=retry, the latter
	// only in state Failed.
	RetryShoot = Activity[ShootInput, None]{Name: "garden.RetryShoot"}
	// ObserveShoot reads the Shoot; absent is not an error.
	ObserveShoot = Activity[ShootInput, ShootStatus]{Name: "garden.ObserveShoot"}

	// AllocateWorkerPools looks at the Shoot and says which pools the cluster is
	// to have, by name: those that are up to date, and a new one next to each
	// that is not. It changes nothing; the same Shoot gives the same names.
	AllocateWorkerPools = Activity[AllocateWorkerPoolsInput, WorkerPools]{Name: "garden.AllocateWorkerPools"}
	// EnsureWorkerPools adds the cluster's pools to the Shoot, or makes them
	// larger, leaving every other pool as it is (optimistic lock). Pools to
	// retire stay, and new Pods avoid their nodes.
	EnsureWorkerPools = Activity[WorkerPoolsInput, Outcome]{Name: "garden.EnsureWorkerPools"}
	// RetireWorkerPools removes every pool of the cluster that is not among those
	// to have, and makes those as small as they are to be. Only when all of them
	// are in the Shoot.
	RetireWorkerPools = Activity[WorkerPoolsInput, Outcome]{Name: "garden.RetireWorkerPools"}
	// DeleteWorkerPools removes the cluster's pools from the Shoot.
	DeleteWorkerPools = Activity[WorkerPoolsInput, None]{Name: "garden.DeleteWorkerPools"}

	// DeleteShoot confirms and deletes (two writes).
	DeleteShoot = Activity[ShootInput, None]{Name: "garden.DeleteShoot"}
	// WaitShootGone watches until the Shoot does not exist. Delete/Failed
	// becomes a fault.
	WaitShootGone = Activity[ShootInput, None]{Name: "garden.WaitShootGone", Wait: true}
)

// ShootInput names a Shoot and who must own it.
type ShootInput struct {
	Object ObjectRef `json:"object"` // the CR that waits, told what it waits for
	Owner  ObjectRef `json:"owner"`  // the Network
	Shoot  ShootRef  `json:"shoot"`
}

// ShootStatus is what the Network publishes of its Shoot.
type ShootStatus struct {
	Exists             bool     `json:"exists"`
	UID                string   `json:"uid,omitempty"`
	TechnicalID        string   `json:"technicalID,omitempty"` // empty before it is scheduled
	StatusUID          string   `json:"statusUID,omitempty"`   // empty when no operation ever ran
	SeedName           string   `json:"seedName,omitempty"`
	Generation         int64    `json:"generation,omitempty"`
	ObservedGeneration int64    `json:"observedGeneration,omitempty"`
	Hibernated         bool     `json:"hibernated,omitempty"`
	OperationType      string   `json:"operationType,omitempty"`
	OperationState     string   `json:"operationState,omitempty"`
	Progress           int32    `json:"progress,omitempty"`
	Issuer             string   `json:"issuer,omitempty"` // service-account-issuer
	Zones              []string `json:"zones,omitempty"`
}

// AllocateWorkerPoolsInput is what the cluster's pools are to be like.
type AllocateWorkerPoolsInput struct {
	Cluster ObjectRef `json:"cluster"`
	Shoot   ShootRef  `json:"shoot"`
	// Generation of the cluster's spec. Names that are lost before their use are
	// given again for the same generation, and never for another one.
	Generation int64 `json:"generation"`
	// Components with their pools, which have no names yet.
	Components []Component `json:"components"`
	// Known are the pools that were named before, from the cluster's status. A
	// name that is not in the Shoot yet is given again.
	Known []v1.WorkerPool `json:"known,omitempty"`
}

// WorkerPools are the pools of a cluster, by name.
type WorkerPools struct {
	// Pools to have.
	Pools []MachinePool `json:"pools"`
	// Retire are the pools to remove once the others have taken over.
	Retire []string `json:"retire,omitempty"`
	// Shrinks says that RetireWorkerPools has something to do: pools to remove,
	// or pools that are larger than they are to be.
	Shrinks bool `json:"shrinks,omitempty"`
}

// WorkerPoolsInput is a cluster's pools in a Shoot. Deleting goes by the
// cluster's identity, which each pool carries as a label.
type WorkerPoolsInput struct {
	Cluster ObjectRef     `json:"cluster"`
	Shoot   ShootRef      `json:"shoot"`
	Pools   []MachinePool `json:"pools,omitempty"`
	Retire  []string      `json:"retire,omitempty"`
}

// LabelPoolOwner is the node label that holds a pool's cluster identity.
const LabelPoolOwner = v1.TagID

// TaintRetiring is on nodes of pools that are to be removed: new Pods go
// elsewhere if they can (PreferNoSchedule).
const TaintRetiring = "infra.cloud.pingcap.com/retiring"
