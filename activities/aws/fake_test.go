package aws

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// The fakes below keep resources in maps and follow AWS in what matters to an
// Ensure. Calls that no unit test needs are left to the nil interface that each
// embeds; the emulator's tests cover them.

// lossy loses the answer of one operation, once: it has taken effect.
type lossy struct {
	lose  string
	calls []string // that change something
	// late is how often an operation does not know yet what others have shown.
	late map[string]int
}

// unknown is the answer of an operation that is late.
func (l *lossy) unknown(operation, code string) error {
	if l.late[operation] == 0 {
		return nil
	}
	l.late[operation]--
	return apiErr(code)
}

func (l *lossy) after(operation string) error {
	l.calls = append(l.calls, operation)
	if l.lose != operation {
		return nil
	}
	l.lose = ""
	return &smithy.OperationError{OperationName: operation, Err: io.ErrUnexpectedEOF}
}

func apiErr(code string) error { return &smithy.GenericAPIError{Code: code, Message: code} }

var (
	fakeAccount = contract.CloudAccount{Namespace: "infra", Provider: "p", AccountID: "123456789012", Region: "us-west-2"}
	fakeOwner   = contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "c1", ID: "1a2b3c4d5e6f7081"}
)

func fakeInput(name string) contract.CloudResourceInput {
	return contract.CloudResourceInput{Account: fakeAccount, Owner: fakeOwner, Env: "test", Name: name}
}

// fakeActivities are activities over the clients that set fills.
func fakeActivities(t *testing.T, set func(*clients)) *Activities {
	t.Helper()
	c := &clients{region: fakeAccount.Region, identity: contract.CloudIdentity{AccountID: fakeAccount.AccountID}}
	set(c)
	index := &fakeIndex{}
	index.kms, _ = c.kms.(*fakeKMS)
	index.iam, _ = c.iam.(*fakeIAM)
	if c.tagging == nil {
		c.tagging, c.taggingGlobal = index, index
	}
	return &Activities{
		options: Options{Settle: 200 * time.Millisecond, SettlePoll: time.Millisecond, Poll: time.Millisecond}.withDefaults(),
		clients: func(context.Context, contract.CloudAccount) (*clients, error) { return c, nil },
	}
}

// fakeKMS has keys, their tags and aliases.
type fakeKMS struct {
	keyAPI
	lossy
	reads   int
	keys    map[string]*kmstypes.KeyMetadata
	tags    map[string][]kmstypes.Tag
	aliases map[string]string
}

// keyID is that of an ARN, or of an id.
func keyID(s string) string { return strings.TrimPrefix(s, "arn:key/") }

func newFakeKMS() *fakeKMS {
	return &fakeKMS{keys: map[string]*kmstypes.KeyMetadata{}, tags: map[string][]kmstypes.Tag{}, aliases: map[string]string{}}
}

func (f *fakeKMS) add(id string, state kmstypes.KeyState, born time.Time, tags []kmstypes.Tag) *kmstypes.KeyMetadata {
	m := &kmstypes.KeyMetadata{KeyId: &id, Arn: awssdk.String("arn:key/" + id), KeyState: state, CreationDate: &born}
	f.keys[id], f.tags[id] = m, tags
	return m
}

func (f *fakeKMS) CreateKey(_ context.Context, in *kms.CreateKeyInput, _ ...func(*kms.Options)) (*kms.CreateKeyOutput, error) {
	m := f.add(fmt.Sprintf("k%d", len(f.keys)+1), kmstypes.KeyStateEnabled, time.Now(), in.Tags)
	return &kms.CreateKeyOutput{KeyMetadata: m}, f.after("CreateKey")
}

func (f *fakeKMS) DescribeKey(_ context.Context, in *kms.DescribeKeyInput, _ ...func(*kms.Options)) (*kms.DescribeKeyOutput, error) {
	f.reads++
	id := keyID(*in.KeyId)
	if target, ok := f.aliases[id]; ok {
		id = target
	}
	if m := f.keys[id]; m != nil {
		return &kms.DescribeKeyOutput{KeyMetadata: m}, nil
	}
	return nil, apiErr("NotFoundException")
}

func (f *fakeKMS) ListAliases(_ context.Context, in *kms.ListAliasesInput, _ ...func(*kms.Options)) (*kms.ListAliasesOutput, error) {
	f.reads++
	out := &kms.ListAliasesOutput{}
	for name, id := range f.aliases {
		if in.KeyId != nil && keyID(*in.KeyId) != id {
			continue
		}
		out.Aliases = append(out.Aliases, kmstypes.AliasListEntry{AliasName: &name, TargetKeyId: &id})
	}
	return out, nil
}

func (f *fakeKMS) ListResourceTags(_ context.Context, in *kms.ListResourceTagsInput, _ ...func(*kms.Options)) (*kms.ListResourceTagsOutput, error) {
	if err := f.unknown("ListResourceTags", "NotFoundException"); err != nil {
		return nil, err
	}
	f.reads++
	return &kms.ListResourceTagsOutput{Tags: f.tags[keyID(*in.KeyId)]}, nil
}

func (f *fakeKMS) CreateAlias(_ context.Context, in *kms.CreateAliasInput, _ ...func(*kms.Options)) (*kms.CreateAliasOutput, error) {
	if err := f.unknown("CreateAlias", "NotFoundException"); err != nil {
		return nil, err
	}
	if _, ok := f.aliases[*in.AliasName]; ok {
		return nil, apiErr("AlreadyExistsException")
	}
	f.aliases[*in.AliasName] = *in.TargetKeyId
	return &kms.CreateAliasOutput{}, f.after("CreateAlias")
}

func (f *fakeKMS) DeleteAlias(_ context.Context, in *kms.DeleteAliasInput, _ ...func(*kms.Options)) (*kms.DeleteAliasOutput, error) {
	delete(f.aliases, *in.AliasName)
	return &kms.DeleteAliasOutput{}, f.after("DeleteAlias")
}

func (f *fakeKMS) EnableKey(_ context.Context, in *kms.EnableKeyInput, _ ...func(*kms.Options)) (*kms.EnableKeyOutput, error) {
	f.keys[*in.KeyId].KeyState = kmstypes.KeyStateEnabled
	return &kms.EnableKeyOutput{}, f.after("EnableKey")
}

func (f *fakeKMS) ScheduleKeyDeletion(_ context.Context, in *kms.ScheduleKeyDeletionInput, _ ...func(*kms.Options)) (*kms.ScheduleKeyDeletionOutput, error) {
	m := f.keys[*in.KeyId]
	m.KeyState = kmstypes.KeyStatePendingDeletion
	m.DeletionDate = awssdk.Time(time.Now().AddDate(0, 0, int(*in.PendingWindowInDays)))
	return &kms.ScheduleKeyDeletionOutput{DeletionDate: m.DeletionDate}, f.after("ScheduleKeyDeletion")
}

func (f *fakeKMS) CancelKeyDeletion(_ context.Context, in *kms.CancelKeyDeletionInput, _ ...func(*kms.Options)) (*kms.CancelKeyDeletionOutput, error) {
	f.keys[*in.KeyId].KeyState = kmstypes.KeyStateDisabled
	return &kms.CancelKeyDeletionOutput{}, f.after("CancelKeyDeletion")
}
