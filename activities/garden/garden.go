// Package garden implements the activities on Gardener: credentials bindings
// and Shoots, in the garden's API server.
package garden

import (
	"context"

	gardenauthenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Credentials reads the cloud credentials of a Provider.
type Credentials interface {
	// AWS returns an access key, and a version that changes when it does.
	AWS(ctx context.Context, namespace, provider string) (accessKeyID, secretAccessKey, version string, err error)
}

// Activities implements the contract's garden activities.
type Activities struct {
	// Client writes to the garden, and reads Shoots from the worker's cache.
	Client client.Client
	// Live reads past the cache. Every decision to go on is confirmed with it.
	Live client.Reader
	// Wake is fed with the events of Shoots; nil means that waits poll only.
	Wake *wake.Hub
	// Credentials of Providers, copied into the garden.
	Credentials Credentials
}

// Register registers all activities of this package.
func (a *Activities) Register(r contract.Registry) {
	contract.Register(r, contract.EnsureBinding, a.EnsureBinding)
	contract.Register(r, contract.DeleteBinding, a.DeleteBinding)
	contract.Register(r, contract.EnsureShoot, a.EnsureShoot)
	contract.Register(r, contract.WaitShootReady, a.WaitShootReady)
	contract.Register(r, contract.RetryShoot, a.RetryShoot)
	contract.Register(r, contract.ObserveShoot, a.ObserveShoot)
	contract.Register(r, contract.AllocateWorkerPools, a.AllocateWorkerPools)
	contract.Register(r, contract.EnsureWorkerPools, a.EnsureWorkerPools)
	contract.Register(r, contract.RetireWorkerPools, a.RetireWorkerPools)
	contract.Register(r, contract.DeleteWorkerPools, a.DeleteWorkerPools)
	contract.Register(r, contract.DeleteShoot, a.DeleteShoot)
	contract.Register(r, contract.WaitShootGone, a.WaitShootGone)
}

// AddToScheme adds all types that these activities, and those on shoots, use in
// the garden.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, gardencorev1beta1.AddToScheme, securityv1alpha1.AddToScheme, gardenauthenticationv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}

// shootName names a Shoot for people.
func shootName(ref contract.ShootRef) string { return "shoot " + ref.String() }

// read reads a Shoot; nil when it does not exist.
func read(ctx context.Context, r client.Reader, ref contract.ShootRef) (*gardencorev1beta1.Shoot, error) {
	shoot := &gardencorev1beta1.Shoot{}
	err := r.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, shoot)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, faults.FromKubernetes(err, shootName(ref))
	}
	return shoot, nil
}

// owns reports whether the Shoot is the owner's.
func owns(owner contract.ObjectRef, shoot *gardencorev1beta1.Shoot) bool {
	return owner.ID != "" && shoot.Annotations[v1.TagID] == owner.ID
}

// foreign says whose a Shoot is that has the name of one of ours.
func foreign(ref contract.ShootRef, shoot *gardencorev1beta1.Shoot) error {
	whose := "carries no identity of this control plane"
	if id := shoot.Annotations[v1.TagID]; id != "" {
		whose = "belongs to " + shoot.Annotations[v1.TagKind] + " " + shoot.Annotations[v1.TagName] + " (identity " + id + ")"
	}
	return faults.New(faults.Conflict, "ForeignShoot", shootName(ref), "it exists already and %s; it was left alone", whose).
		WithHint(faults.OwnerUser, "create the Network again with another spec.shootName")
}

func resource(kind, namespace, name, region string) v1.Resource {
	return v1.Resource{Provider: "garden", Region: region, Type: kind, ID: namespace + "/" + name, State: v1.ResourcePresent}
}
