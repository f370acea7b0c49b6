package builders

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Keys of the Secret that Gardener's AWS extension reads.
const (
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
)

// CredentialsSecret is the copy of a Provider's credentials in its Gardener
// project. It belongs to the Provider, not to the Network that came first.
func CredentialsSecret(plan contract.NetworkPlan, accessKeyID, secretAccessKey string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: bindingMeta(plan),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			KeyAccessKeyID:     []byte(accessKeyID),
			KeySecretAccessKey: []byte(secretAccessKey),
		},
	}
}

// CredentialsBinding binds the CredentialsSecret: a CredentialsBinding, or a
// SecretBinding where the plan asks for the older kind.
func CredentialsBinding(plan contract.NetworkPlan) client.Object {
	if plan.CredentialsKind == "SecretBinding" {
		return &gardencorev1beta1.SecretBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "SecretBinding"},
			ObjectMeta: bindingMeta(plan),
			Provider:   &gardencorev1beta1.SecretBindingProvider{Type: providerAWS},
			SecretRef:  corev1.SecretReference{Name: plan.BindingName, Namespace: plan.Shoot.Namespace},
		}
	}
	return &securityv1alpha1.CredentialsBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: securityv1alpha1.SchemeGroupVersion.String(), Kind: "CredentialsBinding"},
		ObjectMeta: bindingMeta(plan),
		Provider:   securityv1alpha1.CredentialsBindingProvider{Type: providerAWS},
		CredentialsRef: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: plan.BindingName, Namespace: plan.Shoot.Namespace,
		},
	}
}

// bindingMeta names the Provider as the owner: all its Networks share the
// binding. AnnotationProvider, not the identity, tells whose it is, because a
// plan does not carry the Provider's identity.
func bindingMeta(plan contract.NetworkPlan) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        plan.BindingName,
		Namespace:   plan.Shoot.Namespace,
		Annotations: map[string]string{AnnotationProvider: plan.Account.Namespace + "/" + plan.Account.Provider},
		Labels:      map[string]string{LabelManaged: "true"},
	}
}

const (
	// AnnotationProvider holds <namespace>/<name> of the Provider that a
	// binding and its Secret belong to.
	AnnotationProvider = "infra.cloud.pingcap.com/provider"
	// LabelManaged marks bindings and Secrets of ours in a Gardener project.
	LabelManaged = "infra.cloud.pingcap.com/managed"
)
