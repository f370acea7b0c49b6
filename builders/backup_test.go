package builders

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

func TestBackupBelongsToTheBackup(t *testing.T) {
	job := BackupJob{Owner: backupRef(), Name: "b-00112233", Prefix: "p"}
	for operator, apiVersion := range map[string]string{OperatorV1: "pingcap.com/v1alpha1", OperatorV2: "br.pingcap.com/v1alpha1"} {
		plan := clusterPlan()
		plan.Operator = operator
		u := must(Backup(plan, clusterConfig(), job))(t)
		require.Equal(t, apiVersion, u.GetAPIVersion())
		require.Equal(t, "0011223344556677", u.GetLabels()["infra.cloud.pingcap.com/id"])
		require.Equal(t, "infra/b1", u.GetAnnotations()["infra.cloud.pingcap.com/name"])
		require.Equal(t, "tidb-fedcba98", u.GetNamespace())
		require.Equal(t, "Retain", field(t, u, "spec", "cleanPolicy"), "cleaning is our own step")
		require.Equal(t, false, field(t, u, "spec", "br", "sendCredToTikv"))
		_, limited, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "br", "rateLimit")
		require.False(t, limited, "0 is no limit, not a limit of 0")
	}
}

func TestTheCloudDecidesTheStorage(t *testing.T) {
	job := BackupJob{Owner: backupRef(), Name: "b", Prefix: "p"}
	u := must(Backup(gcpClusterPlan(), clusterConfig(), job))(t)
	require.Equal(t, "core-prod", field(t, u, "spec", "gcs", "projectId"))
	_, s3, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "s3")
	require.False(t, s3)
	u = must(Backup(clusterPlan(), clusterConfig(), job))(t)
	require.Equal(t, "us-west-2", field(t, u, "spec", "s3", "region"))
	_, gcs, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "gcs")
	require.False(t, gcs)
}

func TestPointInTime(t *testing.T) {
	log := &BackupLocation{Bucket: "b", Prefix: "log"}
	job := RestoreJob{Owner: restoreRef(), Name: "r", Source: BackupLocation{Bucket: "b", Prefix: "full", Region: "eu-central-1"}, Log: log, PointInTime: "443123456789"}
	u := must(Restore(clusterPlan(), clusterConfig(), job))(t)
	require.Equal(t, "pitr", field(t, u, "spec", "restoreMode"))
	require.Equal(t, "log", field(t, u, "spec", "s3", "prefix"), "the log is the source, the snapshot its base")
	require.Equal(t, "full", field(t, u, "spec", "pitrFullBackupStorageProvider", "s3", "prefix"))
	require.Equal(t, "eu-central-1", field(t, u, "spec", "pitrFullBackupStorageProvider", "s3", "region"))
}

func TestBackupRefusals(t *testing.T) {
	good := BackupJob{Owner: backupRef(), Name: "b", Prefix: "p"}
	source := BackupLocation{Bucket: "b", Prefix: "p"}
	noImage := clusterConfig()
	noImage.Images.Backup = ""
	elsewhere, noProject := clusterPlan(), gcpClusterPlan()
	elsewhere.Cloud, noProject.Account.ProjectID = "Azure", ""
	for says, err := range map[string]error{
		"no backup image": failed(Backup(clusterPlan(), noImage, good)),
		"has no name":     failed(Backup(clusterPlan(), clusterConfig(), BackupJob{Owner: backupRef(), Prefix: "p"})),
		`a prefix without a slash at either end ("")`:   failed(Backup(clusterPlan(), clusterConfig(), BackupJob{Owner: backupRef(), Name: "b"})),
		`a prefix without a slash at either end ("/p")`: failed(Backup(clusterPlan(), clusterConfig(), BackupJob{Owner: backupRef(), Name: "b", Prefix: "/p"})),
		"on AWS only":                     failed(Backup(gcpClusterPlan(), clusterConfig(), BackupJob{Owner: backupRef(), Name: "b", Prefix: "p", KeyARN: "arn"})),
		`no backups on cloud "Azure"`:     failed(Backup(elsewhere, clusterConfig(), good)),
		"names no GCP project":            failed(LogBackup(noProject, clusterConfig())),
		"which backups and restores need": failed(Restore(clusterPlan(), noImage, RestoreJob{Name: "r", Source: source})),
		"a log backup a point in time":    failed(Restore(clusterPlan(), clusterConfig(), RestoreJob{Name: "r", Source: source, Log: &source})),
		"a point in time needs":           failed(Restore(clusterPlan(), clusterConfig(), RestoreJob{Name: "r", Source: source, PointInTime: "1"})),
		"a bucket (\"\")":                 failed(Restore(clusterPlan(), clusterConfig(), RestoreJob{Name: "r"})),
	} {
		require.True(t, faults.Is(err, faults.Invalid), "%s: %v", says, err)
		require.ErrorContains(t, err, says)
	}
}

