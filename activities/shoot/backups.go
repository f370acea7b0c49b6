package shoot

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// EnsureBackupSchedule applies the operator's BackupSchedule, or removes it
// when the policy says None; then the Outcome is empty.
func (a *Activities) EnsureBackupSchedule(ctx context.Context, in contract.DatabaseInput) (contract.Outcome, error) {
	c, err := a.open(ctx, in.Plan.Shoot)
	if err != nil {
		return contract.Outcome{}, err
	}
	if in.Plan.BackupSchedule == "None" || in.Plan.BackupSchedule == "" {
		_, err := c.removeSchedule(ctx, in.Plan)
		return contract.Outcome{}, err
	}
	config, err := a.Documents.ClusterConfig(ctx, in.ConfigHash)
	if err != nil {
		return contract.Outcome{}, err
	}
	u, err := builders.BackupSchedule(in.Plan, config)
	if err != nil {
		return contract.Outcome{}, err
	}
	return present("BackupSchedule", in.Plan.Namespace, u.GetName()), c.ensure(ctx, u)
}

// removeSchedule deletes our BackupSchedule; gone reports its absence.
func (c *cluster) removeSchedule(ctx context.Context, plan contract.ClusterPlan) (gone bool, err error) {
	s := pingcap("BackupSchedule")
	exists, err := c.find(ctx, s, plan.Namespace, builders.BackupScheduleName)
	if err != nil || !exists || s.GetAnnotations()[v1.TagID] != plan.Ref.ID {
		return err == nil, err
	}
	return false, c.remove(ctx, s)
}

// DeleteBackups removes BackupSchedule and Backups while the namespace still
// takes the Jobs that the operator's finalizers need (tidb-operator#2888). No
// finalizer is removed by force. With RetainBackups the files stay.
func (a *Activities) DeleteBackups(ctx context.Context, in contract.DatabaseInput) (contract.None, error) {
	c, err := a.openToDelete(ctx, in.Plan.Shoot)
	if err != nil || c == nil {
		return contract.None{}, err
	}
	woken, stop := c.events(ctx, pingcapList("Backup"), client.InNamespace(in.Plan.Namespace))
	defer stop()
	return contract.None{}, wait.For(ctx, in.Plan.Ref, a.poll(), woken, func(ctx context.Context) (bool, string, error) {
		return c.freeBackups(ctx, in.Plan)
	})
}

func (c *cluster) freeBackups(ctx context.Context, plan contract.ClusterPlan) (done bool, sentence string, err error) {
	gone, err := c.removeSchedule(ctx, plan)
	if err != nil || !gone {
		return false, "backups: waiting until the schedule is gone", err
	}
	backups := pingcapList("Backup")
	if err := c.list(ctx, backups, client.InNamespace(plan.Namespace)); err != nil {
		return false, "", err
	}
	var left []string
	for i := range backups.Items {
		b := &backups.Items[i]
		left = append(left, b.GetName())
		if b.GetDeletionTimestamp() != nil {
			continue
		}
		if plan.RetainBackups {
			err := c.Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, builders.RetainBackupPatch()))
			if err := faults.IgnoreGone(c.fault(ctx, err, describe(b, b.GetNamespace(), b.GetName()))); err != nil {
				return false, "", err
			}
		}
		if err := c.remove(ctx, b); err != nil {
			return false, "", err
		}
	}
	return len(left) == 0, "backups: waiting for the operator to finish with " + wait.Missing(left, 5), nil
}
