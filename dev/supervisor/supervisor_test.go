package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := decodeManifests([]byte(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0]
}

const network = `
apiVersion: cloud.pingcap.com/v1
kind: Network
metadata: {name: n1, generation: 2}
`

func TestReadyCountsForTheCurrentGenerationOnly(t *testing.T) {
	for _, c := range []struct {
		name, status string
		want         bool
	}{
		{"no status", ``, false},
		{"not ready", `status: {observedGeneration: 2, conditions: [{type: Ready, status: "False"}]}`, false},
		{"ready for an older spec", `status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}`, false},
		{"ready", `status: {observedGeneration: 2, conditions: [{type: Stalled, status: "False"}, {type: Ready, status: "True"}]}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := object(t, network+c.status)
			if got := isReady(o); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestProgressLineSaysStepWaitAndStall(t *testing.T) {
	o := object(t, network+`
status:
  phase: Creating
  operation: {step: EnsureShoot, waitingFor: "shoot 45 %", progress: 30}
  conditions: [{type: Stalled, status: "True", message: "quota of VPCs"}]`)
	head, detail := progressOf(o)
	if want := "Creating   30 %  EnsureShoot  STALLED: quota of VPCs"; head != want {
		t.Errorf("got  %q\nwant %q", head, want)
	}
	if want := "shoot 45 %"; detail != want {
		t.Errorf("got  %q\nwant %q", detail, want)
	}
}

func TestFollowedPicksNetworksAndClusters(t *testing.T) {
	objects, err := decodeManifests([]byte(network + `
---
# nothing but a comment
---
apiVersion: cloud.pingcap.com/v1
kind: Account
metadata: {name: acme}
---
apiVersion: other.example.com/v1
kind: Cluster
metadata: {name: alien}
`))
	if err != nil || len(objects) != 3 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	if got := followed(objects); len(got) != 1 || title(got[0]) != "network/n1" {
		t.Errorf("got %v", got)
	}
}

func TestDecodeManifestsRefusesNameless(t *testing.T) {
	if _, err := decodeManifests([]byte("kind: Network\n")); err == nil {
		t.Error("accepted")
	}
}

func TestBoardWithoutTerminalPrintsChangesOnly(t *testing.T) {
	var out strings.Builder
	b := newBoard(&out)
	b.progress("a", "one", "")
	b.progress("a", "one", "")
	b.progress("a", "one", "a detail, too soon after the line before")
	b.progress("a", "two", "")
	b.say("done")
	if got := strings.Count(out.String(), "\n"); got != 3 {
		t.Errorf("%d lines:\n%s", got, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("escape sequences go to terminals only")
	}
}

func TestBoardOnTerminalRedraws(t *testing.T) {
	var out strings.Builder
	b := newBoard(&out)
	b.terminal, b.width = true, 20
	b.progress("a", strings.Repeat("x", 100), "")
	b.progress("b", "two", "")
	out.Reset()
	b.say("stays")
	got := out.String()
	if !strings.HasPrefix(got, "\x1b[2A\x1b[J") || !strings.Contains(got, "stays\n") {
		t.Errorf("does not erase two lines first: %q", got)
	}
	for _, line := range strings.Split(got, "\n") {
		if n := len([]rune(line)); n > 20+len("\x1b[2A\x1b[J") {
			t.Errorf("%d columns would wrap: %q", n, line)
		}
	}
}

func TestOutageEndsByItselfAndOnDemand(t *testing.T) {
	ended := make(chan struct{}, 2)
	begun := 0
	o := &outage{
		begin: func() error { begun++; return nil },
		end:   func(context.Context) error { ended <- struct{}{}; return nil },
	}
	failed := func(err error) { t.Error(err) }
	ctx := t.Context()
	// The second call moves the end of the first, and begins nothing.
	for _, d := range []time.Duration{time.Hour, 10 * time.Millisecond} {
		if err := o.set(ctx, d, failed); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("did not end by itself")
	}
	if err := o.set(ctx, time.Hour, failed); err != nil {
		t.Fatal(err)
	}
	if err := o.set(ctx, 0, failed); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 1 || begun != 2 {
		t.Errorf("begun %d times, ended %d more", begun, len(ended))
	}
	if err := o.set(ctx, 0, failed); err != nil || len(ended) != 1 {
		t.Errorf("ending what is over: %v", err)
	}
}

func TestStateIsOfARunningStackOnly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := FindState(""); !errors.Is(err, ErrNoStack) {
		t.Errorf("got %v", err)
	}
	dir, leave, err := openDataDir("")
	if err != nil {
		t.Fatal(err)
	}
	s := State{PID: os.Getpid(), DataDir: dir, Control: "http://127.0.0.1:1"}
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	if got, err := FindState(""); err != nil || got.Control != s.Control {
		t.Errorf("got %+v, %v", got, err)
	}
	s.PID = 1 << 30 // nobody's
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	if _, err := FindState(dir); !errors.Is(err, ErrNoStack) {
		t.Errorf("a killed stack: %v", err)
	}
	leave()
	if _, err := os.Stat(dir); err == nil {
		t.Error("the temporary folder is left")
	}
}

func TestOneStackForEachDataDir(t *testing.T) {
	dir := t.TempDir()
	if err := (State{PID: os.Getpid(), DataDir: dir}).write(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openDataDir(dir); err == nil || !strings.Contains(err.Error(), "runs in") {
		t.Errorf("got %v", err)
	}
}

func TestOptionsRefuse(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"config/crd", "deploy/samples/aws", "deploy/samples/config-service", "bin/temporaldev", "bin/bridge", "bin/worker", "deploy/kustomize"} {
		if err := os.MkdirAll(filepath.Join(root, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	good := Options{Root: root, Speed: 1}
	if err := good.Complete(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no speed":                 func(o *Options) { o.Speed = 0 },
		"ready without samples":    func(o *Options) { o.ExitWhenReady, o.NoSamples = true, true },
		"samples without product":  func(o *Options) { o.NoProduct = true },
		"a port of nothing":        func(o *Options) { o.Ports = map[string]int{"ftp": 21} },
		"a port that is none":      func(o *Options) { o.Ports = map[string]int{PortAWS: 70000} },
		"binaries that are absent": func(o *Options) { o.Bin = filepath.Join(root, "nowhere") },
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Root: root, Speed: 1}
			change(&o)
			if err := o.Complete(); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestSamplesOfTheProjectDecode(t *testing.T) {
	for _, folder := range []string{"../../deploy/samples/aws", "../../config/crd"} {
		objects, err := readFolder(folder)
		if err != nil || len(objects) < 5 {
			t.Errorf("%s: %d objects, %v", folder, len(objects), err)
		}
	}
}
