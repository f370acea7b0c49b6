package control

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

func TestStrikeMatchesEverySelector(t *testing.T) {
	for name, tc := range map[string]struct {
		rule    Fault
		subject Subject
		want    bool
	}{
		"no selector":       {Fault{}, Subject{Service: "ec2", Operation: "CreateVpc"}, true},
		"operation":         {Fault{Operation: "CreateVpc"}, Subject{Operation: "CreateVpc"}, true},
		"other operation":   {Fault{Operation: "CreateVpc"}, Subject{Operation: "CreateVpcEndpoint"}, false},
		"operation prefix":  {Fault{Operation: "Create*"}, Subject{Operation: "CreateVpcEndpoint"}, true},
		"service":           {Fault{Service: "iam"}, Subject{Service: "ec2"}, false},
		"account":           {Fault{Account: "1"}, Subject{Account: "2"}, false},
		"part of a request": {Fault{Resource: "ic-1a2b"}, Subject{Resource: "bucket=ic-1a2b3c4d-data"}, true},
		"not part":          {Fault{Resource: "ic-9"}, Subject{Resource: "bucket=ic-1a2b3c4d-data"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry()
			tc.rule.Target, tc.rule.Kind = TargetAWS, KindThrottle
			if _, err := r.Add(tc.rule); err != nil {
				t.Fatal(err)
			}
			if _, got := r.Strike(TargetAWS, tc.subject); got != tc.want {
				t.Errorf("struck %v, want %v", got, tc.want)
			}
			if _, other := r.Strike(TargetTiDB, tc.subject); other {
				t.Error("struck another target")
			}
		})
	}
}

func TestCountAndFor(t *testing.T) {
	r := NewRegistry()
	clock := time.Unix(1000, 0)
	r.now = func() time.Time { return clock }
	mustAdd(t, r, Fault{Target: TargetAWS, Kind: KindDeny, Count: 2})
	mustAdd(t, r, Fault{Target: TargetAWS, Kind: KindDelay, For: Duration(time.Minute)})
	changed := r.Changed()

	for i, want := range []Kind{KindDeny, KindDeny, KindDelay} {
		if f, ok := r.Strike(TargetAWS, Subject{}); !ok || f.Kind != want {
			t.Fatalf("strike %d: %v %v, want %s", i, f.Kind, ok, want)
		}
	}
	select {
	case <-changed:
	default:
		t.Error("nobody was told that a used-up fault went")
	}
	clock = clock.Add(time.Minute)
	if f, ok := r.Strike(TargetAWS, Subject{}); ok {
		t.Errorf("%s struck after its time", f.ID)
	}
}

func TestRateSparesSoManyCallsOfAnAccount(t *testing.T) {
	r := NewRegistry()
	clock := time.Unix(1000, 0)
	r.now = func() time.Time { return clock }
	mustAdd(t, r, Fault{Target: TargetAWS, Kind: KindThrottle, Account: "2", Rate: 0.5})
	struck := func(account string) bool {
		_, ok := r.Strike(TargetAWS, Subject{Account: account})
		return ok
	}
	for i, want := range []bool{false, true, true} {
		if struck("2") != want {
			t.Errorf("call %d: struck %v", i, !want)
		}
		if struck("1") {
			t.Error("struck another account")
		}
	}
	clock = clock.Add(2 * time.Second)
	if struck("2") {
		t.Error("struck the first call after two seconds")
	}
	if hits := r.List()[0].Hits; hits != 2 {
		t.Errorf("%d hits: a call that gets through is none", hits)
	}
}

func TestShootFaults(t *testing.T) {
	r := NewRegistry()
	mustAdd(t, r, Fault{Target: TargetShoot, Kind: KindError, Name: "n1", Phase: "Create", Progress: 40, Codes: []string{"ERR_INFRA_QUOTA_EXCEEDED"}})
	f, ok := r.Shoot("garden-core", "n1", gardenlet.PhaseCreate)
	if !ok || f.Kind != gardenlet.FaultError || f.Progress != 40 || len(f.Codes) != 1 {
		t.Errorf("got %+v %v", f, ok)
	}
	if _, ok := r.Shoot("garden-core", "n1", gardenlet.PhaseDelete); ok {
		t.Error("struck another phase")
	}
}

