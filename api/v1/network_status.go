package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of Network, besides those of every kind.
const (
	ConditionShootReady          = "ShootReady"
	ConditionCloudResourcesReady = "CloudResourcesReady"
	ConditionO11yReady           = "O11yReady"
	ConditionAwake               = "Awake"
)

// Condition types of Provider and ProviderType, besides those of every kind.
const (
	ConditionCredentialsValid = "CredentialsValid"
	ConditionInUse            = "InUse"
)

// NetworkStatus is what is observed of a Network. Conditions: Ready,
// Progressing, Stalled, ShootReady, CloudResourcesReady, O11yReady, Awake,
// DeletionBlocked.
type NetworkStatus struct {
	CommonStatus `json:",inline"`
	// Shoot that runs the Network's Clusters.
	// +optional
	Shoot *NetworkShootStatus `json:"shoot,omitempty"`
	// VPC that Gardener made.
	// +optional
	VPC *NetworkVPCStatus `json:"vpc,omitempty"`
	// OIDC is how cloud roles trust service accounts of the Shoot.
	// +optional
	OIDC *NetworkOIDCStatus `json:"oidc,omitempty"`
	// DNSZone holds the names of Clusters.
	// +optional
	DNSZone *NetworkDNSZoneStatus `json:"dnsZone,omitempty"`
	// Bucket holds backups and imports.
	// +optional
	Bucket *NetworkBucketStatus `json:"bucket,omitempty"`
	// PSC is Private Service Connect (GCP).
	// +optional
	PSC *NetworkPSCStatus `json:"psc,omitempty"`
	// Clusters counts the Clusters of the Network.
	// +optional
	Clusters *NetworkClusters `json:"clusters,omitempty"`
	// Leases keep the Network awake.
	// +listType=map
	// +listMapKey=holder
	// +optional
	Leases []Lease `json:"leases,omitempty"`
	// IdleSince is when the Network was first seen idle, without interruption.
	// +optional
	IdleSince *metav1.Time `json:"idleSince,omitempty"`
	// LastTransitionAt is when the Network last fell asleep or woke up.
	// +optional
	LastTransitionAt *metav1.Time `json:"lastTransitionAt,omitempty"`
}

// NetworkShootStatus is a Shoot as last observed.
type NetworkShootStatus struct {
	// Namespace of the Shoot in the garden, such as garden-core.
	Namespace string `json:"namespace"`
	// Name of the Shoot.
	Name string `json:"name"`
	// UID of the Shoot.
	// +optional
	UID string `json:"uid,omitempty"`
	// TechnicalID is the prefix of names and tags in the cloud, such as
	// shoot--core--n-3f9ac21.
	// +optional
	TechnicalID string `json:"technicalID,omitempty"`
	// SeedName is where the control plane runs.
	// +optional
	SeedName string `json:"seedName,omitempty"`
	// Generation of the Shoot's spec.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// ObservedGeneration that Gardener has worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Hibernated says whether the Shoot sleeps.
	// +optional
	Hibernated bool `json:"hibernated,omitempty"`
	// LastOperation of Gardener on the Shoot.
	// +optional
	LastOperation *ShootOperation `json:"lastOperation,omitempty"`
	// ErrorCodes are Gardener's codes of the last errors.
	// +listType=set
	// +optional
	ErrorCodes []string `json:"errorCodes,omitempty"`
}

// ShootOperation is what Gardener last did with a Shoot.
type ShootOperation struct {
	// Type: Create, Reconcile, Delete, Migrate, Restore.
	Type string `json:"type"`
	// State: Pending, Processing, Succeeded, Error, Failed, Aborted.
	State string `json:"state"`
	// Progress in percent.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// LastUpdateTime of the operation.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
}

// NetworkVPCStatus is the VPC (AWS) or network (GCP) that Gardener made.
type NetworkVPCStatus struct {
	// ID of the VPC (AWS).
	// +optional
	ID string `json:"id,omitempty"`
	// CIDR of the VPC.
	// +optional
	CIDR string `json:"cidr,omitempty"`
	// RouteTableIDs of the VPC (AWS).
	// +listType=set
	// +optional
	RouteTableIDs []string `json:"routeTableIDs,omitempty"`
	// Zones that have subnets, in the order of the spec.
	// +listType=set
	// +optional
	Zones []string `json:"zones,omitempty"`
	// Network is the network's name (GCP).
	// +optional
	Network string `json:"network,omitempty"`
	// Subnets of the network (GCP).
	// +listType=set
	// +optional
	Subnets []string `json:"subnets,omitempty"`
	// Router of the network (GCP).
	// +optional
	Router string `json:"router,omitempty"`
}

// NetworkOIDCStatus is how cloud roles trust service accounts of the Shoot.
type NetworkOIDCStatus struct {
	// Issuer URL of service account tokens.
	Issuer string `json:"issuer"`
	// ProviderARN of the IAM OIDC provider.
	// +optional
	ProviderARN string `json:"providerARN,omitempty"`
}

// NetworkDNSZoneStatus is the zone that holds the names of Clusters.
type NetworkDNSZoneStatus struct {
	// ID of the zone, such as Z0123456789.
	ID string `json:"id"`
	// Name of the zone, without the last dot.
	Name string `json:"name"`
	// NameServers of a public zone.
	// +listType=atomic
	// +optional
	NameServers []string `json:"nameServers,omitempty"`
}

// NetworkBucketStatus is the bucket of backups and imports.
type NetworkBucketStatus struct {
	// Name of the bucket.
	Name string `json:"name"`
}

// NetworkPSCStatus is Private Service Connect (GCP).
type NetworkPSCStatus struct {
	// Subnet of the connections.
	Subnet string `json:"subnet"`
	// Capacity is the number of connections that fit.
	Capacity int32 `json:"capacity"`
}

// NetworkClusters counts the Clusters of a Network.
type NetworkClusters struct {
	// Total number, of every phase.
	Total int32 `json:"total"`
	// Running number: neither paused nor being deleted.
	Running int32 `json:"running"`
}

// Lease keeps a Network awake.
type Lease struct {
	// Holder as kind/name/uid.
	Holder string `json:"holder"`
	// Purpose: Running, or the job.
	Purpose string `json:"purpose"`
	// Since when the lease is held.
	Since metav1.Time `json:"since"`
}
