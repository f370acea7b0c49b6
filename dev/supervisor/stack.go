package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/tidbcloud/infra-orchestrator/dev/awsproxy"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/kube"
	"github.com/tidbcloud/infra-orchestrator/dev/process"
)

// clusterName of the management cluster.
const clusterName = "management"

// Stack is a running devstack.
type Stack struct {
	opts   Options
	screen *board
	log    *slog.Logger
	// componentLog is for what logs with logr.
	componentLog logr.Logger

	etcd    *kube.Etcd
	cluster *kube.Cluster
	applier *applier
	aws     *awsproxy.Stack
	faults  *control.Registry
	broken  chan error // a part ended by itself

	mu       sync.Mutex // guards what follows
	stopping bool
	outages  map[string]*outage // nil until the stack is up
	state    State
	children map[string]*process.Child
	order    []string // of children, as started
	undo     []func() // stops each part, as started
}

var _ control.Supervisor = (*Stack)(nil)

func newStack(opts Options, dir string, screen *board, log *slog.Logger) *Stack {
	return &Stack{
		opts: opts, screen: screen, log: log,
		faults:   control.NewRegistry(),
		broken:   make(chan error, 1),
		children: map[string]*process.Child{},
		state: State{
			PID: os.Getpid(), StartedAt: time.Now().UTC(), DataDir: dir, Logs: filepath.Join(dir, "logs"),
			Speed: opts.Speed, Namespace: Namespace,
			Metrics: map[string]string{}, Probes: map[string]string{},
		},
	}
}

// start brings everything up. What does not depend on each other starts at the
// same time; the longest path is etcd, API server, CRDs, garden, worker.
func (s *Stack) start(ctx context.Context) error {
	if err := s.startControl(); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.part(gctx, "Temporal and its UI", s.startTemporal) })
	g.Go(func() error { return s.part(gctx, "AWS emulator", s.startAWS) })
	g.Go(func() error { return s.part(gctx, "config-service", s.startConfigService) })
	g.Go(func() error {
		if err := s.part(gctx, "etcd, management API server, custom resources", s.startCluster); err != nil {
			return err
		}
		return s.part(gctx, "garden API server", s.startGarden)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if err := s.part(ctx, "gardenlet", s.startGardenlet); err != nil {
		return err
	}
	s.allowOutages()
	if s.opts.NoProduct {
		return nil
	}
	if err := s.part(ctx, "roles of the product", s.applyRights); err != nil {
		return err
	}
	g, gctx = errgroup.WithContext(ctx)
	g.Go(func() error { return s.part(gctx, "bridge", s.startBridge) })
	g.Go(func() error { return s.part(gctx, "worker", s.startWorker(processWorker)) })
	g.Go(func() error { return s.part(gctx, "balancer", s.startWorker(processBalancer)) })
	return g.Wait()
}

// part starts one part and says how long it took.
func (s *Stack) part(ctx context.Context, name string, start func(context.Context) error) error {
	began := time.Now()
	if err := start(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return err // another part failed, or the user gave up
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	s.screen.stamp("%s (%.1f s)", name, time.Since(began).Seconds())
	return nil
}

func (s *Stack) allowOutages() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outages = s.newOutages()
}

// onStop registers what stops a part; the last started is the first stopped.
func (s *Stack) onStop(stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undo = append(s.undo, stop)
}

// startBridge has the bridge serve its webhooks on loopback, and tell the API
// server so itself.
func (s *Stack) startBridge(ctx context.Context) error {
	webhooks, err := freeAddress()
	if err != nil {
		return err
	}
	flags := []string{"--webhook-bind-address", webhooks, "--webhook-url", "https://" + webhooks}
	if s.opts.BalancerPeriod > 0 {
		flags = append(flags, "--balancer-period", s.opts.BalancerPeriod.String())
	}
	return s.startProduct(ctx, processBridge, processBridge, flags...)
}

// startWorker runs a worker for the task queues of its Deployment.
func (s *Stack) startWorker(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		queues, err := s.taskQueues(accounts[name])
		if err != nil {
			return err
		}
		return s.startProduct(ctx, name, processWorker, queues)
	}
}

