package builders

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// awsAPIVersion is the apiVersion of all provider blobs for AWS.
const awsAPIVersion = "aws.provider.extensions.gardener.cloud/v1alpha1"

// The types below are the part that we write of Gardener's AWS extension API
// (gardener-extension-provider-aws, pkg/apis/aws/v1alpha1). They are ours
// because that module is not needed for anything else. Each has the method
// providerType, so that a blob of another cloud cannot be put into a Shoot:
// gardener-apiserver itself would accept it, and the Shoot could then be
// neither created nor deleted (gardener#2139).

// AWSInfrastructureConfig describes the VPC of a Shoot.
type AWSInfrastructureConfig struct {
	metav1.TypeMeta `json:",inline"`
	EnableECRAccess *bool          `json:"enableECRAccess,omitempty"`
	Networks        AWSNetworks    `json:"networks"`
	IgnoreTags      *AWSIgnoreTags `json:"ignoreTags,omitempty"`
}

// AWSNetworks are a VPC and its zones.
type AWSNetworks struct {
	VPC   AWSVPC    `json:"vpc"`
	Zones []AWSZone `json:"zones"`
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
	InstanceMetadataOptions *AWSInstanceMetadataOptions `json:"instanceMetadataOptions,omitempty"`
}

// AWSInstanceMetadataOptions configures the instance metadata service.
type AWSInstanceMetadataOptions struct {
	HTTPTokens              string `json:"httpTokens,omitempty"`
	HTTPPutResponseHopLimit int64  `json:"httpPutResponseHopLimit,omitempty"`
}

func (AWSInfrastructureConfig) providerType() string { return providerAWS }
func (AWSControlPlaneConfig) providerType() string   { return providerAWS }
func (AWSWorkerConfig) providerType() string         { return providerAWS }

func awsType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: awsAPIVersion, Kind: kind}
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
