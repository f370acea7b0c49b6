package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The product runs with the rights that it ships with: a role that lacks
// something is found here and not in production.

// accounts are the service accounts of the processes, as the manifests have
// them.
var accounts = map[string]string{
	processBridge: "infra-bridge", processWorker: "infra-worker", processBalancer: "infra-balancer",
}

// rightsKinds are what the manifests say of rights; all else is about Pods.
var rightsKinds = []string{
	"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

// applyRights applies the shipped roles and bindings.
func (s *Stack) applyRights(ctx context.Context) error {
	shipped, err := s.shipped()
	if err != nil {
		return err
	}
	// The namespace first; all else may come in any order.
	slices.SortStableFunc(shipped, func(a, b *unstructured.Unstructured) int {
		return slices.Index(rightsKinds, a.GetKind()) - slices.Index(rightsKinds, b.GetKind())
	})
	for _, object := range append(shipped, webhooksByURL()...) {
		if !slices.Contains(rightsKinds, object.GetKind()) {
			continue
		}
		if err := s.applier.apply(ctx, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// shipped reads the manifests, with the self-signed certificates of webhooks.
func (s *Stack) shipped() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, folder := range []string{s.opts.Manifests, filepath.Join(s.opts.Manifests, "self-signed")} {
		objects, err := readFolder(folder, "kustomization.yaml")
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// taskQueues are those that a Deployment of the manifests serves.
func (s *Stack) taskQueues(deployment string) (string, error) {
	const flag = "--task-queues="
	shipped, err := s.shipped()
	if err != nil {
		return "", err
	}
	for _, o := range shipped {
		if o.GetKind() != "Deployment" || o.GetName() != deployment {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			c, _ := c.(map[string]any)
			args, _, _ := unstructured.NestedStringSlice(c, "args")
			for _, arg := range args {
				if strings.HasPrefix(arg, flag) {
					return arg, nil
				}
			}
		}
	}
	return "", fmt.Errorf("the manifests have no Deployment %s with %s", deployment, flag)
}

// webhooksByURL is the right to register webhooks, which the bridge does itself
// where it is no Pod behind a Service (--webhook-url).
func webhooksByURL() []*unstructured.Unstructured {
	const name = "devstack-webhooks"
	role := &rbacv1.ClusterRole{}
	role.APIVersion, role.Kind, role.Name = rbacv1.SchemeGroupVersion.String(), "ClusterRole", name
	role.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{"admissionregistration.k8s.io"},
		Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
		Verbs:     []string{"create", "get", "patch", "update"},
	}}
	binding := &rbacv1.ClusterRoleBinding{}
	binding.APIVersion, binding.Kind, binding.Name = rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding", name
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: name}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: accounts[processBridge]}}
	var all []*unstructured.Unstructured
	for _, o := range []any{role, binding} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			panic(err) // types of Kubernetes
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return all
}

// writeKubeconfig writes one with which a process acts as its service account.
func (s *Stack) writeKubeconfig(process string) (path string, err error) {
	config, err := clientcmd.LoadFromFile(s.state.Kubeconfig)
	if err != nil {
		return "", err
	}
	admin := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	if admin == nil {
		return "", errors.New(s.state.Kubeconfig + " names no user")
	}
	impersonate(admin, accounts[process])
	path = filepath.Join(s.state.DataDir, process+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// impersonate gives a user the name and the groups that the API server gives a
// token of the service account.
func impersonate(user *clientcmdapi.AuthInfo, account string) {
	user.Impersonate = "system:serviceaccount:" + Namespace + ":" + account
	user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace, "system:authenticated"}
}
