package builders

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

var updateGolden = flag.Bool("update", false, "write testdata/golden anew")

// manifest is an object of ours with the schema that it must fit; objects of
// Kubernetes itself have none here.
type manifest struct {
	schema string
	object any
}

// golden are all manifests that we write, by file.
func golden(t *testing.T) map[string][]manifest {
	t.Helper()
	const key, gcpKey = "arn:aws:kms:us-west-2:123456789012:key/0b1c", "projects/core-prod/locations/us-central1/keyRings/ic/cryptoKeys/ic-fedcba98"
	aws, gcp := clusterPlan(), gcpClusterPlan()
	v2 := aws
	v2.Operator = OperatorV2
	secretBinding := networkPlan()
	secretBinding.CredentialsKind = "SecretBinding"
	existing := gcpNetworkPlan()
	existing.GCP = &contract.GCPNetworkPlan{
		InternalCIDR: "10.252.0.0/22", ExistingNetwork: "shared", ExistingRouter: "shared-router",
		NATAddresses: []string{"egress-1", "egress-2"}, NodeServiceAccount: "nodes@core-prod.iam.gserviceaccount.com",
	}
	backup := BackupJob{Owner: backupRef(), Name: "b-0011223344", Prefix: "clusters/fedcba9876543210/0011223344556677", RateLimitMiBps: 64}
	encrypted := backup
	encrypted.KeyARN = key
	restore := RestoreJob{Owner: restoreRef(), Name: "r-8899aabb", Source: BackupLocation{Bucket: "ic-01234567-789012-data", Prefix: "clusters/0000/b1", Region: "us-west-2"}}
	pitr := restore
	pitr.Log, pitr.PointInTime = &BackupLocation{Bucket: "ic-01234567-789012-data", Prefix: "clusters/0000/log"}, "2026-08-01 12:00:00+0000"

	return map[string][]manifest{
		"shoot-aws.yaml":          {{"core.gardener.cloud_shoots.json", must(Shoot(networkPlan()))(t)}},
		"shoot-gcp.yaml":          {{"core.gardener.cloud_shoots.json", must(Shoot(gcpNetworkPlan()))(t)}},
		"shoot-gcp-existing.yaml": {{"core.gardener.cloud_shoots.json", must(Shoot(existing))(t)}},
		"binding-aws.yaml":        {{"security.gardener.cloud_credentialsbindings.json", CredentialsBinding(networkPlan())}},
		"binding-gcp.yaml":        {{"security.gardener.cloud_credentialsbindings.json", CredentialsBinding(gcpNetworkPlan())}},
		"secretbinding-aws.yaml":  {{"core.gardener.cloud_secretbindings.json", CredentialsBinding(secretBinding)}},
		"tidbcluster.yaml":        {{"tidbclusters.pingcap.com.json", must(TidbCluster(aws, clusterConfig()))(t)}},
		"tidbinitializer.yaml":    {{"tidbinitializers.pingcap.com.json", must(TidbInitializer(aws, clusterConfig()))(t)}},
		"cluster-v2.yaml":         groupsOf(t, v2, false),
		"cluster-v2-suspended.yaml": {
			{"clusters.core.pingcap.com.json", must(Cluster(v2, true))(t)},
		},
		"backup-aws.yaml":    {{"backups.pingcap.com.json", must(Backup(aws, clusterConfig(), encrypted))(t)}},
		"backup-aws-v2.yaml": {{"backups.br.pingcap.com.json", must(Backup(v2, clusterConfig(), encrypted))(t)}},
		"backup-gcp.yaml":    {{"backups.pingcap.com.json", must(Backup(gcp, clusterConfig(), backup))(t)}},
		"backup-log.yaml":    {{"backups.pingcap.com.json", must(LogBackup(aws, clusterConfig()))(t)}},
		"backup-log-v2.yaml": {{"backups.br.pingcap.com.json", must(LogBackup(v2, clusterConfig()))(t)}},
		"backupschedule-aws.yaml": {
			{"backupschedules.pingcap.com.json", must(BackupSchedule(aws, clusterConfig()))(t)},
		},
		"backupschedule-aws-v2.yaml": {
			{"backupschedules.br.pingcap.com.json", must(BackupSchedule(v2, clusterConfig()))(t)},
		},
		"backupschedule-gcp.yaml": {
			{"backupschedules.pingcap.com.json", must(BackupSchedule(gcp, clusterConfig()))(t)},
		},
		"restore-aws.yaml":        {{"restores.pingcap.com.json", must(Restore(aws, clusterConfig(), restore))(t)}},
		"restore-pitr.yaml":       {{"restores.pingcap.com.json", must(Restore(aws, clusterConfig(), pitr))(t)}},
		"restore-aws-v2.yaml":     {{"restores.br.pingcap.com.json", must(Restore(v2, clusterConfig(), pitr))(t)}},
		"restore-gcp.yaml":        {{"restores.pingcap.com.json", must(Restore(gcp, clusterConfig(), restore))(t)}},
		"service-aws.yaml":        {{"", must(Service(aws))(t)}},
		"service-gcp.yaml":        {{"", must(Service(gcp))(t)}},
		"service-v2.yaml":         {{"", must(Service(v2))(t)}},
		"storageclasses-aws.yaml": plainly(must(StorageClasses(aws, key))(t)),
		"storageclasses-gcp.yaml": plainly(must(StorageClasses(gcp, gcpKey))(t)),
	}
}

// must gives the value of a builder, or fails the test.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func plainly(objects []*unstructured.Unstructured) (out []manifest) {
	for _, o := range objects {
		out = append(out, manifest{"", o})
	}
	return out
}

// groupsOf is a cluster for TiDB Operator v2 with its groups.
func groupsOf(t *testing.T, plan contract.ClusterPlan, suspended bool) []manifest {
	t.Helper()
	out := []manifest{{"clusters.core.pingcap.com.json", must(Cluster(plan, suspended))(t)}}
	for i, u := range must(Groups(plan, clusterConfig()))(t) {
		file := []string{"pdgroups", "tikvgroups", "tidbgroups", "tiflashgroups"}[i]
		out = append(out, manifest{file + ".core.pingcap.com.json", u})
	}
	return out
}

// Every manifest fits its schema, and changes only on purpose: see the
// difference with git after `go test ./builders -update`.
func TestGolden(t *testing.T) {
	folder := filepath.Join("testdata", "golden")
	all := golden(t)
	for file, manifests := range all {
		t.Run(file, func(t *testing.T) {
			var docs [][]byte
			for _, m := range manifests {
				object := generic(t, m.object)
				if m.schema != "" {
					requireValid(t, m.schema, object)
				}
				doc, err := yaml.Marshal(object)
				require.NoError(t, err)
				docs = append(docs, doc)
			}
			got := bytes.Join(docs, []byte("---\n"))
			path := filepath.Join(folder, file)
			if *updateGolden {
				require.NoError(t, os.MkdirAll(folder, 0o755))
				require.NoError(t, os.WriteFile(path, got, 0o644))
				return
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "write it with: go test ./builders -update")
			require.Equal(t, string(want), string(got), "if the change is meant: go test ./builders -update")
		})
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	for _, f := range files {
		require.Contains(t, all, filepath.Base(f), "nothing writes this file any more")
	}
}
