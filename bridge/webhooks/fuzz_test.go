package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
)

// largeWorld is the world of the cases with 5,000 Networks and 5,000 Clusters
// beside it, all of one Account: the most that one request can meet.
func largeWorld(t testing.TB, networks, clusters int) *world {
	t.Helper()
	cases, err := loadCases()
	require.NoError(t, err)
	w := newWorld(t, cases.world.Objects...)
	account, _ := w.caches.accounts.cached("infra", "acme")
	many := int32(1 << 20)
	account.Spec.Quotas = &v1.AccountQuotas{Networks: &many, Clusters: &many, TiDBNodes: &many, TiKVNodes: &many, TiFlashNodes: &many, Peers: &many}
	n1, _ := w.caches.networks.cached("infra", "n1")
	c1, _ := w.caches.clusters.cached("infra", "c1")
	for i := range networks {
		n := n1.DeepCopy()
		n.Name, n.UID, n.Spec.ShootName = fmt.Sprintf("many-%04d", i), types.UID(fmt.Sprintf("uid-n-%d", i)), fmt.Sprintf("m-%04d", i)
		n.Annotations = map[string]string{v1.AnnotationID: fmt.Sprintf("%016x", 1<<20+i)}
		n.Spec.CIDR.VPC = v1.CIDR(fmt.Sprintf("172.%d.%d.0/20", 16+i%16, (i/16)%16*16))
		n.Status.Shoot = &v1.NetworkShootStatus{Namespace: "garden-core", Name: n.Spec.ShootName}
		w.put(n)
	}
	for i := range clusters {
		c := c1.DeepCopy()
		c.Name, c.UID, c.Spec.Network = fmt.Sprintf("many-%04d", i), types.UID(fmt.Sprintf("uid-c-%d", i)), v1.ReferenceName(fmt.Sprintf("many-%04d", i%max(networks, 1)))
		c.Annotations = map[string]string{v1.AnnotationID: fmt.Sprintf("%016x", 1<<21+i)}
		w.put(c)
	}
	return w
}

// choices turns bytes into decisions, so that a fuzzer that changes a byte
// changes one decision. When they are used up, every decision is the first.
type choices struct{ data []byte }

func (c *choices) below(n int) int {
	if len(c.data) == 0 || n <= 1 {
		return 0
	}
	b := int(c.data[0])
	c.data = c.data[1:]
	if n > 256 && len(c.data) > 0 {
		b = b<<8 | int(c.data[0])
		c.data = c.data[1:]
	}
	return b % n
}

// dictionary are values that mean something to a rule, and some that mean
// nothing to anybody.
var dictionary = []any{
	nil, "", "none", "n1", "n2", "n3", "closed-n", "c1", "c2", "c3", "b1", "many-0001", "many-4999", "acme", "closed", "core-aws", "closed-aws", "no-domain",
	"aws-gardener", "spare", "us-west-2", "eu-west-1", "us-east-1", "us-west-2a", "2C8G", "4C16G", "8C32G", "Standard", "Fast", "n-1", "m-0001",
	"10.250.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "0.0.0.0/0", "::/0", "999.1.1.1/99", "100.64.0.0/11", "v8.5.2", "v7.5.0", "v9.0.0", "v1", "200Gi", "5Ti", "-1Gi", "1e100",
	"6h", "-1h", "9999999h", "220000+0000", "x", "true", "false", "yes", "retry", "Always", "Never", "Restore", "Empty", "Logical", "Physical", "Customer", "Weekly", "Auto", "Manual",
	"arn:aws:kms:us-west-2:123456789012:key/1", "arn:aws:kms", ":::::", "2026-01-01T00:00:00Z", "0123456789abcdef", "fedcba9876543210", "0011223344556677", "AAAA",
	"gs://data/x", "s3://data/x", "kafka://host:9092/t", "\x00", "ü\u202e\U0001F600", "a/b~c\"'\\", strings.Repeat("x", 4096),
	"Available", "Paused", "Pausing", "Modifying", "Upgrading", "Importing", "Running", "Succeeded", "Failed", "Deleting",
	true, false, int64(0), int64(1), int64(-1), int64(3), int64(7), int64(1 << 40), 1.5, []any{}, []any{"a", "a"}, map[string]any{}, map[string]any{"name": "x"},
	map[string]any{v1.AnnotationMigrated: "true"}, map[string]any{v1.AnnotationID: "0123456789abcdef"}, map[string]any{v1.AnnotationID: "0011223344556677"},
	map[string]any{v1.AnnotationForceDelete: "x", v1.AnnotationOperation: "jump"}, map[string]any{v1.LabelNetwork: "n1", v1.LabelProvider: "other"},
}

// word is a value of its own: what is put into one object is changed there, and
// must not be another one's, least of all a part of itself.
func (c *choices) word() any { return runtime.DeepCopyJSONValue(dictionary[c.below(len(dictionary))]) }

