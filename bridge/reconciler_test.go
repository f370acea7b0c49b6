package bridge

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const (
	testID = "0123456789abcdef"
	resync = 10 * time.Minute
)

// fakeTemporal keeps the signals that it accepts.
type fakeTemporal struct {
	mu      sync.Mutex
	err     error
	signals []signal
	gone    []string // ids of workflows that were told without a start
}

type signal struct {
	id, name, kind string
	arg            any
	object         temporal.Object
	options        temporalclient.StartWorkflowOptions
	bounded        bool
}

func (f *fakeTemporal) SignalWithStartWorkflow(ctx context.Context, id, name string, arg any,
	options temporalclient.StartWorkflowOptions, workflow any, args ...any,
) (temporalclient.WorkflowRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	deadline, ok := ctx.Deadline()
	f.signals = append(f.signals, signal{
		id: id, name: name, kind: workflow.(string), arg: arg, object: args[0].(temporal.Object),
		options: options, bounded: ok && time.Until(deadline) <= 5*time.Second,
	})
	return nil, nil
}

func (f *fakeTemporal) SignalWorkflow(_ context.Context, id, _, _ string, _ any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = append(f.gone, id)
	return f.err
}

type bench struct {
	client   client.Client
	patches  int
	temporal *fakeTemporal
	events   *events.FakeRecorder
	log      *strings.Builder
	rec      *Reconciler
}

func newBench(t *testing.T, objs ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	b := &bench{temporal: &fakeTemporal{}, events: events.NewFakeRecorder(10), log: &strings.Builder{}}
	b.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			b.patches++
			return c.Patch(ctx, obj, p, o...)
		},
	}).Build()
	b.rec = &Reconciler{
		Kind: v1.GroupVersion.WithKind(v1.KindNetwork), Client: b.client,
		Signaller: NewSignaller(b.temporal, b.events, slog.New(slog.NewTextHandler(b.log, nil))),
		NewID:     func() string { return testID },
		Resync:    func() time.Duration { return resync },
	}
	return b
}

func (b *bench) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	res, err := b.rec.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "infra", Name: "n1"}})
	require.NoError(t, err)
	return res
}

func (b *bench) network(t *testing.T) *v1.Network {
	t.Helper()
	n := &v1.Network{}
	require.NoError(t, b.client.Get(t.Context(), types.NamespacedName{Namespace: "infra", Name: "n1"}, n))
	return n
}

func network(change func(*v1.Network)) *v1.Network {
	n := &v1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "n1", Generation: 3}}
	n.Spec.Region = "us-west-2"
	if change != nil {
		change(n)
	}
	return n
}

func TestReconcile(t *testing.T) {
	const finalizer = "infra.cloud.pingcap.com/network"
	deleting := func(n *v1.Network) {
		now := metav1.Now()
		n.DeletionTimestamp = &now
	}
	for name, tc := range map[string]struct {
		object  *v1.Network
		patches int
		wantID  string // of the object and of the signal
		signals int
	}{
		"new object: claimed in one patch, then signalled": {
			object: network(nil), patches: 1, wantID: testID, signals: 1,
		},
		"known object: only signalled": {
			object: network(func(n *v1.Network) {
				n.Finalizers = []string{finalizer}
				n.Annotations = map[string]string{v1.AnnotationID: "fedcba9876543210"}
			}),
			wantID: "fedcba9876543210", signals: 1,
		},
		"restored from a backup of the API: keeps its identity": {
			object:  network(func(n *v1.Network) { n.Annotations = map[string]string{v1.AnnotationID: "fedcba9876543210"} }),
			patches: 1, wantID: "fedcba9876543210", signals: 1,
		},
		"finalizer without identity: gets one": {
			object: network(func(n *v1.Network) { n.Finalizers = []string{finalizer} }), patches: 1, wantID: testID, signals: 1,
		},
		"being deleted: signalled, never patched": {
			object: network(func(n *v1.Network) {
				deleting(n)
				n.Finalizers = []string{finalizer}
				n.Annotations = map[string]string{v1.AnnotationID: testID}
			}),
			wantID: testID, signals: 1,
		},
		"being deleted without our finalizer: left alone": {
			object: network(func(n *v1.Network) {
				deleting(n)
				n.Finalizers = []string{"example.com/other"}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.object)
			res := b.reconcile(t)
			require.Equal(t, tc.patches, b.patches)
			require.Len(t, b.temporal.signals, tc.signals)
			n := b.network(t)
			require.Equal(t, tc.wantID, n.Annotations[v1.AnnotationID])
			require.EqualValues(t, "us-west-2", n.Spec.Region, "the spec is never touched")
			if tc.signals == 0 {
				require.Zero(t, res.RequeueAfter)
				return
			}
			require.Contains(t, n.Finalizers, finalizer)
			require.Equal(t, resync, res.RequeueAfter)
			require.Equal(t, tc.wantID, b.temporal.signals[0].object.ID)
		})
	}
}

