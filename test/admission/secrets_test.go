package admission

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// TestSecrets tries the policies about Secrets, and the worker's rights, on an
// API server: the worker may write the finalizer that holds credentials and
// nothing else, and whoever deletes a Secret that is held is told.
func TestSecrets(t *testing.T) {
	for _, file := range []string{"rbac-worker.yaml", "secrets.yaml"} {
		install := manifestsOf(t, file)
		for _, o := range install {
			require.NoError(t, server.client.Create(t.Context(), o), "%s %s", o.GetKind(), o.GetName())
		}
		t.Cleanup(func() {
			for _, o := range install {
				_ = server.client.Delete(t.Context(), o)
			}
		})
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", server.kubeconfig)
	require.NoError(t, err)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:infra:infra-worker",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:infra", "system:authenticated"}}
	worker, err := client.New(cfg, client.Options{})
	require.NoError(t, err)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "held"}, Data: map[string][]byte{"k": []byte("v")}}
	require.NoError(t, server.client.Create(t.Context(), secret))
	patch := func(c client.Client, patch string) error {
		return c.Patch(t.Context(), secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	// A policy takes effect a moment after its creation.
	tries := 0
	require.Eventually(t, func() bool {
		tries++
		return apierrors.IsInvalid(patch(worker, fmt.Sprintf(`{"metadata":{"labels":{"a":"%d"}}}`, tries)))
	}, 30*time.Second, 100*time.Millisecond)
	for _, forbidden := range []string{
		`{"data":{"k":"eA=="}}`, `{"data":null}`, `{"immutable":true}`, `{"metadata":{"annotations":{"a":"b"}}}`,
		`{"metadata":{"finalizers":["other.example/x"]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}}`,
	} {
		err := patch(worker, forbidden)
		require.True(t, apierrors.IsInvalid(err), "%s: %v", forbidden, err)
		require.ErrorContains(t, err, "may change nothing of a Secret but the finalizer")
	}
	require.NoError(t, patch(server.client, `{"metadata":{"labels":{"mine":"yes"},"finalizers":["other.example/x"]}}`), "others may")
	require.NoError(t, patch(worker, `{"metadata":{"finalizers":["other.example/x","`+v1.FinalizerCredentials+`"]}}`))
	require.Error(t, worker.Delete(t.Context(), secret.DeepCopy()), "nor delete it")

	w := newWarned(t)
	require.NoError(t, w.client.Delete(t.Context(), secret.DeepCopy()))
	require.Contains(t, w.take(), "a Provider refers to Secret held: it stays, and works, until the Provider is gone")
	require.NoError(t, patch(worker, `{"metadata":{"finalizers":["other.example/x"]}}`))
	require.NoError(t, w.client.Delete(t.Context(), secret.DeepCopy()))
	require.Empty(t, w.take(), "one that is not held")
	require.NoError(t, patch(server.client, `{"metadata":{"finalizers":null}}`))
}

// manifestsOf reads a file of deploy/kustomize.
func manifestsOf(t *testing.T, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(stack.Root(), "deploy", "kustomize", file))
	require.NoError(t, err)
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(doc, &u.Object))
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
}
