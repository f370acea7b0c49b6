package builders

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// AWSAPIVersion is the apiVersion of all provider configurations for AWS.
const AWSAPIVersion = "aws.provider.extensions.gardener.cloud/v1alpha1"

// The types below are the part that we write of Gardener's AWS extension API
// (gardener-extension-provider-aws, pkg/apis/aws/v1alpha1). They are ours
// because that module is not needed for anything else.

// AWSInfrastructureConfig describes the VPC of a Shoot.
type AWSInfrastructureConfig struct {
	metav1.TypeMeta     `json:",inline"`
	EnableECRAccess     *bool          `json:"enableECRAccess,omitempty"`
	EnableMTUCustomizer *bool          `json:"enableMTUCustomizer,omitempty"`
	Networks            AWSNetworks    `json:"networks"`
	IgnoreTags          *AWSIgnoreTags `json:"ignoreTags,omitempty"`
}

// AWSNetworks are a VPC and its zones.
type AWSNetworks struct {
	VPC                  AWSVPC    `json:"vpc"`
	Zones                []AWSZone `json:"zones"`
	NodesSecurityGroupID *string   `json:"nodesSecurityGroupID,omitempty"`
}

// AWSVPC is an existing VPC by ID, or a new one with CIDR; exactly one is set.
type AWSVPC struct {
	ID               *string  `json:"id,omitempty"`
	CIDR             *string  `json:"cidr,omitempty"`
	GatewayEndpoints []string `json:"gatewayEndpoints,omitempty"`
}

// AWSZone is a zone with its subnets. Names are immutable and append only.
type AWSZone struct {
	Name     string `json:"name"`
	Workers  string `json:"workers"`
	Public   string `json:"public"`
	Internal string `json:"internal"`
	// ElasticIPAllocationID of the zone's NAT gateway, eipalloc-…
	ElasticIPAllocationID *string `json:"elasticIPAllocationID,omitempty"`
	// The subnets of an existing VPC, instead of the ranges.
	WorkersSubnetID  *string `json:"workersSubnetID,omitempty"`
	PublicSubnetID   *string `json:"publicSubnetID,omitempty"`
	InternalSubnetID *string `json:"internalSubnetID,omitempty"`
}

// AWSIgnoreTags keeps Gardener from removing tags of others.
type AWSIgnoreTags struct {
	Keys        []string `json:"keys,omitempty"`
	KeyPrefixes []string `json:"keyPrefixes,omitempty"`
}

// AWSControlPlaneConfig configures the cloud controllers of a Shoot.
type AWSControlPlaneConfig struct {
	metav1.TypeMeta        `json:",inline"`
	CloudControllerManager *AWSCloudControllerManager `json:"cloudControllerManager,omitempty"`
	LoadBalancerController *AWSLoadBalancerController `json:"loadBalancerController,omitempty"`
	Storage                *AWSStorage                `json:"storage,omitempty"`
}

// AWSCloudControllerManager configures the cloud controller manager.
type AWSCloudControllerManager struct {
	UseCustomRouteController *bool `json:"useCustomRouteController,omitempty"`
}

// AWSLoadBalancerController switches the AWS Load Balancer Controller.
type AWSLoadBalancerController struct {
	Enabled bool `json:"enabled"`
}

// AWSStorage configures the default storage class.
type AWSStorage struct {
	ManagedDefaultClass *bool `json:"managedDefaultClass,omitempty"`
}

// AWSWorkerConfig configures the machines of a worker pool.
type AWSWorkerConfig struct {
	metav1.TypeMeta         `json:",inline"`
	Volume                  *AWSVolume                  `json:"volume,omitempty"`
	InstanceMetadataOptions *AWSInstanceMetadataOptions `json:"instanceMetadataOptions,omitempty"`
	IAMInstanceProfile      *AWSInstanceProfile         `json:"iamInstanceProfile,omitempty"`
}

// AWSVolume is the performance of the nodes' own disks.
type AWSVolume struct {
	IOPS       *int64 `json:"iops,omitempty"`
	Throughput *int64 `json:"throughput,omitempty"` // MiB/s
}

