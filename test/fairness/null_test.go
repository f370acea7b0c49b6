package fairness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/aws"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
	"github.com/tidbcloud/infra-orchestrator/workers"
	"github.com/tidbcloud/infra-orchestrator/workflows/object"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// nullRuns is how many single Networks are measured each time: they take a
// second or less, so a machine with other work needs many.
const nullRuns = 15

// TestWithoutStandIns measures the product alone: real Temporal, worker and
// AWS credentials check, against a cloud that answers at once or throttles;
// all other activities answer from memory. Here nothing hides what the crowd
// costs: on the devstack a Shoot's API server takes most of the time.
func TestWithoutStandIns(t *testing.T) {
	if os.Getenv("FAIRNESS") == "" {
		t.Skip("a measurement: make fairness")
	}
	cloud := newNullCloud(t)
	many := &worlds{aws: aws.New(aws.Options{Credentials: cloud, Endpoint: cloud.URL}), byID: map[string]*workflowtest.World{}}
	l := &nullLab{t: t, worlds: many, temporal: startTemporal(t)}
	l.serve()

	l.singles("warm-up")
	before := l.singles("before")
	cloud.throttled.Store(true)
	crowded := l.crowd()
	onset := l.single("onset")
	l.eventually("the crowd is in flight", func() bool {
		return !slices.ContainsFunc(crowded, func(w *workflowtest.World) bool { return w.Current().Operation == nil })
	})
	meanwhile := l.singles("meanwhile")
	for _, w := range crowded {
		require.False(t, readyNow(w), "a Network of the crowd got through")
	}
	refused := cloud.refused.Load()
	cloud.throttled.Store(false)
	l.eventually("the crowd is done", func() bool {
		return !slices.ContainsFunc(crowded, func(w *workflowtest.World) bool { return !readyNow(w) })
	})
	after := l.singles("after")

	alone, beside := median(slices.Concat(before, after)), median(meanwhile)
	ratio := beside.Seconds() / alone.Seconds()
	t.Logf("%d in flight, %d calls refused, %s: before %s, as the crowd came %s, meanwhile %s, after %s; ratio to alone %.3f",
		crowd, refused, load(), median(before), onset, beside, median(after), ratio)
	require.Greater(t, refused, int64(runs))
	require.LessOrEqual(t, ratio, most)
}

// nullCloud is an STS that answers at once. It throttles the second account
// while it is told to.
type nullCloud struct {
	*httptest.Server
	throttled atomic.Bool
	refused   atomic.Int64
}

func newNullCloud(t *testing.T) *nullCloud {
	c := &nullCloud{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account := "123456789012"
		if strings.Contains(r.Header.Get("Authorization"), "Credential="+throttled+"/") {
			account = throttledAccount
		}
		if account == throttledAccount && c.throttled.Load() {
			c.refused.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `<ErrorResponse><Error><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`)
			return
		}
		_, _ = fmt.Fprintf(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>%s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, account)
	}))
	t.Cleanup(c.Close)
	return c
}

// AWS implements aws.Credentials: the access key is the Provider's name.
func (*nullCloud) AWS(_ context.Context, _, provider string) (id, secret, version string, err error) {
	return provider, "secret", "1", nil
}

// worlds are many objects, each with the activities of a world of its own,
// except for the check of credentials.
type worlds struct {
	aws  *aws.Activities
	mu   sync.Mutex
	byID map[string]*workflowtest.World // by id of the object workflow
}

// captured are a world's activities by name.
type captured map[string]reflect.Value

// RegisterActivityWithOptions implements contract.Registry.
func (c captured) RegisterActivityWithOptions(f any, o activity.RegisterOptions) {
	c[o.Name] = reflect.ValueOf(f)
}

