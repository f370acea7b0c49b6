package builders

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Names of the schedule of a cluster's backups, and of its log backup.
const (
	BackupScheduleName = "automatic"
	LogBackupName      = "log"
)

// BackupJob is one snapshot of a cluster.
type BackupJob struct {
	// Owner is the Backup that it is made for.
	Owner contract.ObjectRef
	// Name of the operator's Backup: b-<id8>, and -a<N> for a further attempt.
	Name string
	// Prefix in the Network's bucket, without a slash at either end. Each
	// attempt has its own.
	Prefix string
	// RateLimitMiBps is for each TiKV; 0 for no limit.
	RateLimitMiBps int32
	// KeyARN encrypts the files (AWS); empty leaves that to the bucket.
	KeyARN string
}

// RestoreJob fills an empty cluster from a backup.
type RestoreJob struct {
	// Owner is the Restore that it is made for.
	Owner contract.ObjectRef
	// Name of the operator's Restore: r-<id8>, and -a<N> for a further attempt.
	Name string
	// Source is where the snapshot is.
	Source BackupLocation
	// Log is where the log backup is; nil restores the snapshot as it is.
	Log *BackupLocation
	// PointInTime to restore to, with Log: a TSO, or a time as TiDB writes it,
	// such as 2026-08-01 12:00:00+0000.
	PointInTime string
}

// BackupLocation is a folder in a bucket, which may be of another Network.
type BackupLocation struct {
	Bucket string
	Prefix string // without a slash at either end
	Region string // AWS; empty for the cluster's own
}

// The types below are the part that we write of TiDB Operator's Backup and
// Restore, which v1 (pingcap.com) and v2 (br.pingcap.com) share.
type backupSpec struct {
	BackupMode     string       `json:"backupMode"`
	ToolImage      string       `json:"toolImage"`
	ServiceAccount string       `json:"serviceAccount"`
	BR             brSpec       `json:"br"`
	CleanPolicy    string       `json:"cleanPolicy,omitempty"`
	LogSubcommand  string       `json:"logSubcommand,omitempty"`
	Backoff        *backoffSpec `json:"backoffRetryPolicy,omitempty"`
	storage        `json:",inline"`
}

type restoreSpec struct {
	RestoreMode    string   `json:"restoreMode"`
	ToolImage      string   `json:"toolImage"`
	ServiceAccount string   `json:"serviceAccount"`
	BR             brSpec   `json:"br"`
	FullBackup     *storage `json:"pitrFullBackupStorageProvider,omitempty"`
	RestoredTS     string   `json:"pitrRestoredTs,omitempty"`
	storage        `json:",inline"`
}

type scheduleSpec struct {
	Schedule        string     `json:"schedule"`
	BackupTemplate  backupSpec `json:"backupTemplate"`
	MaxReservedTime string     `json:"maxReservedTime,omitempty"`
}

type brSpec struct {
	Cluster          string `json:"cluster"`
	ClusterNamespace string `json:"clusterNamespace"`
	// SendCredToTikv is false: TiKV has the role of its own service account,
	// and no key leaves the Pods.
	SendCredToTikv bool     `json:"sendCredToTikv"`
	RateLimit      int32    `json:"rateLimit,omitempty"` // MiB/s
	Options        []string `json:"options,omitempty"`
}

type backoffSpec struct {
	MinRetryDuration string `json:"minRetryDuration"`
	MaxRetryTimes    int    `json:"maxRetryTimes"`
	RetryTimeout     string `json:"retryTimeout"`
}

// storage is one of the clouds' storages.
type storage struct {
	S3  *s3Storage  `json:"s3,omitempty"`
	GCS *gcsStorage `json:"gcs,omitempty"`
}

type s3Storage struct {
	Provider string `json:"provider"`
	Region   string `json:"region"`
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix"`
	SSE      string `json:"sse,omitempty"`
}

type gcsStorage struct {
	ProjectID string `json:"projectId"`
	Bucket    string `json:"bucket"`
	Prefix    string `json:"prefix"`
}

