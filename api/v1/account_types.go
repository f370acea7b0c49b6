package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AccountSpec describes a tenant.
type AccountSpec struct {
	// TenantID is the tenant's id in TiDB Cloud. Immutable.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9-]{1,63}$')`,message="must be 1 to 63 letters, digits and dashes, such as 1372813089"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Account for another tenant",messageExpression="'was ' + oldSelf + ' and is immutable; create another Account for another tenant'"
	TenantID string `json:"tenantID"`
	// DisplayName is the tenant's name for people.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Suspended refuses new Networks and Clusters of the tenant. What runs is
	// left alone.
	// +kubebuilder:default=false
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// Quotas limit what the tenant may create. A limit that is not given does
	// not limit.
	// +optional
	Quotas *AccountQuotas `json:"quotas,omitempty"`
	// DeletionPolicy is part of every kind. An Account owns nothing outside of
	// this API, so both values mean the same.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// AccountQuotas are the limits of a tenant, over all its Networks. A limit
// below what exists refuses additions and leaves what exists alone.
type AccountQuotas struct {
	// Networks is the largest number of Networks.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Networks *int32 `json:"networks,omitempty"`
	// Clusters is the largest number of Clusters.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Clusters *int32 `json:"clusters,omitempty"`
	// TiDBNodes is the largest number of TiDB nodes of all Clusters together.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TiDBNodes *int32 `json:"tidbNodes,omitempty"`
	// TiKVNodes is the largest number of TiKV nodes of all Clusters together.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TiKVNodes *int32 `json:"tikvNodes,omitempty"`
	// TiFlashNodes is the largest number of TiFlash nodes of all Clusters
	// together.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TiFlashNodes *int32 `json:"tiflashNodes,omitempty"`
	// Peers is the largest number of NetworkPeers.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Peers *int32 `json:"peers,omitempty"`
}

// AccountStatus is what is observed of an Account.
type AccountStatus struct {
	CommonStatus `json:",inline"`
}

// Account is a tenant. Nothing is created for it; Providers and Networks refer
// to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=acct,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.tenantID`
// +kubebuilder:printcolumn:name="TENANT",type=string,JSONPath=`.spec.tenantID`
// +kubebuilder:printcolumn:name="NAME",type=string,JSONPath=`.spec.displayName`,priority=1
// +kubebuilder:printcolumn:name="SUSPENDED",type=boolean,JSONPath=`.spec.suspended`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type Account struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AccountSpec   `json:"spec"`
	Status AccountStatus `json:"status,omitempty"`
}

// Common returns the common part of the Account's status.
func (a *Account) Common() *CommonStatus { return &a.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (a *Account) GetDeletionPolicy() DeletionPolicy { return a.Spec.DeletionPolicy.orDefault() }

// AccountList is a list of Accounts.
// +kubebuilder:object:root=true
type AccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Account `json:"items"`
}
