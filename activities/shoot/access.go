// Package shoot implements the activities inside a shoot cluster: bootstrap,
// and everything of a database there.
package shoot

import (
	"context"
	"time"

	gardenauthenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/keep"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const (
	// kubeconfigLifetime is asked for; Gardener may give less (it caps), never
	// less than 10 minutes.
	kubeconfigLifetime = time.Hour
	// renewBefore the end of a kubeconfig a new one is fetched.
	renewBefore = 5 * time.Minute
)

// Access opens shoots with adminkubeconfig, once for all who ask at the same
// time. Clients live in memory, until their kubeconfig is about to expire, the
// shoot is gone or another one, or nobody has asked for an hour. It is safe for
// concurrent use.
type Access struct {
	// Garden reads Shoots, from the worker's cache, and asks for kubeconfigs.
	Garden client.Client
	// GardenLive reads past the cache.
	GardenLive client.Reader

	open keep.Cache[shootKey, session]
}

// shootKey is a Shoot, as opposed to another one of the same name.
type shootKey struct {
	ref contract.ShootRef
	uid types.UID
}

type session struct {
	client client.WithWatch
	until  time.Time
}

// Client opens the shoot. A Shoot that does not exist is a Gone fault, a
// sleeping one a Dependency.
func (a *Access) Client(ctx context.Context, ref contract.ShootRef) (client.WithWatch, error) {
	s, err := a.Shoot(ctx, ref)
	if err != nil {
		if faults.Is(err, faults.Gone) {
			a.forget(ref, "")
		}
		return nil, err
	}
	if s.Status.IsHibernated {
		return nil, faults.New(faults.Dependency, "ShootAsleep", "shoot "+ref.String(), "it is hibernated, so its API server is off").
			WithHint(faults.OwnerOperator, "wake the Network; the operation goes on by itself")
	}
	key := shootKey{ref, s.UID}
	valid := func(have session) bool { return time.Now().Before(have.until) }
	have, err := a.open.Get(ctx, key, "", valid, func(ctx context.Context) (session, error) {
		a.forget(ref, s.UID)
		return a.connect(ctx, s)
	})
	return have.client, err
}

// forget drops the clients of a shoot's name, but for that of one uid.
func (a *Access) forget(ref contract.ShootRef, but types.UID) {
	a.open.Forget(func(k shootKey) bool { return k.ref == ref && k.uid != but })
}

// Shoot reads the Shoot, live when the cache does not have it.
func (a *Access) Shoot(ctx context.Context, ref contract.ShootRef) (*gardencorev1beta1.Shoot, error) {
	s := &gardencorev1beta1.Shoot{}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	err := a.Garden.Get(ctx, key, s)
	if apierrors.IsNotFound(err) {
		err = a.GardenLive.Get(ctx, key, s)
	}
	return s, faults.FromKubernetes(err, "shoot "+ref.String())
}

// Forget drops the shoot's client, after its credentials were refused.
func (a *Access) Forget(_ context.Context, ref contract.ShootRef) { a.forget(ref, "") }

func (a *Access) connect(ctx context.Context, s *gardencorev1beta1.Shoot) (session, error) {
	name := "kubeconfig of shoot " + s.Namespace + "/" + s.Name
	request := &gardenauthenticationv1alpha1.AdminKubeconfigRequest{
		Spec: gardenauthenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: new(int64(kubeconfigLifetime / time.Second))},
	}
	if err := a.Garden.SubResource("adminkubeconfig").Create(ctx, s, request); err != nil {
		return session{}, notOpenYet(err, name)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(request.Status.Kubeconfig)
	if err != nil {
		return session{}, faults.New(faults.Transient, "BadKubeconfig", name, "Gardener's answer does not parse")
	}
	config.QPS, config.Burst = 50, 100
	config.Timeout = 0 // watches; each call has its context
	c, err := client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return session{}, faults.FromKubernetes(err, "shoot "+s.Namespace+"/"+s.Name)
	}
	return session{client: c, until: request.Status.ExpirationTimestamp.Add(-renewBefore)}, nil
}

// notOpenYet: Gardener answers 422 or 500 while a shoot has no address or CA
// yet. Both pass by themselves.
func notOpenYet(err error, name string) error {
	mapped := faults.FromKubernetes(err, name)
	if f := faults.As(mapped); f != nil && (apierrors.IsInvalid(err) || apierrors.IsInternalError(err)) {
		f.Class = faults.Transient
		return f.WithHint(faults.OwnerOperator, "see whether the shoot's control plane is up; the call is repeated")
	}
	return mapped
}
