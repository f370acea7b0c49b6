// Package stack runs a devstack as a process for tests, and talks to it as any
// user does: the Kubernetes API, Temporal and the control API.
package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Stack is a running devstack.
type Stack struct {
	State    State
	Kube     client.WithWatch
	Temporal sdk.Client
	cmd      *exec.Cmd
	ended    chan error
}

// State is the part of the devstack's stack.json that tests read.
type State struct {
	DataDir           string `json:"dataDir"`
	Logs              string `json:"logs"`
	Kubeconfig        string `json:"kubeconfig"`
	TemporalAddress   string `json:"temporalAddress"`
	TemporalNamespace string `json:"temporalNamespace"`
	TemporalUI        string `json:"temporalUI"`
	Control           string `json:"control"`
	AWS               string `json:"aws"`
	ConfigService     string `json:"configService"`
}

// Root is the checkout.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "config", "crd")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	panic("the tests do not run inside the checkout")
}

// Bin is the folder of the binaries, bin in the checkout; env DEVSTACK_BIN names
// another one, such as a copy that nobody rebuilds while a long test runs.
func Bin() string {
	if dir := os.Getenv("DEVSTACK_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(Root(), "bin")
}

// startTimeout covers a first start, which makes the Python environment.
const startTimeout = 5 * time.Minute

// Start starts a devstack without samples, in a data folder of its own, and
// waits until it is up. The output goes to devstack.log in that folder.
func Start(ctx context.Context, dataDir string, args ...string) (*Stack, error) {
	root := Root()
	out, err := os.Create(filepath.Join(dataDir, "devstack.log"))
	if err != nil {
		return nil, err
	}
	args = append([]string{"up", "--root", root, "--bin", Bin(), "--data-dir", filepath.Join(dataDir, "data"), "--no-samples"}, args...)
	cmd := exec.Command(filepath.Join(Bin(), "devstack"), args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("devstack: %w (make build makes it)", err)
	}
	s := &Stack{cmd: cmd, ended: make(chan error, 1)}
	go func() { s.ended <- cmd.Wait() }()
	if err := s.await(ctx, filepath.Join(dataDir, "data", "stack.json"), out.Name()); err != nil {
		return nil, err
	}
	return s, s.connect()
}

// await waits for stack.json, which is there when the stack is up.
func (s *Stack) await(ctx context.Context, path, logFile string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		data, err := os.ReadFile(path)
		if err == nil {
			return json.Unmarshal(data, &s.State)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case err := <-s.ended:
			return fmt.Errorf("devstack ended while starting: %w, see %s", err, logFile)
		case <-ctx.Done():
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
			return fmt.Errorf("devstack is not up after %s, see %s", startTimeout, logFile)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *Stack) connect() error {
	rc, err := clientcmd.BuildConfigFromFlags("", s.State.Kubeconfig)
	if err != nil {
		return err
	}
	rc.QPS, rc.Burst = 100, 200
	ctrllog.SetLogger(logr.Discard()) // else it complains that nobody has
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return err
	}
	if s.Kube, err = client.NewWithWatch(rc, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	s.Temporal, err = sdk.NewLazyClient(sdk.Options{HostPort: s.State.TemporalAddress, Namespace: s.State.TemporalNamespace, Logger: quiet{}})
	return err
}

// InTemporalNamespace is the same stack, seen from another Temporal namespace.
// Close its Temporal client in the end.
func (s *Stack) InTemporalNamespace(namespace string) (*Stack, error) {
	other := *s
	other.State.TemporalNamespace = namespace
	var err error
	other.Temporal, err = sdk.NewLazyClient(sdk.Options{HostPort: s.State.TemporalAddress, Namespace: namespace, Logger: quiet{}})
	return &other, err
}

// Stop stops the stack as Ctrl-C does and waits for its end.
func (s *Stack) Stop() error {
	if s.Temporal != nil {
		s.Temporal.Close()
	}
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-s.ended:
		return err
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		return errors.New("devstack did not stop within a minute and was killed")
	}
}

// quiet drops the Temporal client's log lines.
type quiet struct{}

var _ log.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// PrintTail prints the last lines of a log file to standard error.
func PrintTail(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = os.Stderr.Write(data[max(0, len(data)-4000):])
	return err
}
