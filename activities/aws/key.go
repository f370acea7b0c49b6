package aws

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// keyAPI is what is called of KMS.
type keyAPI interface {
	CreateKey(context.Context, *kms.CreateKeyInput, ...func(*kms.Options)) (*kms.CreateKeyOutput, error)
	DescribeKey(context.Context, *kms.DescribeKeyInput, ...func(*kms.Options)) (*kms.DescribeKeyOutput, error)
	ListAliases(context.Context, *kms.ListAliasesInput, ...func(*kms.Options)) (*kms.ListAliasesOutput, error)
	ListResourceTags(context.Context, *kms.ListResourceTagsInput, ...func(*kms.Options)) (*kms.ListResourceTagsOutput, error)
	CreateAlias(context.Context, *kms.CreateAliasInput, ...func(*kms.Options)) (*kms.CreateAliasOutput, error)
	DeleteAlias(context.Context, *kms.DeleteAliasInput, ...func(*kms.Options)) (*kms.DeleteAliasOutput, error)
	EnableKey(context.Context, *kms.EnableKeyInput, ...func(*kms.Options)) (*kms.EnableKeyOutput, error)
	ScheduleKeyDeletion(context.Context, *kms.ScheduleKeyDeletionInput, ...func(*kms.Options)) (*kms.ScheduleKeyDeletionOutput, error)
	CancelKeyDeletion(context.Context, *kms.CancelKeyDeletionInput, ...func(*kms.Options)) (*kms.CancelKeyDeletionOutput, error)
}

// keyDeletionDays is the longest wait that KMS grants, in which a deletion can
// be undone. What a key encrypted is lost after it.
const keyDeletionDays = 30

// key is the key and alias of an owner, in one activity call.
type key struct {
	a   *Activities
	c   *clients
	kms keyAPI
	in  contract.CloudResourceInput
}

func (a *Activities) key(ctx context.Context, in contract.CloudResourceInput) (*key, error) {
	if err := needIdentity(in.Owner); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(in.Name, "alias/") {
		return nil, faults.New(faults.Invalid, "AliasName", "KMS alias "+in.Name, "the name must start with alias/")
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return nil, err
	}
	return &key{a: a, c: c, kms: c.kms, in: in}, nil
}

func (k *key) resource() string { return "KMS key " + k.in.Name }

func (k *key) fault(err error) error { return faults.FromAWS(err, k.resource()) }

// EnsureKey implements contract.AWS.EnsureKey. The ledger entry's ID is the key's
// ARN.
func (a *Activities) EnsureKey(ctx context.Context, in contract.CloudResourceInput) (contract.Outcome, error) {
	k, err := a.key(ctx, in)
	if err != nil {
		return contract.Outcome{}, err
	}
	found, aliased, err := k.find(ctx)
	if err != nil {
		return contract.Outcome{}, err
	}
	var note string
	if found == nil {
		if found, err = k.create(ctx); err != nil {
			return contract.Outcome{}, err
		}
		note = fmt.Sprintf("created KMS key %s", in.Name)
	}
	err = a.steady(ctx, k.resource(), func() error {
		revived, err := k.revive(ctx, found)
		if revived != "" {
			note = revived
		}
		if err != nil || aliased {
			return err
		}
		_, err = k.kms.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: &in.Name, TargetKeyId: found.KeyId})
		return k.aliasFault(err)
	})
	if err != nil {
		return contract.Outcome{}, err
	}
	err = k.a.settle(ctx, k.resource(), "usable under its alias", func() (bool, error) {
		seen, err := k.describe(ctx, in.Name)
		return err == nil && seen.KeyState == kmstypes.KeyStateEnabled, err
	})
	if err == nil {
		err = k.removeTwins(ctx, found)
	}
	return contract.Outcome{Resource: ledger(k.c, typeKey, awssdk.ToString(found.Arn)), Note: note}, err
}

