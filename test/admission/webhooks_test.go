package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// hooked is the namespace of the webhooks' tests: a bridge watches it.
const hooked = "hooked"

// TestWebhooks puts the table of the webhooks to an API server that asks a real
// bridge: through TLS, with its caches, and without Temporal. Cases that need an
// object that is being deleted are left to the bridge's own tests.
func TestWebhooks(t *testing.T) {
	world, kinds, err := admissioncases.LoadWebhooks()
	require.NoError(t, err)
	require.NoError(t, server.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hooked}}))
	for _, o := range world.Objects { // before there is a webhook: some would be refused
		require.NoError(t, server.client.Create(t.Context(), inHooked(o)), "%s %s", o["kind"], inHooked(o).GetName())
	}
	startWebhooks(t)
	for _, o := range world.Objects {
		setStatus(t, inHooked(o))
	}
	w := newWarned(t)
	count := 0
	for _, k := range kinds {
		for _, c := range k.Cases {
			if c.InProcess != "" || needsDeleting(c) {
				continue
			}
			count++
			t.Run(k.Kind+"/"+c.Name, func(t *testing.T) { w.run(t, k, c) })
		}
	}
	t.Logf("%d rules of the webhooks", count)
	require.Greater(t, count, 80)
}

// inHooked is an object of the tables in our namespace.
func inHooked(o map[string]any) *unstructured.Unstructured {
	whole, err := admissioncases.Whole(o)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: whole}
	u.SetNamespace(hooked)
	u.SetUID("")
	return u
}

func needsDeleting(c admissioncases.WebhookCase) bool {
	for _, changes := range c.Given {
		if changes == nil {
			return true
		}
		if _, ok := (*changes)["metadata.deletionTimestamp"]; ok {
			return true
		}
	}
	return false
}

// startWebhooks runs a bridge that serves webhooks for our namespace, and waits
// until it has registered them.
func startWebhooks(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	log, err := os.Create(filepath.Join(t.TempDir(), "bridge.log"))
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(stack.Bin(), "bridge"), "--kubeconfig", server.kubeconfig, "--namespace", hooked,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--webhook-bind-address", address, "--webhook-url", "https://"+address)
	cmd.Env = append(os.Environ(), "ENABLE_WEBHOOKS=true", "TEMPORAL_ADDRESS=127.0.0.1:1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	require.NoError(t, cmd.Start(), "make build makes bin/bridge")
	t.Cleanup(func() {
		for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
			_ = server.client.Delete(context.Background(), configuration(kind))
		}
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			_ = stack.PrintTail(log.Name())
		}
	})
	require.Eventually(t, func() bool {
		c := configuration("ValidatingWebhookConfiguration")
		return server.client.Get(t.Context(), client.ObjectKeyFromObject(c), c) == nil
	}, time.Minute, 50*time.Millisecond, "the bridge registers its webhooks")
}

func configuration(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
	u.SetName("infra-orchestrator")
	return u
}

// setStatus gives an object the status of the table, once the bridge has
// written its own notice into it, if it does.
func setStatus(t *testing.T, want *unstructured.Unstructured) {
	t.Helper()
	status, ok := want.Object["status"]
	if !ok {
		return
	}
	switch want.GetKind() {
	case "NetworkPeer", "Backup", "Restore", "Import", "TiCDC":
		require.Eventually(t, func() bool {
			u := want.DeepCopy()
			require.NoError(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			return condition(u, "Stalled") != ""
		}, time.Minute, 50*time.Millisecond, "the notice of %s", want.GetKind())
	}
	patch(t, want, map[string]any{"status": withUID(t, status)}, server.client.Status().Patch)
}

// withUID replaces uid-c1 of the table by the uid of that Cluster.
func withUID(t *testing.T, status any) any {
	t.Helper()
	m, _ := status.(map[string]any)
	if cluster, ok := m["cluster"].(map[string]any); ok && cluster["uid"] == "uid-c1" {
		c1 := &unstructured.Unstructured{}
		c1.SetGroupVersionKind(schema.GroupVersionKind{Group: "cloud.pingcap.com", Version: "v1", Kind: "Cluster"})
		require.NoError(t, server.client.Get(t.Context(), types.NamespacedName{Namespace: hooked, Name: "c1"}, c1))
		cluster["uid"] = string(c1.GetUID())
	}
	return m
}

type patcher[O any] func(ctx context.Context, obj client.Object, p client.Patch, opts ...O) error

func patch[O any](t *testing.T, o *unstructured.Unstructured, change map[string]any, do patcher[O]) {
	t.Helper()
	raw, err := json.Marshal(change)
	require.NoError(t, err)
	require.NoError(t, do(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, raw)), "%s %s: %s", o.GetKind(), o.GetName(), raw)
}

