// Package management implements the activities on our own custom resources, in
// the management API server.
package management

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/reads"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Field managers of server-side apply. Each field of status has exactly one.
const (
	ownerObject    = client.FieldOwner("infra-provider-object")
	ownerOperation = client.FieldOwner("infra-provider-operation")
	// ownerWait owns status.operation.waitingFor and nothing else, so that
	// whatever waits can write it without knowing of other waits.
	ownerWait = client.FieldOwner("infra-provider-wait")
	// ownerUnused owns the condition DeletionBlocked: WaitUnused is its only
	// writer.
	ownerUnused = client.FieldOwner("infra-provider-unused")
	// ownerUsage owns the condition InUse, see Usage.
	ownerUsage = client.FieldOwner("infra-provider-usage")
)

// Activities implements the contract's management activities.
type Activities struct {
	// Client writes, and reads from the worker's cache, which has the indexes of
	// Index.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Wake is fed with the events of our kinds; nil means that waits poll only.
	Wake *wake.Hub
	// Env is the value of the tag v1.TagEnv.
	Env string
	// DefaultProject is the Gardener project of Providers that name none.
	DefaultProject string

	versions versions
}

// Register registers all activities of this package.
func (a *Activities) Register(r contract.Registry) {
	contract.Register(r, contract.ReadObject, a.ReadObject)
	contract.Register(r, contract.ApplyObjectStatus, a.ApplyObjectStatus)
	contract.Register(r, contract.ApplyOperationStatus, a.ApplyOperationStatus)
	contract.Register(r, contract.RemoveFinalizer, a.RemoveFinalizer)
	contract.Register(r, contract.PlanProviderType, a.PlanProviderType)
	contract.Register(r, contract.PlanProvider, a.PlanProvider)
	contract.Register(r, contract.PlanNetwork, a.PlanNetwork)
	contract.Register(r, contract.PlanCluster, a.PlanCluster)
	contract.Register(r, contract.WaitNetworkReady, a.WaitNetworkReady)
	contract.Register(r, contract.WaitUnused, a.WaitUnused)
	contract.Register(r, contract.AnswerVerb, a.AnswerVerb)
	contract.Register(r, contract.WaitDependencies, a.WaitDependencies)
}

// AddToScheme adds all types that these activities read and write.
func AddToScheme(s *runtime.Scheme) error {
	if err := corev1.AddToScheme(s); err != nil {
		return err
	}
	return v1.AddToScheme(s)
}

// Kinds are the kinds whose events Wake should be fed with.
func Kinds() []client.Object {
	return []client.Object{&v1.Account{}, &v1.ProviderType{}, &v1.Provider{}, &v1.Network{}, &v1.Cluster{}, &v1.NetworkPeer{}, &v1.TiCDC{}, &corev1.Secret{}}
}

func newObject(kind string) (v1.Object, error) {
	k, known := v1.KindOf(kind)
	if !known || !k.HasWorkflow {
		return nil, faults.New(faults.Invalid, "UnknownKind", kind, "this worker does not know the kind").
			WithHint(faults.OwnerOperator, "deploy a worker that knows it")
	}
	return k.New(), nil
}

func newList(kind string) (client.ObjectList, error) {
	k, known := v1.KindOf(kind)
	if !known {
		return nil, faults.New(faults.Invalid, "UnknownKind", kind, "this worker does not know the kind")
	}
	return k.NewList(), nil
}

// get reads an object of ours; absent is a Gone fault.
func get[T client.Object](ctx context.Context, r client.Reader, namespace, name string, into T) (T, error) {
	err := r.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if reads.Noting(ctx) && (err == nil || apierrors.IsNotFound(err)) {
		note(ctx, into, name, err == nil)
	}
	return into, faults.FromKubernetes(err, describe(into, namespace, name))
}

// describe names an object for people: "network infra/n1".
func describe(o client.Object, namespace, name string) string {
	switch o.(type) {
	case *v1.Account:
		return "account " + namespace + "/" + name
	case *v1.ProviderType:
		return "provider type " + namespace + "/" + name
	case *v1.Provider:
		return "provider " + namespace + "/" + name
	case *v1.Network:
		return "network " + namespace + "/" + name
	case *v1.Cluster:
		return "cluster " + namespace + "/" + name
	case *corev1.Secret:
		return "secret " + namespace + "/" + name
	}
	return namespace + "/" + name
}
