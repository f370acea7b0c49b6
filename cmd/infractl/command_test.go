package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Every kind of the API can be shown, under the words that kubectl knows.
func TestKindsAreThoseOfTheAPI(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	for name := range scheme.KnownTypes(v1.GroupVersion) {
		list, err := scheme.New(v1.GroupVersion.WithKind(name + "List"))
		if err != nil {
			continue // not a kind of its own
		}
		require.NotNil(t, list)
		k, err := parseKind(name)
		require.NoError(t, err)
		require.Equal(t, name, k.Name)
	}
}

func TestOneTarget(t *testing.T) {
	for _, tc := range []struct {
		args       []string
		kind, name string
		err        string
	}{
		{[]string{"network", "n1"}, "Network", "n1", ""},
		{[]string{"Networks/n1"}, "Network", "n1", ""},
		{[]string{"net", "n1"}, "Network", "n1", ""},
		{[]string{"clusters.cloud.pingcap.com", "c1"}, "Cluster", "c1", ""},
		{[]string{"cluster"}, "", "", "infractl get clusters"},
		{[]string{"pod", "x"}, "", "", `unknown kind "pod"; there are accounts`},
	} {
		k, name, err := oneTarget(tc.args)
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.kind, k.Name)
		require.Equal(t, tc.name, name)
	}
}

func TestUIAddress(t *testing.T) {
	o := load(t, "network-creating.yaml")
	got, err := uiAddress("http://127.0.0.1:8233/", "infra", o)
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8233/namespaces/infra/workflows/network%2Finfra%2Fn1%2Fcreate%2F1.1", got)

	o.Status.Operation = nil
	got, err = uiAddress("https://t.example.com/ui", "a b", o)
	require.NoError(t, err)
	require.Equal(t, "https://t.example.com/ui/namespaces/a%20b/workflows/network%2Finfra%2Fn1", got)

	_, err = uiAddress("localhost", "infra", o)
	require.ErrorContains(t, err, "--ui-url")
}

func TestToActivityAttempt(t *testing.T) {
	details, err := converter.GetDefaultDataConverter().ToPayloads("shoot 45 %")
	require.NoError(t, err)
	got := toActivityAttempt(&workflowpb.PendingActivityInfo{
		ActivityType: &commonpb.ActivityType{Name: "garden.WaitShootReady"},
		State:        enumspb.PENDING_ACTIVITY_STATE_STARTED, Attempt: 3, LastWorkerIdentity: "w",
		HeartbeatDetails: details, LastHeartbeatTime: timestamppb.New(now),
		LastFailure: &failurepb.Failure{
			Message:     "activity error",
			FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "Transient"}},
			Cause:       &failurepb.Failure{Message: "connection reset"},
		},
	})
	require.Equal(t, "garden.WaitShootReady", got.Name)
	require.Equal(t, "Started", got.State)
	require.EqualValues(t, 3, got.Attempt)
	require.Equal(t, "shoot 45 %", got.Heartbeat)
	require.True(t, got.HeartbeatAt.Time.Equal(now))
	require.Equal(t, "Transient: activity error: connection reset", got.Failure)
	require.Nil(t, got.Started, "an absent time stays absent")
	require.Nil(t, got.NextTryAt)
}

// Describe must not hang, nor fail, without Temporal.
func TestAskTemporalAway(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	start := time.Now()
	a := askTemporal(t.Context(), "network/infra/n1/create/1.1")
	require.Contains(t, a.Unknown, "127.0.0.1:1, namespace infra")
	require.Less(t, time.Since(start), 2*temporalTimeout)
}

func TestProgramName(t *testing.T) {
	require.Equal(t, "infractl", programName("/usr/bin/infractl"))
	require.Equal(t, "kubectl\u00a0infra", programName("/usr/local/bin/kubectl-infra"))
}

func TestCompletionOfKinds(t *testing.T) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"__complete", "describe", ""})
	root.SetOut(&out)
	require.NoError(t, root.Execute())
	for _, k := range kinds {
		require.Contains(t, out.String(), k.Plural+"\n")
	}
}

// The names come from the API server, whatever form the target is written in.
func TestCompletionOfNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"cloud.pingcap.com","versions":[{"groupVersion":"cloud.pingcap.com/v1","version":"v1"}]}]}`)
		case "/apis/cloud.pingcap.com/v1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cloud.pingcap.com/v1","resources":[{"name":"networks","kind":"Network","namespaced":true,"verbs":["list"]}]}`)
		case "/apis/cloud.pingcap.com/v1/namespaces/infra/networks":
			_, _ = io.WriteString(w, `{"kind":"NetworkList","apiVersion":"cloud.pingcap.com/v1","items":[
				{"kind":"Network","apiVersion":"cloud.pingcap.com/v1","metadata":{"name":"n1","namespace":"infra"}},
				{"kind":"Network","apiVersion":"cloud.pingcap.com/v1","metadata":{"name":"orders","namespace":"infra"}}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"retry", "network", ""}, "n1\norders\n"},
		{[]string{"describe", "networks", ""}, "n1\norders\n"},
		{[]string{"retry", "network/"}, "network/n1\nnetwork/orders\n"},
		{[]string{"retry", "pod", ""}, ""},
	} {
		var out bytes.Buffer
		root := newRoot()
		root.SetArgs(append([]string{"__complete", "--kubeconfig", path}, c.args...))
		root.SetOut(&out)
		require.NoError(t, root.Execute())
		require.Equal(t, c.want+":4\n", out.String(), "%v", c.args) // 4: no file names
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		args []string
		err  string
	}{
		{[]string{"get", "-o", "xml"}, "want wide, json or yaml"},
		{[]string{"describe", "pod", "x"}, "unknown kind"},
		{[]string{"get", "--kubeconfig", "/nonexistent"}, "Set --kubeconfig"},
	} {
		root := newRoot()
		root.SetArgs(tc.args)
		require.ErrorContains(t, root.Execute(), tc.err)
	}
}