// change makes one random change somewhere in an object.
func (c *choices) change(o map[string]any) {
	var at any = o
	for {
		switch v := at.(type) {
		case map[string]any:
			keys := make([]string, 0, len(v))
			for key := range v {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			if len(keys) == 0 {
				v["extra"] = c.word()
				return
			}
			key := keys[c.below(len(keys))]
			switch c.below(8) {
			case 0:
				delete(v, key)
				return
			case 1:
				v[key] = c.word()
				return
			case 2:
				v[[]string{"paused", "deletionTimestamp", "annotations", "labels", "finalizers", "pausePolicy", "target", "external", "zones", "tiflash", "lastStorageChangeAt", "pitr"}[c.below(12)]] = c.word()
				return
			}
			if !container(v[key]) {
				v[key] = c.word()
				return
			}
			at = v[key]
		case []any:
			if len(v) == 0 {
				return
			}
			i := c.below(len(v))
			if !container(v[i]) || c.below(4) == 0 {
				v[i] = c.word()
				return
			}
			at = v[i]
		default:
			return
		}
	}
}

func container(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// fuzzed is a request that is valid but for a few random changes.
type fuzzed struct {
	kind      string
	operation admissionv1.Operation
	old, o    map[string]any
}

func (c *choices) request(kinds []admissioncases.WebhookKind) (fuzzed, error) {
	k := kinds[c.below(len(kinds))]
	f := fuzzed{kind: k.Kind, operation: []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}[c.below(3)]}
	// Half of the requests begin with a case of the table.
	changes := admissioncases.Changes{}
	if c.below(2) == 1 {
		one := k.Cases[c.below(len(k.Cases))]
		changes = one.Fail
	}
	var err error
	if f.o, err = k.With(changes); err != nil {
		return f, err
	}
	if f.operation != admissionv1.Create {
		if f.old, err = k.With(nil); err != nil {
			return f, err
		}
		for range c.below(2) {
			c.change(f.old)
		}
	}
	for range c.below(6) {
		c.change(f.o)
	}
	if f.operation == admissionv1.Delete {
		f.old, f.o = f.o, nil
	}
	return f, nil
}

// review is what the API server sends.
func (f fuzzed) review() ([]byte, error) {
	encode := func(o map[string]any) runtime.RawExtension {
		if o == nil {
			return runtime.RawExtension{}
		}
		raw, _ := json.Marshal(o)
		return runtime.RawExtension{Raw: raw}
	}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Operation: f.operation, Namespace: "infra", Object: encode(f.o), OldObject: encode(f.old),
			Kind: metav1.GroupVersionKind{Group: v1.GroupName, Version: "v1", Kind: f.kind},
		},
	})
}

// check sends a request to both webhooks of its kind and holds the answers to
// what every answer owes. took is told how long each took.
func (f fuzzed) check(serve func(path string, body []byte) ([]byte, int), took func(time.Duration)) error {
	body, err := f.review()
	if err != nil {
		return err
	}
	for _, path := range []string{MutatePath(f.kind), ValidatePath(f.kind)} {
		begin := time.Now()
		raw, status := serve(path, body)
		took(time.Since(begin))
		if status != http.StatusOK {
			return fmt.Errorf("%s answers %d", path, status)
		}
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal(raw, &answer); err != nil || answer.Response == nil {
			return fmt.Errorf("%s answers %q: %w", path, raw, err)
		}
		if err := f.owes(path, answer.Response); err != nil {
			return fmt.Errorf("%s: %w\nrequest: %s\nanswer: %s", path, err, body, raw)
		}
	}
	return nil
}

func (f fuzzed) owes(path string, r *admissionv1.AdmissionResponse) error {
	if r.UID != "u" {
		return fmt.Errorf("the answer is of request %q", r.UID)
	}
	if r.Result != nil && r.Result.Code >= 500 {
		return fmt.Errorf("code %d", r.Result.Code)
	}
	if !r.Allowed {
		switch {
		case path == MutatePath(f.kind):
			return fmt.Errorf("the mutating webhook refuses")
		case f.operation == admissionv1.Delete:
			return fmt.Errorf("a deletion is refused")
		case r.Result == nil || r.Result.Code != http.StatusUnprocessableEntity || len(r.Result.Message) == 0:
			return fmt.Errorf("the refusal says nothing")
		case len(r.Result.Message) > 10_000:
			return fmt.Errorf("the refusal has %d characters", len(r.Result.Message))
		}
		return nil
	}
	if len(r.Patch) == 0 {
		return nil
	}
	patch, err := jsonpatch.DecodePatch(r.Patch)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(f.o)
	if err != nil {
		return err
	}
	_, err = patch.Apply(raw)
	return err
}

// direct calls the handlers without a network.
func (w *world) direct(path string, body []byte) ([]byte, int) {
	req := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.handlers[path[strings.LastIndex(path, "/"):]].ServeHTTP(rec, req)
	return rec.Body.Bytes(), rec.Code
}

var fuzzWorld = sync.OnceValue(func() *world { return largeWorld(worldBuilder{}, 5000, 5000) })

// worldBuilder is a testing.TB for what is built once for all tests.
type worldBuilder struct{ testing.TB }

func (worldBuilder) Helper()                   {}
func (worldBuilder) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (worldBuilder) FailNow()                  { panic("the world of the fuzz test") }

// FuzzWebhooks changes valid objects at random: no webhook panics, answers with
// a server error, or sends a patch that cannot be applied. Seeds are in
// testdata/fuzz and in the tables of internal/admissioncases.
func FuzzWebhooks(f *testing.F) {
	cases, err := loadCases()
	require.NoError(f, err)
	for kind := range cases.kinds {
		for operation := range 3 {
			f.Add([]byte{byte(kind), byte(operation), 1, byte(kind), 1, 2, 3, 4, 5})
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &choices{data: data}
		request, err := c.request(cases.kinds)
		if err != nil {
			t.Skip(err)
		}
		if err := request.check(fuzzWorld().direct, func(time.Duration) {}); err != nil {
			t.Fatal(err)
		}
	})
}
