package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionSourceReachable says that the source of an Import can be read.
const ConditionSourceReachable = "SourceReachable"

// ImportFormat is the format of the files of an Import.
// +kubebuilder:validation:Enum=CSV;SQL;Parquet;AuroraSnapshot
type ImportFormat string

const (
	ImportCSV            ImportFormat = "CSV"
	ImportSQL            ImportFormat = "SQL"
	ImportParquet        ImportFormat = "Parquet"
	ImportAuroraSnapshot ImportFormat = "AuroraSnapshot"
)

// ImportMode says how the data gets into the Cluster.
// +kubebuilder:validation:Enum=Physical;Logical
type ImportMode string

const (
	ImportPhysical ImportMode = "Physical" // files into TiKV; fast, into empty tables only
	ImportLogical  ImportMode = "Logical"  // SQL statements
)

// ImportSpec loads files from a bucket into a Cluster. Everything but cancel
// and deletionPolicy is immutable.
//
// +kubebuilder:validation:XValidation:rule="!has(self.csv) || self.format == 'CSV'",fieldPath=".csv",reason=FieldValueForbidden,message="goes with format CSV only; remove it or set format to CSV"
// +kubebuilder:validation:XValidation:rule="self.onConflict == 'Error' || self.mode == 'Logical'",fieldPath=".onConflict",message="Replace and Ignore go with mode Logical only; set onConflict to Error or mode to Logical"
// +kubebuilder:validation:XValidation:rule="has(self.csv) == has(oldSelf.csv) && (!has(self.csv) || self.csv == oldSelf.csv)",fieldPath=".csv",message="is immutable; create another Import"
// +kubebuilder:validation:XValidation:rule="has(self.filePattern) == has(oldSelf.filePattern) && (!has(self.filePattern) || self.filePattern == oldSelf.filePattern)",fieldPath=".filePattern",message="is immutable; create another Import"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?cancel.orValue(false) && !self.?cancel.orValue(false))",fieldPath=".cancel",message="cannot be taken back once it is true; create another Import"
type ImportSpec struct {
	// ClusterName is the name of the Cluster that gets the data. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Import into another Cluster",messageExpression="'was ' + oldSelf + ' and is immutable; create another Import into another Cluster'"
	ClusterName ReferenceName `json:"clusterName"`
	// Source is where the files are. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Import from another source"
	Source ImportSource `json:"source"`
	// Format of the files: CSV, SQL, Parquet or AuroraSnapshot. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Import",messageExpression="'was ' + oldSelf + ' and is immutable; create another Import'"
	Format ImportFormat `json:"format"`
	// CSV is the dialect of format CSV. Immutable.
	// +optional
	CSV *CSVFormat `json:"csv,omitempty"`
	// FilePattern chooses files under the source's URI; * stands for any
	// characters, ? for one. All files by default. Immutable.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x1f\[\]{}]*$')`,message="may have * and ? for any characters, and no brackets, braces or control characters"
	// +optional
	FilePattern string `json:"filePattern,omitempty"`
	// Target is the table that gets the data; by default the names of the files
	// say it. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Import into another table"
	// +kubebuilder:default={}
	// +optional
	Target ImportTarget `json:"target,omitempty"`
	// Mode is Physical (fast, into empty tables only) or Logical. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Import",messageExpression="'was ' + oldSelf + ' and is immutable; create another Import'"
	// +kubebuilder:default=Physical
	// +optional
	Mode ImportMode `json:"mode,omitempty"`
	// OnConflict says what happens to a row whose key exists already: Error,
	// or with mode Logical also Replace and Ignore. Immutable.
	// +kubebuilder:validation:Enum=Error;Replace;Ignore
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Import",messageExpression="'was ' + oldSelf + ' and is immutable; create another Import'"
	// +kubebuilder:default=Error
	// +optional
	OnConflict string `json:"onConflict,omitempty"`
	// Cancel stops the import. It cannot be taken back.
	// +kubebuilder:default=false
	// +optional
	Cancel bool `json:"cancel,omitempty"`
	// DeletionPolicy is part of every kind. An Import leaves nothing outside of
	// the database, so both values mean the same.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ImportSourceType is the kind of bucket.
// +kubebuilder:validation:Enum=S3;GCS
type ImportSourceType string

const (
	ImportFromS3  ImportSourceType = "S3"
	ImportFromGCS ImportSourceType = "GCS"
)

// ImportSource is where the files of an Import are.
// +kubebuilder:validation:XValidation:rule="self.type != 'S3' || self.uri.startsWith('s3://')",fieldPath=".uri",message="must begin with s3:// when type is S3"
// +kubebuilder:validation:XValidation:rule="self.type != 'GCS' || self.uri.startsWith('gs://')",fieldPath=".uri",message="must begin with gs:// when type is GCS"
// +kubebuilder:validation:XValidation:rule="!self.uri.matches('[?#@]')",fieldPath=".uri",reason=FieldValueForbidden,message="must not have parameters or credentials: those belong into a Secret, see secretRef"
// +kubebuilder:validation:XValidation:rule="self.uri.matches('^[a-z0-9]+://[a-z0-9][-a-z0-9._]{1,61}[a-z0-9](/.*)?$')",fieldPath=".uri",message="must name a bucket and a folder in it, such as s3://bucket/path/"
// +kubebuilder:validation:XValidation:rule="self.type != 'S3' || has(self.s3)",fieldPath=".s3",reason=FieldValueRequired,message="is required with type S3: give roleARN or secretRef"
// +kubebuilder:validation:XValidation:rule="self.type == 'S3' || !has(self.s3)",fieldPath=".s3",reason=FieldValueForbidden,message="goes with type S3 only; remove it or set type to S3"
// +kubebuilder:validation:XValidation:rule="self.type == 'GCS' || !has(self.gcs)",fieldPath=".gcs",reason=FieldValueForbidden,message="goes with type GCS only; remove it or set type to GCS"
type ImportSource struct {
	// Type of the bucket: S3 for Clusters on AWS, GCS for Clusters on GCP; the
	// other one needs keys in a Secret.
	Type ImportSourceType `json:"type"`
	// URI of the folder, such as s3://bucket/path/.
	// +kubebuilder:validation:MaxLength=1024
	URI string `json:"uri"`
	// S3 says how a bucket on AWS is read.
	// +optional
	S3 *ImportS3Access `json:"s3,omitempty"`
	// GCS says how a bucket on GCP is read. By default as the service account
	// of the Cluster's status.import.serviceAccountEmail.
	// +optional
	GCS *ImportGCSAccess `json:"gcs,omitempty"`
}

// ImportS3Access says how a bucket on AWS is read.
// +kubebuilder:validation:XValidation:rule="has(self.roleARN) != has(self.secretRef)",message="exactly one of roleARN and secretRef must be set"
type ImportS3Access struct {
	// RoleARN to assume. It must trust the Cluster's status.import.roleARN with
	// the external id that is published there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$')`,message="must be the ARN of a role, such as arn:aws:iam::123456789012:role/reader"
	// +optional
	RoleARN string `json:"roleARN,omitempty"`
	// SecretRef names a Secret with accessKeyID and secretAccessKey.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// ImportGCSAccess says how a bucket on GCP is read.
type ImportGCSAccess struct {
	// SecretRef names a Secret whose key serviceAccount.json holds a service
	// account's key. A Cluster on GCP does without.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// CSVFormat is a dialect of CSV.
// +kubebuilder:validation:XValidation:rule="self.separator != self.delimiter",fieldPath=".delimiter",message="must differ from separator"
type CSVFormat struct {
	// Separator between fields.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:default=","
	// +optional
	Separator string `json:"separator,omitempty"`
	// Delimiter around fields; empty for none.
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:default="\""
	// +optional
	Delimiter *string `json:"delimiter,omitempty"`
	// Header says that the first line of each file holds names of columns.
	// +kubebuilder:default=true
	// +optional
	Header *bool `json:"header,omitempty"`
	// BackslashEscape says that a backslash escapes the next character.
	// +kubebuilder:default=true
	// +optional
	BackslashEscape *bool `json:"backslashEscape,omitempty"`
	// NullValue is what stands for NULL.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:default="\\N"
	// +optional
	NullValue *string `json:"nullValue,omitempty"`
}

// ImportTarget is the table that gets the data of an Import.
// +kubebuilder:validation:XValidation:rule="(has(self.database) && size(self.database) > 0) == (has(self.table) && size(self.table) > 0)",message="database and table go together; give both, or none to go by the names of the files"
type ImportTarget struct {
	// Database of the table.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Database string `json:"database,omitempty"`
	// Table that gets the data.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Table string `json:"table,omitempty"`
}

// ImportStatus is what is observed of an Import. Conditions: Ready,
// Progressing, Stalled, SourceReachable.
type ImportStatus struct {
	CommonStatus `json:",inline"`
	// Progress in percent.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// TotalBytes of the files.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// ImportedBytes so far.
	// +optional
	ImportedBytes int64 `json:"importedBytes,omitempty"`
	// Tables that get data.
	// +listType=map
	// +listMapKey=name
	// +optional
	Tables []ImportTable `json:"tables,omitempty"`
	// Job that loads the data.
	// +optional
	Job *ImportJob `json:"job,omitempty"`
	// Checkpoint that a new job goes on from.
	// +optional
	Checkpoint *ImportCheckpoint `json:"checkpoint,omitempty"`
}

// ImportTable is a table that gets data.
type ImportTable struct {
	// Name as database.table.
	Name string `json:"name"`
	// State of the table.
	State string `json:"state"`
	// Rows that it got.
	// +optional
	Rows int64 `json:"rows,omitempty"`
}

// ImportJob is the job that loads the data.
type ImportJob struct {
	// Kind is Lightning (a Job in the Shoot) or ImportInto (a job of TiDB).
	// +kubebuilder:validation:Enum=Lightning;ImportInto
	Kind string `json:"kind"`
	// ID of the job.
	ID string `json:"id"`
}

// ImportCheckpoint is what a new job goes on from.
type ImportCheckpoint struct {
	// Location of the checkpoint.
	Location string `json:"location"`
}

// Import loads files from a bucket into a Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=imp,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="CLUSTER",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="SOURCE",type=string,JSONPath=`.spec.source.uri`
// +kubebuilder:printcolumn:name="FORMAT",type=string,JSONPath=`.spec.format`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="PROGRESS",type=integer,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`,priority=1
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type Import struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ImportSpec   `json:"spec"`
	Status ImportStatus `json:"status,omitempty"`
}

// Common returns the common part of the Import's status.
func (i *Import) Common() *CommonStatus { return &i.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (i *Import) GetDeletionPolicy() DeletionPolicy { return i.Spec.DeletionPolicy.orDefault() }

// ImportList is a list of Imports.
// +kubebuilder:object:root=true
type ImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Import `json:"items"`
}
