package garden

import (
	"context"
	"log/slog"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// refresh gives the garden's copy of the credentials that a Shoot uses the
// content of the Provider's Secret: with an old key Gardener would only fail
// again. The binding says itself whose it is, so anybody who waits for the
// Shoot can do this, a Cluster in it as well. at is when the copy got what it
// has; zero where it is not looked after.
//
// Where the Provider's Secret is missing the copy stays: it may be good.
func (a *Activities) refresh(ctx context.Context, shoot *gardencorev1beta1.Shoot) (at time.Time, err error) {
	plan, err := a.boundBy(ctx, shoot)
	if err != nil || plan.BindingName == "" {
		return time.Time{}, err
	}
	id, key, _, err := a.Credentials.AWS(ctx, plan.Account.Namespace, plan.Account.Provider)
	switch f := faults.As(err); {
	case err != nil && f != nil && !f.Class.Retryable():
		slog.WarnContext(ctx, "credentials in the garden left as they are", "shoot", plan.Shoot.String(), "error", err)
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	}
	return a.ensureSecret(ctx, builders.CredentialsSecret(plan, id, key))
}

// boundBy reads off a Shoot's binding what names the copy of the credentials;
// its BindingName is empty when they are not ours.
func (a *Activities) boundBy(ctx context.Context, shoot *gardencorev1beta1.Shoot) (contract.NetworkPlan, error) {
	plan := contract.NetworkPlan{Shoot: contract.ShootRef{Namespace: shoot.Namespace, Name: shoot.Name}}
	switch s := shoot.Spec; {
	case s.CredentialsBindingName != nil:
		plan.CredentialsKind, plan.BindingName = "CredentialsBinding", *s.CredentialsBindingName
	case s.SecretBindingName != nil:
		plan.CredentialsKind, plan.BindingName = "SecretBinding", *s.SecretBindingName
	default:
		return contract.NetworkPlan{}, nil
	}
	binding := blank(plan)
	err := a.Live.Get(ctx, types.NamespacedName{Namespace: shoot.Namespace, Name: plan.BindingName}, binding)
	if apierrors.IsNotFound(err) {
		return contract.NetworkPlan{}, nil
	}
	if err != nil {
		return contract.NetworkPlan{}, faults.FromKubernetes(err, plan.CredentialsKind+" "+shoot.Namespace+"/"+plan.BindingName)
	}
	var ours bool
	plan.Account.Namespace, plan.Account.Provider, ours = strings.Cut(binding.GetAnnotations()[builders.AnnotationProvider], "/")
	if !ours {
		return contract.NetworkPlan{}, nil
	}
	return plan, nil
}

// refused is what a wait does about a Shoot that fails for its credentials: it
// refreshes them, and goes on waiting until Gardener has tried the new ones.
// going is false when the failure is to be told.
func (a *Activities) refused(ctx context.Context, shoot *gardencorev1beta1.Shoot) (going bool, err error) {
	at, err := a.refresh(ctx, shoot)
	if err != nil {
		return true, err
	}
	if lastErrorAt(shoot).After(at) {
		return false, nil
	}
	if _, asked := shoot.Annotations[constants.GardenerOperation]; asked {
		return true, nil
	}
	return true, a.retry(ctx, shoot)
}
