package webhooks

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/api/v1/crdtest"
	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

var loadCRDs = sync.OnceValues(func() (map[string]*crdtest.Kind, error) { return crdtest.Load("../../config/crd") })

type webhookCases struct {
	world admissioncases.World
	kinds []admissioncases.WebhookKind
}

var loadCases = sync.OnceValues(func() (webhookCases, error) {
	w, kinds, err := admissioncases.LoadWebhooks()
	return webhookCases{w, kinds}, err
})

// noon is the time of all requests.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var testOptions = Options{
	Plan:      plan.Options{Env: "dev", DefaultProject: "core"},
	Finalized: func(kind string) bool { return kind == v1.KindNetwork || kind == v1.KindCluster },
	Now:       func() time.Time { return noon },
}

// world is the caches of a test with the webhooks that read them.
type world struct {
	t        testing.TB
	caches   *Caches
	live     *liveReader
	handlers map[string]*webhook.Webhook
}

// liveReader counts reads past the caches, and finds what it was given.
type liveReader struct {
	mu      sync.Mutex
	reads   []string
	objects map[string]client.Object
	err     error
}

func (l *liveReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := kindOf(into)
	l.reads = append(l.reads, kind)
	if l.err != nil {
		return l.err
	}
	o, ok := l.objects[kind+"/"+key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: v1.GroupName, Resource: plural(kind)}, key.Name)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func (l *liveReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	panic("webhooks never list past the caches")
}

var testScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := v1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

func kindOf(o runtime.Object) string {
	gvks, _, err := testScheme.ObjectKinds(o)
	if err != nil {
		panic(err)
	}
	return gvks[0].Kind
}

func newWorld(t testing.TB, objects ...map[string]any) *world {
	t.Helper()
	live := &liveReader{objects: map[string]client.Object{}}
	w := &world{t: t, live: live, caches: NewCaches(live)}
	w.handlers = Handlers(w.caches, testOptions)
	for _, o := range objects {
		w.add(o)
	}
	return w
}

// defaulted fills in the schema's defaults, as the API server does first.
func defaulted(t testing.TB, o map[string]any) map[string]any {
	t.Helper()
	kinds, err := loadCRDs()
	require.NoError(t, err)
	kind, _ := o["kind"].(string)
	require.Contains(t, kinds, kind)
	return kinds[kind].Default(o)
}

// add puts an object into the cache, as an informer would.
func (w *world) add(o map[string]any) {
	w.t.Helper()
	raw, err := json.Marshal(defaulted(w.t, o))
	require.NoError(w.t, err)
	into, err := testScheme.New(v1.GroupVersion.WithKind(o["kind"].(string)))
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(raw, into))
	w.put(into.(v1.Object))
}

func (w *world) put(o v1.Object) {
	w.t.Helper()
	slimmed, err := slim(o)
	require.NoError(w.t, err)
	for _, p := range w.caches.parts {
		if p.kind == kindOf(o) {
			require.NoError(w.t, p.indexer().Add(slimmed))
			w.caches.tally.put(slimmed)
			return
		}
	}
	w.t.Fatalf("no cache of %T", o)
}

// request makes an admission request; old is nil for a creation.
func request(t testing.TB, operation admissionv1.Operation, old, o map[string]any) webhook.Request {
	t.Helper()
	either := o
	if either == nil {
		either = old
	}
	kind, _ := either["kind"].(string)
	meta, _ := either["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	r := webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "uid-of-request", Operation: operation, Namespace: "infra", Name: name,
		Kind:     metav1.GroupVersionKind{Group: v1.GroupName, Version: "v1", Kind: kind},
		Resource: metav1.GroupVersionResource{Group: v1.GroupName, Version: "v1", Resource: plural(kind)},
	}}
	encode := func(o map[string]any) runtime.RawExtension {
		if o == nil {
			return runtime.RawExtension{}
		}
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		return runtime.RawExtension{Raw: raw}
	}
	r.Object, r.OldObject = encode(o), encode(old)
	return r
}

// ask sends a request through the mutating and then the validating webhook, as
// the API server does. It returns the last answer and the object as patched.
func (w *world) ask(operation admissionv1.Operation, old, o map[string]any) (webhook.Response, map[string]any) {
	w.t.Helper()
	req := request(w.t, operation, old, o)
	kind := req.Kind.Kind
	mutated := w.handlers[MutatePath(kind)].Handle(context.Background(), req)
	require.True(w.t, mutated.Allowed, "the mutating webhook refuses nothing: %v", mutated.Result)
	if len(mutated.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(mutated.Patch)
		require.NoError(w.t, err)
		req.Object.Raw, err = patch.Apply(req.Object.Raw)
		require.NoError(w.t, err, "%s", mutated.Patch)
		again := w.handlers[MutatePath(kind)].Handle(context.Background(), req)
		require.Empty(w.t, again.Patch, "defaults are filled in once")
	}
	var patched map[string]any
	if len(req.Object.Raw) > 0 {
		require.NoError(w.t, utiljson.Unmarshal(req.Object.Raw, &patched)) // whole numbers stay whole
	}
	r := w.handlers[ValidatePath(kind)].Handle(context.Background(), req)
	r.Warnings = append(mutated.Warnings, r.Warnings...)
	return r, patched
}

// refusals are the causes of a refusal.
func refusals(t testing.TB, r webhook.Response) []metav1.StatusCause {
	t.Helper()
	require.False(t, r.Allowed)
	require.EqualValues(t, http.StatusUnprocessableEntity, r.Result.Code, "%+v", r.Result)
	require.Equal(t, metav1.StatusReasonInvalid, r.Result.Reason)
	require.NotEmpty(t, r.Result.Details.Causes)
	return r.Result.Details.Causes
}
