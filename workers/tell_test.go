package workers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// silent is an API server that takes a connection and does not answer.
type silent struct{ told int }

func (s *silent) Tell(ctx context.Context, _ contract.ObjectRef, _ string) {
	s.told++
	<-ctx.Done()
}

// header is what a step sends along with its activities.
type header struct{ payload *commonpb.Payload }

func (h header) Get(string) (*commonpb.Payload, bool) { return h.payload, true }
func (h header) ForEachKey(f func(string, *commonpb.Payload) error) error {
	return f("caller", h.payload)
}

// What an activity has done is reported to Temporal within its time, although
// its object cannot be told of it.
func TestATellingIsBounded(t *testing.T) {
	payload, err := converter.GetDefaultDataConverter().ToPayload(lifecycle.Caller{Step: "EnsureBucket", Object: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}})
	require.NoError(t, err)
	for name, outcome := range map[string]error{
		"done at last": nil,
		"to be tried":  faults.New(faults.Throttled, "SlowDown", "s3", "slow down"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, err := lifecycle.Propagator().Extract(t.Context(), header{payload})
				require.NoError(t, err)
				api, start := &silent{}, time.Now()
				(&inbound{teller: api}).tell(ctx, activity.Info{TaskQueue: contract.QueueInfra, Attempt: 2}, outcome)
				require.Equal(t, 1, api.told)
				require.Equal(t, tellTimeout, time.Since(start))
			})
		})
	}
}

// sayings notes what is told.
type sayings struct{ all []string }

func (s *sayings) Tell(_ context.Context, _ contract.ObjectRef, sentence string) {
	s.all = append(s.all, sentence)
}

// A call that hangs is told of within seconds, with its step, as status may show
// the step before it until then; one that is quick is not.
func TestACallThatHangsIsTold(t *testing.T) {
	payload, err := converter.GetDefaultDataConverter().ToPayload(lifecycle.Caller{Step: "EnsureBucket", Object: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}})
	require.NoError(t, err)
	info := activity.Info{TaskQueue: contract.QueueInfra, Attempt: 1, ActivityType: activity.Type{Name: contract.AWS.EnsureBucket.Name}}
	for took, want := range map[time.Duration][]string{
		4 * time.Second:  nil,
		37 * time.Second: {"step EnsureBucket: aws.EnsureBucket has not answered for 5s", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, err := lifecycle.Propagator().Extract(t.Context(), header{payload})
			require.NoError(t, err)
			var said sayings
			answered := (&inbound{teller: &said}).tellSlow(ctx, info)
			time.Sleep(took)
			answered()
			require.Equal(t, want, said.all)
			time.Sleep(time.Minute)
			require.Equal(t, want, said.all)
		})
	}
}
