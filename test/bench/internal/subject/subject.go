// Package subject is the process that is measured: the product, the plain
// reconciler or the bare workflows, on a null cloud. It answers questions about
// itself over HTTP, so that whoever asks costs it next to nothing.
package subject

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/client"
	"k8s.io/apimachinery/pkg/api/meta"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/count"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/nullcloud"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// Modes of a subject.
const (
	ModeProduct = "product"
	ModePlain   = "plain"
	ModeBare    = "bare"
)

// Options say what to run.
type Options struct {
	Mode            string
	Kubeconfig      string
	TemporalAddress string
	Namespace       string // of Kubernetes and of Temporal
	Resync          time.Duration
}

// Hello is the line that a subject prints when it serves.
type Hello struct {
	URL string `json:"url"`
}

// Stats are what a subject tells of itself.
type Stats struct {
	// Ready counts the objects whose condition Ready is True, by kind.
	Ready map[string]int `json:"ready"`
	// Calls to the null cloud.
	Calls int64 `json:"calls"`
	// Requests to the API server: "<who> <verb> <resource>".
	Requests map[string]int64 `json:"requests"`
	// Temporal are the SDK's metrics, see count.Counter.Handler.
	Temporal map[string]int64 `json:"temporal"`
	// First is when each object made its first call to the cloud, in
	// nanoseconds of Unix time; ReadyAt is when it was seen Ready.
	First   map[string]int64 `json:"first,omitempty"`
	ReadyAt map[string]int64 `json:"readyAt,omitempty"`
}

// subject is what all modes share.
type subject struct {
	o        Options
	log      *slog.Logger
	cloud    *nullcloud.Cloud
	requests count.Counter
	metrics  count.Counter
	temporal sdk.Client
	resync   func(context.Context) error
	run      func(context.Context, Bare) error

	mu      sync.Mutex
	ready   map[string]bool
	readyAt map[string]time.Time
}

// Run runs a subject until ctx ends.
func Run(ctx context.Context, o Options) error {
	s := &subject{o: o, cloud: nullcloud.New(), ready: map[string]bool{}, readyAt: map[string]time.Time{},
		log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	runtime.InstallLogger(s.log)
	var start func(context.Context) error
	switch o.Mode {
	case ModeProduct:
		start = s.product
	case ModePlain:
		start = s.plain
	case ModeBare:
		start = s.bare
	default:
		return fmt.Errorf("mode %q is none of %s, %s, %s", o.Mode, ModeProduct, ModePlain, ModeBare)
	}
	if o.TemporalAddress != "" {
		var err error
		s.temporal, err = sdk.Dial(s.temporalOptions())
		if err != nil {
			return fmt.Errorf("temporal: %w", err)
		}
		defer s.temporal.Close()
	}
	if err := start(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

// temporalOptions are the SDK's defaults, with what our worker adds to them
// (workers/command) where it is the one that is measured.
func (s *subject) temporalOptions() sdk.Options {
	opts := sdk.Options{HostPort: s.o.TemporalAddress, Namespace: s.o.Namespace, Logger: s.log, MetricsHandler: s.metrics.Handler()}
	if s.o.Mode == ModeProduct {
		opts.ContextPropagators = append(opts.ContextPropagators, lifecycle.Propagator())
	}
	return opts
}

func (s *subject) serve(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for path, h := range runtime.PprofHandlers() {
		mux.Handle(path, h)
	}
	mux.HandleFunc("GET /stats", s.tell)
	mux.HandleFunc("POST /resync", s.act(func(ctx context.Context, _ *http.Request) error { return s.resync(ctx) }))
	mux.HandleFunc("POST /run", s.act(func(ctx context.Context, r *http.Request) error {
		var b Bare
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			return err
		}
		return s.run(ctx, b)
	}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := json.NewEncoder(os.Stdout).Encode(Hello{URL: "http://" + l.Addr().String()}); err != nil {
		return err
	}
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *subject) act(f func(context.Context, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := f(r.Context(), r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

func (s *subject) tell(w http.ResponseWriter, r *http.Request) {
	st := Stats{Ready: map[string]int{}, Calls: s.cloud.Calls(), Requests: s.requests.Values(), Temporal: s.metrics.Values()}
	s.mu.Lock()
	for id, ok := range s.ready {
		if ok {
			st.Ready[kindOf(id)]++
		}
	}
	if r.URL.Query().Get("times") != "" {
		st.First, st.ReadyAt = map[string]int64{}, map[string]int64{}
		for id, at := range s.cloud.First() {
			st.First[id] = at.UnixNano()
		}
		for id, at := range s.readyAt {
			st.ReadyAt[id] = at.UnixNano()
		}
	}
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(st)
}

// restConfig is how the product's processes reach the management cluster.
func (s *subject) restConfig(who string) (*rest.Config, error) {
	rc, err := runtime.RESTConfig(s.o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	rc.QPS, rc.Burst = 200, 400
	rc.Wrap(s.requests.Transport(who))
	return rc, nil
}

func (s *subject) newManager(who string) (manager.Manager, error) {
	rc, err := s.restConfig(who)
	if err != nil {
		return nil, err
	}
	scheme := k8sruntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return ctrl.NewManager(rc, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.o.Namespace: {}}},
	})
}

// start runs a manager and waits until its caches are synced.
func (s *subject) start(ctx context.Context, m manager.Manager) error {
	failed := make(chan error, 1)
	go func() { failed <- m.Start(ctx) }()
	synced := make(chan bool, 1)
	go func() { synced <- m.GetCache().WaitForCacheSync(ctx) }()
	select {
	case err := <-failed:
		return err
	case <-synced:
		return ctx.Err()
	}
}

// watchReady keeps count of what is Ready, from the subject's own cache.
func (s *subject) watchReady(ctx context.Context, c cache.Cache, kinds ...v1.Object) error {
	for _, kind := range kinds {
		informer, err := c.GetInformer(ctx, kind)
		if err != nil {
			return err
		}
		name := kindName(kind)
		see := func(o any) {
			object, ok := o.(v1.Object)
			if !ok {
				return
			}
			s.see(name+"/"+client.ObjectKeyFromObject(object).String(), meta.IsStatusConditionTrue(object.Common().Conditions, v1.ConditionReady))
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: see, UpdateFunc: func(_, o any) { see(o) },
			DeleteFunc: func(o any) {
				if object, ok := o.(client.Object); ok {
					s.forget(name + "/" + client.ObjectKeyFromObject(object).String())
				}
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) see(id string, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready[id] = ready
	if _, seen := s.readyAt[id]; ready && !seen {
		s.readyAt[id] = time.Now()
	}
}

func (s *subject) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, id)
}
