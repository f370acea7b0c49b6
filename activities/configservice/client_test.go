package configservice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const clusterDoc = `kind: ClusterConfig
version: v8.5.2
images: {pd: "pingcap/pd:v8.5.2", tikv: "pingcap/tikv:v8.5.2", tidb: "pingcap/tidb:v8.5.2"}
config:
  tikv: |
    [storage]
    reserve-space = "5GB"
`

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func TestFetchClusterConfigIsCachedByHash(t *testing.T) {
	fetched := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/cluster-config":
			q := r.URL.Query()
			if q.Get("version") != "v8.5.2" || q.Get("operator") != "V1" || q.Get("cloud") != "AWS" {
				w.WriteHeader(http.StatusNotFound)
				w.Write([]byte(`{"message":"no configuration for version ` + q.Get("version") + `"}`))
				return
			}
			w.Write([]byte(`{"hash":"` + sum(clusterDoc) + `"}`))
		case "/v1/configs/" + sum(clusterDoc):
			fetched++
			w.Write([]byte(clusterDoc))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	a := &Activities{Client: New(srv.URL + "/")}
	ctx := context.Background()

	for range 3 {
		ref, err := a.FetchClusterConfig(ctx, contract.ConfigQuery{Cloud: "AWS", Operator: "V1", Version: "v8.5.2"})
		require.NoError(t, err)
		require.Equal(t, sum(clusterDoc), ref.Hash)
	}
	require.Equal(t, 1, fetched)
	cc, err := a.Client.ClusterConfig(ctx, sum(clusterDoc))
	require.NoError(t, err)
	require.Equal(t, "pingcap/tikv:v8.5.2", cc.Image("tikv"))
	require.Contains(t, cc.TOML("tikv"), "reserve-space")
	require.Empty(t, cc.Image("ticdc"))

	_, err = a.FetchClusterConfig(ctx, contract.ConfigQuery{Cloud: "AWS", Operator: "V1", Version: "v1.0.0"})
	require.True(t, faults.Is(err, faults.Invalid), "%v", err)
	require.ErrorContains(t, err, "no configuration for version v1.0.0")

	_, err = a.Client.NetworkConfig(ctx, sum(clusterDoc))
	require.True(t, faults.Is(err, faults.Invalid), "a document of another kind: %v", err)
	_, err = a.Client.ClusterConfig(ctx, "../../etc/passwd")
	require.True(t, faults.Is(err, faults.Invalid))
}

func TestFailuresOfTheService(t *testing.T) {
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		class   faults.Class
		retryAt time.Duration
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, faults.Transient, 0},
		{"503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, faults.Transient, 0},
		{"429", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(429)
		}, faults.Throttled, 3 * time.Second},
		{"403", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, faults.Auth, 0},
		{"400", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, faults.Invalid, 0},
		{"no hash", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{}`)) }, faults.Invalid, 0},
		{"answer cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		}, faults.Transient, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			srv := httptest.NewServer(tc.handler)
			defer srv.Close()
			_, err := (&Activities{Client: New(srv.URL)}).FetchNetworkConfig(context.Background(), contract.ConfigQuery{})
			f := faults.As(err)
			require.NotNil(t, f)
			require.Equal(t, tc.class, f.Class)
			require.Equal(t, tc.retryAt, f.RetryAt)
		})
	}
	_, err := (&Activities{Client: New("http://127.0.0.1:1")}).FetchNetworkConfig(context.Background(), contract.ConfigQuery{})
	require.True(t, faults.Is(err, faults.Transient), "refused: %v", err)
}

func TestChangedBytesAreRefused(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("kind: NetworkConfig")) }))
	defer srv.Close()
	_, err := New(srv.URL).NetworkConfig(context.Background(), sum("something else"))
	require.True(t, faults.Is(err, faults.Invalid))
	require.ErrorContains(t, err, "another hash")
}
