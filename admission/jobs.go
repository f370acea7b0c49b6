package admission

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
	"github.com/tidbcloud/infra-orchestrator/plan/exclusion"
)

// JobFacts are what the rules of a new Backup, Import or TiCDC look at; nil for
// what does not exist or is not known.
type JobFacts struct {
	Cluster *v1.Cluster
	// Network of the Cluster, and the Account behind it.
	Network *v1.Network
	Account *v1.Account
	// Cloud of the Network's ProviderType; "" when unknown.
	Cloud v1.Cloud
	// Running is what runs on the Cluster.
	Running []exclusion.Running
}

// Backup judges a Backup. A migrated one is a record of data that exists.
func Backup(old, b *v1.Backup, f JobFacts) Verdict {
	if old != nil || Migrated(b) {
		return allowed
	}
	const path = "spec.clusterName"
	name := b.Spec.ClusterName
	list := target(path, string(name), f.Cluster, v1.PhaseAvailable, v1.PhaseModifying, v1.PhaseUpgrading, v1.PhaseImporting, v1.PhasePausing, v1.PhasePaused)
	list = append(list, ofCluster(b, f.Cluster)...)
	if len(list) > 0 {
		return Verdict{Problems: list}
	}
	if b.Spec.Type != v1.BackupAuto { // the schedule delays or skips its own
		list = append(list, excluded(path, name, exclusion.Request{Want: exclusion.WantBackup}, f.Running)...)
	}
	list = append(list, plan.Suspended(path, name, f.Account)...)
	list = append(list, keyRegion("spec.encryption.keyARN", b.Spec.Encryption.KeyARN, f.Network)...)
	return Verdict{Problems: list}
}

// keyRegion refuses a key that the Network's region cannot use.
func keyRegion(path, arn string, n *v1.Network) []plan.Problem {
	parts := strings.Split(arn, ":")
	if arn == "" || n == nil || len(parts) > 3 && parts[3] == string(n.Spec.Region) {
		return nil
	}
	return []plan.Problem{plan.NewProblem(path, arn, "must be the ARN of a KMS key in the Network's region, %s", n.Spec.Region)}
}

// target refuses a Cluster that does not exist, goes, or is in none of the
// phases.
func target(path, name string, c *v1.Cluster, phases ...v1.Phase) []plan.Problem {
	if c == nil {
		return []plan.Problem{plan.Missing(path, v1.KindCluster, name)}
	}
	if c.DeletionTimestamp != nil {
		return []plan.Problem{plan.NewProblem(path, name, "the Cluster is being deleted; choose another one")}
	}
	for _, p := range phases {
		if c.Status.Phase == p {
			return nil
		}
	}
	return []plan.Problem{plan.NewProblem(path, name, "the Cluster is %s; wait until it is %s", phase(c), phases[0])}
}

// Import judges an Import. A migrated one is a record of what was done.
func Import(old, i *v1.Import, f JobFacts) Verdict {
	if old != nil || Migrated(i) {
		return allowed
	}
	const path = "spec.clusterName"
	name := i.Spec.ClusterName
	list := target(path, string(name), f.Cluster, v1.PhaseAvailable, v1.PhaseModifying, v1.PhaseUpgrading, v1.PhaseImporting, v1.PhasePausing, v1.PhasePaused)
	if len(list) == 0 {
		list = excluded(path, name, exclusion.Request{Want: exclusion.WantImport, Physical: i.Spec.Mode != v1.ImportLogical}, f.Running)
	}
	list = append(list, ofCluster(i, f.Cluster)...)
	list = append(list, importSource(i, f.Cloud)...)
	return Verdict{Problems: list}
}

// importSource: the Cluster's own identity reads buckets of its own cloud only;
// for the other one it needs keys.
func importSource(i *v1.Import, cloud v1.Cloud) []plan.Problem {
	s := i.Spec.Source
	switch {
	case cloud == v1.CloudAWS && s.Type == v1.ImportFromGCS && (s.GCS == nil || s.GCS.SecretRef == nil):
		return []plan.Problem{plan.NewProblem("spec.source.gcs.secretRef", "", "is required: a Cluster on AWS reads a bucket on GCP with the key of a service account only")}
	case cloud == v1.CloudGCP && s.Type == v1.ImportFromS3 && (s.S3 == nil || s.S3.SecretRef == nil):
		return []plan.Problem{plan.NewProblem("spec.source.s3.secretRef", "", "is required: a Cluster on GCP reads a bucket on AWS with an access key only")}
	}
	return nil
}

