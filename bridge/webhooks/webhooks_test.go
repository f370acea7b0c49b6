package webhooks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"

	"github.com/tidbcloud/infra-orchestrator/admission"
	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// tableOf is the table of a kind, with the world.
func tableOf(t testing.TB, kind string) (admissioncases.World, *admissioncases.WebhookKind) {
	t.Helper()
	cases, err := loadCases()
	require.NoError(t, err)
	for _, k := range cases.kinds {
		if k.Kind == kind {
			return cases.world, &k
		}
	}
	t.Fatalf("no table of %s", kind)
	return cases.world, nil
}

func at(o map[string]any, path ...string) any {
	var v any = o
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// What each kind gets that did not say it.
func TestDefaults(t *testing.T) {
	all := map[string]any{v1.LabelProviderType: "aws-gardener", v1.LabelProvider: "core-aws", v1.LabelNetwork: "n1"}
	of := map[string]any{v1.LabelCluster: "c1", v1.LabelProviderType: "aws-gardener", v1.LabelProvider: "core-aws", v1.LabelNetwork: "n1"}
	for kind, want := range map[string]struct {
		labels map[string]any
		spec   map[string]any
	}{
		v1.KindAccount:      {},
		v1.KindProviderType: {labels: map[string]any{v1.LabelProviderType: "aws-gardener"}},
		v1.KindProvider:     {labels: map[string]any{v1.LabelProviderType: "aws-gardener"}, spec: map[string]any{"project": "core"}},
		v1.KindNetwork: {
			labels: map[string]any{v1.LabelProviderType: "aws-gardener", v1.LabelProvider: "core-aws"},
			spec:   map[string]any{"account": "acme", "shootName": "n-4b4004a", "zones": []any{"us-west-2a", "us-west-2b", "us-west-2c"}}, // printf infra/new | sha256sum
		},
		v1.KindCluster:     {labels: all},
		v1.KindNetworkPeer: {labels: all},
		v1.KindTiCDC:       {labels: all},
		v1.KindBackup:      {labels: of},
		v1.KindImport:      {labels: of},
		v1.KindRestore:     {labels: map[string]any{v1.LabelCluster: "c3", v1.LabelProviderType: "aws-gardener", v1.LabelProvider: "core-aws", v1.LabelNetwork: "n2"}},
	} {
		t.Run(kind, func(t *testing.T) {
			world, k := tableOf(t, kind)
			w := newWorld(t, world.Objects...)
			_, got := w.ask(admissionv1.Create, nil, object(t, k, admissioncases.Changes{"metadata.labels": nil}))
			labels, _ := at(got, "metadata", "labels").(map[string]any)
			require.Equal(t, want.labels, labels)
			for name, value := range want.spec {
				require.Equal(t, value, at(got, "spec", name), name)
			}
			if kind == v1.KindNetwork || kind == v1.KindCluster {
				require.Equal(t, []any{v1.Finalizer(kind)}, at(got, "metadata", "finalizers"))
			} else {
				require.Nil(t, at(got, "metadata", "finalizers"), "nothing would take it away")
			}
		})
	}
}

// What the user wrote stays as it is, zero values included.
func TestDefaultsTouchNothingElse(t *testing.T) {
	world, k := tableOf(t, v1.KindNetwork)
	w := newWorld(t, world.Objects...)
	o := object(t, k, admissioncases.Changes{
		"metadata.labels": map[string]any{"team": "a"}, "metadata.annotations": map[string]any{"note": "x/y~z"},
		"metadata.finalizers": []any{"other.example/x"}, "spec.o11y.enabled": false, "spec.zones": []any{"us-west-2b"}, "spec.shootName": "mine", "spec.account": "acme",
	})
	_, got := w.ask(admissionv1.Create, nil, o)
	require.Equal(t, map[string]any{"team": "a", v1.LabelProvider: "core-aws", v1.LabelProviderType: "aws-gardener"}, at(got, "metadata", "labels"))
	require.Equal(t, []any{"other.example/x", v1.Finalizer(v1.KindNetwork)}, at(got, "metadata", "finalizers"))
	require.Equal(t, at(o, "spec"), at(got, "spec"))
	require.Equal(t, at(o, "metadata", "annotations"), at(got, "metadata", "annotations"))
}

// A kubectl replace with the manifest of the creation: what was filled in then,
// and the identity, come back.
func TestReplaceKeepsWhatWasFilledIn(t *testing.T) {
	world, k := tableOf(t, v1.KindNetwork)
	w := newWorld(t, world.Objects...)
	manifest := object(t, k, nil)
	_, created := w.ask(admissionv1.Create, nil, manifest)
	lived, err := admissioncases.Change(created, admissioncases.Changes{
		"metadata.annotations": map[string]any{v1.AnnotationID: "0011223344556677", v1.AnnotationIDMintedFor: "uid", "note": "mine"},
	})
	require.NoError(t, err)
	answer, got := w.ask(admissionv1.Update, lived, manifest)
	require.True(t, answer.Allowed, "%v", answer.Result)
	require.Equal(t, map[string]any{v1.AnnotationID: "0011223344556677", v1.AnnotationIDMintedFor: "uid"}, at(got, "metadata", "annotations"), "but not what is the user's")
	for _, field := range []string{"account", "shootName", "zones"} {
		require.Equal(t, at(lived, "spec", field), at(got, "spec", field), field)
	}
	require.Equal(t, at(lived, "metadata", "labels"), at(got, "metadata", "labels"))
	require.Equal(t, at(lived, "metadata", "finalizers"), at(got, "metadata", "finalizers"))

	// A field that was never given stays so: the schema refuses to add it.
	bare, err := admissioncases.Change(lived, admissioncases.Changes{"spec.account": nil, "spec.zones": nil, "spec.shootName": nil})
	require.NoError(t, err)
	_, got = w.ask(admissionv1.Update, bare, manifest)
	require.Equal(t, at(bare, "spec"), at(got, "spec"))
}

// When the mutating webhook was left out, the validating one refuses to drop an
// identity; and an object whose identity was changed can get it back.
func TestIdentity(t *testing.T) {
	world, k := tableOf(t, v1.KindNetwork)
	w := newWorld(t, world.Objects...)
	with := func(id string, more admissioncases.Changes) map[string]any {
		changes := admissioncases.Changes{"metadata.annotations": map[string]any{v1.AnnotationID: id}}
		for path, value := range more {
			changes[path] = value
		}
		return object(t, k, changes)
	}
	validate := w.handlers[ValidatePath(v1.KindNetwork)]
	r := validate.Handle(t.Context(), request(t, admissionv1.Update, with("0011223344556677", nil), object(t, k, nil)))
	require.Contains(t, refusals(t, r)[0].Message, "is immutable: external resources carry the identity 0011223344556677; put it back")

	lost := admissioncases.Changes{"status.conditions": []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "IdentityChanged", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
	r = validate.Handle(t.Context(), request(t, admissionv1.Update, with("0011223344556677", lost), with("7766554433221100", lost)))
	require.True(t, r.Allowed, "%v", r.Result)
	r = validate.Handle(t.Context(), request(t, admissionv1.Update, with("0011223344556677", lost), with("fedcba9876543210", lost)))
	require.Contains(t, refusals(t, r)[0].Message, "Cluster infra/c1 holds the identity")
}

// Whatever is wrong with it, an object that is being deleted can be finalized.
func TestDeletingIsNotJudged(t *testing.T) {
	world, k := tableOf(t, v1.KindNetwork)
	w := newWorld(t, world.Objects...)
	going := admissioncases.Changes{"metadata.deletionTimestamp": "2026-01-01T00:00:00Z", "metadata.finalizers": []any{v1.Finalizer(v1.KindNetwork)}, "spec.provider": "none"}
	gone := admissioncases.Changes{"metadata.deletionTimestamp": "2026-01-01T00:00:00Z", "spec.provider": "other"}
	r, got := w.ask(admissionv1.Update, object(t, k, going), object(t, k, gone))
	require.True(t, r.Allowed, "%v", r.Result)
	require.Nil(t, at(got, "metadata", "finalizers"))
	require.Empty(t, w.live.reads)
}

// What another control plane made is kept unless somebody says otherwise.
func TestMigratedIsRetained(t *testing.T) {
	world, k := tableOf(t, v1.KindBackup)
	w := newWorld(t, world.Objects...)
	migrated := admissioncases.Changes{"metadata.annotations": map[string]any{v1.AnnotationMigrated: "true"}}
	r, got := w.ask(admissionv1.Create, nil, object(t, k, migrated))
	require.True(t, r.Allowed)
	require.Equal(t, "Retain", at(got, "spec", "deletionPolicy"))
	require.Contains(t, strings.Join(r.Warnings, "\n"), "spec.deletionPolicy is Retain, as the object is marked as migrated")
	later, err := admissioncases.Change(got, admissioncases.Changes{"spec.deletionPolicy": "Delete"})
	require.NoError(t, err)
	r, got = w.ask(admissionv1.Update, got, later)
	require.True(t, r.Allowed)
	require.Equal(t, "Delete", at(got, "spec", "deletionPolicy"))
}

// All problems at once, on a page.
func TestAllProblemsAtOnce(t *testing.T) {
	world, k := tableOf(t, v1.KindNetwork)
	w := newWorld(t, world.Objects...)
	zones := []any{}
	for i := range 40 {
		zones = append(zones, fmt.Sprintf("us-west-2-%d-%s", i, strings.Repeat("x", 300)))
	}
	r, _ := w.ask(admissionv1.Create, nil, object(t, k, admissioncases.Changes{"spec.zones": zones, "spec.shootName": "n-1"}))
	causes := refusals(t, r)
	require.Len(t, causes, plan.MaxProblems+1)
	require.Contains(t, causes[plan.MaxProblems].Message, "problems; correct these first")
	require.Less(t, len(r.Result.Message), 8000)

	r, _ = w.ask(admissionv1.Create, nil, object(t, k, admissioncases.Changes{"spec.region": "eu-west-9", "spec.cidr.vpc": "10.0.0.0/8", "spec.zones": []any{"us-west-2a"}}))
	require.Equal(t, `Network.cloud.pingcap.com "new" is invalid, 3 problems:
* spec.region: Invalid value: "eu-west-9": ProviderType aws-gardener has no such region; choose one of us-west-2, eu-west-1, us-east-1
* spec.cidr.vpc: Invalid value: "10.0.0.0/8": the prefix length must be between /16 and /23
* spec.cidr.vpc: Invalid value: "10.0.0.0/8": must lie in one of the ranges of ProviderType aws-gardener: 10.250.0.0/15, 172.16.0.0/12, 192.168.0.0/16`, r.Result.Message)
}

// A webhook and the first step of the operation say the same.
func TestSameWordsAsTheOperation(t *testing.T) {
	world, k := tableOf(t, v1.KindNetwork)
	w := newWorld(t, world.Objects...)
	o := object(t, k, admissioncases.Changes{"spec.region": "eu-west-9", "spec.provider": "closed-aws", "metadata.annotations": map[string]any{v1.AnnotationID: "0011223344556677"}})
	r, patched := w.ask(admissionv1.Create, nil, o)
	raw, err := json.Marshal(patched)
	require.NoError(t, err)
	n := &v1.Network{}
	require.NoError(t, json.Unmarshal(raw, n))
	b, err := w.caches.behindNetwork(t.Context(), n)
	require.NoError(t, err)
	provider := b.provider.DeepCopy()
	provider.Annotations = map[string]string{v1.AnnotationID: "1111222233334444"}
	_, fault := plan.Network(n, provider, b.pt, b.account, testOptions.Plan)
	require.Error(t, fault)
	for _, cause := range refusals(t, r) {
		_, rule, _ := strings.Cut(cause.Message, `": `)
		require.Contains(t, fault.Error(), rule)
	}
	require.Contains(t, fault.Error(), "2 problems")
}

// Before types are checked anything can come: it is left to the schema. What no
// webhook is for is let through.
func TestWhatCannotBeRead(t *testing.T) {
	world, k := tableOf(t, v1.KindCluster)
	w := newWorld(t, world.Objects...)
	broken := request(t, admissionv1.Create, nil, object(t, k, nil))
	broken.Object = runtime.RawExtension{Raw: []byte(`{"spec":{"port":"x"}}`)}
	require.True(t, w.handlers[MutatePath(v1.KindCluster)].Handle(t.Context(), broken).Allowed)
	r := w.handlers[ValidatePath(v1.KindCluster)].Handle(t.Context(), broken)
	require.False(t, r.Allowed)
	require.EqualValues(t, 422, r.Result.Code)
	connect := request(t, admissionv1.Connect, nil, object(t, k, nil))
	require.True(t, w.handlers[MutatePath(v1.KindCluster)].Handle(t.Context(), connect).Allowed)
	require.True(t, w.handlers[ValidatePath(v1.KindCluster)].Handle(t.Context(), connect).Allowed)
}

// The finalizer comes back on a living object, and not on one that goes.
func TestFinalizer(t *testing.T) {
	n := &v1.Network{}
	require.Equal(t, "f", admission.ForAll(n, n, "f").Finalizer)
	n.Finalizers = []string{"f"}
	require.Empty(t, admission.ForAll(n, n, "f").Finalizer)
}
