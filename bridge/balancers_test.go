package bridge

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// fakeSchedules is one Schedule.
type fakeSchedules struct {
	temporalclient.ScheduleHandle // the methods that the bridge does not use

	mu        sync.Mutex
	err       error // of every call
	schedule  *temporalclient.Schedule
	triggered chan enumspb.ScheduleOverlapPolicy
}

func newFakeSchedules() *fakeSchedules {
	return &fakeSchedules{triggered: make(chan enumspb.ScheduleOverlapPolicy, 10)}
}

func (f *fakeSchedules) Create(_ context.Context, o temporalclient.ScheduleOptions) (temporalclient.ScheduleHandle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if f.schedule != nil {
		return nil, sdktemporal.ErrScheduleAlreadyRunning
	}
	f.schedule = &temporalclient.Schedule{
		Spec: &o.Spec, Action: o.Action, State: &temporalclient.ScheduleState{Note: o.Note, Paused: o.Paused},
		Policy: &temporalclient.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow},
	}
	return f, nil
}

func (f *fakeSchedules) GetHandle(context.Context, string) temporalclient.ScheduleHandle { return f }

func (f *fakeSchedules) Describe(context.Context) (*temporalclient.ScheduleDescription, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && f.schedule == nil {
		return nil, serviceerror.NewNotFound("schedule not found")
	}
	if f.err != nil {
		return nil, f.err
	}
	return &temporalclient.ScheduleDescription{Schedule: *f.schedule}, nil
}

func (f *fakeSchedules) Update(ctx context.Context, o temporalclient.ScheduleUpdateOptions) error {
	d, err := f.Describe(ctx)
	if err != nil {
		return err
	}
	u, err := o.DoUpdate(temporalclient.ScheduleUpdateInput{Description: *d})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.schedule = u.Schedule
	return nil
}

func (f *fakeSchedules) Trigger(_ context.Context, o temporalclient.ScheduleTriggerOptions) error {
	f.triggered <- o.Overlap
	return nil
}

func (f *fakeSchedules) set(change func(*fakeSchedules)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// fakeBalancers is a cache with one informer, which the test feeds.
type fakeBalancers struct {
	cache.Cache
	informer controllertest.FakeInformer
	watched  chan struct{}
}

func (f *fakeBalancers) Start(ctx context.Context) error { <-ctx.Done(); return nil }

func (f *fakeBalancers) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	defer close(f.watched)
	if obj.GetObjectKind().GroupVersionKind() != v1alpha1.GroupVersion.WithKind("Balancer") {
		panic("watches something else")
	}
	return &f.informer, nil
}

func balancersBench(t *testing.T, schedules *fakeSchedules) (*Balancers, *fakeBalancers) {
	t.Helper()
	kube := &fakeBalancers{watched: make(chan struct{})}
	return &Balancers{
		Schedules: schedules, Cache: kube, Period: 15 * time.Second, Concurrency: 7, Log: slog.New(slog.DiscardHandler),
	}, kube
}

func TestScheduleIsMade(t *testing.T) {
	f := newFakeSchedules()
	b, _ := balancersBench(t, f)
	require.NoError(t, b.ensure(t.Context()))
	action := f.schedule.Action.(*temporalclient.ScheduleWorkflowAction)
	require.Equal(t, "BalanceReplicas", action.Workflow)
	require.Equal(t, "infra-balancing", action.TaskQueue)
	require.Equal(t, []any{temporal.Sweep{Concurrency: 7}}, action.Args)
	require.Equal(t, 15*time.Second, f.schedule.Spec.Intervals[0].Every)
	require.Equal(t, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, f.schedule.Policy.Overlap)
	require.False(t, f.schedule.State.Paused)
}

// A new bridge brings the period up to date and leaves a pause alone.
func TestPauseIsTheOperators(t *testing.T) {
	f := newFakeSchedules()
	b, _ := balancersBench(t, f)
	require.NoError(t, b.ensure(t.Context()))
	f.schedule.State.Paused, f.schedule.State.Note = true, "incident 42"

	b.Period = time.Minute
	require.NoError(t, b.ensure(t.Context()))
	require.Equal(t, time.Minute, f.schedule.Spec.Intervals[0].Every)
	require.True(t, f.schedule.State.Paused)
	require.Equal(t, "incident 42", f.schedule.State.Note)

	require.NoError(t, b.trigger(t.Context()))
	require.Empty(t, f.triggered, "a trigger would start a sweep in spite of the pause")
	f.schedule.State.Paused = false
	require.NoError(t, b.trigger(t.Context()))
	require.Equal(t, enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, <-f.triggered, "a sweep that runs may have looked before the change")
}

func TestDeletedScheduleIsMadeAgain(t *testing.T) {
	f := newFakeSchedules()
	b, _ := balancersBench(t, f)
	require.NoError(t, b.trigger(t.Context()))
	require.NotNil(t, f.schedule)
	require.Len(t, f.triggered, 1)
}

func balancer(generation int64) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetNamespace("default")
	m.SetName("web")
	m.SetGeneration(generation)
	return m
}

func next(t *testing.T, f *fakeSchedules) {
	t.Helper()
	select {
	case <-f.triggered:
	case <-time.After(20 * time.Second):
		t.Fatal("no sweep was triggered")
	}
}

// Changes cause sweeps, many at once cause one, and what we write ourselves
// (status) causes none.
func TestChangesTrigger(t *testing.T) {
	f := newFakeSchedules()
	b, kube := balancersBench(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Start(ctx) }()
	<-kube.watched
	require.Eventually(t, func() bool { // AddEventHandler follows GetInformer
		kube.informer.Add(balancer(1))
		select {
		case <-f.triggered:
			return true
		default:
			return false
		}
	}, 10*time.Second, 10*time.Millisecond)
	for g := range int64(50) {
		kube.informer.Update(balancer(g), balancer(g+1))
	}
	next(t, f)
	kube.informer.Update(balancer(60), balancer(60))
	kube.informer.Delete(balancer(60))
	cancel()
	require.NoError(t, <-ended)
	require.LessOrEqual(t, len(f.triggered), 1, "50 changes at once are at most two sweeps")
}

// While Temporal is away the bridge tries again, and says so once.
func TestTemporalAwayForBalancers(t *testing.T) {
	f := newFakeSchedules()
	f.err = serviceerror.NewUnavailable("connection refused")
	b, _ := balancersBench(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan bool, 1)
	go func() { done <- b.persist(ctx, b.ensure) }()
	f.set(func(f *fakeSchedules) { f.err = nil })
	require.True(t, <-done)
	require.NotNil(t, f.schedule)

	f.set(func(f *fakeSchedules) { f.err = serviceerror.NewUnavailable("connection refused") })
	go func() { done <- b.persist(ctx, b.ensure) }()
	cancel()
	require.False(t, <-done, "stopping is no failure")
}
