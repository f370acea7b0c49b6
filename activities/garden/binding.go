package garden

import (
	"context"
	"maps"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// EnsureBinding copies the Provider's credentials into the project and binds
// them.
func (a *Activities) EnsureBinding(ctx context.Context, plan contract.NetworkPlan) (contract.Outcome, error) {
	id, key, _, err := a.Credentials.AWS(ctx, plan.Account.Namespace, plan.Account.Provider)
	if err != nil {
		return contract.Outcome{}, err
	}
	secret := builders.CredentialsSecret(plan, id, key)
	if _, err := a.ensureSecret(ctx, secret); err != nil {
		return contract.Outcome{}, err
	}
	binding := builders.CredentialsBinding(plan)
	if _, err := a.ensureOurs(ctx, binding, blank(plan)); err != nil {
		return contract.Outcome{}, err
	}
	return contract.Outcome{Resource: resource(plan.CredentialsKind, plan.Shoot.Namespace, plan.BindingName, "")}, nil
}

// blank is an empty binding of the plan's kind.
func blank(plan contract.NetworkPlan) client.Object {
	b := builders.CredentialsBinding(plan)
	if _, old := b.(*gardencorev1beta1.SecretBinding); old {
		return &gardencorev1beta1.SecretBinding{}
	}
	return b.DeepCopyObject().(client.Object)
}

// ensureSecret makes the Secret, or gives it the Provider's current content. at
// is when either was last done. The Secret says it itself: a write whose answer
// was lost, or whose worker died after it, has been made all the same.
func (a *Activities) ensureSecret(ctx context.Context, want *corev1.Secret) (at time.Time, err error) {
	have, now := &corev1.Secret{}, time.Now()
	created, err := a.ensureOurs(ctx, want, have)
	switch {
	case err != nil:
		return time.Time{}, err
	case created:
		return now, nil
	case maps.EqualFunc(want.Data, have.Data, func(x, y []byte) bool { return string(x) == string(y) }):
		return copiedAt(have), nil
	}
	next := have.DeepCopy()
	next.Data = want.Data
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotationCopiedAt, now.UTC().Format(time.RFC3339Nano))
	err = audited.Change(ctx, resource("Secret", want.Namespace, want.Name, ""), func() error {
		return a.Client.Patch(ctx, next, client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{}))
	})
	return now, faults.FromKubernetes(err, "secret "+want.Namespace+"/"+want.Name+" in the garden")
}

// annotationCopiedAt is when the credentials in a Secret of the garden last
// changed, RFC 3339; those that never did are as old as the Secret.
const annotationCopiedAt = "infra.cloud.pingcap.com/credentials-copied-at"

func copiedAt(secret *corev1.Secret) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, secret.Annotations[annotationCopiedAt]); err == nil {
		return at
	}
	return secret.CreationTimestamp.Time
}

// ensureOurs creates want unless it exists; then it must belong to the same
// Provider, and is read into have. A create may have taken effect although it
// answered with an error: then it is there at the next look.
func (a *Activities) ensureOurs(ctx context.Context, want, have client.Object) (created bool, err error) {
	name := want.GetObjectKind().GroupVersionKind().Kind + " " + want.GetNamespace() + "/" + want.GetName()
	for range 2 {
		err = a.Live.Get(ctx, client.ObjectKeyFromObject(want), have)
		if err == nil {
			if have.GetAnnotations()[builders.AnnotationProvider] != want.GetAnnotations()[builders.AnnotationProvider] {
				return false, faults.New(faults.Conflict, "ForeignBinding", name, "it exists already and does not belong to provider %s; it was left alone", want.GetAnnotations()[builders.AnnotationProvider]).
					WithHint(faults.OwnerOperator, "remove it from the garden if nobody needs it, then retry")
			}
			return false, nil
		}
		if !apierrors.IsNotFound(err) {
			break
		}
		err = audited.Change(ctx, resource(want.GetObjectKind().GroupVersionKind().Kind, want.GetNamespace(), want.GetName(), ""), func() error {
			return a.Client.Create(ctx, want.DeepCopyObject().(client.Object))
		})
		if !apierrors.IsAlreadyExists(err) {
			return err == nil, faults.FromKubernetes(err, name)
		}
	}
	return false, faults.FromKubernetes(err, name)
}

// DeleteBinding removes binding and Secret, unless a Shoot uses them or they
// are not this Provider's.
func (a *Activities) DeleteBinding(ctx context.Context, plan contract.NetworkPlan) (contract.None, error) {
	var shoots gardencorev1beta1.ShootList
	if err := a.Live.List(ctx, &shoots, client.InNamespace(plan.Shoot.Namespace)); err != nil {
		return contract.None{}, faults.FromKubernetes(err, "shoots in "+plan.Shoot.Namespace)
	}
	for i := range shoots.Items {
		if uses(&shoots.Items[i], plan.BindingName) {
			return contract.None{}, nil
		}
	}
	owner := plan.Account.Namespace + "/" + plan.Account.Provider
	// The binding first: it protects its Secret.
	for _, o := range []client.Object{blank(plan), &corev1.Secret{}} {
		if err := a.deleteOurs(ctx, o, types.NamespacedName{Namespace: plan.Shoot.Namespace, Name: plan.BindingName}, owner); err != nil {
			return contract.None{}, err
		}
	}
	return contract.None{}, nil
}

func uses(shoot *gardencorev1beta1.Shoot, binding string) bool {
	s := shoot.Spec
	return (s.CredentialsBindingName != nil && *s.CredentialsBindingName == binding) ||
		(s.SecretBindingName != nil && *s.SecretBindingName == binding)
}

// deleteOurs deletes the object and proves that it is gone.
func (a *Activities) deleteOurs(ctx context.Context, o client.Object, key types.NamespacedName, owner string) error {
	name := "credentials " + key.String() + " in the garden"
	err := a.Live.Get(ctx, key, o)
	if apierrors.IsNotFound(err) || (err == nil && o.GetAnnotations()[builders.AnnotationProvider] != owner) {
		return nil
	}
	if err != nil {
		return faults.FromKubernetes(err, name)
	}
	uid := o.GetUID()
	if err := a.Client.Delete(ctx, o, client.Preconditions{UID: &uid}); err != nil && !apierrors.IsNotFound(err) {
		return faults.FromKubernetes(err, name)
	}
	err = a.Live.Get(ctx, key, o)
	if apierrors.IsNotFound(err) || (err == nil && o.GetUID() != uid) {
		return nil
	}
	if err != nil {
		return faults.FromKubernetes(err, name)
	}
	return faults.New(faults.Transient, "StillDeleting", name, "it waits for the finalizers %v", o.GetFinalizers())
}

// sameWorkers compares pools the way an API server would.
func sameWorkers(x, y []gardencorev1beta1.Worker) bool { return apiequality.Semantic.DeepEqual(x, y) }
