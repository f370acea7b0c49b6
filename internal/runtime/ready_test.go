package runtime

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

type fakeNamespace struct {
	calls   int
	bounded bool
	err     error
}

func (f *fakeNamespace) DescribeNamespace(ctx context.Context, _ *workflowservice.DescribeNamespaceRequest,
	_ ...grpc.CallOption,
) (*workflowservice.DescribeNamespaceResponse, error) {
	f.calls++
	_, f.bounded = ctx.Deadline()
	return &workflowservice.DescribeNamespaceResponse{}, f.err
}

func TestReadiness(t *testing.T) {
	clock := time.Now()
	synced := make(chan error, 1)
	ns := &fakeNamespace{err: errors.New("connection refused")}
	r := &Readiness{
		Temporal: ns, Namespace: "infra", Sync: func(context.Context) error { return <-synced },
		Now: func() time.Time { return clock },
	}
	probe := func() error { return r.Check(httptest.NewRequest(http.MethodGet, "/readyz", nil)) }

	require.ErrorContains(t, probe(), "caches are not synced")
	require.Zero(t, ns.calls)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	require.ErrorContains(t, probe(), "caches are not synced", "while they sync")
	synced <- nil
	require.Eventually(t, r.synced.Load, 5*time.Second, time.Millisecond)
	require.False(t, r.NeedLeaderElection())

	once := func() error { return r.CheckOnce(httptest.NewRequest(http.MethodGet, "/readyz/webhooks", nil)) }
	require.ErrorContains(t, probe(), `namespace "infra" does not answer: connection refused`)
	require.Error(t, once())
	require.True(t, ns.bounded)
	ns.err = nil
	require.Error(t, probe(), "the answer counts for some seconds")
	require.Equal(t, 1, ns.calls)
	clock = clock.Add(readyTTL)
	require.NoError(t, probe())
	ns.err = errors.New("away")
	require.NoError(t, probe())
	clock = clock.Add(readyTTL)
	require.ErrorContains(t, probe(), "away")
	require.NoError(t, once(), "it was ready once")

	cancel()
	require.NoError(t, <-done)
}

func TestReadinessSyncFails(t *testing.T) {
	r := &Readiness{Sync: func(context.Context) error { return errors.New("no CRDs") }}
	require.ErrorContains(t, r.Start(t.Context()), "no CRDs", "stops the process")
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Start(stopped), "stopping is no failure")
}
