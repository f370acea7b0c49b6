package builders

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// GCPAPIVersion is the apiVersion of all provider configurations for GCP.
const GCPAPIVersion = "gcp.provider.extensions.gardener.cloud/v1alpha1"

// The types below are the part that we write of Gardener's GCP extension API
// (gardener-extension-provider-gcp, pkg/apis/gcp/v1alpha1).

// GCPInfrastructureConfig describes the network of a Shoot.
type GCPInfrastructureConfig struct {
	metav1.TypeMeta `json:",inline"`
	Networks        GCPNetworks `json:"networks"`
}

// GCPNetworks are a network's subnets and its NAT.
type GCPNetworks struct {
	// VPC is an existing network; nil lets Gardener make one.
	VPC      *GCPVPC      `json:"vpc,omitempty"`
	CloudNAT *GCPCloudNAT `json:"cloudNAT,omitempty"`
	// Internal is the subnet of internal load balancers; nil uses Workers.
	Internal *string `json:"internal,omitempty"`
	// Worker is the old name of Workers. We never write it; it is here so that
	// the checker can name it.
	Worker string `json:"worker,omitempty"`
	// Workers is the subnet of nodes. It can only grow.
	Workers string `json:"workers"`
}

// GCPVPC names an existing network and its router; Gardener deletes neither.
type GCPVPC struct {
	Name        string          `json:"name"`
	CloudRouter *GCPCloudRouter `json:"cloudRouter,omitempty"`
}

// GCPCloudRouter names an existing router.
type GCPCloudRouter struct {
	Name string `json:"name"`
}

// GCPCloudNAT configures the nodes' way out.
type GCPCloudNAT struct {
	MinPortsPerVM *int32         `json:"minPortsPerVM,omitempty"`
	NATIPNames    []GCPNATIPName `json:"natIPNames,omitempty"`
}

// GCPNATIPName names a reserved external address.
type GCPNATIPName struct {
	Name string `json:"name"`
}

// GCPControlPlaneConfig configures the cloud controllers of a Shoot.
type GCPControlPlaneConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Zone must be one of the workers' and is immutable.
	Zone    string      `json:"zone"`
	Storage *GCPStorage `json:"storage,omitempty"`
}

// GCPStorage configures the default storage class.
type GCPStorage struct {
	ManagedDefaultStorageClass *bool `json:"managedDefaultStorageClass,omitempty"`
}

// GCPWorkerConfig configures the machines of a worker pool.
type GCPWorkerConfig struct {
	metav1.TypeMeta `json:",inline"`
	Volume          *GCPVolume         `json:"volume,omitempty"`
	ServiceAccount  *GCPServiceAccount `json:"serviceAccount,omitempty"`
}

// GCPVolume configures the nodes' own disks.
type GCPVolume struct {
	// LocalSSDInterface of SCRATCH data volumes: NVME or SCSI.
	LocalSSDInterface *string            `json:"interface,omitempty"`
	Encryption        *GCPDiskEncryption `json:"encryption,omitempty"`
}

// GCPDiskEncryption names the key of the nodes' own disks.
type GCPDiskEncryption struct {
	KMSKeyName           *string `json:"kmsKeyName,omitempty"`
	KMSKeyServiceAccount *string `json:"kmsKeyServiceAccount,omitempty"`
}

// GCPServiceAccount is who the machines are.
type GCPServiceAccount struct {
	Email  string   `json:"email"`
	Scopes []string `json:"scopes"`
}

func (GCPInfrastructureConfig) infrastructureOf(GCP) {}
func (GCPControlPlaneConfig) controlPlaneOf(GCP)     {}
func (GCPWorkerConfig) workerOf(GCP)                 {}

const (
	// natPorts are Gardener's own default, written down so that it does not
	// change under a running Network: a node may have that many connections to
	// one address outside.
	natPorts = 2048
	// cloudPlatform leaves what a node may do to the service account's roles.
	cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"
)

func gcpType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: GCPAPIVersion, Kind: kind}
}

// gcpProvider is the provider of a plan on GCP. The subnet of the nodes is the
// plan's VPCCIDR: a network itself has no range on GCP.
func gcpProvider(plan contract.NetworkPlan) (provider[GCP], error) {
	if plan.GCP == nil {
		return provider[GCP]{}, invalid(plan.Ref.String(), "its plan has no GCP part; this is a mistake of the planner")
	}
	if len(plan.SystemPool.Zones) == 0 {
		return provider[GCP]{}, invalid(plan.Ref.String(), "its system pool has no zone, and the control plane needs one of its zones")
	}
	return provider[GCP]{
		infrastructure: gcpInfrastructure(plan.VPCCIDR, *plan.GCP),
		controlPlane:   gcpControlPlane(plan.SystemPool.Zones[0]),
		workers:        []pool[GCP]{gcpPool(plan.SystemPool, plan.GCP.NodeServiceAccount)},
	}, nil
}

func gcpInfrastructure(nodes string, plan contract.GCPNetworkPlan) GCPInfrastructureConfig {
	networks := GCPNetworks{Workers: nodes, CloudNAT: &GCPCloudNAT{MinPortsPerVM: new(int32(natPorts))}}
	for _, name := range plan.NATAddresses {
		networks.CloudNAT.NATIPNames = append(networks.CloudNAT.NATIPNames, GCPNATIPName{Name: name})
	}
	if plan.InternalCIDR != "" {
		networks.Internal = &plan.InternalCIDR
	}
	if plan.ExistingNetwork != "" {
		networks.VPC = &GCPVPC{Name: plan.ExistingNetwork, CloudRouter: &GCPCloudRouter{Name: plan.ExistingRouter}}
	}
	return GCPInfrastructureConfig{TypeMeta: gcpType("InfrastructureConfig"), Networks: networks}
}

func gcpControlPlane(zone string) GCPControlPlaneConfig {
	return GCPControlPlaneConfig{
		TypeMeta: gcpType("ControlPlaneConfig"),
		Zone:     zone,
		Storage:  &GCPStorage{ManagedDefaultStorageClass: new(true)},
	}
}

// gcpPool lets nodes be the given service account, or Gardener's own when it
// is empty.
func gcpPool(shape contract.MachinePool, serviceAccount string) pool[GCP] {
	config := GCPWorkerConfig{TypeMeta: gcpType("WorkerConfig")}
	if serviceAccount != "" {
		config.ServiceAccount = &GCPServiceAccount{Email: serviceAccount, Scopes: []string{cloudPlatform}}
	}
	return pool[GCP]{shape: shape, config: config}
}

// GCPWorkerPool is a worker pool of a Shoot on GCP, of nodes that are the given
// service account, or Gardener's own when it is empty.
func GCPWorkerPool(shape contract.MachinePool, serviceAccount string) (*gardencorev1beta1.Worker, error) {
	return gcpPool(shape, serviceAccount).manifest()
}