// startControl serves the control API from the first moment, so that whoever
// starts the stack can watch its processes.
func (s *Stack) startControl() error {
	url, stop, err := serve(s.opts.listenAddress(PortControl), func() http.Handler {
		return (&control.Server{Faults: s.faults, Cloud: lateCloud{s}, Supervisor: s}).Handler()
	}())
	if err != nil {
		return fmt.Errorf("control API: %w", err)
	}
	s.state.Control = url
	s.onStop(stop)
	return nil
}

func (s *Stack) startCluster(ctx context.Context) error {
	var err error
	if s.etcd, err = kube.StartEtcd(filepath.Join(s.state.DataDir, "etcd"), ""); err != nil {
		return err
	}
	s.onStop(s.etcd.Close)
	s.cluster, err = kube.Start(ctx, kube.Options{
		Name: clusterName, Dir: filepath.Join(s.state.DataDir, clusterName), Etcd: s.etcd,
		Listen: s.fixedAddress(PortAPIServer),
		// It has no nodes of its own; whoever makes some can run Balancers there.
		Workloads: true, Autoscaling: true,
	})
	if err != nil {
		return err
	}
	s.onStop(func() {
		if err := s.cluster.Stop(); err != nil {
			s.log.Warn("management cluster did not stop cleanly", "error", err)
		}
	})
	go s.watchCluster()
	s.mu.Lock()
	s.state.Kubeconfig, s.state.APIServer = s.cluster.Kubeconfig(), s.cluster.URL()
	s.mu.Unlock()
	if s.applier, err = newApplier(s.cluster.Config()); err != nil {
		return err
	}
	// In a folder that was kept they name the port of a bridge that is gone. The
	// bridge registers them anew.
	if err := s.applier.forgetWebhooks(ctx); err != nil {
		return err
	}
	// First of all: clients wait for 2 s on a kind that is younger than that.
	_, err = s.applier.applyFolder(ctx, s.opts.CRDs)
	return err
}

// watchCluster tells of an API server that ends by itself.
func (s *Stack) watchCluster() {
	err, ok := <-s.cluster.Failed()
	if !ok || err == nil {
		return
	}
	s.screen.stamp("the management cluster failed: %v", err)
	s.report(fmt.Errorf("management cluster: %w", err))
}

// report makes a run that waits for the samples give up.
func (s *Stack) report(err error) {
	select {
	case s.broken <- err:
	default:
	}
}

// fixedAddress is the address of a port that the user fixed, else "".
func (s *Stack) fixedAddress(name string) string {
	if s.opts.Ports[name] == 0 {
		return ""
	}
	return s.opts.listenAddress(name)
}

// stop ends everything: first bridge and worker, side by side, then the rest in
// the opposite order of the start.
func (s *Stack) stop() {
	s.mu.Lock()
	s.stopping = true
	undo := s.undo
	s.mu.Unlock()
	var wg sync.WaitGroup
	for name := range accounts {
		if c := s.child(name); c != nil {
			wg.Go(c.Stop)
		}
	}
	wg.Wait()
	for _, stop := range slices.Backward(undo) {
		stop()
	}
}

// saveState writes stack.json anew once the stack is up.
func (s *Stack) saveState() {
	processes := s.Processes()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Processes == nil || s.stopping {
		return
	}
	s.state.Processes = processes
	if err := s.state.write(); err != nil {
		s.log.Warn("cannot write the state file", "error", err)
	}
}

// publish writes stack.json for the first time.
func (s *Stack) publish() error {
	processes := s.Processes()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Processes = processes
	return s.state.write()
}

// lateCloud is the AWS emulator once it is there.
type lateCloud struct{ s *Stack }

func (c lateCloud) cloud() *awsproxy.Stack {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.aws
}

// Inventory implements control.Cloud.
func (c lateCloud) Inventory(ctx context.Context, q control.InventoryQuery) ([]control.Resource, error) {
	if aws := c.cloud(); aws != nil {
		return aws.Inventory(ctx, q)
	}
	return nil, errors.New("it is still starting")
}

// Calls implements control.Cloud.
func (c lateCloud) Calls(q control.CallQuery) []control.Call {
	if aws := c.cloud(); aws != nil {
		return aws.Calls(q)
	}
	return nil
}

// ForgetCalls implements control.Cloud.
func (c lateCloud) ForgetCalls() {
	if aws := c.cloud(); aws != nil {
		aws.ForgetCalls()
	}
}

// serve serves HTTP on loopback until stop.
func serve(address string, handler http.Handler) (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}
