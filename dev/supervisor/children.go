package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/process"
)

// Names of the children, in the control API and of their log files.
const (
	processGarden   = "gardener-apiserver"
	processTemporal = "temporal"
	processBridge   = "bridge"
	processWorker   = "worker"
	processBalancer = "balancer" // a worker for the Balancers of all namespaces, as the manifests have it
	processMoto     = "moto"
)

func (s *Stack) logFile(name string) string { return filepath.Join(s.state.Logs, name+".log") }

// addChild registers a child for the control API and starts it.
func (s *Stack) addChild(ctx context.Context, spec process.Spec) error {
	spec.Log = s.logFile(spec.Name)
	c := process.New(spec, s.childEnded)
	s.keepChild(c, c.Stop)
	return c.Start(ctx)
}

// keepChild puts a child under the control API and ends it with the stack.
func (s *Stack) keepChild(c *process.Child, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children[c.Name()] = c
	s.order = append(s.order, c.Name())
	s.undo = append(s.undo, end)
}

func (s *Stack) child(name string) *process.Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.children[name]
}

// childEnded tells of a child that ended by itself.
func (s *Stack) childEnded(c *process.Child, err error) {
	s.saveState()
	s.screen.stamp("%s ended by itself (%v); %s\n\nStart it again: curl -X POST %s/processes/%s/start",
		c.Name(), err, process.LogTail(c.Log()), s.state.Control, c.Name())
	s.report(fmt.Errorf("%s ended by itself: %w", c.Name(), err))
}

// startTemporal runs temporaldev on ports that stay the same over restarts,
// with its database in a file, so that an outage loses nothing.
func (s *Stack) startTemporal(ctx context.Context) error {
	port, err := s.port(PortTemporal)
	if err != nil {
		return err
	}
	uiPort, err := s.port(PortTemporalUI)
	if err != nil {
		return err
	}
	return s.addChild(ctx, process.Spec{
		Name: processTemporal,
		Path: filepath.Join(s.opts.Bin, "temporaldev"),
		Args: append([]string{
			"--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort), "--namespace", Namespace,
			"--db-filename", s.temporalFile(),
		}, s.opts.temporalFlags()...),
		Env: process.Environment(),
		FirstLine: func(line []byte) error {
			var told struct{ Address, UI, Namespace string }
			if err := json.Unmarshal(line, &told); err != nil {
				return fmt.Errorf("it does not tell its addresses: %w", err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.state.TemporalAddress, s.state.TemporalUI, s.state.TemporalNamespace = told.Address, told.UI, told.Namespace
			return nil
		},
	})
}

// temporalFile is Temporal's database.
func (s *Stack) temporalFile() string {
	return filepath.Join(s.state.DataDir, "temporal", "temporal.db")
}

// startProduct runs a process of the product as a user would: flags,
// environment, the rights that it ships with, and nothing else that it could
// learn from.
func (s *Stack) startProduct(ctx context.Context, name, binary string, flags ...string) error {
	kubeconfig, err := s.writeKubeconfig(name)
	if err != nil {
		return err
	}
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	probes, err := freeAddress()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.state.Metrics[name], s.state.Probes[name] = "http://"+metrics+"/metrics", "http://"+probes
	st := s.state
	s.mu.Unlock()
	return s.addChild(ctx, process.Spec{
		Name: name,
		Path: filepath.Join(s.opts.Bin, binary),
		Args: append([]string{
			"--kubeconfig", kubeconfig, "--namespace", st.Namespace,
			"--metrics-bind-address", metrics, "--health-probe-bind-address", probes,
		}, flags...),
		Env: process.Environment(
			"GARDENER_CONFIG="+st.GardenKubeconfig,
			"TEMPORAL_ADDRESS="+st.TemporalAddress,
			"TEMPORAL_NAMESPACE="+st.TemporalNamespace,
			"AWS_ENDPOINT_URL="+st.AWS,
			"CONFIG_SERVICE_URL="+st.ConfigService,
			"INFRA_ENV=dev",
			"ENABLE_WEBHOOKS=true",
		),
		Ready: answers("http://" + probes + "/readyz"),
	})
}

// answers returns a check that a URL answers 200.
func answers(url string) func(context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}

// port is the port that the user fixed, or a free one.
func (s *Stack) port(name string) (int, error) {
	if port := s.opts.Ports[name]; port != 0 {
		return port, nil
	}
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// Ports are chosen below 32768, where Linux begins to take ports for outgoing
// connections (net.ipv4.ip_local_port_range): there, one that is free now is
// some connection's a moment later, before its user listens.
const firstPort, ports, portAttempts = 20000, 12000, 100

// given are the ports that this process has handed out.
var given sync.Map

// freeAddress finds a free port on loopback.
func freeAddress() (string, error) {
	var err error
	for range portAttempts {
		port := firstPort + rand.IntN(ports)
		if _, before := given.LoadOrStore(port, true); before {
			continue // its user may not listen yet
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("no free port on loopback: %w", err)
}
