package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/tidbcloud/infra-orchestrator/bridge"
	"github.com/tidbcloud/infra-orchestrator/bridge/webhooks"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// webhookOptions say how admission webhooks are served, unless ENABLE_WEBHOOKS
// is false.
type webhookOptions struct {
	address string
	certDir string
	url     string
}

func (o *webhookOptions) addTo(fs *pflag.FlagSet) {
	fs.StringVar(&o.address, "webhook-bind-address", ":9443", "address of the admission webhooks")
	fs.StringVar(&o.certDir, "webhook-cert-dir", "",
		"folder with tls.crt and tls.key for the webhooks, read again when they change; without it the bridge keeps a certificate of its own")
	fs.StringVar(&o.url, "webhook-url", "",
		"https:// address of this bridge, for API servers that do not find it behind a Service; the webhook configurations are then created")
}

func (o *webhookOptions) validate() error {
	var errs []error
	if _, _, err := o.hostPort(); err != nil {
		errs = append(errs, err)
	}
	if o.url != "" {
		if u, err := url.Parse(o.url); err != nil || u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("--webhook-url is %q, want an https:// address", o.url))
		}
		if o.certDir != "" {
			errs = append(errs, errors.New("--webhook-url needs a certificate of the bridge's own; leave out --webhook-cert-dir"))
		}
	}
	if o.certDir != "" {
		if _, err := os.Stat(o.certDir); err != nil {
			errs = append(errs, fmt.Errorf("--webhook-cert-dir: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (o *webhookOptions) hostPort() (string, int, error) {
	host, text, err := net.SplitHostPort(o.address)
	if err != nil {
		return "", 0, fmt.Errorf("--webhook-bind-address: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("--webhook-bind-address: %q is no port", text)
	}
	return host, port, nil
}

// webhookServer serves the admission webhooks; nil serves none.
type webhookServer struct {
	options    webhookOptions
	namespace  string
	plan       plan.Options
	log        *slog.Logger
	hooks      webhook.Server
	caches     *webhooks.Caches
	selfSigned *webhooks.SelfSigned // nil with a certificate of somebody else
}

func newWebhookServer(o *options, config runtime.Config, log *slog.Logger) (*webhookServer, error) {
	if !config.Webhooks {
		return nil, nil
	}
	host, port, err := o.webhooks.hostPort()
	if err != nil {
		return nil, err
	}
	s := &webhookServer{
		options: o.webhooks, namespace: o.Namespace, log: log,
		plan: plan.Options{Env: config.Env, DefaultProject: config.Gardener.ProjectName},
	}
	server := webhook.Options{Host: host, Port: port, CertDir: o.webhooks.certDir}
	if o.webhooks.certDir == "" {
		s.selfSigned = &webhooks.SelfSigned{Namespace: o.Namespace, URL: o.webhooks.url, Log: log}
		server.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = s.selfSigned.GetCertificate }}
	}
	s.hooks = webhook.NewServer(server)
	return s, nil
}

// server is for the manager's options; nil leaves out webhooks.
func (s *webhookServer) server() webhook.Server {
	if s == nil {
		return nil
	}
	return s.hooks
}

// setup registers the webhooks, what they read, and their certificate.
func (s *webhookServer) setup(mgr manager.Manager, readiness *runtime.Readiness) error {
	if s == nil {
		return mgr.AddReadyzCheck("webhooks", readiness.CheckOnce)
	}
	s.caches = webhooks.NewCaches(mgr.GetAPIReader())
	if err := s.caches.Watch(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetScheme(), s.namespace); err != nil {
		return err
	}
	webhooks.Register(mgr.GetWebhookServer(), s.caches, webhooks.Options{Plan: s.plan, Finalized: bridge.HasWorkflow})
	if s.selfSigned != nil {
		// Not the manager's client: it would cache all Secrets.
		direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
		if err != nil {
			return err
		}
		s.selfSigned.Client, s.selfSigned.WhenReady = direct, s.waitForServer
		if err := mgr.Add(s.selfSigned); err != nil {
			return err
		}
	}
	return errors.Join(mgr.Add(s.caches), mgr.AddReadyzCheck("webhooks", func(req *http.Request) error {
		return errors.Join(readiness.CheckOnce(req), s.check(req))
	}))
}

// check is red until webhooks are served.
func (s *webhookServer) check(req *http.Request) error {
	if !s.caches.Synced() {
		return errors.New("the caches of the webhooks are not synced yet")
	}
	if s.selfSigned != nil && !s.selfSigned.Registered() {
		return errors.New("the API server does not know the certificate of the webhooks yet")
	}
	return s.hooks.StartedChecker()(req)
}

func (s *webhookServer) waitForCaches(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.caches.WaitForSync(ctx)
}

// waitForServer returns once the API server may be sent here.
func (s *webhookServer) waitForServer(ctx context.Context) error {
	if err := s.caches.WaitForSync(ctx); err != nil {
		return err
	}
	const patience, pause = 10 * time.Second, 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := s.hooks.StartedChecker()(nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("webhooks: %w", err)
		case <-time.After(pause):
		}
	}
}