// find returns our key, nil when there is none, and whether the alias points
// to it. Among several without an alias (a create whose answer was lost, then
// indexed late) the one most alive is taken, and the oldest of those; the others
// are left to removeTwins and DeleteKey.
func (k *key) find(ctx context.Context) (found *kmstypes.KeyMetadata, aliased bool, err error) {
	found, err = k.findAliased(ctx)
	if err != nil || found != nil {
		return found, found != nil, err
	}
	keys, err := k.unaliased(ctx)
	if err != nil || len(keys) == 0 {
		return nil, false, err
	}
	slices.SortFunc(keys, func(a, b *kmstypes.KeyMetadata) int {
		if d := liveliness(a) - liveliness(b); d != 0 {
			return d
		}
		return awssdk.ToTime(a.CreationDate).Compare(awssdk.ToTime(b.CreationDate))
	})
	return keys[0], false, nil
}

func liveliness(m *kmstypes.KeyMetadata) int {
	switch m.KeyState {
	case kmstypes.KeyStateEnabled:
		return 0
	case kmstypes.KeyStatePendingDeletion:
		return 2
	default:
		return 1
	}
}

// twinWindow is how far apart two keys are at most that attempts of the same
// Ensure have made.
const twinWindow = time.Hour

// removeTwins schedules the deletion of keys that attempts made whose answers
// were lost. Only the ARN of the key under the alias is ever given to anybody,
// so such a key has never encrypted anything; one that may have is left alone:
// one that was made at another time (its alias was removed by hand), or that a
// volume of the owner is encrypted with.
func (k *key) removeTwins(ctx context.Context, keep *kmstypes.KeyMetadata) error {
	keys, err := k.unaliased(ctx)
	if err != nil {
		return err
	}
	for _, m := range keys {
		apart := awssdk.ToTime(m.CreationDate).Sub(awssdk.ToTime(keep.CreationDate)).Abs()
		if awssdk.ToString(m.KeyId) == awssdk.ToString(keep.KeyId) || m.KeyState == kmstypes.KeyStatePendingDeletion || apart > twinWindow {
			continue
		}
		volumes, err := volumesOf(ctx, k.c, filter("tag:"+v1.TagID, k.in.Owner.ID))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(volumes, func(v ec2types.Volume) bool { return awssdk.ToString(v.KmsKeyId) == awssdk.ToString(m.Arn) }) {
			continue
		}
		going := ledger(k.c, typeKey, awssdk.ToString(m.Arn))
		going.State = v1.ResourceDeleting
		err = audited.Change(ctx, going, func() error {
			_, err := k.schedule(ctx, m)
			return err
		})
		if err = faults.IgnoreGone(err); err != nil {
			return err
		}
		slog.InfoContext(ctx, "a second key, made by an attempt whose answer was lost, is scheduled for deletion", "key", awssdk.ToString(m.Arn), "kept", awssdk.ToString(keep.Arn))
	}
	return nil
}

// ownKey is a key of the owner with its aliases.
type ownKey struct {
	*kmstypes.KeyMetadata
	aliases []kmstypes.AliasListEntry
}

// ours returns all keys that carry our identity.
func (k *key) ours(ctx context.Context) ([]ownKey, error) {
	arns, err := tagged(ctx, k.c.tagging, taggedKeys, k.in.Owner.ID)
	if err != nil {
		return nil, err
	}
	var ours []ownKey
	for _, arn := range arns {
		m, err := k.ifOurs(ctx, arn)
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue
		}
		aliases, err := k.aliases(ctx, arn)
		if err != nil {
			return nil, err
		}
		ours = append(ours, ownKey{m, aliases})
	}
	return ours, nil
}

// unaliased returns our keys that no alias points to.
func (k *key) unaliased(ctx context.Context) (keys []*kmstypes.KeyMetadata, err error) {
	all, err := k.ours(ctx)
	for _, m := range all {
		if len(m.aliases) == 0 {
			keys = append(keys, m.KeyMetadata)
		}
	}
	return keys, err
}

