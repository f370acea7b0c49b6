package webhooks

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
)

// TestSoak sends random requests over HTTP from several clients at once, with
// 5,000 Networks and 5,000 Clusters in the caches, and the cache is as it was.
// It lasts a second. With WEBHOOKS_SOAK=10m it lasts that long, and 99 of 100
// answers must take less than 100 ms: a promise that needs a machine with
// nothing else to do, so that no other test run depends on it.
func TestSoak(t *testing.T) {
	length := time.Second
	if text := os.Getenv("WEBHOOKS_SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	cases, err := loadCases()
	require.NoError(t, err)
	w := fuzzWorld()
	before := w.dump(t)
	mux := http.NewServeMux()
	for path, hook := range w.handlers {
		mux.Handle(path, hook)
	}
	server := httptest.NewServer(mux)
	defer server.Close()

	const clients = 2
	took := make([][]time.Duration, clients)
	var refused atomic.Int64
	deadline := time.Now().Add(length)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
			for time.Now().Before(deadline) && !t.Failed() {
				data := make([]byte, 32)
				for j := range data {
					data[j] = byte(random.Uint32())
				}
				c := &choices{data: slices.Clone(data)}
				request, err := c.request(cases.kinds)
				if err != nil {
					continue // a change of a field that another change took away
				}
				err = request.check(func(path string, body []byte) ([]byte, int) {
					raw, status := post(t, server, path, body)
					if bytes.Contains(raw, []byte(`"allowed":false`)) {
						refused.Add(1)
					}
					return raw, status
				}, func(d time.Duration) {
					took[i] = append(took[i], d)
					if d > 500*time.Millisecond {
						t.Logf("%s for %s of a %s, choices %v", d, request.operation, request.kind, data)
					}
				})
				if err != nil {
					t.Errorf("choices %v: %v", data, err)
				}
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took...)
	require.NotEmpty(t, all)
	slices.Sort(all)
	at := func(p float64) time.Duration { return all[min(int(float64(len(all))*p), len(all)-1)] }
	t.Logf("%d answers (%d refusals) in %s: p50 %s, p99 %s, p99.9 %s, longest %s", len(all), refused.Load(), length, at(.5), at(.99), at(.999), all[len(all)-1])
	if os.Getenv("WEBHOOKS_SOAK") != "" {
		require.Less(t, at(.99), 100*time.Millisecond)
	}
	require.Equal(t, before, w.dump(t), "nobody changed an object of the cache")
}

func post(t *testing.T, server *httptest.Server, path string, body []byte) ([]byte, int) {
	resp, err := server.Client().Post(server.URL+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return raw, resp.StatusCode
}

// dump is everything that is in the caches.
func (w *world) dump(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, p := range w.caches.parts {
		for _, item := range p.indexer().List() {
			raw, err := json.Marshal(item)
			require.NoError(t, err)
			lines = append(lines, p.kind+" "+string(raw))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func BenchmarkValidateNewNetwork(b *testing.B) { benchmark(b, v1.KindNetwork, ValidatePath, nil) }
func BenchmarkValidateNewCluster(b *testing.B) { benchmark(b, v1.KindCluster, ValidatePath, nil) }
func BenchmarkMutateNewNetwork(b *testing.B)   { benchmark(b, v1.KindNetwork, MutatePath, nil) }
func BenchmarkValidateNewBackup(b *testing.B)  { benchmark(b, v1.KindBackup, ValidatePath, nil) }

// The hot path: an update of annotations.
func BenchmarkValidateAnnotation(b *testing.B) {
	benchmark(b, v1.KindCluster, ValidatePath, admissioncases.Changes{"metadata.annotations": map[string]any{v1.AnnotationOperation: "retry"}})
}

func benchmark(b *testing.B, kind string, path func(string) string, update admissioncases.Changes) {
	w := fuzzWorld()
	_, k := tableOf(b, kind)
	f := fuzzed{kind: kind, operation: admissionv1.Create}
	var err error
	f.o, err = k.With(update)
	require.NoError(b, err)
	if update != nil {
		f.operation = admissionv1.Update
		f.old, err = k.With(nil)
		require.NoError(b, err)
	}
	body, err := f.review()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if raw, status := w.direct(path(kind), body); status != http.StatusOK || !bytes.Contains(raw, []byte(`"allowed":true`)) {
			b.Fatalf("%d %s", status, raw)
		}
	}
}
