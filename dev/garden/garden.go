package garden

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/dev/kube"
	"github.com/tidbcloud/infra-orchestrator/dev/process"
)

const (
	// Namespace holds Gardener itself: its Service and its credentials.
	Namespace = "garden"
	// ProjectName and ProjectNamespace are the seeded Project and where its
	// Shoots live.
	ProjectName      = "core"
	ProjectNamespace = "garden-core"
	// CloudProfileName is the seeded CloudProfile, SeedName the seeded Seed.
	CloudProfileName = "aws"
	SeedName         = "aws-us-west-2"
	// ClusterIdentity names the garden in the identity of each Shoot.
	ClusterIdentity = "devstack"

	serviceName = "gardener-apiserver"
	etcdPrefix  = "/registry-gardener"
)

// startTimeout bounds the start of the child and of the aggregation; both
// together take about 3 s on an idle machine.
const startTimeout = 2 * time.Minute

// Options say where the garden runs.
type Options struct {
	// Cluster is the management cluster that aggregates it. Required.
	Cluster *kube.Cluster
	// Etcd stores Gardener's objects. Required.
	Etcd *kube.Etcd
	// Dir keeps the server's certificate and port. Required.
	Dir string
	// Log is the file for the child's output. Required.
	Log string
	// Executable calls Main when its first argument is Command. Default: this
	// process's own binary.
	Executable string
	// Ended, which may be nil, is told when the child ends unasked.
	Ended func(child *process.Child, err error)
}

// Garden is a running gardener-apiserver.
type Garden struct {
	opts   Options
	port   int
	child  *process.Child
	client client.Client
}

// Start runs the gardener-apiserver, registers it with the management cluster,
// waits until its kinds are served there, and applies the seeded objects. ctx
// bounds the start; Child().Stop ends it.
func Start(ctx context.Context, opts Options) (*Garden, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	g, err := prepare(opts)
	if err != nil {
		return nil, fmt.Errorf("gardener-apiserver: %w", err)
	}
	if err := g.child.Start(ctx); err != nil {
		return nil, fmt.Errorf("gardener-apiserver: %w", err)
	}
	if err := g.register(ctx); err != nil {
		g.child.Stop()
		return nil, fmt.Errorf("gardener-apiserver: %w", err)
	}
	return g, nil
}

// Child is the gardener-apiserver's process. It may be stopped, killed and
// started again; it keeps its port.
func (g *Garden) Child() *process.Child { return g.child }

// prepare makes files, port and child, and starts nothing.
func prepare(opts Options) (*Garden, error) {
	if opts.Cluster == nil || opts.Etcd == nil || opts.Dir == "" || opts.Log == "" {
		return nil, errors.New("needs Cluster, Etcd, Dir and Log")
	}
	var err error
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	if opts.Executable == "" {
		if opts.Executable, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	g := &Garden{opts: opts}
	if g.client, err = client.New(opts.Cluster.Config(), client.Options{}); err != nil {
		return nil, err
	}
	if err := g.writeCertificate(); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	if g.port, err = g.choosePort(); err != nil {
		return nil, fmt.Errorf("choose a port: %w", err)
	}
	ready, err := g.readiness()
	if err != nil {
		return nil, err
	}
	g.child = process.New(process.Spec{
		Name:  serviceName,
		Path:  opts.Executable,
		Args:  append([]string{Command}, g.flags()...),
		Env:   process.Environment(),
		Log:   opts.Log,
		Ready: ready,
	}, opts.Ended)
	return g, nil
}

// flags of the gardener-apiserver. The plugins that are off need objects that
// only extensions bring (ControllerRegistrations, DNS providers, quotas).
func (g *Garden) flags() []string {
	kubeconfig := g.opts.Cluster.Kubeconfig()
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(g.port),
		"--etcd-servers=" + g.opts.Etcd.URL,
		"--etcd-prefix=" + etcdPrefix,
		"--tls-cert-file=" + g.file("tls.crt"),
		"--tls-private-key-file=" + g.file("tls.key"),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--authorization-always-allow-paths=/healthz,/readyz,/livez",
		"--cluster-identity=" + ClusterIdentity,
		"--log-level=info",
		"--disable-admission-plugins=" + strings.Join([]string{
			"ExtensionValidator", "ShootDNS", "ShootQuotaValidator", "ManagedSeed", "ManagedSeedShoot", "ShootExposureClass",
		}, ","),
	}
}

// serverName is what the aggregator asks the certificate for.
func serverName() string { return serviceName + "." + Namespace + ".svc" }

func (g *Garden) file(name string) string { return filepath.Join(g.opts.Dir, name) }

// writeCertificate issues the server's certificate anew for each run: it is
// cheap, and the management cluster's CA may be another one.
func (g *Garden) writeCertificate() error {
	certPEM, keyPEM, err := g.opts.Cluster.CA().Issue(kube.CertRequest{
		CommonName: serviceName,
		DNSNames:   []string{serverName(), "localhost"},
		IPs:        []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(g.file("tls.crt"), certPEM, 0o600),
		os.WriteFile(g.file("tls.key"), keyPEM, 0o600))
}

// choosePort prefers the port of the last run, so that the registration stays
// right from the first moment.
func (g *Garden) choosePort() (int, error) {
	wanted := "0"
	if last, err := os.ReadFile(g.file("port")); err == nil {
		wanted = strings.TrimSpace(string(last))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+wanted)
	if err != nil {
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return 0, err
		}
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, errors.Join(listener.Close(), os.WriteFile(g.file("port"), []byte(strconv.Itoa(port)), 0o600))
}

// readiness asks the child itself, not the aggregator, which may still
// remember the last run.
func (g *Garden) readiness() (func(context.Context) error, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(g.opts.Cluster.CA().CertPEM) {
		return nil, errors.New("the management cluster's CA is not a certificate")
	}
	http1 := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}, DisableKeepAlives: true},
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/readyz", g.port)
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := http1.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, res.Status)
		}
		return nil
	}, nil
}