// A tool that moves objects strips finalizers: it is told, and what an object
// gets for the first time, or brings out of a backup, is no news.
func TestFinalizerTakenAwayIsTold(t *testing.T) {
	claimed := map[string]string{v1.AnnotationID: testID, v1.AnnotationIDMintedFor: "uid-1"}
	for name, tc := range map[string]struct {
		change func(*v1.Network)
		told   bool
	}{
		"new":        {func(*v1.Network) {}, false},
		"restored":   {func(n *v1.Network) { n.Annotations = claimed; n.UID = "uid-2" }, false},
		"taken away": {func(n *v1.Network) { n.Annotations = claimed; n.UID = "uid-1" }, true},
		"still there": {func(n *v1.Network) {
			n.Annotations = claimed
			n.UID = "uid-1"
			n.Finalizers = []string{v1.Finalizer("Network")}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, network(tc.change))
			b.reconcile(t)
			require.Equal(t, []string{v1.Finalizer("Network")}, b.network(t).Finalizers)
			b.reconcile(t)
			if !tc.told {
				require.Empty(t, b.events.Events)
				return
			}
			require.Len(t, b.events.Events, 1)
			event := <-b.events.Events
			require.Contains(t, event, "Warning FinalizerPutBack")
			require.Contains(t, event, "set spec.deletionPolicy: Retain first")
			require.Contains(t, event, v1.AnnotationPaused)
		})
	}
}

// What the workers and operators rely on: id, type, queue, argument, summary
// and search attributes of the workflow.
func TestSignalCarriesTheContract(t *testing.T) {
	b := newBench(t, network(nil))
	b.reconcile(t)
	got := b.temporal.signals[0]
	require.Equal(t, "network/infra/n1", got.id)
	require.Equal(t, "changed", got.name)
	require.Equal(t, "Network", got.kind)
	require.Equal(t, temporal.Changed{Generation: 3}, got.arg)
	require.Equal(t, temporal.Object{Kind: "Network", Namespace: "infra", Name: "n1", ID: testID}, got.object)
	require.True(t, got.bounded, "the call has a deadline of 5 s")
	o := got.options
	require.Equal(t, "network/infra/n1", o.ID)
	require.Equal(t, "infra", o.TaskQueue)
	require.Equal(t, enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, o.WorkflowIDConflictPolicy)
	require.Equal(t, "Network infra/n1", o.StaticSummary)
	require.Zero(t, o.WorkflowExecutionTimeout, "an object workflow lives as long as its object")
	for key, want := range map[sdktemporal.SearchAttributeKeyKeyword]string{
		temporal.AttrKind: "Network", temporal.AttrNamespace: "infra", temporal.AttrName: "n1",
	} {
		value, ok := o.TypedSearchAttributes.GetKeyword(key)
		require.True(t, ok, key.GetName())
		require.Equal(t, want, value)
	}
}

