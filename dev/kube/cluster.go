package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// serviceIP is the first address of the service network: the ClusterIP of the
// Service "kubernetes" in every cluster.
var serviceIP = net.IPv4(10, 0, 0, 1)

// Options describe one cluster.
type Options struct {
	// Name is the cluster's name in kubeconfig, logs and, by default, in etcd.
	// Required, unique in the process.
	Name string
	// Dir keeps certificates, keys and the kubeconfig. Required. A cluster that
	// starts on the folder of an earlier run has the same authorities, and the
	// same port when it is free.
	Dir string
	// Etcd stores the cluster. Required; clusters may share it.
	Etcd *Etcd
	// EtcdPrefix defaults to "/" + Name.
	EtcdPrefix string
	// Listen is the API server's address on loopback. Default: the port of the
	// last run on Dir when that is free, else any free one.
	Listen string
	// ServiceAccountIssuer is the "iss" of service account tokens. Default: the
	// API server's URL.
	ServiceAccountIssuer string
	// Workloads adds what runs pods: workload and volume controllers,
	// kube-scheduler, and kwok as the kubelet of every node. Without it the
	// cluster only keeps objects, as a management cluster does.
	Workloads bool
	// Volumes makes the disks behind PersistentVolumeClaims; with nil they
	// exist in the API only. Used with Workloads.
	Volumes VolumeBackend
	// Autoscaling adds the controller of HorizontalPodAutoscalers, with
	// simulated metrics (AnnotationCPULoad). Used with Workloads.
	Autoscaling bool
	// APIServerArgs are further kube-apiserver flags; they win over ours.
	APIServerArgs []string
}

// Cluster is a running cluster.
type Cluster struct {
	opts   Options
	ca     *CA
	listen string
	config *rest.Config

	stopControllers context.CancelFunc

	mu     sync.Mutex
	server *apiServer // nil while stopped
	failed chan error
}

// Start runs a cluster and returns when its API server is ready and its
// controllers are started. ctx bounds the start only; Stop ends the cluster.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Name == "" || opts.Dir == "" || opts.Etcd == nil {
		return nil, errors.New("kube: a cluster needs Name, Dir and Etcd")
	}
	var err error
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	if opts.EtcdPrefix == "" {
		opts.EtcdPrefix = "/" + opts.Name
	}
	c := &Cluster{opts: opts, failed: make(chan error, 4), stopControllers: func() {}}
	if c.ca, err = ensurePKI(opts.Dir, opts.Name); err != nil {
		return nil, fmt.Errorf("cluster %s: certificates: %w", opts.Name, err)
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	if err := c.startControllers(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cluster %s: %w", opts.Name, err), c.Stop())
	}
	return c, nil
}

// startControllers runs everything that is a client of the API server. It all
// outlives ctx and survives an API server that is away for a while.
func (c *Cluster) startControllers(ctx context.Context) error {
	ctx, c.stopControllers = context.WithCancel(context.WithoutCancel(ctx))
	if err := startControllers(ctx, c); err != nil {
		return fmt.Errorf("controllers: %w", err)
	}
	if !c.opts.Workloads {
		return nil
	}
	if err := startScheduler(ctx, c); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	if err := startKubelets(ctx, c); err != nil {
		return fmt.Errorf("kwok: %w", err)
	}
	return nil
}

// Name returns Options.Name.
func (c *Cluster) Name() string { return c.opts.Name }

// CA returns the cluster's certificate authority.
func (c *Cluster) CA() *CA { return c.ca }

// URL is the API server's address: https://127.0.0.1:<port>. It stays the same
// while the Cluster lives.
func (c *Cluster) URL() string { return c.config.Host }

// Config returns a copy of a client configuration with full rights.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of a self-contained kubeconfig with full rights.
func (c *Cluster) Kubeconfig() string { return c.file(fileKubeconfig) }

// EtcdPrefix returns where the cluster is stored, for Etcd.DeletePrefix.
func (c *Cluster) EtcdPrefix() string { return c.opts.EtcdPrefix }

// Failed delivers the error of an API server or scheduler that ended by itself.
func (c *Cluster) Failed() <-chan error { return c.failed }

// StartAPIServer starts the API server again after StopAPIServer, on the same
// port, and returns when it is ready. It does nothing while one is running.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		return nil
	}
	listener, err := c.listenAgain(ctx)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.opts.Name, err)
	}
	c.listen = listener.Addr().String()
	if c.config == nil {
		if err := c.writeAccess(); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	server, err := startAPIServer(ctx, c, listener)
	if err != nil {
		return fmt.Errorf("cluster %s: kube-apiserver: %w", c.opts.Name, err)
	}
	c.server = server
	go c.report("kube-apiserver", server.done)
	return nil
}

// StopAPIServer stops the API server alone: an outage. Clients get "connection
// refused"; controllers keep retrying and go on after StartAPIServer.
func (c *Cluster) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	err := c.server.stop()
	c.server = nil
	return err
}

// Stop ends the cluster. Its data stays in etcd.
func (c *Cluster) Stop() error {
	c.stopControllers()
	return c.StopAPIServer()
}

func (c *Cluster) file(name string) string { return filepath.Join(c.opts.Dir, name) }

func (c *Cluster) report(what string, done <-chan error) {
	if err := <-done; err != nil {
		select {
		case c.failed <- fmt.Errorf("cluster %s: %s: %w", c.opts.Name, what, err):
		default: // nobody reads; the first errors say enough
		}
	}
}

// listenAgain opens the wanted address. A port that this cluster had a moment
// ago may need a little time to become free.
func (c *Cluster) listenAgain(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	address, fixed := c.listen, c.listen != ""
	if !fixed {
		address, fixed = c.opts.Listen, c.opts.Listen != ""
	}
	if !fixed {
		if port, err := os.ReadFile(c.file(filePort)); err == nil {
			if l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strings.TrimSpace(string(port)))); err == nil {
				return l, nil
			}
		}
		address = "127.0.0.1:0"
	}
	for attempt := 0; ; attempt++ {
		l, err := lc.Listen(ctx, "tcp", address)
		if err == nil || attempt == 20 {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// writeAccess makes the client configuration and the kubeconfig file, and
// remembers the port for the next run.
func (c *Cluster) writeAccess() error {
	_, port, err := net.SplitHostPort(c.listen)
	if err != nil {
		return err
	}
	if err := writeFile(c.opts.Dir, filePort, []byte(port+"\n")); err != nil {
		return err
	}
	config := &rest.Config{Host: "https://127.0.0.1:" + port, QPS: 200, Burst: 400}
	config.CAData = c.ca.CertPEM
	if config.CertData, err = os.ReadFile(c.file(fileAdminCert)); err != nil {
		return err
	}
	if config.KeyData, err = os.ReadFile(c.file(fileAdminKey)); err != nil {
		return err
	}
	file := clientcmdapi.NewConfig()
	name := c.opts.Name
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	c.config = config
	return clientcmd.WriteToFile(*file, c.Kubeconfig())
}
