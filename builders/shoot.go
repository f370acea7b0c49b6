// Package builders turns plans into the manifests that we write: Shoots and
// their bindings for Gardener, and what runs inside a shoot. It is pure: no
// clocks, no clients, the same plan always gives the same manifest.
package builders

import (
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// LabelDedicated is the node label, and the taint key, of pools that are kept
// for one use.
const LabelDedicated = "dedicated"

// Shoot is the Shoot of a Network. A plan that cannot work is an Invalid fault.
// Package shootrules says whether Gardener would take the result.
func Shoot(plan contract.NetworkPlan) (*gardencorev1beta1.Shoot, error) {
	switch providerType(plan.Cloud) {
	case ProviderAWS:
		p, err := awsProvider(plan)
		if err != nil {
			return nil, err
		}
		return assemble(plan, p)
	case ProviderGCP:
		p, err := gcpProvider(plan)
		if err != nil {
			return nil, err
		}
		return assemble(plan, p)
	}
	return nil, invalid(plan.Ref.String(), "there are no Shoots on cloud %q; use AWS or GCP", plan.Cloud)
}

// providerType is spec.provider.type of a plan's cloud, AWS or GCP.
func providerType(cloud string) string { return strings.ToLower(cloud) }

func assemble[C cloud](plan contract.NetworkPlan, p provider[C]) (*gardencorev1beta1.Shoot, error) {
	provider, err := p.manifest()
	if err != nil {
		return nil, err
	}
	shoot := &gardencorev1beta1.Shoot{
		TypeMeta: metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        plan.Shoot.Name,
			Namespace:   plan.Shoot.Namespace,
			Labels:      OwnerLabels(plan.Ref),
			Annotations: OwnerAnnotations(plan.Ref, plan.Env),
		},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile: &gardencorev1beta1.CloudProfileReference{Kind: plan.CloudProfileKind, Name: plan.CloudProfile},
			Region:       plan.Region,
			Purpose:      new(gardencorev1beta1.ShootPurpose(plan.Purpose)),
			Kubernetes:   gardencorev1beta1.Kubernetes{Version: plan.KubernetesVersion},
			Networking: &gardencorev1beta1.Networking{
				Type:     &plan.NetworkingType,
				Nodes:    &plan.VPCCIDR,
				Pods:     &plan.PodsCIDR,
				Services: &plan.ServicesCIDR,
			},
			Maintenance: maintenance(plan),
			Provider:    *provider,
		},
	}
	// A stable, public OIDC issuer: IAM roles trust it. It cannot be turned on
	// later without new issuers for all tokens.
	shoot.Annotations[constants.AnnotationAuthenticationIssuer] = constants.AnnotationAuthenticationIssuerManaged
	if plan.CredentialsKind == "SecretBinding" {
		shoot.Spec.SecretBindingName = &plan.BindingName
	} else {
		shoot.Spec.CredentialsBindingName = &plan.BindingName
	}
	if plan.SeedName != "" {
		shoot.Spec.SeedName = &plan.SeedName
	}
	return shoot, nil
}

// maintenance leaves versions to us, and never confines spec updates to the
// window: that would keep metadata.generation from growing, and every wait on
// it would return at once.
func maintenance(plan contract.NetworkPlan) *gardencorev1beta1.Maintenance {
	m := &gardencorev1beta1.Maintenance{
		AutoUpdate: &gardencorev1beta1.MaintenanceAutoUpdate{KubernetesVersion: false, MachineImageVersion: new(false)},
	}
	if plan.WindowBegin != "" {
		m.TimeWindow = &gardencorev1beta1.MaintenanceTimeWindow{Begin: plan.WindowBegin, End: plan.WindowEnd}
	}
	return m
}

// OwnerLabels is the label by which what we made is listed.
func OwnerLabels(owner contract.ObjectRef) map[string]string {
	return map[string]string{v1.TagID: owner.ID}
}

// OwnerAnnotations are our tags, on objects that have no cloud tags.
func OwnerAnnotations(owner contract.ObjectRef, env string) map[string]string {
	return map[string]string{v1.TagID: owner.ID, v1.TagKind: owner.Kind, v1.TagName: owner.Namespace + "/" + owner.Name, v1.TagEnv: env}
}
