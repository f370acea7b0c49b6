package management

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/plan/exclusion"
)

const id = "0123456789abcdef"

var networkRef = contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1", ID: id}

func network() *v1.Network {
	return &v1.Network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "infra", Name: "n1", UID: "uid-1", Generation: 3, CreationTimestamp: metav1.Unix(1000, 0),
			Annotations: map[string]string{v1.AnnotationID: id, v1.AnnotationOperation: "retry"},
			Finalizers:  []string{"other.example/x", v1.Finalizer("Network"), "other.example/y"},
		},
		Spec: v1.NetworkSpec{Provider: "core-aws", Region: "us-west-2"},
	}
}

func cluster(name, network string) *v1.Cluster {
	return &v1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name}, Spec: v1.ClusterSpec{Network: v1.ReferenceName(network)}}
}

// applied records what is applied to status.
type applied struct {
	manager string
	force   bool
	object  map[string]any
}

func activities(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (*Activities, *[]applied) {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, AddToScheme(s))
	var log []applied
	fail := funcs.SubResourceApply
	funcs.SubResourceApply = func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
		require.Equal(t, "status", sub)
		var ao client.SubResourceApplyOptions
		ao.ApplyOpts(options)
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		one := applied{manager: ao.FieldManager, force: ao.Force != nil && *ao.Force}
		require.NoError(t, json.Unmarshal(raw, &one.object))
		log = append(log, one)
		if fail != nil {
			return fail(ctx, c, sub, o, options...)
		}
		return nil
	}
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(funcs)
	for _, kind := range Kinds() {
		for name, of := range indexes() {
			b = b.WithIndex(kind, name, of)
		}
	}
	c := b.Build()
	return &Activities{Client: c, Live: c, Env: "dev", DefaultProject: "core"}, &log
}

func TestReadObject(t *testing.T) {
	n := network()
	n.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Progressing", Status: "True"}, {Type: "DeletionBlocked", Status: "True"}}
	n.Status.Phase, n.Status.ObservedGeneration = v1.PhaseNormal, 2
	n.Status.Bucket = &v1.NetworkBucketStatus{Name: "b"}
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "core-aws"}, Spec: v1.ProviderSpec{Type: "aws-gardener", Account: "acme"}}
	pt := &v1.ProviderType{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "aws-gardener"}, Spec: v1.ProviderTypeSpec{Cloud: "AWS"}}
	peer := &v1.NetworkPeer{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "p1"}, Spec: v1.NetworkPeerSpec{Source: "n1", Target: "n5"}}
	changefeed := &v1.TiCDC{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "t1"}, Spec: v1.TiCDCSpec{Network: "n1"}}
	a, _ := activities(t, interceptor.Funcs{}, n, p, pt, cluster("c1", "n1"), cluster("c2", "n1"), cluster("c3", "n2"), peer, changefeed)
	s, err := a.ReadObject(context.Background(), contract.ReadObjectInput{Ref: networkRef, Live: true})
	require.NoError(t, err)
	require.True(t, s.Exists)
	require.EqualValues(t, 2, s.Users, "Clusters, and nothing else that uses the Network")
	require.Equal(t, []string{"uid-1", id, "retry", "acme", "core-aws", "AWS", "us-west-2"}, []string{s.UID, s.ID, s.Verb, s.Account, s.Provider, s.Cloud, s.Region})
	require.Equal(t, "True", string(s.Ready.Status))
	require.Len(t, s.Conditions, 1, "only the operation's own")
	require.JSONEq(t, `{"name":"b"}`, string(s.Details["bucket"]))
	require.NotContains(t, s.Details, "phase")

	s, err = a.ReadObject(context.Background(), contract.ReadObjectInput{Ref: contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "none"}})
	require.NoError(t, err)
	require.False(t, s.Exists)
	_, err = a.ReadObject(context.Background(), contract.ReadObjectInput{Ref: contract.ObjectRef{Kind: "Nonsense"}})
	require.True(t, faults.Is(err, faults.Invalid))
}

