package deploy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/internal/manifests"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
)

func load[T client.Object](t *testing.T) map[string]T {
	t.Helper()
	objs, err := manifests.Load("kustomize")
	require.NoError(t, err)
	found := map[string]T{}
	for _, o := range objs {
		if typed, ok := o.(T); ok {
			found[typed.GetName()] = typed
		}
	}
	require.NotEmpty(t, found)
	return found
}

// What manifests refer to exists, and what they select is what they mean.
func TestReferences(t *testing.T) {
	accounts, configs, roles := load[*corev1.ServiceAccount](t), load[*corev1.ConfigMap](t), load[*rbacv1.Role](t)
	deployments := load[*appsv1.Deployment](t)
	require.Len(t, deployments, 3)
	for name, d := range deployments {
		require.EqualValues(t, 2, *d.Spec.Replicas)
		pod := d.Spec.Template
		requireSelects(t, d.Spec.Selector, pod.Labels)
		require.Contains(t, accounts, pod.Spec.ServiceAccountName)
		require.NotEqual(t, "default", pod.Spec.ServiceAccountName)
		for _, v := range pod.Spec.Volumes {
			if v.ConfigMap != nil {
				require.Contains(t, configs, v.ConfigMap.Name)
			}
		}
		requireRestricted(t, pod.Spec)
		for _, c := range pod.Spec.Containers {
			for _, e := range c.EnvFrom {
				require.Contains(t, configs, e.ConfigMapRef.Name)
			}
			require.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path)
			require.Equal(t, readiness(name), c.ReadinessProbe.HTTPGet.Path)
			require.GreaterOrEqual(t, c.ReadinessProbe.TimeoutSeconds, int32(4), "longer than the process asks Temporal")
		}
		require.Contains(t, load[*policyv1.PodDisruptionBudget](t), name)
	}
	for name, b := range load[*policyv1.PodDisruptionBudget](t) {
		requireSelects(t, b.Spec.Selector, deployments[name].Spec.Template.Labels)
	}
	for _, b := range load[*rbacv1.RoleBinding](t) {
		require.Contains(t, roles, b.RoleRef.Name)
		for _, s := range b.Subjects {
			require.Contains(t, accounts, s.Name)
		}
	}
}

// readiness is the path of the probe. The bridge's webhooks do not need
// Temporal: a Service must not lose them while that is away.
func readiness(deployment string) string {
	if deployment == "infra-bridge" {
		return "/readyz/webhooks"
	}
	return "/readyz"
}

func requireSelects(t *testing.T, s *metav1.LabelSelector, l map[string]string) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	require.NoError(t, err)
	require.True(t, selector.Matches(labels.Set(l)))
}

// requireRestricted checks what the namespace's Pod Security level enforces,
// and a read-only root file system.
func requireRestricted(t *testing.T, p corev1.PodSpec) {
	t.Helper()
	require.True(t, *p.SecurityContext.RunAsNonRoot)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, p.SecurityContext.SeccompProfile.Type)
	for _, c := range p.Containers {
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	}
}

// Rights in all namespaces are those of the Balancers, and no others: what they
// read, what they scale, and the bridge's look at Balancers.
func TestClusterWideRights(t *testing.T) {
	roles, accounts := load[*rbacv1.ClusterRole](t), load[*corev1.ServiceAccount](t)
	may := map[string][]string{ // resources and verbs, by role
		"infra-balancer": nil, // aggregated
		"infra-balancer-base": {"balancers get list watch patch", "balancers/status get update", "pods get list watch",
			"horizontalpodautoscalers list", "events create patch"},
		"infra-balancer-apps": {
			"deployments statefulsets replicasets get list watch",
			"deployments/scale statefulsets/scale replicasets/scale get update",
		},
		"infra-bridge-balancers": {"balancers get list watch"},
	}
	aggregated := roles["infra-balancer"].AggregationRule.ClusterRoleSelectors[0]
	for name, role := range roles {
		require.Contains(t, may, name)
		var has []string
		for _, r := range role.Rules {
			has = append(has, strings.Join(append(slices.Clone(r.Resources), r.Verbs...), " "))
		}
		require.ElementsMatch(t, may[name], has, name)
		if strings.HasPrefix(name, "infra-balancer-") {
			requireSelects(t, &aggregated, role.Labels)
		}
	}
	require.Len(t, roles, len(may))
	for _, b := range load[*rbacv1.ClusterRoleBinding](t) {
		require.Contains(t, roles, b.RoleRef.Name)
		for _, s := range b.Subjects {
			require.Contains(t, accounts, s.Name)
			require.NotEqual(t, "infra-worker", s.Name)
		}
	}
}

// Least privilege: no wildcards, the bridge sees no Secret, and the worker
// writes of Secrets what the policy for its account lets through.
func TestPrivileges(t *testing.T) {
	for name, role := range load[*rbacv1.Role](t) {
		for _, rule := range role.Rules {
			for _, words := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
				require.NotContains(t, words, "*")
			}
			require.NotContains(t, rule.Verbs, "delete")
			if name == "infra-bridge" {
				require.NotContains(t, rule.Resources, "secrets")
			}
			if slices.Contains(rule.Resources, "secrets") {
				require.Equal(t, []string{"get", "list", "watch", "patch"}, rule.Verbs, name)
			}
		}
	}
	policy := load[*admissionregistrationv1.ValidatingAdmissionPolicy](t)["infra-worker-secrets"]
	require.Contains(t, policy.Spec.MatchConditions[0].Expression, "'system:serviceaccount:infra:infra-worker'")
	require.Contains(t, policy.Spec.Validations[0].Expression, "'"+v1.FinalizerCredentials+"'")
	for name, b := range load[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t) {
		require.Contains(t, load[*admissionregistrationv1.ValidatingAdmissionPolicy](t), b.Spec.PolicyName, name)
	}
}

func TestKustomizationListsEveryManifest(t *testing.T) {
	data, err := os.ReadFile("kustomize/kustomization.yaml")
	require.NoError(t, err)
	var k struct {
		Resources []string `json:"resources"`
	}
	require.NoError(t, yaml.Unmarshal(data, &k))
	entries, err := os.ReadDir("kustomize")
	require.NoError(t, err)
	var files []string
	for _, e := range entries {
		if e.Name() != "kustomization.yaml" && !e.IsDir() {
			files = append(files, e.Name())
		}
	}
	require.ElementsMatch(t, files, k.Resources)
}

func TestConfigFileIsValid(t *testing.T) {
	path := t.TempDir() + "/config.yaml"
	require.NoError(t, os.WriteFile(path, []byte(load[*corev1.ConfigMap](t)["infra-config"].Data["config.yaml"]), 0o600))
	cfg, err := runtime.LoadConfig(path, func(string) string { return "" })
	require.NoError(t, err)
	require.NotEmpty(t, cfg.ConfigService.URL)
	require.Equal(t, "/etc/garden/kubeconfig", cfg.Gardener.KubeconfigPath)
}

func TestTemporalSetupKnowsEverySearchAttribute(t *testing.T) {
	script, err := os.ReadFile("temporal/setup.sh")
	require.NoError(t, err)
	names := regexp.MustCompile(`\bInfra[A-Z]\w+`).FindAllString(string(script), -1)
	require.ElementsMatch(t, temporal.SearchAttributes(), names)
}
