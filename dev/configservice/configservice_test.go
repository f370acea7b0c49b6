package configservice

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

func get(t *testing.T, url string) (status int, body []byte) {
	t.Helper()
	// On a connection of its own: net/http repeats a GET that is cut on a used one.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestPicksTheClosestDocument(t *testing.T) {
	dir := t.TempDir()
	network := write(t, dir, "network.yaml", "kind: NetworkConfig\ncloud: AWS\n")
	plain := write(t, dir, "v1.yaml", "kind: ClusterConfig\ncloud: AWS\noperator: V1\nversion: v8.5.2\n")
	tenant := write(t, dir, "v1-tenant.yaml", "kind: ClusterConfig\ncloud: AWS\noperator: V1\nversion: v8.5.2\ntenant: \"7\"\n")
	faults := control.NewRegistry()
	s, err := New(dir, faults)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	hash := func(path string) string {
		status, body := get(t, server.URL+path)
		var answer struct{ Hash string }
		if status != http.StatusOK || json.Unmarshal(body, &answer) != nil {
			return http.StatusText(status)
		}
		return answer.Hash
	}
	for path, want := range map[string]string{
		"/v1/network-config?cloud=AWS&region=us-west-2&tenant=1":           network,
		"/v1/network-config?cloud=GCP":                                     "Not Found",
		"/v1/cluster-config?cloud=aws&operator=V1&version=v8.5.2":          plain,
		"/v1/cluster-config?cloud=AWS&operator=V1&version=v8.5.2&tenant=7": tenant,
		"/v1/cluster-config?cloud=AWS&operator=V1&version=v9":              "Not Found",
	} {
		if got := hash(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if status, body := get(t, server.URL+"/v1/configs/"+network); status != 200 || string(body) != "kind: NetworkConfig\ncloud: AWS\n" {
		t.Errorf("document: %d %q", status, body)
	}

	next := write(t, dir, "network.yaml", "kind: NetworkConfig\ncloud: AWS\noperatorVersion: v1.6.7\n")
	if got := hash("/v1/network-config?cloud=AWS"); got != next {
		t.Errorf("after a change: %s, want %s", got, next)
	}
	if status, _ := get(t, server.URL+"/v1/configs/"+network); status != 200 {
		t.Errorf("a pinned document went away: %d", status)
	}

	for _, f := range []control.Fault{
		{Target: control.TargetConfigService, Kind: control.KindServerError, Status: 503, Count: 1},
		{Target: control.TargetConfigService, Kind: control.KindLostAnswer, Count: 1},
	} {
		if _, err := faults.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if status, _ := get(t, server.URL+"/v1/configs/"+next); status != 503 {
		t.Errorf("first fault: %d", status)
	}
	if status, _ := get(t, server.URL+"/v1/configs/"+next); status != 0 {
		t.Errorf("lost answer: got %d", status)
	}
}

func TestRefusesWhatIsNoDocument(t *testing.T) {
	for name, text := range map[string]string{"kind": "kind: Shoot\n", "YAML": "{"} {
		dir := t.TempDir()
		write(t, dir, "x.yaml", text)
		if _, err := New(dir, nil); err == nil {
			t.Errorf("accepted a wrong %s", name)
		}
	}
	if _, err := New(t.TempDir(), nil); err == nil {
		t.Error("accepted an empty folder")
	}
}

// TestServesTheSamples keeps deploy/samples usable.
func TestServesTheSamples(t *testing.T) {
	s, err := New("../../deploy/samples/config-service", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/network-config?cloud=AWS&region=us-west-2", "/v1/cluster-config?cloud=AWS&operator=V1&version=v8.5.2"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