// A lock ends with the operation that holds it, also when nobody saw it end: the
// object has run a later one since.
func TestHolds(t *testing.T) {
	const held = "cluster/infra/c1/update/3.2"
	for name, c := range map[string]struct {
		operation *v1.OperationStatus
		alive     bool
	}{
		"it runs":                          {&v1.OperationStatus{ID: held, State: v1.OperationRunning}, true},
		"it has stalled":                   {&v1.OperationStatus{ID: held, State: v1.OperationBlocked}, true},
		"it has ended":                     {&v1.OperationStatus{ID: held, State: v1.OperationSucceeded}, false},
		"it has told nothing yet":          {nil, true},
		"nor since the one before it":      {&v1.OperationStatus{ID: "cluster/infra/c1/update/3.1", State: v1.OperationFailed}, true},
		"nor since that of a generation":   {&v1.OperationStatus{ID: "cluster/infra/c1/create/2.11", State: v1.OperationSucceeded}, true},
		"a later attempt runs":             {&v1.OperationStatus{ID: "cluster/infra/c1/update/3.3", State: v1.OperationRunning}, false},
		"a later attempt has ended":        {&v1.OperationStatus{ID: "cluster/infra/c1/update/3.10", State: v1.OperationCancelled}, false},
		"that of a generation later ended": {&v1.OperationStatus{ID: "cluster/infra/c1/delete/4.1", State: v1.OperationCancelled}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: "uid-1"}}
			o.Status.Operation = c.operation
			require.Equal(t, c.alive, holds(o, contract.Holder{UID: "uid-1", Operation: held}))
			require.True(t, holds(o, contract.Holder{UID: "uid-1"}), "a lease ends with its object")
			require.False(t, holds(o, contract.Holder{UID: "uid-2", Operation: held}))
		})
	}
}

func TestEachManagerAppliesItsOwn(t *testing.T) {
	ctx := context.Background()
	n := network()
	n.Status.Operation = &v1.OperationStatus{ID: "x"}
	a, log := activities(t, interceptor.Funcs{}, n)
	_, err := a.ApplyObjectStatus(ctx, contract.ObjectStatus{Ref: networkRef, UID: "uid-1", ObservedGeneration: 3, Phase: "Normal", Ready: metav1.Condition{Type: "Ready", Status: "True"}})
	require.NoError(t, err)
	_, err = a.ApplyOperationStatus(ctx, contract.OperationReport{
		Ref: networkRef, UID: "uid-1", Operation: v1.OperationStatus{ID: "x", WaitingFor: "not mine"},
		Conditions: []metav1.Condition{{Type: "Ready"}, {Type: "Progressing"}, {Type: "InUse"}},
		Details:    map[string]json.RawMessage{"bucket": json.RawMessage(`{"name":"b"}`)},
	})
	require.NoError(t, err)
	Teller{a}.Tell(ctx, networkRef, "shoot 45 %")
	require.NoError(t, a.tellUsers(ctx, networkRef, []string{"Cluster c1"}))

	require.Len(t, *log, 4)
	keys := func(i int) (out []string) {
		for k := range (*log)[i].object["status"].(map[string]any) {
			out = append(out, k)
		}
		return out
	}
	for i, want := range []struct {
		manager string
		keys    []string
	}{
		{"infra-provider-object", []string{"observedGeneration", "phase", "conditions"}},
		{"infra-provider-operation", []string{"operation", "conditions", "bucket"}},
		{"infra-provider-wait", []string{"operation"}},
		{"infra-provider-unused", []string{"conditions"}},
	} {
		one := (*log)[i]
		require.Equal(t, want.manager, one.manager)
		require.True(t, one.force)
		require.ElementsMatch(t, want.keys, keys(i))
		require.Equal(t, "uid-1", one.object["metadata"].(map[string]any)["uid"], "the object is meant, not its name")
	}
	operation := (*log)[1].object["status"].(map[string]any)
	require.NotContains(t, operation["operation"], "waitingFor")
	require.Len(t, operation["conditions"], 1)
	require.Equal(t, map[string]any{"waitingFor": "shoot 45 %"}, (*log)[2].object["status"].(map[string]any)["operation"])
}

// While it is stalled nothing but the operation itself waits.
func TestAStalledOperationSaysWhatItWaitsFor(t *testing.T) {
	a, log := activities(t, interceptor.Funcs{}, network())
	r := contract.OperationReport{Ref: networkRef, UID: "uid-1", Operation: v1.OperationStatus{ID: "x", State: v1.OperationBlocked},
		LastError: &v1.LastError{Class: "Quota", Message: "shoot garden-core/n1: no more of them"}}
	waitingFor := func() any {
		_, err := a.ApplyOperationStatus(t.Context(), r)
		require.NoError(t, err)
		b, err := json.Marshal((*log)[len(*log)-1].object["status"].(map[string]any)["operation"])
		require.NoError(t, err)
		var op map[string]any
		require.NoError(t, json.Unmarshal(b, &op))
		return op["waitingFor"]
	}
	require.Equal(t, "Quota: shoot garden-core/n1: no more of them", waitingFor())
	r.LastError, r.Operation.State = nil, v1.OperationRunning
	require.Nil(t, waitingFor(), "it is the wait's again")
}

