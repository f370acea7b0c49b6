// Package namespaces deletes and restores everything at once, as kubectl and
// backup tools do with a folder or a namespace, on a devstack.
package namespaces

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

const namespace = "infra"

var world *stack.Stack

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run has the deferred calls that os.Exit would skip.
func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "namespaces-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if world, err = stack.Start(ctx, dir, "--balancer-period", "2s"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		_ = stack.PrintTail(filepath.Join(dir, "devstack.log"))
		return 1
	}
	code := m.Run()
	if err := world.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "devstack:", err)
		code = 1
	}
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "logs are kept in", dir)
	}
	return code
}

// rightsOutlive gives the product's accounts their rights by ClusterRoles, too,
// as where its processes do not live in the namespace of the objects: roles and
// bindings in a namespace go with it at once.
func rightsOutlive(ctx context.Context) error {
	for _, kind := range []string{"Role", "RoleBinding"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("rbac.authorization.k8s.io/v1")
		list.SetKind(kind + "List")
		if err := world.Kube.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, o := range list.Items {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetAPIVersion("rbac.authorization.k8s.io/v1")
			u.SetKind("Cluster" + kind)
			u.SetName("outlives-" + o.GetName())
			for _, field := range []string{"rules", "subjects", "roleRef"} {
				if value, ok := o.Object[field]; ok {
					u.Object[field] = value
				}
			}
			if ref, ok := u.Object["roleRef"].(map[string]any); ok {
				ref["kind"], ref["name"] = "ClusterRole", fmt.Sprint("outlives-", ref["name"])
			}
			if err := world.Apply(ctx, u); err != nil {
				return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
			}
		}
	}
	return nil
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// ours are the samples with a lifecycle.
func ours() []v1.Object {
	return []v1.Object{
		&v1.ProviderType{ObjectMeta: named("aws-gardener")}, &v1.Provider{ObjectMeta: named("core-aws")},
		&v1.Network{ObjectMeta: named("n1")}, &v1.Cluster{ObjectMeta: named("c1")},
	}
}

// create applies the samples, to a namespace that a test before may have deleted.
func create(ctx context.Context, t *testing.T) {
	t.Helper()
	require.NoError(t, world.EnsureNamespace(ctx, namespace))
	samples, err := stack.Samples()
	require.NoError(t, err)
	require.NoError(t, world.Apply(ctx, samples...))
}

// ready waits until everything is Ready, by an operation of its own: a status
// that was restored says so of a former object.
func ready(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, o := range ours() {
		eventually(ctx, t, o.GetName()+" is Ready", func() error {
			if err := world.Kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			c := o.Common()
			op := c.Operation
			if c.ObservedGeneration == o.GetGeneration() && meta.IsStatusConditionTrue(c.Conditions, v1.ConditionReady) &&
				op != nil && !op.Active() && op.UID == string(o.GetUID()) {
				return nil
			}
			return fmt.Errorf("phase %s, operation %+v, last error %+v, conditions %+v", c.Phase, c.Operation, c.LastError, c.Conditions)
		})
	}
}

// nothingLeft looks into the emulator and the garden.
func nothingLeft(ctx context.Context, t *testing.T) {
	t.Helper()
	all, err := world.Inventory(ctx)
	require.NoError(t, err)
	for _, r := range all {
		if r.Type != "kms/key" || r.State != "PendingDeletion" { // 30 days, as AWS does it
			t.Errorf("left in AWS: %s %s (owner %s, cluster %s, state %s)", r.Type, r.ID, r.Owner, r.Cluster, r.State)
		}
	}
	for kind, version := range map[string]string{"ShootList": "core.gardener.cloud/v1beta1", "CredentialsBindingList": "security.gardener.cloud/v1alpha1"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(kind)
		require.NoError(t, world.Kube.List(ctx, list))
		require.Empty(t, list.Items, kind)
	}
	eventually(ctx, t, "no workflow runs", func() error {
		running, err := world.Workflows(ctx, `ExecutionStatus = "Running"`)
		if err == nil && len(running) > 0 {
			err = fmt.Errorf("%d run: %s", len(running), running[0].GetExecution().GetWorkflowId())
		}
		return err
	})
}

// kubectl runs kubectl as users do.
func kubectl(ctx context.Context, t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(stack.Bin(), "devstack"), append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.State.Kubeconfig)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	t.Logf("kubectl %v, %s\n%s", args, time.Since(begin).Round(time.Second), out)
	require.NoError(t, err)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// eventually checks until it is well, or ctx ends.
func eventually(ctx context.Context, t *testing.T, what string, check func() error) {
	t.Helper()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not in time: %v", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// absent waits until an object is gone.
func absent(ctx context.Context, t *testing.T, o client.Object) {
	t.Helper()
	eventually(ctx, t, o.GetName()+" is gone", func() error {
		err := world.Kube.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v, finalizers %v", err, o.GetFinalizers())
	})
}
