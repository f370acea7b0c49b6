// Package admission asks a real API server what the schemas of our kinds
// refuse: the table of internal/admissioncases, the examples of docs/api.md, and
// what kubectl shows.
package admission

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// namespace of the objects. No bridge watches it.
const namespace = "admission"

// server is the API server, with our CustomResourceDefinitions.
var server struct {
	kubeconfig string
	client     client.Client
	tables     []admissioncases.Kind
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "admission-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	stop, err := start(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	return m.Run()
}

// start starts the API server alone, as the devstack runs it, and installs our
// kinds. The function that it returns ends it, not gently: nothing is kept.
func start(ctx context.Context, dir string) (func(), error) {
	cmd := exec.Command(filepath.Join(stack.Root(), "bin", "devstack"), "kube", "--data-dir", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("devstack: %w (make build makes it)", err)
	}
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		stop()
		_ = stack.PrintTail(log.Name())
		return nil, fmt.Errorf("the API server did not start: %w", err)
	}
	var ready struct {
		Kubeconfig string `json:"kubeconfig"`
	}
	if err := errors.Join(json.Unmarshal(line, &ready), install(ctx, ready.Kubeconfig)); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

func install(ctx context.Context, kubeconfig string) error {
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	rc.QPS = -1
	c, err := client.New(rc, client.Options{})
	if err != nil {
		return err
	}
	server.kubeconfig, server.client = kubeconfig, c
	if server.tables, err = admissioncases.Load(); err != nil {
		return err
	}
	for _, name := range []string{namespace, "infra"} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(stack.Root(), "config", "crd", "cloud.pingcap.com_*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		crd, err := readObject(file)
		if err != nil {
			return err
		}
		if err := c.Create(ctx, crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, table := range server.tables {
		if err := served(ctx, table.Kind); err != nil {
			return err
		}
	}
	return nil
}

func readObject(file string) (*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, yaml.Unmarshal(raw, &u.Object)
}

// served waits until the API server has the kind, which takes a moment after
// the creation of its definition.
func served(ctx context.Context, kind string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cloud.pingcap.com", Version: "v1", Kind: kind + "List"})
	for {
		err := server.client.List(ctx, list, client.InNamespace(namespace))
		if err == nil {
			return nil
		}
		if !meta.IsNoMatchError(err) && client.IgnoreNotFound(err) != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not served: %w", kind, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
