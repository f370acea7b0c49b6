package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	temporalclient "go.temporal.io/sdk/client"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/bridge"
	"github.com/tidbcloud/infra-orchestrator/bridge/webhooks"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
)

// leaseName is the Lease by which one of several bridges leads.
const leaseName = "infra-bridge"

type options struct {
	runtime.Flags
	leaderElect bool
	leaseIn     string
	resync      time.Duration
	balancers   balancerOptions
	webhooks    webhookOptions
}

func (o *options) validate() error {
	if o.resync < time.Second {
		return errors.Join(o.Validate(), o.balancers.validate(), o.webhooks.validate(), fmt.Errorf("--resync is %s, want at least 1s", o.resync))
	}
	return errors.Join(o.Validate(), o.balancers.validate(), o.webhooks.validate())
}

func (o *options) addLeaderTo(fs *pflag.FlagSet) {
	fs.BoolVar(&o.leaderElect, "leader-elect", false, "signal only while holding the Lease "+leaseName)
	fs.StringVar(&o.leaseIn, "leader-elect-namespace", "",
		"namespace of the Lease; --namespace when empty. In a namespace that is deleted no Lease can be held")
}

// leaseNamespace is where the Lease of the leader is.
func (o *options) leaseNamespace() string {
	if o.leaseIn != "" {
		return o.leaseIn
	}
	return o.Namespace
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Watch the custom resources, signal their workflows in Temporal, and serve admission webhooks",
		Long: `Watch the custom resources (ProviderType, Provider, Network, Cluster) in one
namespace and signal their workflows in Temporal.

For each object the bridge adds a finalizer and an identity, in one patch, and
then tells the workflow <kind>/<namespace>/<name> the object's generation; the
signal starts the workflow when it does not run. All else is done by the
workers. It also keeps the Schedule of the Balancers, of all namespaces, and
starts a sweep when one has changed (docs/balancing.md). While Temporal is away
the bridge goes on watching, tries again every 30 s at most, and catches up by
itself.

Any number of bridges may run: with --leader-elect one of them signals, the
others stand by with synced caches. All of them serve the admission webhooks.

The webhooks need a certificate. With --webhook-cert-dir it is somebody else's,
such as cert-manager's. Without, the bridges keep one of their own in the Secret
` + webhooks.SecretName + ` and renew it; the API server is told to trust it, in the webhook
configurations ` + webhooks.ConfigurationName + `. With --webhook-url, for a bridge that runs
outside of the cluster, these are created, and the certificate is kept in memory.

Environment:
  TEMPORAL_ADDRESS        Temporal frontend (default localhost:7233)
  TEMPORAL_NAMESPACE      Temporal namespace (default infra)
  TEMPORAL_TLS_*, TEMPORAL_API_KEY, TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE
                          as in Temporal's own tools
  ENABLE_WEBHOOKS         false: no admission webhooks. What they would refuse
                          is refused by the operations' first step
  GARDENER_CONFIG, CONFIG_SERVICE_URL, AWS_ENDPOINT_URL, INFRA_ENV
                          override --config; checked here, used by the worker

Probes: /healthz is about the process; /readyz is red until the caches are
synced and the webhooks are served, and while the Temporal namespace does not
answer. /readyz/webhooks is the same but stays green when Temporal goes away
later: it is for the Service of the webhooks.
Metrics: infra_bridge_signals_total{kind,outcome},
infra_bridge_signal_duration_seconds{kind}, and controller-runtime's.`,
		Example: `  # on a laptop, against the devstack
  bridge --kubeconfig ./kubeconfig --log-format text

  # in a cluster, see deploy/kustomize
  bridge --leader-elect --namespace infra`,
		Version:       runtime.Version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), &o) },
	}
	cmd.SetVersionTemplate(runtime.VersionLine("bridge") + "\n")
	fs := cmd.Flags()
	o.AddTo(fs, ":8080", ":8081")
	o.addLeaderTo(fs)
	o.webhooks.addTo(fs)
	fs.DurationVar(&o.resync, "resync", bridge.DefaultResync, "mean time between two signals of an unchanged object; ±20 %")
	o.balancers.addTo(fs)
	return cmd
}

func run(ctx context.Context, o *options) error {
	if err := o.validate(); err != nil {
		return err
	}
	log, err := o.Log.NewLogger(os.Stderr)
	if err != nil {
		return err
	}
	runtime.InstallLogger(log)
	config, err := runtime.LoadConfig(o.ConfigFile, os.Getenv)
	if err != nil {
		return err
	}
	sdkMetrics, err := runtime.TemporalMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	temporalOptions, err := runtime.TemporalOptions(log, sdkMetrics)
	if err != nil {
		return err
	}
	// Lazy: the bridge starts, and stays, without Temporal.
	temporal, err := temporalclient.NewLazyClient(temporalOptions)
	if err != nil {
		return fmt.Errorf("temporal client: %w", err)
	}
	defer temporal.Close()

	hooks, err := newWebhookServer(o, config, log)
	if err != nil {
		return err
	}
	mgr, err := newManager(o, hooks)
	if err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder("infra-bridge")
	signaller := bridge.NewSignaller(temporal, recorder, log)
	if err := bridge.Setup(mgr, signaller, o.resync); err != nil {
		return err
	}
	if err := o.balancers.setup(mgr, temporal, log); err != nil {
		return err
	}
	failing := &bridge.Failing{Temporal: temporal.WorkflowService(), TemporalNamespace: temporalOptions.Namespace,
		Namespace: o.Namespace, Reader: mgr.GetAPIReader(), Client: mgr.GetClient(), Events: recorder, Log: log}
	readiness := &runtime.Readiness{
		Temporal: temporal.WorkflowService(), Namespace: temporalOptions.Namespace,
		Sync: func(ctx context.Context) error {
			return errors.Join(bridge.WaitForCaches(ctx, mgr.GetCache()), hooks.waitForCaches(ctx))
		},
	}
	if err := errors.Join(
		hooks.setup(mgr, readiness),
		mgr.Add(readiness), mgr.Add(failing),
		mgr.AddHealthzCheck("process", healthz.Ping), mgr.AddReadyzCheck("ready", readiness.Check),
	); err != nil {
		return err
	}
	log.Info("bridge starts", "version", runtime.Version(), "namespace", o.Namespace,
		"temporal", temporalOptions.HostPort, "temporalNamespace", temporalOptions.Namespace, "webhooks", config.Webhooks)
	return mgr.Start(ctx)
}

func newManager(o *options, hooks *webhookServer) (manager.Manager, error) {
	cfg, err := runtime.RESTConfig(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = 200, 400 // one patch per new object; many may come at once
	scheme := k8sruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	metrics := metricsserver.Options{BindAddress: o.MetricsAddr}
	if o.Pprof {
		metrics.ExtraHandlers = runtime.PprofHandlers()
	}
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}},
		Metrics:                       metrics,
		WebhookServer:                 hooks.server(),
		HealthProbeBindAddress:        o.ProbeAddr,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.leaseNamespace(),
		LeaderElectionReleaseOnCancel: true, // nothing runs after Start returns
	})
}
