// Package fairness shows that an account whose calls the cloud throttles, with
// hundreds of Networks in flight, does not slow down another account's single
// Network: on a devstack, with the real bridge, worker, AWS activities and
// Temporal.
//
// The cloud throttles every call of the account, so that its Networks stay in
// their first step and go on asking. One that got through would have a Shoot,
// which in a devstack is an API server on the same cores: that would measure
// the stand-ins.
//
// It measures, so it runs by itself: make fairness.
package fairness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

const (
	namespace = "infra"
	calm      = "core-aws" // the samples' Provider
	throttled = "throttled-aws"
	// throttledAccount is the AWS account of the Provider throttled.
	throttledAccount = "222222222222"
	// speed makes a Shoot in a second where Gardener takes a quarter of an hour:
	// the product's own share of the time, which the crowd could slow, is then
	// many times what it is in the field.
	speed = 10
	// most is how much slower the single Network may become.
	most = 1.2
)

var (
	crowd = number("FAIRNESS_CROWD", 200) // Networks in flight
	runs  = number("FAIRNESS_RUNS", 5)    // single Networks before, and again meanwhile
)

func number(variable string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil && n > 0 {
		return n
	}
	return usual
}

func TestThrottledAccountSlowsNobodyElse(t *testing.T) {
	if os.Getenv("FAIRNESS") == "" {
		t.Skip("a measurement of about ten minutes: make fairness")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	lab := &lab{t: t, Stack: start(ctx, t)}
	lab.providers(ctx)

	// Alone before and alone after, since the machine may have other work that
	// comes and goes.
	lab.single(ctx, "warm-up")
	before := lab.singles(ctx, "before")
	lab.throttle(ctx)
	lab.crowd(ctx)
	meanwhile := lab.singles(ctx, "meanwhile")
	lab.requireInFlight(ctx)
	lab.disperse(ctx)
	after := lab.singles(ctx, "after")

	alone, beside := medianOf(slices.Concat(before, after)), medianOf(meanwhile)
	ratio := beside.total.Seconds() / alone.total.Seconds()
	t.Logf("medians of %d, %s:\n%s%s%s%s%sratio %.3f", runs, load(), header, row("before", medianOf(before)),
		row("meanwhile", beside), row("after", medianOf(after)), row("alone", alone), ratio)
	require.LessOrEqual(t, ratio, most, "the single Network took %s alone and %s beside %d of a throttled account", alone.total, beside.total, crowd)
}

// start starts a devstack, whose logs are kept when the test fails.
func start(ctx context.Context, t *testing.T) *stack.Stack {
	dir, err := os.MkdirTemp("", "fairness-")
	require.NoError(t, err)
	world, err := stack.Start(ctx, dir, "--speed", strconv.Itoa(speed))
	if err != nil {
		_ = stack.PrintTail(dir + "/devstack.log")
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = world.Stop()
		if t.Failed() {
			t.Logf("logs are kept in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return world
}

// lab is a devstack with two Providers in different AWS accounts.
type lab struct {
	*stack.Stack
	t     *testing.T
	fault string // id of what throttles the second account
}

// singles measures one Network of the calm account after another.
func (l *lab) singles(ctx context.Context, when string) []timing {
	var all []timing
	for i := range runs {
		m := l.single(ctx, fmt.Sprintf("%s-%d", when, i))
		l.t.Logf("%s: %s, %d of the crowd in flight\n%s%s", when, load(), l.inFlight(ctx), header, row(when, m))
		all = append(all, m)
	}
	return all
}

// single makes a Network of the calm account, measures it, and takes it away.
func (l *lab) single(ctx context.Context, name string) timing {
	n := newNetwork("single-"+name, calm)
	began := time.Now()
	require.NoError(l.t, l.Kube.Create(ctx, n))
	l.until(ctx, n, func() bool { return isReady(n) })
	total := time.Since(began)
	history, err := l.History(ctx, n.Status.Operation.ID, "")
	require.NoError(l.t, err)
	m := timingOf(history, began, total)
	require.NoError(l.t, l.Kube.Delete(ctx, n))
	l.until(ctx, n, nil)
	return m
}

// until watches a Network until done says so, or until it is gone when done is
// nil.
func (l *lab) until(ctx context.Context, n *v1.Network, done func() bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	w, err := l.Kube.Watch(ctx, &v1.NetworkList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": n.Name})
	require.NoError(l.t, err)
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			require.NoError(l.t, ctx.Err(), "Network %s: %+v", n.Name, n.Status.CommonStatus)
		case e, open := <-w.ResultChan():
			require.True(l.t, open, "the watch of Network %s ended", n.Name)
			if e.Type == "DELETED" {
				require.Nil(l.t, done, "Network %s was deleted", n.Name)
				return
			}
			now, ok := e.Object.(*v1.Network)
			require.True(l.t, ok, "unexpected event %v", e.Object)
			*n = *now
			if done != nil && done() {
				return
			}
		}
	}
}

// throttle lets the cloud refuse what the second account asks for.
func (l *lab) throttle(ctx context.Context) {
	var err error
	l.fault, err = l.AddFault(ctx, stack.Fault{Target: "aws", Kind: "throttle", Account: throttledAccount})
	require.NoError(l.t, err)
}

// crowd makes the Networks of the throttled account and waits until each is
// held up by the cloud. Their first call is that of Preflight, before anything
// of them exists: so it is their calls that burden the others, not their Shoots.
func (l *lab) crowd(ctx context.Context) {
	began := time.Now()
	for i := range crowd {
		require.NoError(l.t, l.Kube.Create(ctx, newNetwork(fmt.Sprintf("crowd-%03d", i), throttled)))
	}
	require.Eventually(l.t, func() bool { return l.inFlight(ctx) == crowd }, 10*time.Minute, time.Second,
		"not all of the crowd came into flight")
	l.t.Logf("%d Networks of the throttled account in flight after %s, %s", crowd, time.Since(began).Round(time.Second), load())
}

// disperse deletes the crowd and waits until it is gone.
func (l *lab) disperse(ctx context.Context) {
	began := time.Now()
	require.NoError(l.t, l.RemoveFault(ctx, l.fault))
	all := &v1.NetworkList{}
	require.NoError(l.t, l.Kube.List(ctx, all, client.InNamespace(namespace)))
	for _, n := range all.Items {
		require.NoError(l.t, l.Kube.Delete(ctx, &n))
	}
	require.Eventually(l.t, func() bool {
		left := &v1.NetworkList{}
		require.NoError(l.t, l.Kube.List(ctx, left, client.InNamespace(namespace)))
		return len(left.Items) == 0
	}, 10*time.Minute, time.Second, "not all of the crowd went")
	l.t.Logf("the crowd is gone after %s", time.Since(began).Round(time.Second))
}

// inFlight counts the crowd's Networks whose operation runs.
func (l *lab) inFlight(ctx context.Context) (running int) {
	all := &v1.NetworkList{}
	require.NoError(l.t, l.Kube.List(ctx, all, client.InNamespace(namespace)))
	for _, n := range all.Items {
		op := n.Status.Operation
		if n.Spec.Provider == throttled && op != nil && op.State == v1.OperationRunning {
			running++
		}
	}
	return running
}

// requireInFlight makes sure that the measurement was one: the crowd is still
// there, and the cloud has thrown back what it asked for.
func (l *lab) requireInFlight(ctx context.Context) {
	require.Equal(l.t, l.inFlight(ctx), crowd, "Networks of the throttled account that are still in flight")
	calls, err := l.Calls(ctx, "")
	require.NoError(l.t, err)
	refused := 0
	for _, c := range calls {
		if c.Account == throttledAccount && c.Code != "" {
			refused++
		}
	}
	require.Greater(l.t, refused, runs, "calls of the throttled account that the cloud refused")
	l.t.Logf("the cloud refused %d calls of the throttled account", refused)
}

func newNetwork(name, provider string) *v1.Network {
	n := &v1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	retain := false
	n.Spec.Provider, n.Spec.Region, n.Spec.TenantProject = v1.ReferenceName(provider), "us-west-2", "1234"
	n.Spec.Bucket.Retain = &retain
	return n
}

func isReady(o v1.Object) bool {
	for _, c := range o.Common().Conditions {
		if c.Type == v1.ConditionReady {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// load is the machine's load average: other work on it is part of the result.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load unknown"
	}
	return "load " + strings.Join(strings.Fields(string(data))[:1], "")
}