// RestoreFacts are what the rules of a new Restore look at; nil for what does
// not exist or is not known.
type RestoreFacts struct {
	Backup *v1.Backup
	// Source is the Cluster that was backed up, if it still exists.
	Source *v1.Cluster
	// Cluster that gets the data, and its Network.
	Cluster *v1.Cluster
	Network *v1.Network
	// Cloud of the Network and of the Backup's; "" when unknown.
	Cloud, BackupCloud v1.Cloud
	// Others are the Restores into the same Cluster.
	Others []*v1.Restore
	// Running is what runs on the Cluster.
	Running []exclusion.Running
}

// Restore judges a Restore. Of a migrated one only the Backup is looked at.
func Restore(old, r *v1.Restore, f RestoreFacts) Verdict {
	if old != nil {
		return allowed
	}
	list := restoredBackup(r, f)
	if Migrated(r) {
		return Verdict{Problems: list}
	}
	const path = "spec.clusterName"
	name := string(r.Spec.ClusterName)
	switch {
	case f.Cluster == nil:
		return Verdict{Problems: append(list, plan.Missing(path, v1.KindCluster, name))}
	case f.Cluster.DeletionTimestamp != nil:
		return Verdict{Problems: append(list, plan.NewProblem(path, name, "the Cluster is being deleted; choose another one"))}
	}
	list = append(list, ofCluster(r, f.Cluster)...)
	list = append(list, restoreTarget(r, f)...)
	list = append(list, excluded(path, name, exclusion.Request{Want: exclusion.WantRestore}, f.Running)...)
	if b := f.Backup; b != nil && b.Status.Cluster != nil {
		list = append(list, fits(path, name, f, b.Status.Cluster)...)
	}
	return Verdict{Problems: list}
}

func restoredBackup(r *v1.Restore, f RestoreFacts) []plan.Problem {
	const path = "spec.backupName"
	name, b := r.Spec.BackupName, f.Backup
	switch {
	case b == nil:
		return []plan.Problem{plan.Missing(path, v1.KindBackup, name)}
	case b.DeletionTimestamp != nil:
		return []plan.Problem{plan.NewProblem(path, name, "the Backup is being deleted; choose another one")}
	case Migrated(b):
		return nil // a record: the operation looks at the data itself
	case b.Status.Phase == v1.PhaseFailed || b.Status.Phase == v1.PhaseCancelled || b.Status.Phase == v1.PhaseCancelling:
		return []plan.Problem{plan.NewProblem(path, name, "the Backup is %s and holds no data; choose another one", b.Status.Phase)}
	case b.Status.Phase != v1.PhaseSucceeded:
		return []plan.Problem{plan.NewProblem(path, name, "the Backup has not ended yet, and taking one is not supported yet; name a migrated Backup")}
	case !meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionDataAvailable):
		return []plan.Problem{plan.NewProblem(path, name, "the Backup's data is not available (condition DataAvailable); choose another one")}
	}
	return nil
}

// restoreTarget are the rules about the Cluster alone.
func restoreTarget(r *v1.Restore, f RestoreFacts) []plan.Problem {
	const path = "spec.clusterName"
	name, c := string(r.Spec.ClusterName), f.Cluster
	var list []plan.Problem
	if b := f.Backup; b != nil && (b.Spec.ClusterName == r.Spec.ClusterName && (b.Status.Cluster == nil || b.Status.Cluster.UID == string(c.UID))) {
		list = append(list, plan.NewProblem(path, name, "is the Cluster that was backed up; a Restore goes into a new Cluster with bootstrap.mode Restore, which is not supported yet"))
	}
	if c.Spec.Bootstrap.Mode != "Restore" {
		list = append(list, plan.NewProblem(path, name, "the Cluster has bootstrap.mode %s; only a Cluster that was created with bootstrap.mode Restore takes a Restore, which is not supported yet", orEmpty(c.Spec.Bootstrap.Mode)))
	}
	for _, other := range f.Others {
		if other.Name == r.Name || other.Status.Phase == v1.PhaseFailed || other.Status.Phase == v1.PhaseCancelled {
			continue
		}
		if ended(other.Status.Phase) {
			list = append(list, plan.NewProblem(path, name, "Restore %s has filled the Cluster already; restore into another Cluster", other.Name))
		} else if !working(other.Status.Phase) { // one that works is among what runs
			list = append(list, plan.NewProblem(path, name, "Restore %s into the Cluster is on its way already; delete it first, or restore into another Cluster", other.Name))
		}
	}
	if r.Spec.PointInTime != nil && f.Source != nil && !f.Source.Spec.BackupPolicy.PITR {
		list = append(list, plan.NewProblem("spec.pointInTime", r.Spec.PointInTime.UTC().Format("2006-01-02T15:04:05Z"), "the backed-up Cluster %s has no point-in-time recovery; remove it to restore to the time of the Backup", f.Source.Name))
	}
	return list
}

func orEmpty(mode string) string {
	if mode == "" {
		return "Empty"
	}
	return mode
}