func TestValidate(t *testing.T) {
	for name, f := range map[string]Fault{
		"no target":         {Kind: KindDelay},
		"looks of a delay":  {Target: TargetAWS, Kind: KindDelay, Looks: 1},
		"eventual Shoots":   {Target: TargetShoot, Kind: KindEventual},
		"skip every":        {Target: TargetAWS, Kind: KindEventual, Every: 2, Skip: 2},
		"kind of another":   {Target: TargetAWS, Kind: KindStuck},
		"operation of tidb": {Target: TargetTiDB, Kind: KindStuck, Operation: "CreateVpc"},
		"phase":             {Target: TargetShoot, Kind: KindStuck, Phase: "Sleep"},
		"count of a shoot":  {Target: TargetShoot, Kind: KindError, Count: 1},
		"status":            {Target: TargetAWS, Kind: KindServerError, Status: 404},
		"component of aws":  {Target: TargetAWS, Kind: KindDeny, Component: "pd"},
		"rate of denial":    {Target: TargetAWS, Kind: KindDeny, Rate: 1},
		"negative rate":     {Target: TargetAWS, Kind: KindThrottle, Rate: -1},
		"negative count":    {Target: TargetAWS, Kind: KindDeny, Count: -1},
		"progress too high": {Target: TargetShoot, Kind: KindStuck, Progress: 100},
	} {
		if f.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

type fakeCloud struct{ query InventoryQuery }

func (c *fakeCloud) Inventory(_ context.Context, q InventoryQuery) ([]Resource, error) {
	c.query = q
	return []Resource{{Type: "ec2/vpc", ID: "vpc-1"}}, nil
}
func (*fakeCloud) Calls(q CallQuery) []Call {
	return []Call{{Seq: q.After + 1, Operation: q.Operation}}
}
func (*fakeCloud) ForgetCalls() {}

type fakeSupervisor struct{ done []string }

func (*fakeSupervisor) Processes() []Process {
	return []Process{{Name: "worker", PID: 7, Running: true}}
}
func (s *fakeSupervisor) Do(_ context.Context, process string, action Action) error {
	if process != "worker" {
		return ErrNotFound
	}
	s.done = append(s.done, string(action)+" "+process)
	return nil
}
func (s *fakeSupervisor) Outage(_ context.Context, system string, d time.Duration) error {
	s.done = append(s.done, system+" "+d.String())
	return nil
}

func TestServer(t *testing.T) {
	cloud, supervisor := &fakeCloud{}, &fakeSupervisor{}
	api := httptest.NewServer((&Server{Faults: NewRegistry(), Cloud: cloud, Supervisor: supervisor}).Handler())
	defer api.Close()

	for _, step := range []struct {
		method, path, body string
		status             int
		contains           string
	}{
		{"GET", "/", "", 200, "POST   /faults"},
		{"POST", "/faults", `{"target":"aws","kind":"delay","delay":"20ms","count":3}`, 201, `"id": "f1"`},
		{"POST", "/faults", `{"target":"aws","kind":"stuck"}`, 400, "does not exist for target aws"},
		{"POST", "/faults", `{"target":"aws","kind":"deny","operations":"x"}`, 400, "unknown field"},
		{"GET", "/faults", "", 200, `"delay": "20ms"`},
		{"DELETE", "/faults/f1", "", 200, "removed"},
		{"DELETE", "/faults/f1", "", 404, "is not on"},
		{"GET", "/inventory?id=abc&all=true", "", 200, "vpc-1"},
		{"GET", "/calls?operation=CreateVpc&after=4", "", 200, `"seq": 5`},
		{"GET", "/calls?limit=many", "", 400, "not a number"},
		{"GET", "/processes", "", 200, `"pid": 7`},
		{"POST", "/processes/worker/kill", "", 200, "worker"},
		{"POST", "/processes/worker/pet", "", 404, "use kill, stop, start or wipe"},
		{"POST", "/processes/other/kill", "", 404, "not found"},
		{"POST", "/outage/temporal?for=30s", "", 200, `"30s"`},
		{"POST", "/outage/temporal?for=soon", "", 400, "60s"},
		{"DELETE", "/outage/temporal", "", 200, `"0s"`},
	} {
		req, err := http.NewRequest(step.method, api.URL+step.path, strings.NewReader(step.body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != step.status || !strings.Contains(string(body), step.contains) {
			t.Errorf("%s %s: %d %s, want %d and %q", step.method, step.path, res.StatusCode, body, step.status, step.contains)
		}
	}
	if cloud.query != (InventoryQuery{Owner: "abc", All: true}) {
		t.Errorf("inventory asked for %+v", cloud.query)
	}
	if got := strings.Join(supervisor.done, ", "); got != "kill worker, temporal 30s, temporal 0s" {
		t.Errorf("supervisor did %q", got)
	}
}

func TestHelpNamesEveryTargetAndKind(t *testing.T) {
	for target, list := range kinds {
		if !strings.Contains(Help, string(target)) {
			t.Errorf("help lacks target %s", target)
		}
		for _, kind := range list {
			if !strings.Contains(Help, string(kind)) {
				t.Errorf("help lacks kind %s", kind)
			}
		}
	}
}

func TestDurationIsText(t *testing.T) {
	var d Duration
	if err := json.Unmarshal([]byte(`1000`), &d); err == nil {
		t.Error("a number was accepted")
	}
	if err := json.Unmarshal([]byte(`"1m30s"`), &d); err != nil || time.Duration(d) != 90*time.Second {
		t.Errorf("got %v %v", d, err)
	}
}

func mustAdd(t *testing.T, r *Registry, f Fault) {
	t.Helper()
	if _, err := r.Add(f); err != nil {
		t.Fatal(err)
	}
}
