package management

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// CredentialsHold keeps the Secret of a Provider for as long as the Provider
// exists, by a finalizer: without it nothing that was made with it can be
// deleted. The Provider itself waits for its Networks, and these for their
// Clusters, so the Secret outlives whatever needs it, in whichever order people
// and namespaces delete them.
//
// Whether a Secret is needed is read off the references each time, as
// Kubernetes does for volumes (pvc-protection). So it does not matter how a
// Provider came to go, or to refer to another Secret, and any number of
// Providers may share one, and any number of workers look after it.
type CredentialsHold struct {
	Activities *Activities
}

const (
	kindSecret = "Secret"
	// ownerHold is the field manager of the finalizer.
	ownerHold = client.FieldOwner("infra-provider-credentials")
	// conflictPause is the time that the cache gets to catch up.
	conflictPause = time.Second
)

// Setup adds it to a manager. Each process that calls clouds needs it.
func (h *CredentialsHold) Setup(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("credentials").
		For(&corev1.Secret{}).
		Watches(&v1.Provider{}, handler.EnqueueRequestsFromMapFunc(namesOf(kindSecret))).
		Complete(h)
}

// Reconcile holds a Secret that a Provider refers to, and lets one go that none
// does.
func (h *CredentialsHold) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	a := h.Activities
	secret, err := get(ctx, a.Client, req.Namespace, req.Name, &corev1.Secret{})
	if err != nil {
		return reconcile.Result{}, faults.IgnoreGone(err)
	}
	ref := contract.ObjectRef{Kind: kindSecret, Namespace: req.Namespace, Name: req.Name}
	users, err := a.cachedUsers(ctx, ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	held, going := controllerutil.ContainsFinalizer(secret, v1.FinalizerCredentials), secret.DeletionTimestamp != nil
	if held && len(users) == 0 { // before it goes, a Provider that came a moment ago must count
		if users, err = listUsers(ctx, a.Live, ref, v1.KeptBy(ref.Kind)); err != nil {
			return reconcile.Result{}, err
		}
	}
	switch needed := len(users) > 0; {
	case needed && !held && !going: // nobody can hold what is being deleted already
		return patchHold(ctx, a.Client, secret, controllerutil.AddFinalizer)
	case !needed && held:
		return patchHold(ctx, a.Client, secret, controllerutil.RemoveFinalizer)
	case needed && held && going:
		return reconcile.Result{}, h.tell(ctx, secret, users)
	}
	return reconcile.Result{}, nil
}

// patchHold writes the finalizers of a Secret and nothing else of it.
func patchHold(ctx context.Context, c client.Client, secret *corev1.Secret, change func(client.Object, string) bool) (reconcile.Result, error) {
	o := &metav1.PartialObjectMetadata{ObjectMeta: *secret.ObjectMeta.DeepCopy()}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindSecret))
	before := o.DeepCopy()
	change(o, v1.FinalizerCredentials)
	err := c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), ownerHold)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// tell says to those Providers that stay that their Secret has been deleted,
// and how to go on: Kubernetes takes no deletion back.
func (h *CredentialsHold) tell(ctx context.Context, secret *corev1.Secret, users []string) error {
	for _, user := range users {
		name := strings.TrimPrefix(user, v1.KindProvider+" ")
		p, err := get(ctx, h.Activities.Client, secret.Namespace, name, &v1.Provider{})
		if faults.IgnoreGone(err) != nil {
			return err
		}
		if err != nil || p.DeletionTimestamp != nil { // then it is to go with its Provider
			continue
		}
		e := contract.Event{Key: string(secret.UID) + "/CredentialsDeleted", Warning: true, Reason: "CredentialsDeleted",
			Message: describe(secret, secret.Namespace, secret.Name) + " has been deleted. It stays, and works, until nothing refers to it: " +
				"to give the Provider others, create a Secret of another name and set spec.credentials.secretRef; this one goes then"}
		ref := contract.ObjectRef{Kind: v1.KindProvider, Namespace: p.Namespace, Name: p.Name}
		if err := h.Activities.report(ctx, ref, string(p.UID), []contract.Event{e}); err != nil {
			return err
		}
	}
	return nil
}
