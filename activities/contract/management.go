package contract

import (
	"encoding/json"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The management API: our custom resources. Those marked local run as local
// activities.
var (
	// ReadObject (local) reads the CR from the API server's cache, or live.
	ReadObject = Activity[ReadObjectInput, ObjectState]{Name: "management.ReadObject"}
	// ApplyObjectStatus (local) writes what the object workflow owns.
	ApplyObjectStatus = Activity[ObjectStatus, None]{Name: "management.ApplyObjectStatus"}
	// ApplyOperationStatus (local) writes what the operation workflow owns.
	ApplyOperationStatus = Activity[OperationReport, None]{Name: "management.ApplyOperationStatus"}
	// RemoveFinalizer lets the CR go; only after proof that nothing is left.
	RemoveFinalizer = Activity[ObjectRef, None]{Name: "management.RemoveFinalizer"}

	// PlanProviderType validates a ProviderType.
	PlanProviderType = Activity[ObjectRef, None]{Name: "management.PlanProviderType"}
	// PlanProvider validates a Provider against its ProviderType and Account.
	PlanProvider = Activity[ObjectRef, ProviderPlan]{Name: "management.PlanProvider"}
	// PlanNetwork validates a Network and resolves every default.
	PlanNetwork = Activity[ObjectRef, NetworkPlan]{Name: "management.PlanNetwork"}
	// PlanCluster validates a Cluster and resolves every default, given its
	// Network is Ready.
	PlanCluster = Activity[ObjectRef, ClusterPlan]{Name: "management.PlanCluster"}

	// WaitNetworkReady waits until the Network of a Cluster is Ready. A missing
	// or deleting Network is a Dependency fault.
	WaitNetworkReady = Activity[ObjectRef, None]{Name: "management.WaitNetworkReady", Wait: true}
	// WaitUnused waits until nothing refers to the object any more, and keeps
	// its condition DeletionBlocked (Provider, ProviderType: also InUse) up to
	// date with up to 10 names.
	WaitUnused = Activity[ObjectRef, None]{Name: "management.WaitUnused", Wait: true, Long: true}
)

// ReadObjectInput names the object; Live reads past the cache.
type ReadObjectInput struct {
	Ref  ObjectRef `json:"ref"`
	Live bool      `json:"live,omitempty"`
	// Brief leaves out what an object workflow does not look at and its history
	// should not hold: resources, details, and all conditions but
	// Progressing and Stalled.
	Brief bool `json:"brief,omitempty"`
	// Holders of leases to look for; those that are no more are returned in
	// ObjectState.Vanished.
	Holders []Holder `json:"holders,omitempty"`
}

// ObjectState is what the object workflow and operations need to know of a CR.
type ObjectState struct {
	Exists     bool   `json:"exists"`
	UID        string `json:"uid,omitempty"`
	ID         string `json:"id,omitempty"` // the identity annotation; empty before the bridge's patch
	Generation int64  `json:"generation,omitempty"`
	Deleting   bool   `json:"deleting,omitempty"`
	Held       bool   `json:"held,omitempty"` // a deletion waits for our finalizer
	Paused     bool   `json:"paused,omitempty"`
	Migrated   bool   `json:"migrated,omitempty"`
	// Minted: the identity was minted for this very object, so nothing that
	// carries it can be older than the object.
	Minted bool `json:"minted,omitempty"`
	// ForceDelete: the annotation says so, with the object's uid.
	ForceDelete bool `json:"forceDelete,omitempty"`
	// Verb is the value of the operation annotation.
	Verb           string            `json:"verb,omitempty"`
	DeletionPolicy v1.DeletionPolicy `json:"deletionPolicy,omitempty"`
	// LastManager is the field manager that last wrote the spec, VerbManager
	// the one that set the operation annotation. Ours do not count.
	LastManager string `json:"lastManager,omitempty"`
	VerbManager string `json:"verbManager,omitempty"`

	// From status.
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
	Phase              v1.Phase            `json:"phase,omitempty"`
	Ready              *metav1.Condition   `json:"ready,omitempty"`
	Operation          *v1.OperationStatus `json:"operation,omitempty"`
	Resources          []v1.Resource       `json:"resources,omitempty"`
	// Conditions are those that the operation owns (all but Ready).
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Details are the kind's own status fields, such as shoot, vpc, bucket.
	Details map[string]json.RawMessage `json:"details,omitempty"`

	// Clusters and Leases that status shows (Network).
	Clusters *v1.NetworkClusters `json:"clusters,omitempty"`
	Leases   []v1.Lease          `json:"leases,omitempty"`
	// Vanished are the positions in ReadObjectInput.Holders of those that are
	// no more.
	Vanished []int `json:"vanished,omitempty"`
	// Users is the number of Clusters of a Network, by the cache.
	Users int32 `json:"users,omitempty"`

	// Facts for summaries and search attributes, as far as they are known.
	Account  string `json:"account,omitempty"`
	Provider string `json:"provider,omitempty"`
	Network  string `json:"network,omitempty"`
	Cloud    string `json:"cloud,omitempty"`
	Region   string `json:"region,omitempty"`
}

// ObjectStatus is what the object workflow owns. Field manager
// "infra-provider-object", server-side apply, forced.
type ObjectStatus struct {
	Ref                ObjectRef        `json:"ref"`
	UID                string           `json:"uid"` // of the object meant; another one is left alone
	ObservedGeneration int64            `json:"observedGeneration,omitempty"`
	Phase              v1.Phase         `json:"phase"`
	Ready              metav1.Condition `json:"ready"`
	// Clusters and Leases are a Network's; nil for other kinds.
	Clusters *v1.NetworkClusters `json:"clusters,omitempty"`
	Leases   []v1.Lease          `json:"leases,omitempty"`
	Events   []Event             `json:"events,omitempty"`
}

// OperationReport is what the operation workflow owns. Field manager
// "infra-provider-operation", server-side apply, forced. It always holds the
// whole of what that manager owns.
type OperationReport struct {
	Ref        ObjectRef                  `json:"ref"`
	UID        string                     `json:"uid"`
	Operation  v1.OperationStatus         `json:"operation"`
	LastError  *v1.LastError              `json:"lastError,omitempty"`
	Resources  []v1.Resource              `json:"resources,omitempty"`
	Conditions []metav1.Condition         `json:"conditions,omitempty"`
	Details    map[string]json.RawMessage `json:"details,omitempty"`
	Events     []Event                    `json:"events,omitempty"`
}

// Event is a Kubernetes Event on the CR. Its name derives from Key, so that a
// repeated report makes no second one.
type Event struct {
	Key     string `json:"key"`
	Warning bool   `json:"warning,omitempty"`
	Reason  string `json:"reason"` // CamelCase
	Message string `json:"message"`
}

// ProviderPlan is a Provider with its references resolved.
type ProviderPlan struct {
	Ref     ObjectRef    `json:"ref"`
	Account CloudAccount `json:"account"` // Region is empty or the first of the ProviderType
	Cloud   string       `json:"cloud"`
	Project string       `json:"project"`
	// CredentialsHash is the SHA-256 of the Secret's data.
	CredentialsHash string `json:"credentialsHash,omitempty"`
}

// NetworkPlan is a Network with every default and reference resolved. An
// operation pins it: later changes of Provider or ProviderType do not reach a
// running operation.
type NetworkPlan struct {
	Ref        ObjectRef    `json:"ref"`
	Generation int64        `json:"generation"`
	Account    CloudAccount `json:"account"`
	Cloud      string       `json:"cloud"`
	Tenant     string       `json:"tenant"` // name of the Account CR
	Env        string       `json:"env,omitempty"`

	Project          string   `json:"project"`
	Shoot            ShootRef `json:"shoot"`
	CredentialsKind  string   `json:"credentialsKind"`
	BindingName      string   `json:"bindingName"`
	CloudProfileKind string   `json:"cloudProfileKind"`
	CloudProfile     string   `json:"cloudProfile"`
	NetworkingType   string   `json:"networkingType"`
	SeedName         string   `json:"seedName,omitempty"`

	Region            string      `json:"region"`
	Zones             []string    `json:"zones"`
	VPCCIDR           string      `json:"vpcCIDR"`
	PodsCIDR          string      `json:"podsCIDR"`
	ServicesCIDR      string      `json:"servicesCIDR"`
	ExistingVPC       string      `json:"existingVPC,omitempty"`
	KubernetesVersion string      `json:"kubernetesVersion"`
	Purpose           string      `json:"purpose"`
	WindowBegin       string      `json:"windowBegin"`
	WindowEnd         string      `json:"windowEnd"`
	SystemPool        MachinePool `json:"systemPool"`

	BucketName    string `json:"bucketName"`
	RetainBucket  bool   `json:"retainBucket"`
	DNSZoneName   string `json:"dnsZoneName"` // empty when spec.dns.visibility is None
	DNSVisibility string `json:"dnsVisibility"`

	// GCP is set for Networks on GCP, and for no others.
	GCP *GCPNetworkPlan `json:"gcp,omitempty"`

	ShootCreateTimeout int64 `json:"shootCreateTimeoutSeconds"`
	ShootDeleteTimeout int64 `json:"shootDeleteTimeoutSeconds"`
}

// MachinePool is a worker pool of a Shoot.
type MachinePool struct {
	// Name has at most 15 characters. The plan of a Cluster leaves it empty:
	// AllocateWorkerPools gives it.
	Name        string            `json:"name,omitempty"`
	MachineType string            `json:"machineType"`
	Minimum     int32             `json:"minimum"`
	Maximum     int32             `json:"maximum"`
	Zones       []string          `json:"zones"`
	VolumeType  string            `json:"volumeType"`
	VolumeSize  string            `json:"volumeSize"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Dedicated, when set, taints the pool dedicated=<value>:NoSchedule and
	// keeps system components off it.
	Dedicated string `json:"dedicated,omitempty"`
}

// ClusterPlan is a Cluster with every default and reference resolved.
type ClusterPlan struct {
	Ref        ObjectRef    `json:"ref"`
	Generation int64        `json:"generation"`
	Account    CloudAccount `json:"account"`
	Cloud      string       `json:"cloud"`
	Tenant     string       `json:"tenant"`
	Env        string       `json:"env,omitempty"`
	Network    ObjectRef    `json:"network"`
	Shoot      ShootRef     `json:"shoot"`

	// From the Network's status.
	TechnicalID string   `json:"technicalID"`
	VPCID       string   `json:"vpcID"`
	Zones       []string `json:"zones"`
	IssuerID    string   `json:"oidcProviderARN"`
	OIDCIssuer  string   `json:"oidcIssuer"`
	DNSZoneID   string   `json:"dnsZoneID,omitempty"`
	DNSZoneName string   `json:"dnsZoneName,omitempty"`
	BucketName  string   `json:"bucketName"`

	Operator   string      `json:"operator"` // V1
	Version    string      `json:"version"`
	Namespace  string      `json:"namespace"` // in the shoot: tidb-<id8>
	Name       string      `json:"name"`      // of the TidbCluster: db
	Port       int32       `json:"port"`
	Components []Component `json:"components"` // PD, TiKV, TiDB, TiFlash, in that order; absent when 0 replicas

	RootPasswordSecret string `json:"rootPasswordSecret,omitempty"` // in the CR's namespace
	EncryptionMode     string `json:"encryptionMode"`               // None, ServiceManaged, Customer
	CustomerKeyID      string `json:"customerKeyARN,omitempty"`
	KeyAlias           string `json:"keyAlias,omitempty"` // alias/ic-<id8>-data
	RoleName           string `json:"roleName"`

	Public            bool     `json:"public,omitempty"`
	PublicCIDRs       []string `json:"publicCIDRs,omitempty"`
	Private           bool     `json:"private,omitempty"`
	AllowedPrincipals []string `json:"allowedPrincipals,omitempty"`

	BackupSchedule   string `json:"backupSchedule"` // None, Daily, Weekly
	BackupTimeUTC    string `json:"backupTimeUTC,omitempty"`
	BackupRetainDays int32  `json:"backupRetainDays,omitempty"`
	RetainBackups    bool   `json:"retainBackups,omitempty"`

	ClusterCreateTimeout int64 `json:"clusterCreateTimeoutSeconds"`
}

// Component is one TiDB component of a Cluster.
type Component struct {
	Name         string `json:"name"` // pd, tikv, tidb, tiflash
	Replicas     int32  `json:"replicas"`
	MachineClass string `json:"machineClass"`
	VCPU         int32  `json:"vcpu"`
	Memory       string `json:"memory"`
	StorageSize  string `json:"storageSize,omitempty"`
	StorageClass string `json:"storageClass,omitempty"` // in the shoot: <class>-<id8>
	DiskType     string `json:"diskType,omitempty"`     // gp3, io1, ...
	IOPS         int32  `json:"iops,omitempty"`
	Throughput   int32  `json:"throughput,omitempty"`
	// PoolGroup is the first part of the names of its pools, such as kv-0f3a9c.
	PoolGroup string        `json:"poolGroup,omitempty"`
	Pools     []MachinePool `json:"pools"` // one for each zone
}
