package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of NetworkPeer, besides those of every kind.
const (
	ConditionAccepted    = "Accepted"
	ConditionRoutesReady = "RoutesReady"
	ConditionDNSReady    = "DNSReady"
)

// NetworkPeerSpec connects a Network with another VPC: that of a Network of
// ours (target), or one outside (external).
//
// +kubebuilder:validation:XValidation:rule="(has(self.target) && size(self.target) > 0) != has(self.external)",message="exactly one of target and external must be set: target for a Network of this namespace, external for a VPC outside"
// +kubebuilder:validation:XValidation:rule="!has(self.target) || self.target != self.source",fieldPath=".target",message="must be another Network than source",messageExpression="self.target + ': must be another Network than source'"
// +kubebuilder:validation:XValidation:rule="has(self.target) == has(oldSelf.target) && (!has(self.target) || self.target == oldSelf.target)",fieldPath=".target",message="is immutable; create another NetworkPeer for another target",messageExpression="'was ' + (has(oldSelf.target) ? oldSelf.target : 'not given') + ' and is immutable; create another NetworkPeer for another target'"
// +kubebuilder:validation:XValidation:rule="has(self.external) == has(oldSelf.external) && (!has(self.external) || self.external == oldSelf.external)",fieldPath=".external",message="is immutable; create another NetworkPeer for another VPC"
type NetworkPeerSpec struct {
	// Source is the name of the Network that asks for the peering. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another NetworkPeer from another Network",messageExpression="'was ' + oldSelf + ' and is immutable; create another NetworkPeer from another Network'"
	Source ReferenceName `json:"source"`
	// Target is the name of another Network, for a peering between two Networks
	// of this namespace. Exactly one of target and external is given. Immutable.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$')`,message="must be the name of a Network: lower-case letters, digits, dashes and dots, with a letter or digit at both ends"
	// +optional
	Target string `json:"target,omitempty"`
	// External is a VPC outside, whose owner must accept the peering. Exactly
	// one of target and external is given. Immutable.
	// +optional
	External *ExternalVPC `json:"external,omitempty"`
	// DNSResolution lets the other side resolve our public names to private
	// addresses (AWS).
	// +kubebuilder:default=true
	// +optional
	DNSResolution *bool `json:"dnsResolution,omitempty"`
	// ShareHostedZone lets the other VPC resolve the names of our Clusters: it
	// is authorised to associate the Network's private zone.
	// +kubebuilder:default=true
	// +optional
	ShareHostedZone *bool `json:"shareHostedZone,omitempty"`
	// AcceptTimeout is how long the other side may take to accept, at most 168h:
	// then the cloud lets the request expire.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}(h|m|s))+$') || duration(self) > duration('0s') && duration(self) <= duration('168h')",message="must be more than 0s and at most 168h, after which the cloud lets a request expire"
	// +kubebuilder:default="168h"
	// +optional
	AcceptTimeout Duration `json:"acceptTimeout,omitempty"`
	// DeletionPolicy says what happens to external resources on deletion.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ExternalVPC is a VPC that is not ours, on the source Network's cloud.
// +kubebuilder:validation:XValidation:rule="has(self.aws) != has(self.gcp)",message="exactly one of aws and gcp must be set: the one of the source Network's cloud"
type ExternalVPC struct {
	// AWS is a VPC on AWS.
	// +optional
	AWS *ExternalAWSVPC `json:"aws,omitempty"`
	// GCP is a VPC network on GCP.
	// +optional
	GCP *ExternalGCPNetwork `json:"gcp,omitempty"`
}

// ExternalAWSVPC is a VPC on AWS.
// +kubebuilder:validation:XValidation:rule="!self.cidrs.all(a, isCIDR(a)) || self.cidrs.all(a, self.cidrs.all(b, a == b || !(cidr(a).containsCIDR(cidr(b)) || cidr(b).containsCIDR(cidr(a)))))",fieldPath=".cidrs",message="must not overlap each other; give the larger range only",messageExpression="'%s: must not overlap each other; give the larger range only'.format([self.cidrs])"
type ExternalAWSVPC struct {
	// AccountID that owns the VPC.
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9]{12}$')`,message="must be the 12 digits of an AWS account"
	AccountID string `json:"accountID"`
	// VPCID of the VPC.
	// +kubebuilder:validation:MaxLength=21
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^vpc-[0-9a-f]{8,17}$')`,message="must be the id of a VPC, such as vpc-0a1b2c3d4e5f67890"
	VPCID string `json:"vpcID"`
	// Region of the VPC.
	Region RegionName `json:"region"`
	// CIDRs of the VPC that we route to.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	CIDRs []CIDR `json:"cidrs"`
}

