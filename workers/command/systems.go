package command

import (
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidbcloud/infra-orchestrator/activities/aws"
	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/garden"
	"github.com/tidbcloud/infra-orchestrator/activities/management"
	"github.com/tidbcloud/infra-orchestrator/activities/ratelimit"
	"github.com/tidbcloud/infra-orchestrator/activities/shoot"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
	"github.com/tidbcloud/infra-orchestrator/workers"
)

// systems are the clients and caches of everything that activities call.
type systems struct {
	manager    manager.Manager // of the management cluster
	balancer   *balancer       // nil: this worker does not serve Balancers
	garden     cluster.Cluster
	management *management.Activities
	gardenActs *garden.Activities
	aws        *aws.Activities
	shoots     *shoot.Activities
	config     *configservice.Activities
}

func newSystems(o *options, cfg runtime.Config) (*systems, error) {
	s := &systems{}
	if err := s.newManager(o); err != nil {
		return nil, err
	}
	if wantsBalancing(o.queues) {
		var err error
		if s.balancer, err = newBalancer(o.Kubeconfig); err != nil {
			return nil, err
		}
	}
	if onlyBalancing(o.queues) {
		return s, nil
	}
	if err := s.connectManagement(cfg); err != nil {
		return nil, err
	}
	if err := s.connectGarden(o, cfg); err != nil {
		return nil, err
	}
	if err := (&management.Usage{Activities: s.management}).Setup(s.manager); err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	if err := (&management.CredentialsHold{Activities: s.management}).Setup(s.manager); err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	credentials := management.Credentials{Activities: s.management}
	limits, err := newLimits(o)
	if err != nil {
		return nil, err
	}
	s.aws = aws.New(aws.Options{Credentials: credentials, Endpoint: cfg.AWS.Endpoint, Limits: limits})
	documents := configservice.New(cfg.ConfigService.URL)
	s.config = &configservice.Activities{Client: documents}
	access := &shoot.Access{Garden: s.garden.GetClient(), GardenLive: s.garden.GetAPIReader()}
	s.shoots = &shoot.Activities{Shoots: access, Documents: documents, Management: s.manager.GetClient(), Poll: shootPoll(cfg)}
	return s, nil
}

// newLimits makes the token buckets of the clouds' accounts.
func newLimits(o *options) (*ratelimit.Pool, error) {
	m, err := ratelimit.NewMetrics(ctrlmetrics.Registry)
	if err != nil {
		return nil, err
	}
	return ratelimit.NewPool(ratelimit.Options{Share: o.cloudShare, Metrics: m}), nil
}

// shootPoll is how often waits in a shoot look without an event. Against an
// emulator, where things take seconds, they look more often.
func shootPoll(cfg runtime.Config) time.Duration {
	if cfg.AWS.Endpoint != "" {
		return time.Second
	}
	return 0
}

// newManager makes the manager, which has the probes and the metrics, too. Its
// cache watches nothing yet.
func (s *systems) newManager(o *options) error {
	rc, err := runtime.RESTConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	rc.QPS, rc.Burst = 200, 400
	scheme := k8sruntime.NewScheme()
	if err := management.AddToScheme(scheme); err != nil {
		return err
	}
	metrics := metricsserver.Options{BindAddress: o.MetricsAddr}
	if o.Pprof {
		metrics.ExtraHandlers = runtime.PprofHandlers()
	}
	s.manager, err = ctrl.NewManager(rc, ctrl.Options{
		Scheme: scheme, Metrics: metrics, HealthProbeBindAddress: o.ProbeAddr,
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}},
	})
	if err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	return nil
}

// connectManagement has the manager's cache watch our kinds. Whoever may not do
// so, as a process that only serves Balancers, must not ask for it: a manager
// starts nothing else before its caches have synced.
func (s *systems) connectManagement(cfg runtime.Config) error {
	if err := management.Index(context.Background(), s.manager.GetFieldIndexer()); err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	s.management = &management.Activities{Client: s.manager.GetClient(), Live: s.manager.GetAPIReader(), Wake: &wake.Hub{References: management.References},
		Env: cfg.Env, DefaultProject: cfg.Gardener.ProjectName}
	return nil
}

func (s *systems) connectGarden(o *options, cfg runtime.Config) error {
	path := cfg.Gardener.KubeconfigPath
	if path == "" {
		path = o.Kubeconfig // the garden is aggregated behind the management API
	}
	rc, err := runtime.RESTConfig(path)
	if err != nil {
		return fmt.Errorf("garden: %w", err)
	}
	rc.QPS, rc.Burst = 200, 400
	scheme := k8sruntime.NewScheme()
	if err := garden.AddToScheme(scheme); err != nil {
		return err
	}
	s.garden, err = cluster.New(rc, func(c *cluster.Options) {
		c.Scheme = scheme
		// Only Shoots are watched; all else is read live, seldom.
		c.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &corev1.Namespace{}, &gardencorev1beta1.Project{}, &gardencorev1beta1.SecretBinding{}, &securityv1alpha1.CredentialsBinding{},
		}}
	})
	if err != nil {
		return fmt.Errorf("garden: %w", err)
	}
	s.gardenActs = &garden.Activities{Client: s.garden.GetClient(), Live: s.garden.GetAPIReader(), Wake: &wake.Hub{},
		Credentials: management.Credentials{Activities: s.management}}
	return s.manager.Add(s.garden)
}

// sync starts the informers that waits are woken by, and waits until they have
// synced.
func (s *systems) sync(ctx context.Context) error {
	if s.garden == nil { // Balancers only: they have a cache of their own
		return nil
	}
	if err := s.management.Wake.Watch(ctx, s.manager.GetCache(), management.Kinds()...); err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	if err := s.gardenActs.Wake.Watch(ctx, s.garden.GetCache(), &gardencorev1beta1.Shoot{}); err != nil {
		return fmt.Errorf("garden: %w", err)
	}
	if !s.manager.GetCache().WaitForCacheSync(ctx) || !s.garden.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("caches did not sync: %w", ctx.Err())
	}
	return nil
}

// ready returns when the worker can do what it is there for. Balancers count if
// it is there for nothing else: otherwise a cluster without them is no fault.
func (s *systems) ready(ctx context.Context) error {
	if s.garden != nil {
		return s.sync(ctx)
	}
	select {
	case <-s.balancer.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *systems) registrars() []workers.Registrar {
	return []workers.Registrar{s.management, s.gardenActs, s.aws, s.shoots, s.config}
}
