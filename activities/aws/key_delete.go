package aws

import (
	"context"
	"fmt"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// DeleteKey implements contract.AWS.DeleteKey. The outcome is Deleting with the
// date in its note, Foreign, or has an empty Resource when there is no key.
func (a *Activities) DeleteKey(ctx context.Context, in contract.CloudResourceInput) (contract.Outcome, error) {
	k, err := a.key(ctx, in)
	if err != nil {
		return contract.Outcome{}, err
	}
	keys, err := k.unaliased(ctx)
	if err != nil {
		return contract.Outcome{}, err
	}
	aliased, err := k.findAliased(ctx)
	if faults.Is(err, faults.Conflict) {
		out := contract.Outcome{Resource: ledger(k.c, typeAlias, in.Name), Note: fmt.Sprintf("KMS alias %s is not ours and was left untouched", in.Name)}
		out.Resource.State = v1.ResourceForeign
		return out, nil
	}
	if err != nil {
		return contract.Outcome{}, err
	}
	if aliased != nil {
		keys = append(keys, aliased)
	}
	var out contract.Outcome
	for _, m := range keys {
		if out, err = k.schedule(ctx, m); err != nil {
			return contract.Outcome{}, err
		}
	}
	if aliased != nil {
		if err := k.deleteAlias(ctx); err != nil {
			return contract.Outcome{}, err
		}
	}
	return out, nil
}

// findAliased returns the key that the alias points to, nil when there is no
// alias, and a Conflict when the key is foreign.
func (k *key) findAliased(ctx context.Context) (*kmstypes.KeyMetadata, error) {
	m, err := k.describe(ctx, k.in.Name)
	if err != nil {
		return nil, faults.IgnoreGone(err)
	}
	var identity string
	err = k.a.steady(ctx, k.resource(), func() (err error) {
		identity, err = k.identity(ctx, *m.KeyId)
		return err
	})
	if err != nil {
		return nil, err
	}
	if identity != k.in.Owner.ID {
		return nil, foreign(k.resource(), identity, k.in.Owner)
	}
	return m, nil
}

func (k *key) schedule(ctx context.Context, m *kmstypes.KeyMetadata) (contract.Outcome, error) {
	at := m.DeletionDate
	if m.KeyState != kmstypes.KeyStatePendingDeletion {
		out, err := k.kms.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{
			KeyId: m.KeyId, PendingWindowInDays: awssdk.Int32(keyDeletionDays),
		})
		if err != nil {
			return contract.Outcome{}, k.fault(err)
		}
		at = out.DeletionDate
	}
	out := contract.Outcome{Resource: ledger(k.c, typeKey, awssdk.ToString(m.Arn))}
	out.Resource.State = v1.ResourceDeleting
	out.Note = fmt.Sprintf("KMS key %s is destroyed on %s; until then 'aws kms cancel-key-deletion' saves it",
		awssdk.ToString(m.Arn), awssdk.ToTime(at).UTC().Format("2006-01-02"))
	return out, nil
}

func (k *key) deleteAlias(ctx context.Context) error {
	_, err := k.kms.DeleteAlias(ctx, &kms.DeleteAliasInput{AliasName: &k.in.Name})
	if err := faults.IgnoreGone(k.fault(err)); err != nil {
		return err
	}
	return k.a.settle(ctx, k.resource(), "without its alias", func() (bool, error) {
		_, err := k.describe(ctx, k.in.Name)
		return goneAsDone(err)
	})
}
