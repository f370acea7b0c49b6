package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// System is what a call goes to.
type System string

// Systems behind a gate. Garden and management share an API server.
const (
	Management System = "management"
	Garden     System = "garden"
	Shoot      System = "shoot"
	AWS        System = "aws"
)

// Call is a mutating call that has gone through the gate.
type Call struct {
	At     time.Time
	System System
	// Kind of call for tables: "PATCH networks/status", "CreateBucket".
	Kind string
	// Identity tells calls apart: method, path and what else names the target.
	Identity string
	// Activity and Workflow that made it, where only one could have.
	Activity, Workflow, Run string
	Status                  int
	Lost                    bool
}

// Gate is a reverse proxy between one lane's processes and all systems. Reads
// and watches stream through; mutating calls are noted, and may lose their
// answers after they took effect.
type Gate struct {
	// Lose decides about a mutating call that has succeeded. It is called by
	// one goroutine at a time, with the calls so far.
	lose func(c Call) bool

	conductor *Conductor
	servers   []*http.Server
	kubeURL   string
	awsURL    string

	management *upstream
	aws        *upstream

	mu     sync.Mutex
	shoots map[string]*upstream // by id
	// opened are the clusters of Shoots by namespace/name: the newest credentials.
	opened map[string]*rest.Config
	calls  []Call
	writes shootWrites
	// held are the systems whose answers are held, and until when.
	held map[System]time.Time
}

type upstream struct {
	base   *url.URL
	trip   http.RoundTripper
	reads  *httputil.ReverseProxy
	config *rest.Config
}

// NewGate serves a gate on loopback.
func NewGate(c *Conductor, management *rest.Config, awsURL string) (*Gate, error) {
	g := &Gate{conductor: c, shoots: map[string]*upstream{}, opened: map[string]*rest.Config{}, held: map[System]time.Time{},
		writes: shootWrites{flying: map[string]int{}, last: map[string]uint64{}}}
	var err error
	if g.management, err = newUpstream(management); err != nil {
		return nil, err
	}
	if g.aws, err = newUpstream(&rest.Config{Host: awsURL}); err != nil {
		return nil, err
	}
	if g.kubeURL, err = g.serve(http.HandlerFunc(g.kube)); err != nil {
		return nil, err
	}
	g.awsURL, err = g.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.forward(w, r, AWS, g.aws) }))
	return g, err
}

func newUpstream(config *rest.Config) (*upstream, error) {
	base, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	trip, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	u := &upstream{base: base, trip: trip, config: config}
	u.reads = &httputil.ReverseProxy{
		Transport: trip, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = base.Scheme, base.Host
			if base.Scheme == "https" { // the client's credentials are the gate's
				r.Out.Host = base.Host
				r.Out.Header.Del("Authorization")
			}
		},
		// A system that is away looks like one: no answer.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { reset(w) },
		ErrorLog:     silent(),
	}
	return u, nil
}

func (g *Gate) serve(h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: silent()}
	g.servers = append(g.servers, s)
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// Close ends the gate and every connection through it.
func (g *Gate) Close() {
	for _, s := range g.servers {
		_ = s.Close()
	}
}

// SetLose changes who decides about lost answers; nil loses none.
func (g *Gate) SetLose(f func(Call) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = f
}

// Calls are the mutating calls so far.
func (g *Gate) Calls() []Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// WriteKubeconfig writes a kubeconfig for the management cluster behind the
// gate.
func (g *Gate) WriteKubeconfig(path string) error {
	return clientcmd.WriteToFile(*kubeconfigFor(g.kubeURL), path)
}

// AWSURL is what AWS_ENDPOINT_URL is set to.
func (g *Gate) AWSURL() string { return g.awsURL }

func kubeconfigFor(server string) *clientcmdapi.Config {
	c := clientcmdapi.NewConfig()
	c.Clusters["gate"] = &clientcmdapi.Cluster{Server: server}
	c.AuthInfos["gate"] = &clientcmdapi.AuthInfo{Token: "gate"} // the gate has the real ones
	c.Contexts["gate"] = &clientcmdapi.Context{Cluster: "gate", AuthInfo: "gate"}
	c.CurrentContext = "gate"
	return c
}

