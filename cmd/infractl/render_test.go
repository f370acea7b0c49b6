package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./cmd/infractl -update writes it anew")
}

// load reads objects as the API server would give them.
func load(t *testing.T, name string) object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(data, &u.Object))
	o, err := toObject(u)
	require.NoError(t, err)
	return o
}

func at(before time.Duration) *metav1.Time {
	t := metav1.NewTime(now.Add(-before))
	return &t
}

func TestRenderTable(t *testing.T) {
	objs := []object{
		load(t, "account.yaml"), load(t, "network-creating.yaml"),
		load(t, "cluster-stalled.yaml"), load(t, "network-normal.yaml"),
	}
	golden(t, "get.txt", renderTable(objs, false, now))
	golden(t, "get-wide.txt", renderTable(objs, true, now))
}

func TestRenderDescription(t *testing.T) {
	story := []corev1.Event{
		{Type: "Normal", Reason: "OperationStarted", Message: "CreateNetwork started", EventTime: metav1.NewMicroTime(now.Add(-6 * time.Minute))},
		{Type: "Normal", Reason: "BucketCreated", Message: "bucket ic-0a1b2c3d-789012-data\nexists", LastTimestamp: *at(5 * time.Minute)},
	}
	for name, d := range map[string]description{
		"creating": {Object: load(t, "network-creating.yaml"), Events: story, Attempt: &attempt{
			Status: "Running",
			Activities: []activityAttempt{{
				Name: "garden.WaitShootReady", State: "Started", Attempt: 2, Worker: "worker-7f9c", Started: at(90 * time.Second),
				Heartbeat: "shoot 45 %: waiting until workers have joined", HeartbeatAt: at(2 * time.Second),
				Failure: "Transient: worker stopped",
			}},
		}},
		"stalled": {Object: load(t, "cluster-stalled.yaml"), Attempt: &attempt{Status: "Running", TaskAttempts: 5, Failing: "workers fail to go on with workflow x (Y: z). For the operator: roll back; it then goes on by itself", Activities: []activityAttempt{{
			Name: "aws.EnsureKey", State: "Scheduled", Attempt: 4, Failure: "Throttled: slow down", NextTryAt: at(-20 * time.Second),
		}}}},
		"normal":   {Object: load(t, "network-normal.yaml")},
		"account":  {Object: load(t, "account.yaml")},
		"deleting": {Object: load(t, "network-deleting.yaml"), Attempt: &attempt{Unknown: "127.0.0.1:7233: connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			d.Now = now
			golden(t, "describe-"+name+".txt", renderDescription(d))
		})
	}
}

func TestPrintObjects(t *testing.T) {
	one := []object{load(t, "account.yaml")}
	for _, tc := range []struct {
		output string
		single bool
		file   string
	}{
		{"yaml", true, "get-one.yaml"}, {"yaml", false, "get-list.yaml"}, {"json", true, "get-one.json"},
	} {
		var out bytes.Buffer
		require.NoError(t, printObjects(&out, one, tc.output, tc.single, now))
		golden(t, tc.file, out.String())
	}
}

func TestEventTime(t *testing.T) {
	created := metav1.ObjectMeta{CreationTimestamp: *at(4 * time.Hour)}
	micro := metav1.NewMicroTime(now.Add(-3 * time.Hour))
	e := corev1.Event{ObjectMeta: created}
	require.Equal(t, now.Add(-4*time.Hour), eventTime(e))
	e.EventTime = micro
	require.Equal(t, now.Add(-3*time.Hour), eventTime(e))
	e.LastTimestamp = *at(2 * time.Hour)
	require.Equal(t, now.Add(-2*time.Hour), eventTime(e))
	e.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(now.Add(-time.Hour))}
	require.Equal(t, now.Add(-time.Hour), eventTime(e))
}

func TestCompareEvents(t *testing.T) {
	event := func(version string, before time.Duration) corev1.Event {
		return corev1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}, LastTimestamp: *at(before)}
	}
	require.Negative(t, compareEvents(event("99", time.Minute), event("7", 0)), "time comes first")
	require.Negative(t, compareEvents(event("99", 0), event("100", 0)), "then the order of writing")
	require.Zero(t, compareEvents(event("", 0), event("x", 0)))
}

func TestTablesAndDescriptionsShowAPause(t *testing.T) {
	idle, busy := load(t, "network-normal.yaml"), load(t, "network-creating.yaml")
	require.NotContains(t, renderTable([]object{idle, busy}, true, now), "paused")
	for _, o := range []*object{&idle, &busy} {
		o.Annotations[v1.AnnotationPaused] = "true"
		require.Contains(t, renderTable([]object{*o}, false, now), "paused")
	}
	require.Contains(t, renderTable([]object{busy}, true, now), "paused; "+operationWaitsFor(busy))
	require.NotEmpty(t, operationWaitsFor(busy))
}

func TestAnEndedOperationHasNoProgress(t *testing.T) {
	o := load(t, "network-creating.yaml")
	op := *o.Status.Operation
	op.Progress = 53
	for state, want := range map[v1.OperationState]string{
		v1.OperationRunning: "Running, 53%", v1.OperationBlocked: "Blocked, 53%", v1.OperationCancelled: "Cancelled", v1.OperationFailed: "Failed",
	} {
		op.State = state
		require.Equal(t, want, stateText(&op))
	}
}
