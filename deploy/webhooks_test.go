package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/bridge/webhooks"
	"github.com/tidbcloud/infra-orchestrator/internal/manifests"
)

const webhooksFile = "kustomize/webhooks.yaml"

// webhooksManifest is what the bridge itself says of its webhooks, as a file.
func webhooksManifest(t *testing.T) []byte {
	t.Helper()
	target := webhooks.Target{Namespace: "infra"}
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: webhooks.ServiceName, Namespace: "infra"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app.kubernetes.io/name": "infra-bridge"},
			Ports:    []corev1.ServicePort{{Name: "webhooks", Port: 443, TargetPort: intstr.FromString("webhooks")}},
		},
	}
	out := bytes.NewBufferString("# Written by the tests of this folder (UPDATE_GOLDEN=1) from bridge/webhooks;\n# docs/architecture.md, Admission, explains failurePolicy and timeoutSeconds.\n")
	for i, o := range []any{service, webhooks.Mutating(target), webhooks.Validating(target)} {
		if i > 0 {
			out.WriteString("---\n")
		}
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		var plain map[string]any
		require.NoError(t, json.Unmarshal(raw, &plain))
		delete(plain, "status")
		raw, err = yaml.Marshal(plain)
		require.NoError(t, err)
		out.Write(raw)
	}
	return out.Bytes()
}

func TestWebhooksAreThoseOfTheBridge(t *testing.T) {
	want := webhooksManifest(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(webhooksFile, want, 0o644))
	}
	got, err := os.ReadFile(webhooksFile)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run with UPDATE_GOLDEN=1 if the change is meant")
}

// The way of a review: configuration, Service, port of the Pod, flag.
func TestWebhooksAreReached(t *testing.T) {
	service, bridge := load[*corev1.Service](t)[webhooks.ServiceName], load[*appsv1.Deployment](t)["infra-bridge"]
	requireSelects(t, metav1.SetAsLabelSelector(service.Spec.Selector), bridge.Spec.Template.Labels)
	container := bridge.Spec.Template.Spec.Containers[0]
	at := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == service.Spec.Ports[0].TargetPort.StrVal })
	require.EqualValues(t, 9443, container.Ports[at].ContainerPort)
	require.Contains(t, container.Args, "--webhook-bind-address=:9443")
	for _, hook := range load[*admissionregistrationv1.ValidatingWebhookConfiguration](t)[webhooks.ConfigurationName].Webhooks {
		require.Equal(t, service.Name, hook.ClientConfig.Service.Name)
		require.Equal(t, service.Namespace, hook.ClientConfig.Service.Namespace)
		require.Equal(t, service.Spec.Ports[0].Port, *hook.ClientConfig.Service.Port)
		require.Empty(t, hook.ClientConfig.CABundle, "a component brings it")
	}
}

// documents reads a file of kinds that are not Kubernetes' own.
func documents(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []map[string]any
	for _, document := range strings.Split(string(data), "\n---\n") {
		var o map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &o))
		out = append(out, o)
	}
	return out
}

// With cert-manager: what the Secret is called, who it is for, and that the
// bridge reads it from where it is mounted. The patch repeats the arguments of
// the Deployment, as a list is replaced whole.
func TestCertManager(t *testing.T) {
	var certificate map[string]any
	for _, o := range documents(t, "kustomize/cert-manager/certificate.yaml") {
		if meta, _ := o["metadata"].(map[string]any); o["kind"] == "Certificate" && meta["name"] == "infra-bridge-webhooks" {
			certificate, _ = o["spec"].(map[string]any)
		}
	}
	require.Contains(t, certificate["dnsNames"], webhooks.ServiceName+".infra.svc")
	data, err := os.ReadFile("kustomize/cert-manager/bridge.yaml")
	require.NoError(t, err)
	patch := &appsv1.Deployment{}
	require.NoError(t, yaml.UnmarshalStrict(data, patch))
	spec := patch.Spec.Template.Spec
	require.Equal(t, certificate["secretName"], spec.Volumes[0].Secret.SecretName)
	container := spec.Containers[0]
	require.Equal(t, spec.Volumes[0].Name, container.VolumeMounts[0].Name)
	base := load[*appsv1.Deployment](t)[patch.Name].Spec.Template.Spec.Containers[0]
	require.Equal(t, base.Name, container.Name)
	require.Equal(t, append(slices.Clone(base.Args), "--webhook-cert-dir="+container.VolumeMounts[0].MountPath), container.Args)
}

// Without cert-manager: what the bridge may do beyond the base, by name only.
func TestSelfSigned(t *testing.T) {
	objs, err := manifests.Load("kustomize/self-signed")
	require.NoError(t, err)
	for _, o := range objs {
		switch o := o.(type) {
		case *rbacv1.Role:
			requireNamed(t, o.Rules, webhooks.SecretName)
		case *rbacv1.ClusterRole:
			requireNamed(t, o.Rules, webhooks.ConfigurationName)
		case *rbacv1.RoleBinding:
			require.Equal(t, "infra-bridge", o.Subjects[0].Name)
		case *rbacv1.ClusterRoleBinding:
			require.Equal(t, "infra-bridge", o.Subjects[0].Name)
		}
	}
}

func requireNamed(t *testing.T, rules []rbacv1.PolicyRule, name string) {
	t.Helper()
	for _, r := range rules {
		if !slices.Equal(r.Verbs, []string{"create"}) {
			require.Equal(t, []string{name}, r.ResourceNames)
			require.Equal(t, []string{"get", "update"}, r.Verbs)
		}
	}
}

// Every file of a component is used, and the base uses one of the two.
func TestComponents(t *testing.T) {
	kustomization := func(folder string) (k struct {
		Resources, Components []string
		Patches               []struct{ Path string }
	}) {
		data, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(data, &k))
		return k
	}
	require.Equal(t, []string{"cert-manager"}, kustomization("kustomize").Components)
	for _, folder := range []string{"kustomize/cert-manager", "kustomize/self-signed"} {
		k := kustomization(folder)
		used := slices.Clone(k.Resources)
		for _, p := range k.Patches {
			if p.Path != "" {
				used = append(used, p.Path)
			}
		}
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		var files []string
		for _, e := range entries {
			if e.Name() != "kustomization.yaml" {
				files = append(files, e.Name())
			}
		}
		require.ElementsMatch(t, files, used, folder)
	}
}