const shootPrefix = "/shoots/"

// kube serves the management API with the garden in it and, under /shoots/, the
// API servers of Shoots.
func (g *Gate) kube(w http.ResponseWriter, r *http.Request) {
	if rest, ok := strings.CutPrefix(r.URL.Path, shootPrefix); ok {
		id, path, _ := strings.Cut(rest, "/")
		g.mu.Lock()
		u := g.shoots[id]
		g.mu.Unlock()
		if u == nil {
			reset(w)
			return
		}
		r.URL.Path, r.URL.RawPath = "/"+path, ""
		g.forward(w, r, Shoot, u)
		return
	}
	system := Management
	if strings.Contains(r.URL.Path, ".gardener.cloud/") || strings.Contains(r.URL.Path, "/namespaces/garden-") {
		system = Garden
	}
	g.forward(w, r, system, g.management)
}

// maxBody bounds what is buffered of a mutating call.
const maxBody = 64 << 20

// Hold has every call to a system wait until d from now.
func (g *Gate) Hold(system System, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[system] = time.Now().Add(d)
}

func (g *Gate) forward(w http.ResponseWriter, r *http.Request, system System, u *upstream) {
	g.mu.Lock()
	wait := time.Until(g.held[system])
	g.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
		return
	}
	if system != AWS && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Upgrade") != "") {
		u.reads.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		reset(w)
		return
	}
	call, mutating := describe(system, r, body)
	if !mutating {
		r.Body = io.NopCloser(bytes.NewReader(body))
		u.reads.ServeHTTP(w, r)
		return
	}
	call.At = time.Now()
	call.attribute(g.conductor)
	kubeconfig := system == Garden && strings.HasSuffix(r.URL.Path, "/adminkubeconfig")
	if kubeconfig {
		r.Header.Set("Accept", "application/json")
	}
	shoot := shootSpec(system, r)
	g.begins(shoot)
	res, answer, err := u.send(r, body) //nolint:bodyclose // send reads and closes it
	g.ends(shoot, body, res, answer)
	if err != nil {
		g.note(call)
		reset(w)
		return
	}
	if kubeconfig && res.StatusCode < 300 {
		if answer, err = g.admit(r.URL.Path, answer); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	call.Status = res.StatusCode
	if g.note(call) {
		reset(w)
		return
	}
	for k, v := range res.Header {
		if k != "Content-Length" && k != "Connection" && k != "Transfer-Encoding" {
			w.Header()[k] = v
		}
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(answer)
}

// send makes the call. A caller that gives up does not stop the system: what
// was asked gets done.
func (u *upstream) send(r *http.Request, body []byte) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
	defer cancel()
	target := *r.URL
	target.Scheme, target.Host = u.base.Scheme, u.base.Host
	out, err := http.NewRequestWithContext(ctx, r.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	out.Header = r.Header.Clone()
	for _, k := range []string{"Connection", "Accept-Encoding", "Transfer-Encoding", "Expect"} {
		out.Header.Del(k)
	}
	if u.base.Scheme == "https" {
		out.Header.Del("Authorization")
	} else {
		out.Host = r.Host
	}
	res, err := u.trip.RoundTrip(out)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	return res, answer, err
}

// note keeps the call and says whether its answer gets lost.
func (g *Gate) note(c Call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.Lost = c.Status > 0 && c.Status < 300 && g.lose != nil && g.lose(c)
	g.calls = append(g.calls, c)
	return c.Lost
}

// reset cuts the connection so that the client sees a reset, not an end.
func reset(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// loadConfig reads a kubeconfig without a limit on requests.
func loadConfig(path string) (*rest.Config, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	if config.Host == "" {
		return nil, errors.New("the kubeconfig names no server")
	}
	config.QPS, config.Burst = -1, 0
	return config, nil
}
