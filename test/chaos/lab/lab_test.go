package lab

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
)

func TestDescribe(t *testing.T) {
	for name, tc := range map[string]struct {
		system   System
		method   string
		path     string
		header   map[string]string
		body     string
		kind     string
		mutating bool
	}{
		"status of a custom resource": {
			system: Management, method: "PATCH", path: "/apis/cloud.pingcap.com/v1/namespaces/a/networks/n1/status", kind: "PATCH networks/status", mutating: true,
		},
		"core object": {system: Shoot, method: "PATCH", path: "/api/v1/namespaces/tidb/services/db", kind: "PATCH services", mutating: true},
		"a namespace": {system: Shoot, method: "DELETE", path: "/api/v1/namespaces/tidb", kind: "DELETE namespaces", mutating: true},
		"cluster-wide": {
			system: Shoot, method: "POST", path: "/apis/storage.k8s.io/v1/storageclasses", kind: "POST storageclasses", mutating: true,
		},
		"a question": {
			system: Management, method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", kind: "POST selfsubjectaccessreviews",
		},
		"query protocol": {
			system: AWS, method: "POST", path: "/", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
			body: "Action=CreateRole&Version=2010-05-08", kind: "CreateRole", mutating: true,
		},
		"query protocol, reading": {
			system: AWS, method: "POST", path: "/", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
			body: "Action=DescribeVpcs", kind: "DescribeVpcs",
		},
		"JSON protocol":   {system: AWS, method: "POST", path: "/", header: map[string]string{"X-Amz-Target": "TrentService.CreateKey"}, kind: "CreateKey", mutating: true},
		"bucket":          {system: AWS, method: "PUT", path: "/ic-0-data", kind: "PUT bucket", mutating: true},
		"bucket's policy": {system: AWS, method: "PUT", path: "/ic-0-data?x-id=1&publicAccessBlock", kind: "PUT bucket?publicAccessBlock", mutating: true},
		"zone": {
			system: AWS, method: "POST", path: "/2013-04-01/hostedzone/Z1/rrset/", kind: "POST /hostedzone/*/rrset/", mutating: true,
		},
		"look at a bucket": {system: AWS, method: "HEAD", path: "/ic-0-data", kind: "HEAD bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, tc.path, nil)
			for k, v := range tc.header {
				r.Header.Set(k, v)
			}
			c, mutating := describe(tc.system, r, []byte(tc.body))
			require.Equal(t, tc.kind, c.Kind)
			require.Equal(t, tc.mutating, mutating)
		})
	}
}

// ask asks a conductor as a worker does.
func ask(t *testing.T, url string, b hook.Border) hook.Verdict {
	t.Helper()
	raw, err := json.Marshal(b)
	require.NoError(t, err)
	resp, err := http.Post(url, "application/json", bytes.NewReader(raw))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return hook.Verdict(text)
}

func TestConductor(t *testing.T) {
	c := NewConductor()
	server := httptest.NewServer(c)
	defer server.Close()
	border := func(m hook.Moment, id string) hook.Border {
		return hook.Border{Moment: m, Activity: "aws.EnsureBucket", ActivityID: id, Workflow: "CreateNetwork", WorkflowID: "network/a/n1/create/1.1", RunID: "r"}
	}
	second := Boundary{Workflow: "CreateNetwork", Activity: "aws.EnsureBucket", Call: 2, Moment: hook.After}
	other := c.Arm(Rule{Boundary: second, Object: "network/a/n", Then: hook.Kill})
	kill := c.Arm(Rule{Boundary: second, Object: "network/a/n1", Then: hook.Kill})
	require.Equal(t, hook.Go, ask(t, server.URL, border(hook.Before, "5")))
	require.Equal(t, hook.Go, ask(t, server.URL, border(hook.After, "5")), "the first call")
	require.Equal(t, hook.Go, ask(t, server.URL, border(hook.Before, "5")), "an attempt is no call")
	require.Equal(t, hook.Go, ask(t, server.URL, border(hook.Before, "6")))
	failed := border(hook.After, "6")
	failed.Failed = true
	require.Equal(t, hook.Go, ask(t, server.URL, failed), "a failure has no effect")
	require.False(t, kill.Fired())
	require.Equal(t, hook.Kill, ask(t, server.URL, border(hook.After, "6")))
	require.True(t, kill.Fired())
	require.False(t, other.Fired(), "network/a/n is another object")
	require.Equal(t, hook.Go, ask(t, server.URL, border(hook.After, "6")), "a rule strikes once")

	third := c.Arm(Rule{Boundary: Boundary{Workflow: "CreateNetwork", Call: 3, Moment: hook.After}, Then: hook.Kill})
	next := border(hook.After, "8")
	next.Activity = "garden.EnsureShoot"
	require.Equal(t, hook.Kill, ask(t, server.URL, next), "the third call of all")
	require.True(t, third.Fired())

	hold := c.Arm(Rule{Boundary: Boundary{Activity: "aws.EnsureBucket", Moment: hook.Before}, Then: hook.Go})
	answered := make(chan hook.Verdict)
	go func() { answered <- ask(t, server.URL, border(hook.Before, "7")) }()
	<-hold.Reached()
	select {
	case <-answered:
		t.Fatal("it did not wait")
	default:
	}
	hold.Release()
	require.Equal(t, hook.Go, <-answered)
	require.Len(t, Boundaries(c.Trace(), nil)["CreateNetwork"], 6, "three calls have begun, before and after each")
	require.Equal(t, []string{"r"}, Runs(c.Trace(), 0, "CreateNetwork"))
	require.Empty(t, Runs(c.Trace(), 1, "CreateNetwork"), "it had begun before")
	apart := Boundaries(c.Trace(), map[string]string{"r": "Special"})
	require.Len(t, apart["Special"], 6)
	require.Empty(t, apart["CreateNetwork"])
}

func TestTable(t *testing.T) {
	var table Table
	table.Add(Run{Part: "kill", Operation: "CreateNetwork", Converged: true, Took: time.Second})
	table.Add(Run{Part: "kill", Operation: "CreateNetwork", Twice: []string{"s3/bucket exists 2 times"}, Left: []string{"a", "b"}, Took: 3 * time.Second})
	var out strings.Builder
	table.Print(&out)
	var rows [][]string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) > 0 {
			rows = append(rows, f)
		}
	}
	require.Equal(t, []string{"kill", "CreateNetwork", "2", "1", "1", "2", "3s"}, rows[2])
}

func TestGolden(t *testing.T) {
	all, err := Golden()
	require.NoError(t, err)
	require.NotEmpty(t, all["CreateNetwork"])
	require.Contains(t, all["CreateNetwork"], Boundary{Workflow: "CreateNetwork", Activity: "aws.EnsureBucket", Call: 1, Moment: hook.After})
}
