package contract

// Inside a shoot cluster, through adminkubeconfig (cached by expiry, never
// persisted).
var (
	// BootstrapShoot applies the bundle of the config-service: operator CRDs,
	// namespaces, service accounts, the operator's Deployment.
	BootstrapShoot = Activity[BootstrapInput, None]{Name: "shoot.Bootstrap"}
	// WaitBootstrapped waits until every Deployment of the bundle is available.
	WaitBootstrapped = Activity[BootstrapInput, None]{Name: "shoot.WaitBootstrapped", Wait: true}
	// CleanShoot removes what would outlive the Shoot or block its deletion:
	// Services of type LoadBalancer, PVCs, and PVs (policy set to Delete). It
	// waits until they are gone.
	CleanShoot = Activity[ShootInput, None]{Name: "shoot.Clean", Wait: true}

	// EnsureStorageClasses makes the cluster's classes with its KMS key.
	EnsureStorageClasses = Activity[DatabaseInput, Outcome]{Name: "shoot.EnsureStorageClasses"}
	DeleteStorageClasses = Activity[DatabaseInput, None]{Name: "shoot.DeleteStorageClasses"}
	// EnsureClusterNamespace makes the namespace, its quota, service accounts
	// (annotated with the role) and the root password Secret.
	EnsureClusterNamespace = Activity[DatabaseInput, Outcome]{Name: "shoot.EnsureClusterNamespace"}
	// DeleteClusterNamespace deletes it and waits until it is gone.
	DeleteClusterNamespace = Activity[DatabaseInput, None]{Name: "shoot.DeleteClusterNamespace", Wait: true}

	// EnsureDatabase applies the TidbCluster.
	EnsureDatabase = Activity[DatabaseInput, Outcome]{Name: "shoot.EnsureDatabase"}
	// WaitDatabaseReady waits until each component is as the plan wants it; it
	// says which one is not ready.
	WaitDatabaseReady = Activity[DatabaseInput, DatabaseStatus]{Name: "shoot.WaitDatabaseReady", Wait: true}
	// EnsureRootPassword runs a TidbInitializer inside the shoot and waits for
	// it. The password never leaves the two clusters' Secrets.
	EnsureRootPassword = Activity[DatabaseInput, None]{Name: "shoot.EnsureRootPassword", Wait: true}
	// DeleteDatabase sets PVs to Delete, deletes the TidbCluster, waits for its
	// Pods, deletes PVCs and waits until the PVs are gone.
	DeleteDatabase = Activity[DatabaseInput, None]{Name: "shoot.DeleteDatabase", Wait: true}

	// EnsureService applies the Service of type
	// LoadBalancer.
	EnsureService = Activity[DatabaseInput, Outcome]{Name: "shoot.EnsureService"}
	// WaitServiceAddress waits for the load balancer's host name.
	WaitServiceAddress = Activity[DatabaseInput, ServiceAddress]{Name: "shoot.WaitServiceAddress", Wait: true}
	// DeleteService deletes the Service and waits until it is gone.
	DeleteService = Activity[DatabaseInput, None]{Name: "shoot.DeleteService", Wait: true}

	// EnsureBackupSchedule applies the operator's BackupSchedule, or removes it
	// when the policy says None.
	EnsureBackupSchedule = Activity[DatabaseInput, Outcome]{Name: "shoot.EnsureBackupSchedule"}
	// DeleteBackups removes BackupSchedule and Backup CRs and waits for the
	// operator's finalizers, before the namespace goes (tidb-operator#2888).
	DeleteBackups = Activity[DatabaseInput, None]{Name: "shoot.DeleteBackups", Wait: true}
)

// BootstrapInput names a shoot and the bundle to apply.
type BootstrapInput struct {
	Owner      ObjectRef `json:"owner"` // the Network
	Shoot      ShootRef  `json:"shoot"`
	ConfigHash string    `json:"configHash"`
}

// DatabaseInput is a cluster's plan with what earlier steps found.
type DatabaseInput struct {
	Plan       ClusterPlan `json:"plan"`
	ConfigHash string      `json:"configHash,omitempty"`
	KeyID      string      `json:"keyARN,omitempty"`
	IdentityID string      `json:"roleARN,omitempty"`
}

// DatabaseStatus is what is observed of a ready database.
type DatabaseStatus struct {
	ClusterID  string                     `json:"clusterID,omitempty"`
	Version    string                     `json:"version"`
	Components map[string]ComponentStatus `json:"components"`
}

// ComponentStatus is what is observed of one component.
type ComponentStatus struct {
	Replicas int32  `json:"replicas"`
	Ready    int32  `json:"ready"`
	Image    string `json:"image,omitempty"`
}

// ServiceAddress is where the database answers.
type ServiceAddress struct {
	Hostname string `json:"hostname"`
	Port     int32  `json:"port"`
}

// Service accounts in a cluster's namespace that may assume its IAM role.
const (
	// ServiceAccountDatabase runs TiKV and TiFlash; changing it later would
	// restart TiKV, so it is there from the beginning.
	ServiceAccountDatabase = "tidb-database"
	// ServiceAccountBackup runs backup and restore jobs.
	ServiceAccountBackup = "tidb-backup-manager"
)

// RoleSubjects are the subjects of the web identity tokens that may assume the
// cluster's IAM role.
func (p ClusterPlan) RoleSubjects() []string {
	prefix := "system:serviceaccount:" + p.Namespace + ":"
	return []string{prefix + ServiceAccountDatabase, prefix + ServiceAccountBackup}
}

// BackupPrefix is the cluster's part of its Network's bucket, without a slash
// at the end.
func (p ClusterPlan) BackupPrefix() string { return "clusters/" + p.Ref.ID }