func TestReconcileGone(t *testing.T) {
	b := newBench(t)
	require.Equal(t, reconcile.Result{}, b.reconcile(t))
	require.Empty(t, b.temporal.signals, "no workflow is started for it")
	require.Equal(t, []string{"network/infra/n1"}, b.temporal.gone, "one that rests is told")
	b.temporal.err = serviceerror.NewNotFound("no such workflow")
	require.Equal(t, reconcile.Result{}, b.reconcile(t), "the usual end: the workflow has ended")
	b.temporal.err = serviceerror.NewUnavailable("down")
	require.NotZero(t, b.reconcile(t).RequeueAfter)
}

// Two bridges, or a cache that is behind: the second patch is refused instead
// of replacing the identity.
func TestClaimIsLocked(t *testing.T) {
	b := newBench(t, network(nil))
	stale := &metav1.PartialObjectMetadata{}
	stale.SetGroupVersionKind(b.rec.Kind)
	require.NoError(t, b.client.Get(t.Context(), types.NamespacedName{Namespace: "infra", Name: "n1"}, stale))
	b.reconcile(t)
	b.rec.NewID = func() string { return "ffffffffffffffff" }
	err := b.rec.claim(t.Context(), stale, v1.Finalizer("Network"))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Equal(t, testID, b.network(t).Annotations[v1.AnnotationID])
}

func counted(t *testing.T, outcome Outcome) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, signalsTotal.WithLabelValues("Network", string(outcome)).Write(&m))
	return m.GetCounter().GetValue()
}

func TestTemporalAway(t *testing.T) {
	b := newBench(t, network(nil))
	b.temporal.err = serviceerror.NewUnavailable("connection refused")
	before := counted(t, Unavailable)

	var waits []time.Duration
	for range 8 {
		waits = append(waits, b.reconcile(t).RequeueAfter)
	}
	require.Equal(t, 500*time.Millisecond, waits[0])
	require.Equal(t, time.Second, waits[1])
	require.Equal(t, 30*time.Second, waits[7], "never longer")
	require.Equal(t, 1, strings.Count(b.log.String(), "Temporal does not answer"), "said once")
	require.Equal(t, before+8, counted(t, Unavailable))
	require.Empty(t, b.events.Events, "no event: it is not about the object")
	require.Equal(t, testID, b.network(t).Annotations[v1.AnnotationID], "claimed nevertheless")

	b.temporal.err = nil
	require.Equal(t, resync, b.reconcile(t).RequeueAfter)
	require.Len(t, b.temporal.signals, 1)
	require.Contains(t, b.log.String(), "Temporal answers again")

	b.temporal.err = context.DeadlineExceeded
	require.Equal(t, 500*time.Millisecond, b.reconcile(t).RequeueAfter, "the backoff starts anew")
}

func TestTemporalRefuses(t *testing.T) {
	b := newBench(t, network(nil))
	b.temporal.err = serviceerror.NewInvalidArgument("no mapping defined for search attribute InfraKind")
	require.Equal(t, 500*time.Millisecond, b.reconcile(t).RequeueAfter)
	require.Len(t, b.events.Events, 1)
	event := <-b.events.Events
	require.Contains(t, event, "Warning SignalNotAccepted")
	require.Contains(t, event, "network/infra/n1")
	require.Contains(t, event, "For the operator")
}

func TestOutcomeOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want Outcome
	}{
		{nil, Accepted},
		{serviceerror.NewUnavailable("x"), Unavailable},
		{serviceerror.NewDeadlineExceeded("x"), Unavailable},
		{serviceerror.NewNamespaceNotFound("infra"), Unavailable},
		{context.DeadlineExceeded, Unavailable},
		{serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "x"), Throttled},
		{serviceerror.NewInvalidArgument("x"), Refused},
		{serviceerror.NewPermissionDenied("x", ""), Failed},
		{errors.New("x"), Failed},
	} {
		require.Equal(t, tc.want, outcomeOf(tc.err), "%v", tc.err)
	}
}
