package v1

// Cloud is a cloud provider.
// +kubebuilder:validation:Enum=AWS;GCP
type Cloud string

const (
	CloudAWS Cloud = "AWS"
	CloudGCP Cloud = "GCP"
)

// CIDR is an IPv4 range in canonical form, such as 10.250.0.0/16.
// +kubebuilder:validation:MinLength=9
// +kubebuilder:validation:MaxLength=18
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked()",message="must be an IPv4 range that begins at its network address, such as 10.250.0.0/16"
type CIDR string

// StorageSize is the size of a volume in whole Gi or Ti, such as 500Gi.
// +kubebuilder:validation:MaxLength=10
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[1-9][0-9]{0,6}(Gi|Ti)$')`,message="must be a whole number of Gi or Ti, such as 500Gi"
type StorageSize string

// Duration is a time span in Go's notation, such as 6h or 1h30m.
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,6}(h|m|s))+$')`,message="must be a time span of h, m and s, such as 6h or 1h30m"
type Duration string

// ReferenceName is the name of an object of this group in the same namespace.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,message="must be the name of an object: lower-case letters, digits, dashes and dots, with a letter or digit at both ends"
type ReferenceName string

// ClassName is the name of a machine class or storage class of a ProviderType.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$')`,message="must be the name of a class of the ProviderType: letters, digits and dashes, such as 8C32G"
type ClassName string

// RegionName is a region of a cloud, such as us-west-2.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message="must be a region of the cloud, such as us-west-2"
type RegionName string

// ZoneName is an availability zone of a region, such as us-west-2a.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message="must be a zone of the cloud, such as us-west-2a"
type ZoneName string

// KubernetesVersion is a minor version, or one of its patch versions. A minor
// version stands for its newest patch version that the cloud profile supports.
// +kubebuilder:validation:MaxLength=12
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^1\.[0-9]{1,3}(\.[0-9]{1,3})?$')`,message="must be a version of Kubernetes, such as 1.33 or 1.33.5"
type KubernetesVersion string

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,message="must be the name of a Secret: lower-case letters, digits, dashes and dots, with a letter or digit at both ends"
	Name string `json:"name"`
}