// warned asks the API server and keeps the warnings.
type warned struct {
	client   client.Client
	mu       sync.Mutex
	warnings []string
}

func newWarned(t *testing.T) *warned {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", server.kubeconfig)
	require.NoError(t, err)
	w := &warned{}
	cfg.QPS, cfg.WarningHandler = -1, w
	w.client, err = client.New(cfg, client.Options{})
	require.NoError(t, err)
	return w
}

var _ rest.WarningHandler = &warned{}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warned) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

func (w *warned) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.warnings, "\n")
	w.warnings = nil
	return text
}

// run asks for what passes and for what fails. The caches of the bridge follow
// the world with a delay, so that each is asked until the answer is right.
func (w *warned) run(t *testing.T, k admissioncases.WebhookKind, c admissioncases.WebhookCase) {
	says := strings.ReplaceAll(c.Says, " infra/", " "+hooked+"/")
	from := w.from(t, k, c)
	if !c.PassGiven && c.Pass != nil {
		require.NoError(t, eventually(func() error { return w.ask(t, k, c, from, c.Pass) }), "passes")
	}
	for name, changes := range c.Given {
		give(t, name, *changes)
	}
	if c.PassGiven {
		require.NoError(t, eventually(func() error { return w.ask(t, k, c, from, c.Pass) }), "passes")
	}
	require.NoError(t, eventually(func() error {
		w.take()
		err := w.ask(t, k, c, from, c.Fail)
		if c.Warns != "" {
			if text := w.take(); err != nil || !strings.Contains(text, c.Warns) {
				return fmt.Errorf("want the warning %q, got %q and %w", c.Warns, text, err)
			}
			return nil
		}
		return refusedFor(err, c.Path, says)
	}))
}

// from creates what an update changes.
func (w *warned) from(t *testing.T, k admissioncases.WebhookKind, c admissioncases.WebhookCase) *unstructured.Unstructured {
	t.Helper()
	if c.From == nil {
		return nil
	}
	o, err := k.With(*c.From)
	require.NoError(t, err)
	u := inHooked(o)
	err = w.client.Create(t.Context(), u)
	if apierrors.IsAlreadyExists(err) { // an object of the world
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
		return u
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background()
		_ = server.client.Delete(ctx, u)
		_ = server.client.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	return u
}

// ask asks whether the kind's object with changes may be written.
func (w *warned) ask(t *testing.T, k admissioncases.WebhookKind, c admissioncases.WebhookCase, from *unstructured.Unstructured, changes admissioncases.Changes) error {
	o, err := k.With(changes)
	require.NoError(t, err)
	u := inHooked(o)
	switch {
	case c.Delete:
		return w.client.Delete(t.Context(), u, client.DryRunAll)
	case from == nil:
		return w.client.Create(t.Context(), u, client.DryRunAll, strictly)
	}
	current := from.DeepCopy()
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(from), current); err != nil {
		return err
	}
	u.SetResourceVersion(current.GetResourceVersion())
	return w.client.Update(t.Context(), u, client.DryRunAll, strictly)
}

// give changes an object of the world for one case.
func give(t *testing.T, name string, changes admissioncases.Changes) {
	t.Helper()
	kind, object, _ := strings.Cut(name, "/")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "cloud.pingcap.com", Version: "v1", Kind: kind})
	u.SetNamespace(hooked)
	u.SetName(object)
	require.NoError(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	before := u.DeepCopy()
	for path, value := range changes {
		names := strings.Split(path, ".")
		change := map[string]any{names[len(names)-1]: value}
		for i := len(names) - 2; i >= 0; i-- {
			change = map[string]any{names[i]: change}
		}
		if names[0] == "status" {
			patch(t, u, change, server.client.Status().Patch)
		} else {
			patch(t, u, change, server.client.Patch)
		}
	}
	t.Cleanup(func() {
		// The bridge writes, too.
		require.NoError(t, eventually(func() error { return restore(context.Background(), before) }))
	})
}

// restore gives an object the spec and status that it had.
func restore(ctx context.Context, before *unstructured.Unstructured) error {
	now := before.DeepCopy()
	if err := server.client.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
		return err
	}
	now.Object["spec"] = before.Object["spec"]
	if err := server.client.Update(ctx, now); err != nil {
		return err
	}
	now.Object["status"] = before.Object["status"]
	return server.client.Status().Update(ctx, now)
}

// refusedFor wants a field and words among the causes of a refusal.
func refusedFor(err error, path, says string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details == nil {
		return fmt.Errorf("want a refusal of %s (%s), got %w", path, says, err)
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == path && strings.Contains(cause.Message, says) {
			return nil
		}
	}
	return fmt.Errorf("want a refusal of %s (%s), got %w", path, says, err)
}

// eventually repeats what depends on a cache for up to 20 s, and returns the
// last error.
func eventually(try func() error) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