// ExternalGCPNetwork is a VPC network on GCP.
type ExternalGCPNetwork struct {
	// ProjectID that owns the network.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z][-a-z0-9]{4,28}[a-z0-9]$')`,message="must be the id of a GCP project, such as cust-prod"
	ProjectID string `json:"projectID"`
	// Network is the network's name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message="must be the name of a VPC network, such as default"
	Network string `json:"network"`
	// ImportCustomRoutes takes over the other side's custom routes.
	// +kubebuilder:default=false
	// +optional
	ImportCustomRoutes bool `json:"importCustomRoutes,omitempty"`
	// ExportCustomRoutes gives ours to the other side.
	// +kubebuilder:default=true
	// +optional
	ExportCustomRoutes *bool `json:"exportCustomRoutes,omitempty"`
}

// NetworkPeerStatus is what is observed of a NetworkPeer. Conditions: Ready,
// Progressing, Stalled, Accepted, RoutesReady, DNSReady, DeletionBlocked.
type NetworkPeerStatus struct {
	CommonStatus `json:",inline"`
	// ConnectionID of the peering: pcx-... on AWS, the peering's name on GCP.
	// +optional
	ConnectionID string `json:"connectionID,omitempty"`
	// ProviderState is the peering's state in the cloud's own word.
	// +optional
	ProviderState string `json:"providerState,omitempty"`
	// SourceVPC is our side.
	// +optional
	SourceVPC *PeerVPC `json:"sourceVPC,omitempty"`
	// TargetVPC is the other side.
	// +optional
	TargetVPC *PeerVPC `json:"targetVPC,omitempty"`
	// Routes that lead to the other side.
	// +listType=map
	// +listMapKey=routeTableID
	// +listMapKey=cidr
	// +optional
	Routes []PeerRoute `json:"routes,omitempty"`
	// ExpiresAt is when the cloud drops a request that nobody has accepted.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// PeerVPC is one side of a peering.
type PeerVPC struct {
	// ID of the VPC (AWS), or name of the network (GCP).
	ID string `json:"id"`
	// CIDRs of the VPC.
	// +listType=set
	// +optional
	CIDRs []string `json:"cidrs,omitempty"`
}

// PeerRoute is a route to the other side.
type PeerRoute struct {
	// RouteTableID that holds the route.
	RouteTableID string `json:"routeTableID"`
	// CIDR that is routed.
	CIDR string `json:"cidr"`
	// State of the route: active or blackhole.
	State string `json:"state"`
}

// NetworkPeer connects a Network with another VPC.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=peer,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.source`
// +kubebuilder:selectablefield:JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="SOURCE",type=string,JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="TARGET",type=string,JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="PEER",type=string,JSONPath=`.spec.external['aws','gcp']['vpcID','network']`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.providerState`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`,priority=1
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type NetworkPeer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NetworkPeerSpec   `json:"spec"`
	Status NetworkPeerStatus `json:"status,omitempty"`
}

// Common returns the common part of the NetworkPeer's status.
func (p *NetworkPeer) Common() *CommonStatus { return &p.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (p *NetworkPeer) GetDeletionPolicy() DeletionPolicy { return p.Spec.DeletionPolicy.orDefault() }

// NetworkPeerList is a list of NetworkPeers.
// +kubebuilder:object:root=true
type NetworkPeerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkPeer `json:"items"`
}