func failed(_ *unstructured.Unstructured, err error) error { return err }

func TestGroups(t *testing.T) {
	plan := clusterPlan()
	plan.Components[1].Pools = plan.Components[1].Pools[:2]
	groups := must(Groups(plan, clusterConfig()))(t)
	require.Len(t, groups, 4)
	tikv := groups[1]
	require.Equal(t, "TiKVGroup", tikv.GetKind())
	require.Equal(t, "tikv", tikv.GetName())
	require.Equal(t, "db", field(t, tikv, "spec", "cluster", "name"))
	policies := field(t, tikv, "spec", "schedulePolicies").([]any)
	topologies := policies[0].(map[string]any)["evenlySpread"].(map[string]any)["topologies"].([]any)
	require.Len(t, topologies, 2, "only zones that have nodes for it")
	pod := field(t, tikv, "spec", "template", "spec", "overlay", "pod", "spec").(map[string]any)
	require.Equal(t, contract.ServiceAccountDatabase, pod["serviceAccountName"])
	require.Equal(t, "tikv", pod["nodeSelector"].(map[string]any)["dedicated"])
	resources := field(t, tikv, "spec", "template", "spec", "resources").(map[string]any)
	require.Equal(t, map[string]any{"cpu": "6", "memory": "24Gi"}, resources, "storage is the volume's")
	_, hasVolumes, _ := unstructured.NestedSlice(groups[2].Object, "spec", "template", "spec", "volumes")
	require.False(t, hasVolumes, "TiDB needs no volume")
	_, suspended, _ := unstructured.NestedFieldNoCopy(must(Cluster(plan, false))(t).Object, "spec", "suspendAction")
	require.False(t, suspended)
}

func TestGroupsRefusals(t *testing.T) {
	for says, change := range map[string]func(*contract.ClusterPlan){
		"tidb is missing":           func(p *contract.ClusterPlan) { p.Components = p.Components[:2] },
		`no component "pump"`:       func(p *contract.ClusterPlan) { p.Components[0].Name = "pump" },
		"tikv needs a storage size": func(p *contract.ClusterPlan) { p.Components[1].StorageSize = "" },
		"pd: quantities must match": func(p *contract.ClusterPlan) { p.Components[0].Memory = "much" },
	} {
		plan := clusterPlan()
		change(&plan)
		_, err := Groups(plan, clusterConfig())
		require.True(t, faults.Is(err, faults.Invalid), "%v", err)
		require.ErrorContains(t, err, says)
	}
	config := clusterConfig()
	config.Images.TiFlash = ""
	_, err := Groups(clusterPlan(), config)
	require.ErrorContains(t, err, "image of tiflash is missing")
	plan := clusterPlan()
	plan.Name = "a-name-that-has-more-than-thirty-seven-characters"
	_, err = Cluster(plan, false)
	require.ErrorContains(t, err, "longer than 37")
}
