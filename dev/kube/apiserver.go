package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	cliflag "k8s.io/component-base/cli/flag"
	basecompat "k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const (
	// stopTimeout is how long a stop waits for open requests. Stopping takes
	// about one second; the rest is for a loaded machine.
	stopTimeout = 20 * time.Second
	// readyPoll is how often the start asks /readyz.
	readyPoll = 50 * time.Millisecond
)

type apiServer struct {
	cancel context.CancelFunc
	cut    func()        // ends every connection
	done   chan error    // closed when Run has returned; carries its error
	ended  chan struct{} // closed when Run has returned
}

// stop ends the API server and waits until its port is free.
func (s *apiServer) stop() error {
	s.cancel()
	s.cut()
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("kube-apiserver did not stop within %s", stopTimeout)
	}
}

// startAPIServer runs kube-apiserver on the listener and returns when it is
// ready. It owns the listener, also on error.
func startAPIServer(ctx context.Context, c *Cluster, plain net.Listener) (*apiServer, error) {
	listener := newCuttable(plain)
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	completed, err := apiServerOptions(runCtx, c, listener)
	if err != nil {
		cancel()
		return nil, errors.Join(err, listener.Close())
	}
	s := &apiServer{cancel: cancel, cut: listener.cut, done: make(chan error, 1), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		defer close(s.done)
		defer listener.Close() // a second close, unless Run failed before it served
		if err := app.Run(runCtx, completed); err != nil && runCtx.Err() == nil {
			s.done <- err
		}
	}()
	if err := s.waitReady(ctx, c); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// apiServerOptions goes the way of the kube-apiserver command from flags to
// completed options, without its process-wide parts.
func apiServerOptions(ctx context.Context, c *Cluster, listener net.Listener) (none options.CompletedOptions, err error) {
	s := options.NewServerRunOptions()
	s.GenericServerRunOptions.ComponentGlobalsRegistry = newRegistry()
	s.SecureServing.Listener = listener
	s.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	s.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)
	if err := parseFlags(s.Flags(), append(apiServerFlags(c), c.opts.APIServerArgs...)); err != nil {
		return none, err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return none, err
	}
	completed, err := s.Complete(ctx)
	if err != nil {
		return none, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return none, utilerrors.NewAggregate(errs)
	}
	return completed, nil
}

func apiServerFlags(c *Cluster) []string {
	issuer := c.opts.ServiceAccountIssuer
	if issuer == "" {
		issuer = c.config.Host
	}
	return []string{
		"--etcd-servers=" + c.opts.Etcd.URL,
		"--etcd-prefix=" + c.opts.EtcdPrefix,
		"--bind-address=127.0.0.1",
		"--tls-cert-file=" + c.file(fileServerCert),
		"--tls-private-key-file=" + c.file(fileServerKey),
		"--client-ca-file=" + c.file(fileCACert),
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.file(fileServiceAccount),
		"--service-account-signing-key-file=" + c.file(fileServiceAccount),
		// Nothing routes to the Service "kubernetes", and its reconciler would
		// write one more lease for each restart on another port.
		"--endpoint-reconciler-type=none",
		// Aggregated API servers (Gardener's) trust these headers.
		"--requestheader-client-ca-file=" + c.file(fileCACert),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.file(fileFrontProxyCert),
		"--proxy-client-key-file=" + c.file(fileFrontProxyKey),
	}
}

func (s *apiServer) waitReady(ctx context.Context, c *Cluster) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return errors.Join(errors.New("ended before it was ready"), <-s.done)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// newRegistry gives a component its own copy of versions and feature gates: the
// default registry of the process may be set only once.
func newRegistry() basecompat.ComponentGlobalsRegistry {
	r := basecompat.NewComponentGlobalsRegistry()
	version := compatibility.DefaultBuildEffectiveVersion()
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	if err := r.Register(basecompat.DefaultKubeComponent, version, gates); err != nil {
		panic(err) // impossible: the registry is empty
	}
	return r
}

func parseFlags(sets cliflag.NamedFlagSets, args []string) error {
	all := pflag.NewFlagSet("kube", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	return all.Parse(args)
}