func TestStatusOfAnotherObjectIsLeftAlone(t *testing.T) {
	in := contract.ObjectStatus{Ref: networkRef, UID: "uid-0"}
	a, log := activities(t, interceptor.Funcs{}, network())
	_, err := a.ApplyObjectStatus(context.Background(), in)
	require.NoError(t, err, "another object has the name")
	require.Empty(t, *log)
	a, log = activities(t, interceptor.Funcs{})
	_, err = a.ApplyObjectStatus(context.Background(), in)
	require.NoError(t, err, "no object has the name")
	require.Empty(t, *log)
}

func TestStatusIsAppliedToTheVersionThatWasRead(t *testing.T) {
	conflicts := 2
	in := contract.ObjectStatus{Ref: networkRef, UID: "uid-1"}
	funcs := interceptor.Funcs{SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
		if conflicts == 0 {
			return nil
		}
		conflicts--
		return apierrors.NewConflict(schema.GroupResource{Resource: "networks"}, "n1", errors.New("the object has been modified"))
	}}
	a, log := activities(t, funcs, network())
	_, err := a.ApplyObjectStatus(context.Background(), in)
	require.NoError(t, err)
	require.Len(t, *log, 3)
	require.NotEmpty(t, (*log)[2].object["metadata"].(map[string]any)["resourceVersion"])
	conflicts = 1000
	_, err = a.ApplyObjectStatus(context.Background(), in)
	require.True(t, faults.Is(err, faults.Throttled), "%v", err)
}

func TestEventsAreToldOnce(t *testing.T) {
	a, _ := activities(t, interceptor.Funcs{}, network())
	in := contract.ObjectStatus{Ref: networkRef, UID: "uid-1", Events: []contract.Event{
		{Key: "create/1/started", Reason: "Creating", Message: "begins"},
		{Key: "create/1/stalled", Reason: "Stalled", Message: strings.Repeat("é", 2000), Warning: true},
	}}
	for range 2 {
		_, err := a.ApplyObjectStatus(context.Background(), in)
		require.NoError(t, err)
	}
	var events corev1.EventList
	require.NoError(t, a.Client.List(context.Background(), &events))
	require.Len(t, events.Items, 2)
	for _, e := range events.Items {
		require.LessOrEqual(t, len(e.Message), 1024)
		require.Equal(t, types.UID("uid-1"), e.InvolvedObject.UID)
	}
}

func TestRemoveFinalizer(t *testing.T) {
	ctx := context.Background()
	a, _ := activities(t, interceptor.Funcs{}, network())
	for range 2 {
		_, err := a.RemoveFinalizer(ctx, networkRef)
		require.NoError(t, err)
		n, err := get(ctx, a.Live, "infra", "n1", &v1.Network{})
		require.NoError(t, err)
		require.Equal(t, []string{"other.example/x", "other.example/y"}, n.Finalizers)
	}
	other := networkRef
	other.ID = "ffffffffffffffff"
	a, _ = activities(t, interceptor.Funcs{}, network())
	_, err := a.RemoveFinalizer(ctx, other)
	require.NoError(t, err)
	n, err := get(ctx, a.Live, "infra", "n1", &v1.Network{})
	require.NoError(t, err)
	require.Len(t, n.Finalizers, 3, "an object with another identity keeps it")
	other.Name = "gone"
	_, err = a.RemoveFinalizer(ctx, other)
	require.NoError(t, err)
}

func TestACopyIsRefused(t *testing.T) {
	original, copied := network(), network()
	copied.Name, copied.UID, copied.CreationTimestamp = "n2", "uid-2", metav1.Unix(2000, 0)
	a, _ := activities(t, interceptor.Funcs{}, original, copied)
	ref := networkRef
	ref.Name = "n2"
	_, err := a.PlanNetwork(context.Background(), ref)
	require.True(t, faults.Is(err, faults.Conflict), "%v", err)
	require.ErrorContains(t, err, "infra/n1")
	_, err = a.PlanNetwork(context.Background(), networkRef)
	require.True(t, faults.Is(err, faults.Dependency), "the original goes on, to its missing Provider: %v", err)
	ref.ID = "ffffffffffffffff"
	_, err = a.PlanNetwork(context.Background(), ref)
	require.True(t, faults.Is(err, faults.Gone), "%v", err)
}

