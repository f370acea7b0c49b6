package builders

import (
	"encoding/json"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Keys of the Secrets that Gardener's extensions read.
const (
	KeyAccessKeyID        = "accessKeyID"         // AWS
	KeySecretAccessKey    = "secretAccessKey"     // AWS
	KeyServiceAccountJSON = "serviceaccount.json" // GCP
)

// CredentialsSecret is the copy of a Provider's credentials on AWS in its
// Gardener project. It belongs to the Provider, not to the Network that came
// first.
func CredentialsSecret(plan contract.NetworkPlan, accessKeyID, secretAccessKey string) *corev1.Secret {
	return credentialsSecret(plan, map[string][]byte{
		KeyAccessKeyID:     []byte(accessKeyID),
		KeySecretAccessKey: []byte(secretAccessKey),
	})
}

// GCPCredentialsSecret is the same on GCP: the key file of a service account
// of the plan's project. What Gardener would refuse is an Invalid fault, which
// never quotes the file.
func GCPCredentialsSecret(plan contract.NetworkPlan, serviceAccountJSON []byte) (*corev1.Secret, error) {
	var key struct {
		Type        string `json:"type"`
		ProjectID   string `json:"project_id"`
		ClientEmail string `json:"client_email"`
		PrivateKey  string `json:"private_key"`
	}
	at := "credentials of provider " + plan.Account.Namespace + "/" + plan.Account.Provider
	if err := json.Unmarshal(serviceAccountJSON, &key); err != nil {
		return nil, invalid(at, "%s is no JSON; put the key file of a service account there", KeyServiceAccountJSON)
	}
	switch {
	case key.Type != "service_account":
		return nil, invalid(at, "%s has type %q; put the key file of a service account there", KeyServiceAccountJSON, key.Type)
	case key.ProjectID != plan.Account.ProjectID:
		return nil, invalid(at, "%s is of project %q, the Provider of %q; use a service account of that project", KeyServiceAccountJSON, key.ProjectID, plan.Account.ProjectID)
	case key.ClientEmail == "" || key.PrivateKey == "":
		return nil, invalid(at, "%s lacks client_email or private_key; create a new key for the service account", KeyServiceAccountJSON)
	}
	return credentialsSecret(plan, map[string][]byte{KeyServiceAccountJSON: serviceAccountJSON}), nil
}

func credentialsSecret(plan contract.NetworkPlan, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: bindingMeta(plan),
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// CredentialsBinding binds the credentials' Secret: a CredentialsBinding, or a
// SecretBinding where the plan asks for the older kind.
func CredentialsBinding(plan contract.NetworkPlan) client.Object {
	if plan.CredentialsKind == "SecretBinding" {
		return &gardencorev1beta1.SecretBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "SecretBinding"},
			ObjectMeta: bindingMeta(plan),
			Provider:   &gardencorev1beta1.SecretBindingProvider{Type: providerType(plan.Cloud)},
			SecretRef:  corev1.SecretReference{Name: plan.BindingName, Namespace: plan.Shoot.Namespace},
		}
	}
	return &securityv1alpha1.CredentialsBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: securityv1alpha1.SchemeGroupVersion.String(), Kind: "CredentialsBinding"},
		ObjectMeta: bindingMeta(plan),
		Provider:   securityv1alpha1.CredentialsBindingProvider{Type: providerType(plan.Cloud)},
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
