package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
	"github.com/tidbcloud/infra-orchestrator/workers"
)

// Marker stands in every credential of a lane.
const Marker = "MARKERcha05feed"

// Lane is a namespace in Kubernetes and in Temporal, with a bridge and a worker
// of its own. What happens to one lane's worker does not touch another's.
type Lane struct {
	// Name of the lane and of its namespaces.
	Name      string
	Stack     *stack.Stack
	Checker   *invariants.Checker
	Conductor *Conductor
	Gate      *Gate

	samples        []*unstructured.Unstructured
	bridge, worker *keeper
	logs           string
	changes        int
}

// NewLane starts a lane on a devstack without product. binary is the chaos
// worker, dir a folder for the lane's files; bridge are flags of the bridge.
func NewLane(ctx context.Context, s *stack.Stack, checker *invariants.Checker, name, dir, binary string, bridge ...string) (*Lane, error) {
	l := &Lane{Name: name, Checker: checker, Conductor: NewConductor(), logs: filepath.Join(dir, "logs")}
	var err error
	if l.Stack, err = s.InTemporalNamespace(name); err != nil {
		return nil, err
	}
	if l.samples, err = stack.MarkedSamples(Marker); err != nil {
		return nil, err
	}
	if err := l.namespaces(ctx); err != nil {
		return nil, fmt.Errorf("lane %s: %w", name, err)
	}
	config, err := loadConfig(s.State.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if l.Gate, err = NewGate(l.Conductor, config, s.State.AWS); err != nil {
		return nil, err
	}
	conductor, err := l.Gate.serve(l.Conductor)
	if err != nil {
		return nil, err
	}
	return l, l.start(dir, binary, conductor, bridge)
}

// registerNamespace makes the lane's namespace in Temporal.
func (l *Lane) registerNamespace(ctx context.Context) error {
	_, err := l.Stack.Temporal.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: l.Name, WorkflowExecutionRetentionPeriod: durationpb.New(72 * time.Hour),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return err
	}
	return nil
}

// WipeTemporal has the Temporal server lose all its data, and sets the lane's
// namespace up again, as whoever restores a server does.
func (l *Lane) WipeTemporal(ctx context.Context) error {
	if err := l.Stack.WipeTemporal(ctx); err != nil {
		return err
	}
	if err := l.registerNamespace(ctx); err != nil {
		return err
	}
	for { // the server's frontend learns of a namespace with its next refresh
		err := workers.EnsureSearchAttributes(ctx, l.Stack.Temporal, l.Name)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// namespaces makes the lane's namespaces, and what all its objects refer to.
func (l *Lane) namespaces(ctx context.Context) error {
	if err := l.registerNamespace(ctx); err != nil {
		return err
	}
	if err := l.Stack.EnsureNamespace(ctx, l.Name); err != nil {
		return err
	}
	for _, o := range l.samples {
		o.SetNamespace(l.Name)
		switch o.GetKind() {
		case "Account", "Secret":
			if err := l.Stack.Apply(ctx, o.DeepCopy()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lane) start(dir, binary, conductor string, bridge []string) error {
	if err := os.MkdirAll(l.logs, 0o700); err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, l.Name+".kubeconfig")
	if err := l.Gate.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	st := l.Stack.State
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(), "GOMEMLIMIT=300MiB",
		"GARDENER_CONFIG=" + kubeconfig, "TEMPORAL_ADDRESS=" + st.TemporalAddress, "TEMPORAL_NAMESPACE=" + l.Name,
		"AWS_ENDPOINT_URL=" + l.Gate.AWSURL(), "CONFIG_SERVICE_URL=" + st.ConfigService, "INFRA_ENV=dev", "ENABLE_WEBHOOKS=false",
		hook.Variable + "=" + conductor,
	}
	process := func(name, path string, flags ...string) *keeper {
		return keep(spec{name: l.Name + " " + name, path: path, env: env, log: filepath.Join(l.logs, l.Name+"-"+name+".log"), args: append([]string{
			"--kubeconfig", kubeconfig, "--namespace", l.Name, "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
		}, flags...)})
	}
	l.bridge = process("bridge", filepath.Join(stack.Bin(), "bridge"), bridge...)
	l.worker = process("worker", binary)
	return nil
}

// Stop ends the lane's processes. It returns what ended without being asked to,
// other than by SIGKILL.
func (l *Lane) Stop() []string {
	l.bridge.stop()
	l.worker.stop()
	l.Gate.Close()
	l.Stack.Temporal.Close()
	return append(l.bridge.unexpected(), l.worker.unexpected()...)
}

// Logs is the folder with the lane's logs.
func (l *Lane) Logs() string { return l.logs }
