package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProviderSpec is a cloud account that Networks are made in.
// +kubebuilder:validation:XValidation:rule="has(self.aws) != has(self.gcp)",message="exactly one of aws and gcp must be set: the one of the ProviderType's cloud"
// +kubebuilder:validation:XValidation:rule="!has(self.gcp)",fieldPath=".gcp",reason=FieldValueForbidden,message="remove gcp and set aws: cloud GCP is not supported yet"
// +kubebuilder:validation:XValidation:rule="has(self.project) == has(oldSelf.project) && (!has(self.project) || self.project == oldSelf.project)",fieldPath=".project",message="is immutable, also when it was not given at first; create another Provider for another project",messageExpression="'was ' + (has(oldSelf.project) ? oldSelf.project : 'not given') + ' and is immutable, also when it was not given at first; create another Provider for another project'"
// +kubebuilder:validation:XValidation:rule="has(self.dns) == has(oldSelf.dns) && (!has(self.dns) || self.dns.domain == oldSelf.dns.domain)",fieldPath=".dns",message="domain is immutable: the DNS zones of Networks lie in it; create another Provider for another domain",messageExpression="'was ' + (has(oldSelf.dns) ? oldSelf.dns.domain : 'not given') + ': domain is immutable: the DNS zones of Networks lie in it; create another Provider for another domain'"
// +kubebuilder:validation:XValidation:rule="!has(self.aws) || !has(self.credentials.workloadIdentity) || has(self.credentials.workloadIdentity.roleARN)",fieldPath=".credentials.workloadIdentity.roleARN",reason=FieldValueRequired,message="is required on AWS: it is the role that is assumed"
// +kubebuilder:validation:XValidation:rule="!has(self.gcp) || !has(self.credentials.workloadIdentity) || (has(self.credentials.workloadIdentity.serviceAccountEmail) && has(self.credentials.workloadIdentity.providerResource))",fieldPath=".credentials.workloadIdentity",message="needs serviceAccountEmail and providerResource on GCP"
type ProviderSpec struct {
	// Type is the name of a ProviderType. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Provider for another type",messageExpression="'was ' + oldSelf + ' and is immutable; create another Provider for another type'"
	Type ReferenceName `json:"type"`
	// Account is the name of the Account that pays. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Provider for another Account",messageExpression="'was ' + oldSelf + ' and is immutable; create another Provider for another Account'"
	Account ReferenceName `json:"account"`
	// Project is the Gardener project that Shoots are made in; the default
	// comes from the controller's configuration. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message="must be the name of a Gardener project: lower-case letters, digits and dashes, with a letter or digit at both ends"
	// +optional
	Project string `json:"project,omitempty"`
	// Credentials for the cloud account.
	Credentials ProviderCredentials `json:"credentials"`
	// AWS is the account on AWS.
	// +optional
	AWS *AWSAccount `json:"aws,omitempty"`
	// GCP is the project on GCP.
	// +optional
	GCP *GCPProject `json:"gcp,omitempty"`
	// DNS says where the names of Clusters live. Networks need it unless their
	// spec.dns.visibility is None.
	// +optional
	DNS *ProviderDNS `json:"dns,omitempty"`
	// DeletionPolicy is part of every kind. A Provider owns nothing outside of
	// this API, so both values mean the same.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ProviderCredentials hold exactly one way to get credentials.
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.workloadIdentity)",message="exactly one of secretRef and workloadIdentity must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.workloadIdentity)",fieldPath=".workloadIdentity",reason=FieldValueForbidden,message="remove workloadIdentity and set secretRef: workload identity is not supported yet"
type ProviderCredentials struct {
	// SecretRef names a Secret with accessKeyID and secretAccessKey (AWS). Its
	// content may change at any time; it is copied into the Gardener project.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// WorkloadIdentity trades a token of the garden for cloud credentials.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`
}

// WorkloadIdentity trades a token of the garden for cloud credentials.
type WorkloadIdentity struct {
	// Audience of the token; AWS: sts.amazonaws.com.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Audience string `json:"audience,omitempty"`
	// RoleARN to assume (AWS).
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	RoleARN string `json:"roleARN,omitempty"`
	// ServiceAccountEmail to impersonate (GCP).
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountEmail string `json:"serviceAccountEmail,omitempty"`
	// ProviderResource is the workload identity pool's provider (GCP).
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ProviderResource string `json:"providerResource,omitempty"`
}

// AWSAccount is an account on AWS.
type AWSAccount struct {
	// AccountID that the credentials must belong to. Immutable.
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9]{12}$')`,message="must be the 12 digits of an AWS account"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Provider for another AWS account",messageExpression="'was ' + oldSelf + ' and is immutable; create another Provider for another AWS account'"
	AccountID string `json:"accountID"`
	// Partition of the account. Immutable.
	// +kubebuilder:validation:Enum=aws;aws-cn;aws-us-gov
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Provider for another partition",messageExpression="'was ' + oldSelf + ' and is immutable; create another Provider for another partition'"
	// +kubebuilder:validation:XValidation:rule="self == 'aws'",message="set partition to aws: other partitions are not supported yet"
	// +kubebuilder:default=aws
	// +optional
	Partition string `json:"partition,omitempty"`
}

// GCPProject is a project on GCP.
type GCPProject struct {
	// ProjectID that the credentials must belong to. Immutable.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z][-a-z0-9]{4,28}[a-z0-9]$')`,message="must be the id of a GCP project, such as core-prod"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Provider for another GCP project",messageExpression="'was ' + oldSelf + ' and is immutable; create another Provider for another GCP project'"
	ProjectID string `json:"projectID"`
}

// ProviderDNS says where the names of Clusters live.
type ProviderDNS struct {
	// ParentZoneID is the hosted zone of Domain, for the delegation of public
	// zones.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9-]*$')`,message="must be the id of a hosted zone, such as Z0123456789ABC"
	// +optional
	ParentZoneID string `json:"parentZoneID,omitempty"`
	// Domain under which each Network gets a zone. Immutable.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message="must be a domain of at least two labels in lower case, such as clusters.example.com"
	Domain string `json:"domain"`
}

// ProviderStatus is what is observed of a Provider. Conditions: Ready,
// CredentialsValid, InUse.
type ProviderStatus struct {
	CommonStatus `json:",inline"`
	// BindingName is the name of the credentials' binding in the project.
	// +optional
	BindingName string `json:"bindingName,omitempty"`
	// CredentialsHash is the SHA-256 of the Secret's data that was verified.
	// +optional
	CredentialsHash string `json:"credentialsHash,omitempty"`
}

// Provider is a cloud account that Networks are made in.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=prov,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:selectablefield:JSONPath=`.spec.account`
// +kubebuilder:printcolumn:name="TYPE",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="ACCOUNT",type=string,JSONPath=`.spec.account`
// +kubebuilder:printcolumn:name="PROJECT",type=string,JSONPath=`.spec.project`,priority=1
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`,priority=1
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50",fieldPath=".metadata",message="metadata.name must have at most 50 characters: with a dash and 8 digits it names objects in the garden",messageExpression="self.metadata.name + ': metadata.name must have at most 50 characters: with a dash and 8 digits it names objects in the garden'"
type Provider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderSpec   `json:"spec"`
	Status ProviderStatus `json:"status,omitempty"`
}

// Common returns the common part of the Provider's status.
func (p *Provider) Common() *CommonStatus { return &p.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (p *Provider) GetDeletionPolicy() DeletionPolicy { return p.Spec.DeletionPolicy.orDefault() }

// ProviderList is a list of Providers.
// +kubebuilder:object:root=true
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provider `json:"items"`
}
