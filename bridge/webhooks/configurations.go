package webhooks

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// ConfigurationName is the name of both webhook configurations.
const ConfigurationName = "infra-orchestrator"

// ServiceName is the Service that the API server finds the webhooks behind.
const ServiceName = "infra-bridge-webhooks"

// timeoutSeconds is how long the API server waits for one answer. It takes
// milliseconds; 5 s leave room for a look-up past the cache of 2 s, and keep a
// user's request below the 10 s after which people press Ctrl-C.
const timeoutSeconds int32 = 5

// Target is where the API server finds the webhooks.
type Target struct {
	// Namespace of our objects, and of the Service unless URL is set.
	Namespace string
	// URL such as https://127.0.0.1:9443, for a bridge outside of the cluster.
	URL string
	// CABundle in PEM; empty when something else injects it.
	CABundle []byte
}

func (t Target) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	c := admissionregistrationv1.WebhookClientConfig{CABundle: t.CABundle}
	if t.URL != "" {
		url := strings.TrimSuffix(t.URL, "/") + path
		c.URL = &url
		return c
	}
	port := int32(443)
	c.Service = &admissionregistrationv1.ServiceReference{Namespace: t.Namespace, Name: ServiceName, Path: &path, Port: &port}
	return c
}

// notGoing leaves out objects that are being deleted, as long as they keep
// their identity: that a finalizer can be removed must not depend on us.
var notGoing = admissionregistrationv1.MatchCondition{
	Name: "not-being-deleted",
	Expression: "!has(object.metadata.deletionTimestamp) || oldObject == null || " +
		"object.metadata.?annotations[?'" + v1.AnnotationID + "'] != oldObject.metadata.?annotations[?'" + v1.AnnotationID + "']",
}

// Mutating is the configuration of the webhooks that fill in defaults.
func Mutating(t Target) *admissionregistrationv1.MutatingWebhookConfiguration {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	fail, none, equivalent := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent
	timeout, again := timeoutSeconds, admissionregistrationv1.IfNeededReinvocationPolicy
	for _, kind := range Kinds() {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: "mutate." + strings.ToLower(kind) + ".cloud.pingcap.com", ClientConfig: t.clientConfig(MutatePath(kind)),
			Rules:         writes(kind),
			FailurePolicy: &fail, MatchPolicy: &equivalent, SideEffects: &none, TimeoutSeconds: &timeout, ReinvocationPolicy: &again,
			NamespaceSelector: inNamespace(t.Namespace), MatchConditions: []admissionregistrationv1.MatchCondition{notGoing},
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return c
}

// Validating is the configuration of the webhooks that judge. Deletions have
// entries of their own: they are only warned of, so that they go on without an
// answer, and wait for one second only.
func Validating(t Target) *admissionregistrationv1.ValidatingWebhookConfiguration {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	fail, ignore := admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	none, equivalent := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent
	timeout, short := timeoutSeconds, int32(1)
	for _, kind := range Kinds() {
		hook := admissionregistrationv1.ValidatingWebhook{
			Name: "validate." + strings.ToLower(kind) + ".cloud.pingcap.com", ClientConfig: t.clientConfig(ValidatePath(kind)),
			Rules:         writes(kind),
			FailurePolicy: &fail, MatchPolicy: &equivalent, SideEffects: &none, TimeoutSeconds: &timeout,
			NamespaceSelector: inNamespace(t.Namespace), MatchConditions: []admissionregistrationv1.MatchCondition{notGoing},
			AdmissionReviewVersions: []string{"v1"},
		}
		c.Webhooks = append(c.Webhooks, hook)
		if !warnsOfDeletion(kind) {
			continue
		}
		hook.Name, hook.Rules = "delete."+strings.ToLower(kind)+".cloud.pingcap.com", rule(kind, admissionregistrationv1.Delete)
		hook.FailurePolicy, hook.TimeoutSeconds, hook.MatchConditions = &ignore, &short, nil
		c.Webhooks = append(c.Webhooks, hook)
	}
	return c
}

// warnsOfDeletion reports whether something can refer to a kind.
func warnsOfDeletion(kind string) bool { return len(v1.KeptBy(kind)) > 0 }

func writes(kind string) []admissionregistrationv1.RuleWithOperations {
	return rule(kind, admissionregistrationv1.Create, admissionregistrationv1.Update)
}

func rule(kind string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	scope := admissionregistrationv1.NamespacedScope
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{v1.GroupName}, APIVersions: []string{v1.GroupVersion.Version}, Resources: []string{plural(kind)}, Scope: &scope,
		},
	}}
}

// inNamespace leaves out the objects that no bridge looks at.
func inNamespace(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
}