// Backup is a snapshot by TiDB Operator, v1 or v2 as the plan says.
//
// The operator keeps the files (Retain) when the object goes, and so sets no
// finalizer: our own deletion cleans the prefix, and depends neither on a
// living operator nor on a living cluster (tidb-operator#2888).
func Backup(plan contract.ClusterPlan, config *configservice.ClusterConfig, job BackupJob) (*unstructured.Unstructured, error) {
	spec, err := snapshot(plan, config, BackupLocation{Bucket: plan.BucketName, Prefix: job.Prefix})
	if err != nil {
		return nil, err
	}
	spec.CleanPolicy = "Retain"
	spec.BR.RateLimit = job.RateLimitMiBps
	spec.Backoff = &backoffSpec{MinRetryDuration: "300s", MaxRetryTimes: 2, RetryTimeout: "30m"}
	if job.KeyARN != "" {
		if spec.S3 == nil {
			return nil, invalid(job.Owner.String(), "a key ARN encrypts backups on AWS only; on %s the bucket's key does", plan.Cloud)
		}
		spec.S3.SSE = "aws:kms"
		spec.BR.Options = append(spec.BR.Options, "--s3.sse-kms-key-id="+job.KeyARN)
	}
	return ownedBy(plan, job.Owner, "Backup", job.Name, spec)
}

// LogBackup streams all changes into the Network's bucket until it is deleted:
// with it a cluster can be restored to any point in time since the oldest
// snapshot that is kept.
func LogBackup(plan contract.ClusterPlan, config *configservice.ClusterConfig) (*unstructured.Unstructured, error) {
	spec, err := snapshot(plan, config, BackupLocation{Bucket: plan.BucketName, Prefix: plan.BackupPrefix() + "/log"})
	if err != nil {
		return nil, err
	}
	spec.BackupMode, spec.LogSubcommand, spec.CleanPolicy = "log", "log-start", "Retain"
	return object(plan, backupAPIVersion(plan), "Backup", LogBackupName, map[string]any{"spec": spec})
}

// BackupSchedule takes snapshots of the whole cluster into the Network's
// bucket, and deletes those that are older than the policy keeps them.
func BackupSchedule(plan contract.ClusterPlan, config *configservice.ClusterConfig) (*unstructured.Unstructured, error) {
	cron, err := cronOf(plan)
	if err != nil {
		return nil, err
	}
	template, err := snapshot(plan, config, BackupLocation{Bucket: plan.BucketName, Prefix: plan.BackupPrefix() + "/automatic"})
	if err != nil {
		return nil, err
	}
	template.CleanPolicy = "Delete"
	spec := scheduleSpec{Schedule: cron, BackupTemplate: template}
	if plan.BackupRetainDays > 0 {
		spec.MaxReservedTime = (time.Duration(plan.BackupRetainDays) * 24 * time.Hour).String()
	}
	return object(plan, backupAPIVersion(plan), "BackupSchedule", BackupScheduleName, map[string]any{"spec": spec})
}

// Restore fills the plan's cluster, by TiDB Operator v1 or v2 as the plan says.
// The operator does not try again: what a failed restore left behind has to go
// first.
func Restore(plan contract.ClusterPlan, config *configservice.ClusterConfig, job RestoreJob) (*unstructured.Unstructured, error) {
	image, err := brImage(plan, config)
	if err != nil {
		return nil, err
	}
	source, err := location(plan, job.Source)
	if err != nil {
		return nil, err
	}
	spec := restoreSpec{
		RestoreMode: "snapshot", ToolImage: image, ServiceAccount: contract.ServiceAccountBackup, BR: br(plan), storage: source,
	}
	switch {
	case (job.Log == nil) != (job.PointInTime == ""):
		return nil, invalid(job.Owner.String(), "a point in time needs a log backup, and a log backup a point in time")
	case job.Log != nil:
		log, err := location(plan, *job.Log)
		if err != nil {
			return nil, err
		}
		spec.RestoreMode, spec.RestoredTS, spec.FullBackup, spec.storage = "pitr", job.PointInTime, &source, log
	}
	return ownedBy(plan, job.Owner, "Restore", job.Name, spec)
}

