// Package builders turns plans into the manifests that we write: Shoots and
// their bindings for Gardener, and what runs inside a shoot. It is pure: no
// clocks, no clients, the same plan always gives the same manifest.
package builders

import (
	"encoding/json"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// providerAWS is Gardener's spec.provider.type for AWS.
const providerAWS = "aws"

// LabelDedicated is the node label, and the taint key, of pools that are kept
// for one use.
const LabelDedicated = "dedicated"

// providerConfig is a typed provider blob of one cloud.
type providerConfig interface{ providerType() string }

// Shoot is the Shoot of a Network, checked with CheckShoot. A plan that cannot
// work is an Invalid fault.
func Shoot(plan contract.NetworkPlan) (*gardencorev1beta1.Shoot, error) {
	provider, err := shootProvider(plan)
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
	if err := CheckShoot(shoot, plan.Project); err != nil {
		return nil, err
	}
	return shoot, nil
}

// shootProvider is the part of a Shoot that depends on the cloud.
func shootProvider(plan contract.NetworkPlan) (*gardencorev1beta1.Provider, error) {
	if !strings.EqualFold(plan.Cloud, "AWS") {
		return nil, invalid(plan.Ref.String(), "cloud %q is not supported yet; use AWS", plan.Cloud)
	}
	subnets, err := CarveSubnets(plan.VPCCIDR, plan.Zones)
	if err != nil {
		return nil, err
	}
	system, err := WorkerPool(plan.SystemPool)
	if err != nil {
		return nil, err
	}
	p := &gardencorev1beta1.Provider{Type: providerAWS, Workers: []gardencorev1beta1.Worker{*system}}
	if p.InfrastructureConfig, err = encode(p.Type, awsInfrastructure(plan.VPCCIDR, plan.ExistingVPC, subnets)); err != nil {
		return nil, err
	}
	if p.ControlPlaneConfig, err = encode(p.Type, awsControlPlane()); err != nil {
		return nil, err
	}
	return p, nil
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

// WorkerPool is a worker pool of a Shoot on AWS. Machine image, architecture
// and container runtime are left to the CloudProfile's defaults.
func WorkerPool(pool contract.MachinePool) (*gardencorev1beta1.Worker, error) {
	if pool.VolumeType == "io1" || pool.VolumeType == "io2" {
		return nil, invalid("worker pool "+pool.Name, "volume type %s needs an IOPS figure, which node volumes do not have here; use gp3", pool.VolumeType)
	}
	config, err := encode(providerAWS, awsWorker())
	if err != nil {
		return nil, err
	}
	w := &gardencorev1beta1.Worker{
		Name:             pool.Name,
		Minimum:          pool.Minimum,
		Maximum:          pool.Maximum,
		MaxSurge:         new(intstr.FromInt32(1)),
		MaxUnavailable:   new(intstr.FromInt32(0)),
		Machine:          gardencorev1beta1.Machine{Type: pool.MachineType},
		Volume:           &gardencorev1beta1.Volume{Type: new(pool.VolumeType), VolumeSize: pool.VolumeSize, Encrypted: new(true)},
		Zones:            pool.Zones,
		Labels:           map[string]string{},
		SystemComponents: &gardencorev1beta1.WorkerSystemComponents{Allow: pool.Dedicated == ""},
		ProviderConfig:   config,
	}
	for k, v := range pool.Labels {
		w.Labels[k] = v
	}
	if pool.Dedicated != "" {
		w.Labels[LabelDedicated] = pool.Dedicated
		w.Taints = []corev1.Taint{{Key: LabelDedicated, Value: pool.Dedicated, Effect: corev1.TaintEffectNoSchedule}}
	}
	return w, nil
}

// encode makes the RawExtension of a blob, and refuses one of another cloud
// than the Shoot's.
func encode(providerType string, config providerConfig) (*runtime.RawExtension, error) {
	if config.providerType() != providerType {
		return nil, invalid("Shoot", "a provider configuration for %q does not belong into a Shoot on %q", config.providerType(), providerType)
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, invalid("Shoot", "its provider configuration does not encode: %s", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

// OwnerLabels is the label by which what we made is listed.
func OwnerLabels(owner contract.ObjectRef) map[string]string {
	return map[string]string{v1.TagID: owner.ID}
}

// OwnerAnnotations are our tags, on objects that have no cloud tags.
func OwnerAnnotations(owner contract.ObjectRef, env string) map[string]string {
	return map[string]string{v1.TagID: owner.ID, v1.TagKind: owner.Kind, v1.TagName: owner.Namespace + "/" + owner.Name, v1.TagEnv: env}
}