// ifOurs returns the key when it carries our identity, nil otherwise. A key
// whose policy hides its tags from us is not ours.
func (k *key) ifOurs(ctx context.Context, id string) (*kmstypes.KeyMetadata, error) {
	identity, err := k.identity(ctx, id)
	if f := faults.As(err); f != nil && (f.Class == faults.Gone || strings.HasPrefix(f.Code, "AccessDenied")) {
		return nil, nil
	}
	if err != nil || identity != k.in.Owner.ID {
		return nil, err
	}
	m, err := k.describe(ctx, id)
	return m, faults.IgnoreGone(err)
}

func (k *key) aliases(ctx context.Context, id string) ([]kmstypes.AliasListEntry, error) {
	var all []kmstypes.AliasListEntry
	pages := kms.NewListAliasesPaginator(k.kms, &kms.ListAliasesInput{KeyId: &id, Limit: awssdk.Int32(100)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err := k.fault(err); err != nil {
			return all, faults.IgnoreGone(err)
		}
		all = append(all, page.Aliases...)
	}
	return all, nil
}

func (k *key) describe(ctx context.Context, id string) (*kmstypes.KeyMetadata, error) {
	out, err := k.kms.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
	if err != nil {
		return nil, k.fault(err)
	}
	return out.KeyMetadata, nil
}

func (k *key) identity(ctx context.Context, id string) (string, error) {
	pages := kms.NewListResourceTagsPaginator(k.kms, &kms.ListResourceTagsInput{KeyId: &id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", k.fault(err)
		}
		if v := tagValue(page.Tags, v1.TagID, keyTag); v != "" {
			return v, nil
		}
	}
	return "", nil
}

func keyTag(t kmstypes.Tag) (*string, *string) { return t.TagKey, t.TagValue }

func (k *key) create(ctx context.Context) (*kmstypes.KeyMetadata, error) {
	out, err := k.kms.CreateKey(ctx, &kms.CreateKeyInput{
		Description: awssdk.String(fmt.Sprintf("Storage and backups of %s", k.in.Owner)),
		KeyUsage:    kmstypes.KeyUsageTypeEncryptDecrypt,
		Tags: tagsAs(identityTags(k.in.Owner, k.in.Env), func(key, value *string) kmstypes.Tag {
			return kmstypes.Tag{TagKey: key, TagValue: value}
		}),
	})
	if err != nil {
		return nil, k.fault(err)
	}
	return out.KeyMetadata, nil
}

// revive makes a key usable that is pending deletion or disabled; a cancelled
// deletion leaves it disabled, so a lost worker between the two is no harm.
func (k *key) revive(ctx context.Context, m *kmstypes.KeyMetadata) (note string, err error) {
	switch m.KeyState {
	case kmstypes.KeyStateEnabled, kmstypes.KeyStateCreating, kmstypes.KeyStateUpdating:
		return "", nil
	case kmstypes.KeyStatePendingDeletion:
		if _, err := k.kms.CancelKeyDeletion(ctx, &kms.CancelKeyDeletionInput{KeyId: m.KeyId}); err != nil {
			return "", k.fault(err)
		}
		note = fmt.Sprintf("cancelled the deletion of KMS key %s", k.in.Name)
	case kmstypes.KeyStateDisabled:
		note = fmt.Sprintf("enabled KMS key %s", k.in.Name)
	default:
		return "", faults.New(faults.Dependency, "KMSInvalidState", k.resource(), "the key is in the state %s", m.KeyState).
			WithHint(faults.OwnerOperator, "see the key in the KMS console; the operation goes on by itself once it is enabled")
	}
	_, err = k.kms.EnableKey(ctx, &kms.EnableKeyInput{KeyId: m.KeyId})
	return note, k.fault(err)
}

// aliasFault tells an alias that appeared between the look-up and now from a
// foreign one: the next attempt looks again.
func (k *key) aliasFault(err error) error {
	if f := faults.As(k.fault(err)); f != nil && f.Class == faults.Conflict {
		f.Class, f.Owner, f.Hint = faults.Transient, "", ""
		return f
	}
	return k.fault(err)
}
