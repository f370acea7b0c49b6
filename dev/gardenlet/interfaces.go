package gardenlet

import (
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/rest"
)

// Infrastructure makes and removes what Gardener's provider extension keeps in
// the cloud for one Shoot: VPC, subnets, routes, gateways, roles and keys, all
// named after the technicalID ("shoot--<project>--<shoot>").
//
// Both methods may be called at any time again with the same Shoot, also after
// an attempt that was cut off half way, and must converge. They return when the
// work is done; ctx ends when the devstack stops or the attempt is given up.
// An *InfraError anywhere in the returned chain decides, by its code, whether
// the Shoot gets the state Error (tried again) or Failed (waits for a person);
// any other error counts as Error without a code.
type Infrastructure interface {
	// Reconcile brings the cloud to what shoot.Spec.Provider asks for.
	Reconcile(ctx context.Context, shoot *gardencorev1beta1.Shoot, technicalID string) error
	// Delete removes everything that Reconcile made and returns nil only when
	// it is gone. Objects of others in the VPC are an *InfraError with the code
	// ERR_INFRA_DEPENDENCIES, as in Gardener.
	Delete(ctx context.Context, shoot *gardencorev1beta1.Shoot, technicalID string) error
}

// InfraError is a cloud failure that carries one of Gardener's error codes.
type InfraError struct {
	// Code is one of gardencorev1beta1.ErrorCode, e.g. "ERR_INFRA_QUOTA_EXCEEDED".
	Code string
	// Message is shown to people in status.lastErrors; no secrets.
	Message string
}

// Error implements error.
func (e *InfraError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// ShootInfo is what a per-shoot controller needs to know about its cluster.
type ShootInfo struct {
	// Namespace and Name are those of the Shoot in the garden.
	Namespace, Name string
	// UID is that of the Shoot object in the garden.
	UID string
	// TechnicalID names the cluster in the cloud: "shoot--<project>--<shoot>".
	TechnicalID string
	// Provider is spec.provider.type ("aws"), Region is spec.region.
	Provider, Region string
	// Zones are the zones of all worker pools, sorted, each once.
	Zones []string
	// Config reaches the shoot's own API server as cluster admin.
	Config *rest.Config
	// Kubeconfig is the path of a file that does the same.
	Kubeconfig string
}

// ShootAddon is a controller that runs inside one shoot cluster, such as the
// stand-in of the TiDB Operator. It is called in a goroutine of its own when the
// cluster's API server is up (at creation, after waking up and after a restart
// of the devstack) and runs until ctx ends; ctx ends before that API server
// does. An error returned earlier is logged and the addon is started again
// after a pause.
type ShootAddon func(ctx context.Context, shoot ShootInfo) error

// Phases of a Shoot, as Faults sees them.
const (
	PhaseCreate    = "Create"
	PhaseReconcile = "Reconcile"
	PhaseHibernate = "Hibernate"
	PhaseWake      = "Wake"
	PhaseDelete    = "Delete"
)

// FaultKind says what goes wrong.
type FaultKind string

const (
	// FaultStuck keeps the operation in Processing at Fault.Progress per cent
	// for as long as Faults reports it.
	FaultStuck FaultKind = "Stuck"
	// FaultError ends the attempt with Fault.Codes and Fault.Message: state
	// Failed when a code is not retryable for Gardener, else Error, which is
	// tried again for as long as Faults reports it.
	FaultError FaultKind = "Error"
	// FaultDelay holds the operation for Fault.Delay at Fault.Progress per cent.
	FaultDelay FaultKind = "Delay"
)

// Fault is one failure of a Shoot operation.
type Fault struct {
	// Kind is required.
	Kind FaultKind
	// Progress is where in the operation the fault strikes, 0 to 99 per cent.
	Progress int
	// Codes are Gardener's error codes (FaultError only); empty for an error
	// that Gardener could not classify.
	Codes []string
	// Message is the description (FaultError only); a sentence of Gardener's
	// style is made up when empty.
	Message string
	// Delay is the unscaled extra time (FaultDelay only).
	Delay time.Duration
}

// Faults says which fault is switched on. It is asked before each step of each
// operation and, while a Shoot is stuck, several times a second; it must be
// quick and safe for concurrent use. A nil Faults means none.
type Faults interface {
	// Shoot returns the fault for an operation of one of the Phase constants.
	Shoot(namespace, name, phase string) (fault Fault, ok bool)
}