func snapshot(plan contract.ClusterPlan, config *configservice.ClusterConfig, to BackupLocation) (backupSpec, error) {
	image, err := brImage(plan, config)
	if err != nil {
		return backupSpec{}, err
	}
	s, err := location(plan, to)
	return backupSpec{
		BackupMode: "snapshot", ToolImage: image, ServiceAccount: contract.ServiceAccountBackup, BR: br(plan), storage: s,
	}, err
}

func br(plan contract.ClusterPlan) brSpec {
	return brSpec{Cluster: plan.Name, ClusterNamespace: plan.Namespace}
}

func brImage(plan contract.ClusterPlan, config *configservice.ClusterConfig) (string, error) {
	if config.Images.Backup == "" {
		return "", invalid(plan.Ref.String(), "the configuration has no backup image, which backups and restores need")
	}
	return config.Images.Backup, nil
}

// location is a folder in the storage of the plan's cloud.
func location(plan contract.ClusterPlan, l BackupLocation) (storage, error) {
	if l.Bucket == "" || l.Prefix == "" || strings.Trim(l.Prefix, "/") != l.Prefix {
		return storage{}, invalid(plan.Ref.String(), "a backup needs a bucket (%q) and a prefix without a slash at either end (%q)", l.Bucket, l.Prefix)
	}
	switch providerType(plan.Cloud) {
	case ProviderAWS:
		region := l.Region
		if region == "" {
			region = plan.Account.Region
		}
		return storage{S3: &s3Storage{Provider: "aws", Region: region, Bucket: l.Bucket, Prefix: l.Prefix}}, nil
	case ProviderGCP:
		if plan.Account.ProjectID == "" {
			return storage{}, invalid(plan.Ref.String(), "its plan names no GCP project; this is a mistake of the planner")
		}
		return storage{GCS: &gcsStorage{ProjectID: plan.Account.ProjectID, Bucket: l.Bucket, Prefix: l.Prefix}}, nil
	}
	return storage{}, invalid(plan.Ref.String(), "there are no backups on cloud %q; use AWS or GCP", plan.Cloud)
}

// backupAPIVersion is that of Backup, Restore and BackupSchedule.
func backupAPIVersion(plan contract.ClusterPlan) string {
	if plan.Operator == OperatorV2 {
		return brAPIVersion
	}
	return pingcapAPIVersion
}

// ownedBy is an object in the cluster's namespace that belongs to another
// custom resource of ours than the Cluster.
func ownedBy(plan contract.ClusterPlan, owner contract.ObjectRef, kind, name string, spec any) (*unstructured.Unstructured, error) {
	if name == "" {
		return nil, invalid(owner.String(), "the operator's %s has no name; this is a mistake of the caller", kind)
	}
	u, err := object(plan, backupAPIVersion(plan), kind, name, map[string]any{"spec": spec})
	if err == nil {
		u.SetLabels(OwnerLabels(owner))
		u.SetAnnotations(OwnerAnnotations(owner, plan.Env))
	}
	return u, err
}

// cronOf is the schedule in UTC; Weekly is on Sundays.
func cronOf(plan contract.ClusterPlan) (string, error) {
	at, err := time.Parse("15:04", plan.BackupTimeUTC)
	if err != nil {
		return "", invalid(plan.Ref.String(), "backup time %q does not look like 02:00", plan.BackupTimeUTC)
	}
	switch plan.BackupSchedule {
	case "Daily":
		return fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()), nil
	case "Weekly":
		return fmt.Sprintf("%d %d * * 0", at.Minute(), at.Hour()), nil
	}
	return "", invalid(plan.Ref.String(), "backup schedule %q is neither Daily nor Weekly", plan.BackupSchedule)
}
