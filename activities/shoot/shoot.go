package shoot

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// owner is our field manager inside shoots.
const owner = client.FieldOwner("infra-provider")

// Opener opens shoots; *Access does.
type Opener interface {
	Client(ctx context.Context, ref contract.ShootRef) (client.WithWatch, error)
	Forget(ctx context.Context, ref contract.ShootRef)
}

// Documents fetches configuration by its hash; *configservice.Client does.
type Documents interface {
	NetworkConfig(ctx context.Context, hash string) (*configservice.NetworkConfig, error)
	ClusterConfig(ctx context.Context, hash string) (*configservice.ClusterConfig, error)
}

// Activities implements the contract's shoot activities.
type Activities struct {
	Shoots *Access
	// Open defaults to Shoots.
	Open Opener
	// Documents of the config-service.
	Documents Documents
	// Management reads the Secrets of our custom resources' namespace.
	Management client.Reader
	// Poll is the time between two looks of a wait without an event, and the
	// time for which a database must look ready before it counts; 5 s when 0.
	Poll time.Duration
}

// Register registers all activities of this package.
func (a *Activities) Register(r contract.Registry) {
	contract.Register(r, contract.BootstrapShoot, a.BootstrapShoot)
	contract.Register(r, contract.WaitBootstrapped, a.WaitBootstrapped)
	contract.Register(r, contract.CleanShoot, a.CleanShoot)
	contract.Register(r, contract.EnsureStorageClasses, a.EnsureStorageClasses)
	contract.Register(r, contract.DeleteStorageClasses, a.DeleteStorageClasses)
	contract.Register(r, contract.EnsureClusterNamespace, a.EnsureClusterNamespace)
	contract.Register(r, contract.DeleteClusterNamespace, a.DeleteClusterNamespace)
	contract.Register(r, contract.EnsureDatabase, a.EnsureDatabase)
	contract.Register(r, contract.WaitDatabaseReady, a.WaitDatabaseReady)
	contract.Register(r, contract.EnsureRootPassword, a.EnsureRootPassword)
	contract.Register(r, contract.DeleteDatabase, a.DeleteDatabase)
	contract.Register(r, contract.EnsureService, a.EnsureService)
	contract.Register(r, contract.WaitServiceAddress, a.WaitServiceAddress)
	contract.Register(r, contract.DeleteService, a.DeleteService)
	contract.Register(r, contract.EnsureBackupSchedule, a.EnsureBackupSchedule)
	contract.Register(r, contract.DeleteBackups, a.DeleteBackups)
}

func (a *Activities) poll() time.Duration {
	if a.Poll == 0 {
		return 5 * time.Second
	}
	return a.Poll
}

// cluster is an opened shoot.
type cluster struct {
	client.WithWatch
	ref    contract.ShootRef
	opener Opener
}

func (a *Activities) open(ctx context.Context, ref contract.ShootRef) (*cluster, error) {
	var opener Opener = a.Shoots
	if a.Open != nil {
		opener = a.Open
	}
	c, err := opener.Client(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &cluster{WithWatch: c, ref: ref, opener: opener}, nil
}

// openToDelete opens a shoot for a deletion: nil when the Shoot does not exist
// any more, and with it all that was in it.
func (a *Activities) openToDelete(ctx context.Context, ref contract.ShootRef) (*cluster, error) {
	c, err := a.open(ctx, ref)
	if faults.Is(err, faults.Gone) {
		return nil, nil
	}
	return c, err
}

// fault classifies an error of the shoot. Refused credentials are replaced
// before anybody is told: they may only have expired or been rotated.
func (c *cluster) fault(ctx context.Context, err error, what string) error {
	mapped := faults.FromKubernetes(err, what+" in shoot "+c.ref.String())
	if apierrors.IsUnauthorized(err) {
		c.opener.Forget(ctx, c.ref)
		faults.As(mapped).Class = faults.Transient
	}
	return mapped
}

// find reads an object into u, whose kind is set; false when it, or its kind,
// does not exist.
func (c *cluster) find(ctx context.Context, u client.Object, namespace, name string) (bool, error) {
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, u)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, c.fault(ctx, err, describe(u, namespace, name))
}

// ensure applies an object that carries our tags, unless another owner's has
// its name.
func (c *cluster) ensure(ctx context.Context, u *unstructured.Unstructured) error {
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(u.GroupVersionKind())
	what := describe(u, u.GetNamespace(), u.GetName())
	exists, err := c.find(ctx, have, u.GetNamespace(), u.GetName())
	if err != nil {
		return err
	}
	if exists && !sameOwner(have, u) {
		return faults.New(faults.Conflict, "ForeignObject", what+" in shoot "+c.ref.String(),
			"it exists already and belongs to another owner (identity %q); it was left alone", have.GetAnnotations()[v1.TagID]).
			WithHint(faults.OwnerOperator, "remove it from the shoot if nobody needs it, then retry")
	}
	return c.apply(ctx, u)
}

func sameOwner(x, y client.Object) bool {
	return x.GetAnnotations()[v1.TagID] == y.GetAnnotations()[v1.TagID]
}

func (c *cluster) apply(ctx context.Context, u *unstructured.Unstructured) error {
	what := present(u.GetKind(), u.GetNamespace(), u.GetName()).Resource
	return audited.Change(ctx, what, func() error {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), owner, client.ForceOwnership)
		return c.fault(ctx, err, describe(u, u.GetNamespace(), u.GetName()))
	})
}

// remove deletes an object that was read before; absent is success.
func (c *cluster) remove(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := o.GetUID()
	what := present(kindOf(o), o.GetNamespace(), o.GetName()).Resource
	what.State = v1.ResourceDeleting
	return audited.Change(ctx, what, func() error {
		err := c.Delete(ctx, o, append(options, client.Preconditions{UID: &uid})...)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another one has its name
			return nil
		}
		return c.fault(ctx, err, describe(o, o.GetNamespace(), o.GetName()))
	})
}

// list lists; a kind that the shoot does not serve has no objects.
func (c *cluster) list(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := c.List(ctx, into, options...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return c.fault(ctx, err, "list")
}

// describe names an object for people: "TidbCluster tidb-1a2b3c4d/db".
func describe(o client.Object, namespace, name string) string {
	kind := kindOf(o)
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// kindOf an object, also of one that was read into its Go type.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	switch o.(type) {
	case *corev1.Namespace:
		return "Namespace"
	case *corev1.Service:
		return "Service"
	case *corev1.PersistentVolume:
		return "PersistentVolume"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	case *storagev1.StorageClass:
		return "StorageClass"
	}
	return "object"
}

// pingcap is an empty object of a kind of TiDB Operator v1.
func pingcap(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("pingcap.com/v1alpha1")
	u.SetKind(kind)
	return u
}

func pingcapList(kind string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetAPIVersion("pingcap.com/v1alpha1")
	l.SetKind(kind + "List")
	return l
}

func present(kind, namespace, name string) contract.Outcome {
	id := name
	if namespace != "" {
		id = namespace + "/" + name
	}
	return contract.Outcome{Resource: v1.Resource{Provider: "shoot", Type: kind, ID: id, State: v1.ResourcePresent}}
}

// events wakes a wait at each event of a list. It gives up quietly when the
// watch cannot be opened: the wait then polls.
func (c *cluster) events(ctx context.Context, list client.ObjectList, options ...client.ListOption) (<-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(ctx)
	woken := make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			w, err := c.Watch(ctx, list, options...)
			if err != nil {
				return
			}
			forward(ctx, w.ResultChan(), woken)
			w.Stop()
			select { // a watch that ends at once must not spin
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return woken, cancel
}
