package webhooks

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan/exclusion"
)

// A Restore runs on the Cluster that it writes to, and on the one whose backup
// it reads.
func TestARestoreRunsOnTheClusterThatItReads(t *testing.T) {
	c := NewCaches(nil)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "infra", Name: name} }
	source, target := &v1.Cluster{ObjectMeta: meta("source")}, &v1.Cluster{ObjectMeta: meta("target")}
	backup := &v1.Backup{ObjectMeta: meta("b1"), Spec: v1.BackupSpec{ClusterName: "source"}}
	restore := &v1.Restore{ObjectMeta: meta("r1"), Spec: v1.RestoreSpec{ClusterName: "target", BackupName: "b1"}}
	restore.Status.Phase = v1.PhaseRunning
	require.NoError(t, c.backups.indexer.Add(backup))
	require.NoError(t, c.restores.indexer.Add(restore))
	require.Equal(t, []exclusion.Running{{Activity: exclusion.Restore, Name: "r1"}}, c.running(target))
	require.Equal(t, []exclusion.Running{{Activity: exclusion.Restore, Name: "r1", Source: true}}, c.running(source))
	require.Empty(t, c.running(&v1.Cluster{ObjectMeta: meta("other")}))
}