// Register implements workers.Registrar: an activity goes to the world of the
// workflow that calls it.
func (m *worlds) Register(r contract.Registry) {
	names := captured{}
	workflowtest.New(v1.KindNetwork).Register(names)
	for name, f := range names {
		if name == contract.AWS.VerifyCredentials.Name {
			contract.Register(r, contract.AWS.VerifyCredentials, m.aws.VerifyAWSCredentials)
			continue
		}
		r.RegisterActivityWithOptions(reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
			ctx, _ := args[0].Interface().(context.Context)
			own := captured{}
			m.of(activity.GetInfo(ctx).WorkflowExecution.ID).Register(own)
			return own[name].Call(args)
		}).Interface(), activity.RegisterOptions{Name: name})
	}
}

// of finds the world of an object workflow or of one of its operations.
func (m *worlds) of(workflowID string) *workflowtest.World {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byID[strings.Join(strings.SplitN(workflowID, "/", 4)[:3], "/")]
}

type nullLab struct {
	t        *testing.T
	worlds   *worlds
	temporal sdk.Client
}

// startTemporal runs the devstack's Temporal, in memory.
func startTemporal(t *testing.T) sdk.Client {
	cmd := exec.Command(filepath.Join(stack.Root(), "bin", "temporaldev"), "--headless", "--namespace", "infra")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start(), "make build makes it")
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var told struct{ Address string }
	require.NoError(t, json.Unmarshal(line, &told))
	c, err := sdk.Dial(sdk.Options{HostPort: told.Address, Namespace: "infra", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// serve runs the product's worker until the test ends.
func (l *nullLab) serve() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- workers.Run(ctx, workers.Options{Client: l.temporal, Queues: []string{contract.QueueInfra, contract.QueueWaits, contract.QueueLongWaits},
			Activities: []workers.Registrar{l.worlds}, Log: slog.New(slog.DiscardHandler)})
	}()
	l.t.Cleanup(func() { stop(); require.NoError(l.t, <-ended) })
}

// start creates a Network of a Provider, as the bridge tells of it.
func (l *nullLab) start(name, tenant, provider, account string) *workflowtest.World {
	w := workflowtest.New(v1.KindNetwork)
	w.Object.Name, w.State.Account, w.State.Provider = name, tenant, provider
	w.Network.Ref = w.Object
	w.Network.Account.Provider, w.Network.Account.AccountID = provider, account
	id := temporal.ObjectID(v1.KindNetwork, w.Object.Namespace, name)
	l.worlds.mu.Lock()
	l.worlds.byID[id] = w
	l.worlds.mu.Unlock()
	options := temporal.StartObject(v1.KindNetwork, w.Object.Namespace, name)
	options.Priority.FairnessKey = provider // as the bridge has it from a label
	_, err := l.temporal.SignalWithStartWorkflow(l.t.Context(), id, temporal.SignalChanged, temporal.Changed{Generation: 1}, options, v1.KindNetwork,
		object.Input{Kind: v1.KindNetwork, Namespace: w.Object.Namespace, Name: name, ID: w.Object.ID})
	require.NoError(l.t, err)
	return w
}

func (l *nullLab) crowd() []*workflowtest.World {
	all := make([]*workflowtest.World, crowd)
	for i := range all {
		all[i] = l.start(fmt.Sprintf("crowd-%d", i), throttled, throttled, throttledAccount)
	}
	return all
}

// single is how long one Network of the calm account takes to Ready.
func (l *nullLab) single(name string) time.Duration {
	began := time.Now()
	w := l.start("single-"+name, "acme", calm, "123456789012")
	l.eventually("single Network "+name+" is Ready", func() bool { return readyNow(w) })
	return time.Since(began).Round(time.Millisecond)
}

func (l *nullLab) singles(when string) []time.Duration {
	all := make([]time.Duration, nullRuns)
	for i := range all {
		all[i] = l.single(fmt.Sprintf("%s-%d", when, i))
	}
	l.t.Logf("%s: %s, %v", when, load(), all)
	return all
}

// eventually looks often, since it measures.
func (l *nullLab) eventually(what string, done func() bool) {
	l.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(5 * time.Minute); !done(); {
		select {
		case <-limit:
			l.t.Fatalf("%s: not within 5 minutes", what)
		case <-tick.C:
		}
	}
}

func readyNow(w *workflowtest.World) bool {
	ready := w.Current().Ready
	return ready != nil && ready.Status == metav1.ConditionTrue
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