// fits compares the Cluster with the one that was backed up.
func fits(path, name string, f RestoreFacts, was *v1.BackedUpCluster) []plan.Problem {
	var list []plan.Problem
	if f.Cloud != "" && f.BackupCloud != "" && f.Cloud != f.BackupCloud {
		list = append(list, plan.NewProblem(path, name, "the Cluster is on %s and the Backup on %s; restore into a Cluster on the same cloud", f.Cloud, f.BackupCloud))
	}
	if n := f.Network; n != nil && was.Region != "" && string(n.Spec.Region) != was.Region {
		list = append(list, plan.NewProblem(path, name, "the Cluster is in region %s and the Backup in %s; restore into a Cluster in the same region", n.Spec.Region, was.Region))
	}
	from, ok1 := version(was.Version)
	to, ok2 := version(f.Cluster.Spec.Version)
	if ok1 && ok2 && (to[0] != from[0] || less(to, from)) {
		list = append(list, plan.NewProblem(path, name, "the Cluster is of version %s and the Backup of %s; restore into a Cluster of that version, or of a later one with the same major version", f.Cluster.Spec.Version, was.Version))
	}
	if t := was.Topology; t != nil {
		has, ok1 := capacity(f.Cluster.Spec.Topology.TiKV.Replicas, f.Cluster.Spec.Topology.TiKV.Storage.Size)
		needs, ok2 := capacity(t.TiKVReplicas, t.TiKVStorage)
		if ok1 && ok2 && has < needs {
			list = append(list, plan.NewProblem(path, name, "the Cluster's TiKV has %d × %s and the Backup's had %d × %s; restore into a Cluster with at least that much",
				f.Cluster.Spec.Topology.TiKV.Replicas, f.Cluster.Spec.Topology.TiKV.Storage.Size, t.TiKVReplicas, t.TiKVStorage))
		}
	}
	return list
}

func capacity(replicas int32, size v1.StorageSize) (int64, bool) {
	q, err := resource.ParseQuantity(string(size))
	return int64(replicas) * q.Value(), err == nil
}

// version parses vX.Y.Z.
func version(s string) (out [3]int, ok bool) {
	parts := strings.Split(strings.TrimPrefix(s, "v"), ".")
	if len(parts) != 3 {
		return out, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return out, false
		}
		out[i] = n
	}
	return out, true
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// TiCDCFacts are what the rules of a new TiCDC look at; nil for what is not
// known. The Clusters may come later, so that one which is missing is no
// problem here: the operation waits for it.
type TiCDCFacts struct {
	Network *v1.Network
	Type    *v1.ProviderType
	Account *v1.Account
	// Upstream and Downstream Cluster.
	Upstream, Downstream *v1.Cluster
	// Peered are the Networks that a NetworkPeer connects the TiCDC's with.
	Peered map[string]bool
	// OnUpstream and OnDownstream are what runs on the Clusters.
	OnUpstream, OnDownstream []exclusion.Running
}

// TiCDC judges a TiCDC.
func TiCDC(old, t *v1.TiCDC, f TiCDCFacts) Verdict {
	if old != nil {
		return allowed
	}
	var list []plan.Problem
	if f.Network != nil && f.Network.DeletionTimestamp != nil {
		list = append(list, plan.NewProblem("spec.network", t.Spec.Network, "the Network is being deleted; choose another one"))
	}
	list = append(list, ofNetwork(t, f.Network)...)
	list = append(list, plan.Suspended("spec.network", t.Spec.Network, f.Account)...)
	if f.Type != nil {
		list = append(list, plan.CheckMachine("spec.machineClass", t.Spec.MachineClass, v1.ComponentTiCDC, f.Type)...)
	}
	list = append(list, replicated("spec.upstream.clusterName", f.Upstream, f, false, f.OnUpstream, string(t.Spec.Network))...)
	list = append(list, replicated("spec.downstream.clusterName", f.Downstream, f, true, f.OnDownstream, string(t.Spec.Network))...)
	return Verdict{Problems: list}
}

// replicated are the rules about one end of a TiCDC.
func replicated(path string, c *v1.Cluster, f TiCDCFacts, downstream bool, running []exclusion.Running, network string) []plan.Problem {
	if c == nil {
		return nil
	}
	if c.DeletionTimestamp != nil {
		return []plan.Problem{plan.NewProblem(path, c.Name, "the Cluster is being deleted; choose another one")}
	}
	var list []plan.Problem
	if at := string(c.Spec.Network); at != network && !f.Peered[at] {
		list = append(list, plan.NewProblem(path, c.Name, "the Cluster is in Network %s, which is not peered with %s; create a NetworkPeer first, or choose another network", at, network))
	}
	return append(list, excluded(path, c.Name, exclusion.Request{Want: exclusion.WantTiCDC, Target: downstream}, running)...)
}
