package aws

import (
	"context"
	"fmt"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/stretchr/testify/require"
)

const dataAlias = "alias/ic-1a2b3c4d-data"

// TestKeysOfStrangersCostNothing: what an Ensure and a Delete of a key ask does
// not depend on what else the account has, keys pending deletion included.
func TestKeysOfStrangersCostNothing(t *testing.T) {
	calls := map[int]int{}
	for _, strangers := range []int{20, 400} {
		f := newFakeKMS()
		for i := range strangers {
			state := kmstypes.KeyStateEnabled
			if i%2 == 0 {
				state = kmstypes.KeyStatePendingDeletion
			}
			f.add(fmt.Sprintf("s%d", i), state, time.Now(), keyTags("ffffffffffffffff"))
		}
		var index *fakeIndex
		a := fakeActivities(t, func(c *clients) { c.kms = f; index = &fakeIndex{kms: f}; c.tagging = index })
		for range 3 {
			_, err := a.EnsureKey(t.Context(), fakeInput(dataAlias))
			require.NoError(t, err)
		}
		_, err := a.DeleteKey(t.Context(), fakeInput(dataAlias))
		require.NoError(t, err)
		calls[strangers] = f.reads + index.calls
	}
	require.Equal(t, calls[20], calls[400])
	require.Less(t, calls[400], 50)
}

// fakeVolumes has volumes only.
type fakeVolumes struct {
	ec2API
	volumes []ec2types.Volume
}

func (f *fakeVolumes) DescribeVolumes(context.Context, *ec2.DescribeVolumesInput, ...func(*ec2.Options)) (*ec2.DescribeVolumesOutput, error) {
	return &ec2.DescribeVolumesOutput{Volumes: f.volumes}, nil
}

// TestSecondKeyGoes: the answer to a create was lost, and the index showed the
// key late, so that the next attempt made another.
func TestSecondKeyGoes(t *testing.T) {
	f := newFakeKMS()
	disks := &fakeVolumes{}
	index := &fakeIndex{kms: f, late: []string{"k1"}}
	a := fakeActivities(t, func(c *clients) { c.kms, c.ec2, c.tagging = f, disks, index })
	f.lose = "CreateKey"
	_, err := a.EnsureKey(t.Context(), fakeInput(dataAlias))
	require.Error(t, err)
	out, err := a.EnsureKey(t.Context(), fakeInput(dataAlias))
	require.NoError(t, err)
	require.Equal(t, "arn:key/k2", out.Resource.ID)
	f.add("years-old", kmstypes.KeyStateEnabled, time.Now().AddDate(-1, 0, 0), keyTags(fakeOwner.ID))
	f.add("used", kmstypes.KeyStateEnabled, time.Now(), keyTags(fakeOwner.ID))
	disks.volumes = []ec2types.Volume{{VolumeId: awssdk.String("vol-1"), KmsKeyId: awssdk.String("arn:key/used")}}

	index.late = nil
	for range 5 {
		out, err = a.EnsureKey(t.Context(), fakeInput(dataAlias))
		require.NoError(t, err)
		require.Equal(t, "arn:key/k2", out.Resource.ID)
	}
	require.Equal(t, kmstypes.KeyStatePendingDeletion, f.keys["k1"].KeyState)
	for _, id := range []string{"k2", "years-old", "used"} {
		require.Equal(t, kmstypes.KeyStateEnabled, f.keys[id].KeyState, "%s may hold data", id)
	}
	require.Equal(t, dataAlias, func() string {
		for name, id := range f.aliases {
			if id == "k2" {
				return name
			}
		}
		return ""
	}())
}