func TestListUsers(t *testing.T) {
	a, _ := activities(t, interceptor.Funcs{}, network(), cluster("c2", "n1"), cluster("c1", "n1"), cluster("c3", "n2"),
		&v1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "p"}, Spec: v1.ProviderSpec{Type: "aws-gardener"}},
		&v1.NetworkPeer{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "p1"}, Spec: v1.NetworkPeerSpec{Source: "n4", Target: "n5"}},
		&v1.TiCDC{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "t1"}, Spec: v1.TiCDCSpec{
			Network: "n4", Upstream: v1.TiCDCUpstream{ClusterName: "c2"}, Downstream: v1.TiCDCDownstream{ClusterName: "c3"}}})
	for _, tc := range []struct {
		kind, name string
		want       []string
	}{
		{"Network", "n1", []string{"Cluster c1", "Cluster c2"}},
		{"Network", "n3", nil},
		{"Provider", "core-aws", []string{"Network n1"}},
		{"ProviderType", "aws-gardener", []string{"Provider p"}},
		{"Cluster", "c1", nil},
		{"Network", "n4", []string{"NetworkPeer p1", "TiCDC t1"}},
		{"Network", "n5", []string{"NetworkPeer p1"}},
		{"Cluster", "c2", []string{"TiCDC t1"}},
		{"Cluster", "c3", []string{"TiCDC t1"}},
		{"Network", "c2", nil},
	} {
		got, err := a.usersOf(context.Background(), contract.ObjectRef{Kind: tc.kind, Namespace: "infra", Name: tc.name})
		require.NoError(t, err)
		require.Equal(t, tc.want, got, "%s %s", tc.kind, tc.name)
	}
}

// A Cluster's deletion waits for what the matrix says that it waits for.
func TestClusterWaitsForWhatBlocksItsDeletion(t *testing.T) {
	var blocking []string
	for _, activity := range exclusion.Activities() {
		if exclusion.Decide(exclusion.Request{Want: exclusion.WantDelete}, exclusion.Running{Activity: activity, Name: "x"}).Decision == exclusion.Block {
			blocking = append(blocking, string(activity))
		}
	}
	require.Equal(t, blocking, v1.KeptBy(v1.KindCluster))
}

func TestWaitUnusedTellsWhoUsesIt(t *testing.T) {
	a, log := activities(t, interceptor.Funcs{}, network(), cluster("c1", "n1"))
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := a.WaitUnused(ctx, networkRef)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, *log, 1)
	raw, _ := json.Marshal((*log)[0].object["status"])
	require.Contains(t, string(raw), "Cluster c1")
	require.NotContains(t, string(raw), `"type":"InUse"`, "a Network has no condition InUse")

	require.NoError(t, a.Client.Delete(context.Background(), cluster("c1", "n1")))
	_, err = a.WaitUnused(context.Background(), networkRef)
	require.NoError(t, err)
	require.Empty(t, (*log)[1].object["status"], "the condition is given up")
}

func TestNetworkReady(t *testing.T) {
	n := network()
	n.Status.Phase = v1.PhaseCreating
	n.Status.Operation = &v1.OperationStatus{Step: "WaitShootReady", WaitingFor: "shoot 45 %"}
	done, says, err := networkReady(n)
	require.NoError(t, err)
	require.False(t, done)
	require.Equal(t, "network infra/n1 is Creating, step WaitShootReady: shoot 45 %", says)
	n.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}}
	done, _, err = networkReady(n)
	require.NoError(t, err)
	require.True(t, done)
	n.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	_, _, err = networkReady(n)
	require.True(t, faults.Is(err, faults.Dependency))

	a, _ := activities(t, interceptor.Funcs{}, cluster("c1", "n1"))
	_, err = a.WaitNetworkReady(context.Background(), contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "c1"})
	require.True(t, faults.Is(err, faults.Dependency), "%v", err)
}

func TestCredentials(t *testing.T) {
	ctx := context.Background()
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "core-aws"}, Spec: v1.ProviderSpec{Credentials: v1.ProviderCredentials{SecretRef: &v1.SecretReference{Name: "s"}}}}
	a, _ := activities(t, interceptor.Funcs{}, p)
	_, _, _, err := Credentials{a}.AWS(ctx, "infra", "core-aws")
	require.True(t, faults.Is(err, faults.Auth), "%v", err)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "s", UID: "u"}, Data: map[string][]byte{"accessKeyID": []byte("AK")}}
	require.NoError(t, a.Client.Create(ctx, secret))
	_, _, _, err = Credentials{a}.AWS(ctx, "infra", "core-aws")
	require.ErrorContains(t, err, "has no secretAccessKey")
	secret.Data["secretAccessKey"] = []byte("SK")
	require.NoError(t, a.Client.Update(ctx, secret))
	ak, sk, version, err := Credentials{a}.AWS(ctx, "infra", "core-aws")
	require.NoError(t, err)
	require.Equal(t, []string{"AK", "SK"}, []string{ak, sk})
	before, err := credentialsHash(ctx, a.Client, p)
	require.NoError(t, err)
	require.Len(t, before, 64)
	secret.Data["secretAccessKey"] = []byte("SK2")
	require.NoError(t, a.Client.Update(ctx, secret))
	_, _, next, err := Credentials{a}.AWS(ctx, "infra", "core-aws")
	require.NoError(t, err)
	require.NotEqual(t, version, next)
	after, err := credentialsHash(ctx, a.Client, p)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
}