// AWSInstanceMetadataOptions configures the instance metadata service.
type AWSInstanceMetadataOptions struct {
	HTTPTokens              string `json:"httpTokens,omitempty"`
	HTTPPutResponseHopLimit int64  `json:"httpPutResponseHopLimit,omitempty"`
}

// AWSInstanceProfile is the machines' own, by name or ARN.
type AWSInstanceProfile struct {
	Name *string `json:"name,omitempty"`
	ARN  *string `json:"arn,omitempty"`
}

func (AWSInfrastructureConfig) infrastructureOf(AWS) {}
func (AWSControlPlaneConfig) controlPlaneOf(AWS)     {}
func (AWSWorkerConfig) workerOf(AWS)                 {}

func awsType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: AWSAPIVersion, Kind: kind}
}

// awsProvider is the provider of a plan on AWS.
func awsProvider(plan contract.NetworkPlan) (provider[AWS], error) {
	subnets, err := CarveSubnets(plan.VPCCIDR, plan.Zones)
	if err != nil {
		return provider[AWS]{}, err
	}
	system, err := awsPool(plan.SystemPool)
	if err != nil {
		return provider[AWS]{}, err
	}
	return provider[AWS]{
		infrastructure: awsInfrastructure(plan.VPCCIDR, plan.ExistingVPC, subnets),
		controlPlane:   awsControlPlane(),
		workers:        []pool[AWS]{system},
	}, nil
}

// awsInfrastructure is the InfrastructureConfig of a VPC with these subnets.
// existingVPC is an id, or empty for a new VPC.
func awsInfrastructure(vpcCIDR, existingVPC string, subnets []ZoneSubnets) AWSInfrastructureConfig {
	vpc := AWSVPC{CIDR: &vpcCIDR, GatewayEndpoints: []string{"s3"}}
	if existingVPC != "" {
		vpc = AWSVPC{ID: &existingVPC}
	}
	zones := make([]AWSZone, 0, len(subnets))
	for _, s := range subnets {
		zones = append(zones, AWSZone{Name: s.Zone, Workers: s.Workers, Public: s.Public, Internal: s.Internal})
	}
	return AWSInfrastructureConfig{
		TypeMeta:        awsType("InfrastructureConfig"),
		EnableECRAccess: new(true),
		Networks:        AWSNetworks{VPC: vpc, Zones: zones},
		// Gardener removes foreign tags from what it owns at each reconcile;
		// ours and those of TiDB Cloud stay.
		IgnoreTags: &AWSIgnoreTags{KeyPrefixes: []string{"infra.cloud.pingcap.com/", "tidb.cloud/"}},
	}
}

func awsControlPlane() AWSControlPlaneConfig {
	return AWSControlPlaneConfig{
		TypeMeta:               awsType("ControlPlaneConfig"),
		CloudControllerManager: &AWSCloudControllerManager{UseCustomRouteController: new(true)},
		LoadBalancerController: &AWSLoadBalancerController{Enabled: true},
		Storage:                &AWSStorage{ManagedDefaultClass: new(true)},
	}
}

func awsWorker() AWSWorkerConfig {
	return AWSWorkerConfig{
		TypeMeta: awsType("WorkerConfig"),
		// IMDSv2 only; pods get their credentials from the web identity token,
		// not from the node's role.
		InstanceMetadataOptions: &AWSInstanceMetadataOptions{HTTPTokens: "required", HTTPPutResponseHopLimit: 2},
	}
}

func awsPool(shape contract.MachinePool) (pool[AWS], error) {
	if shape.VolumeType == "io1" || shape.VolumeType == "io2" {
		return pool[AWS]{}, invalid("worker pool "+shape.Name, "volume type %s needs an IOPS figure, which node volumes do not have here; use gp3", shape.VolumeType)
	}
	return pool[AWS]{shape: shape, config: awsWorker(), encrypted: new(true)}, nil
}

// WorkerPool is a worker pool of a Shoot on AWS.
func WorkerPool(shape contract.MachinePool) (*gardencorev1beta1.Worker, error) {
	p, err := awsPool(shape)
	if err != nil {
		return nil, err
	}
	return p.manifest()
}
