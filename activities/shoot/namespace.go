package shoot

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/reads"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// EnsureStorageClasses makes the cluster's classes with its KMS key.
func (a *Activities) EnsureStorageClasses(ctx context.Context, in contract.DatabaseInput) (contract.Outcome, error) {
	classes, err := builders.StorageClasses(in.Plan, in.KeyID)
	if err != nil || len(classes) == 0 {
		return contract.Outcome{}, err
	}
	c, err := a.open(ctx, in.Plan.Shoot)
	if err != nil {
		return contract.Outcome{}, err
	}
	for _, u := range classes {
		if err := c.ensure(ctx, u); err != nil {
			return contract.Outcome{}, err
		}
	}
	return present("StorageClass", "", classes[0].GetName()), nil
}

// DeleteStorageClasses removes all classes that carry the cluster's identity.
func (a *Activities) DeleteStorageClasses(ctx context.Context, in contract.DatabaseInput) (contract.None, error) {
	c, err := a.openToDelete(ctx, in.Plan.Shoot)
	if err != nil || c == nil {
		return contract.None{}, err
	}
	var classes storagev1.StorageClassList
	if err := c.list(ctx, &classes, client.MatchingLabels{v1.TagID: in.Plan.Ref.ID}); err != nil {
		return contract.None{}, err
	}
	for i := range classes.Items {
		if err := c.remove(ctx, &classes.Items[i]); err != nil {
			return contract.None{}, err
		}
	}
	return contract.None{}, nil
}

// EnsureClusterNamespace makes the namespace with its quota, service accounts
// and root password.
func (a *Activities) EnsureClusterNamespace(ctx context.Context, in contract.DatabaseInput) (contract.Outcome, error) {
	objects, err := namespaceObjects(in)
	if err != nil {
		return contract.Outcome{}, err
	}
	if in.Plan.RootPasswordSecret != "" {
		password, err := a.rootPassword(ctx, in.Plan)
		if err != nil {
			return contract.Outcome{}, err
		}
		secret, err := builders.RootPasswordSecret(in.Plan, password)
		if err != nil {
			return contract.Outcome{}, err
		}
		objects = append(objects, secret)
	}
	c, err := a.open(ctx, in.Plan.Shoot)
	if err != nil {
		return contract.Outcome{}, err
	}
	for _, u := range objects {
		if err := c.ensure(ctx, u); err != nil {
			return contract.Outcome{}, err
		}
	}
	return present("Namespace", "", in.Plan.Namespace), nil
}

func namespaceObjects(in contract.DatabaseInput) ([]*unstructured.Unstructured, error) {
	ns, err := builders.Namespace(in.Plan)
	if err != nil {
		return nil, err
	}
	quota, err := builders.ResourceQuota(in.Plan)
	if err != nil {
		return nil, err
	}
	accounts, err := builders.ServiceAccounts(in.Plan, in.IdentityID)
	if err != nil {
		return nil, err
	}
	return append([]*unstructured.Unstructured{ns, quota}, accounts...), nil
}

// rootPassword reads the password that the Cluster's author gave: under the
// key password, or root. It stays in this process and the two Secrets.
func (a *Activities) rootPassword(ctx context.Context, plan contract.ClusterPlan) ([]byte, error) {
	name := plan.Ref.Namespace + "/" + plan.RootPasswordSecret
	secret := &corev1.Secret{}
	err := a.Management.Get(ctx, types.NamespacedName{Namespace: plan.Ref.Namespace, Name: plan.RootPasswordSecret}, secret)
	if apierrors.IsNotFound(err) {
		reads.Used(ctx, "Secret/"+plan.RootPasswordSecret, "")
		return nil, faults.New(faults.Dependency, "SecretNotFound", "secret "+name, "it does not exist, but %s takes its root password from it", plan.Ref).
			WithHint(faults.OwnerUser, "create the Secret with the key password; the operation goes on by itself")
	}
	if err != nil {
		return nil, faults.FromKubernetes(err, "secret "+name)
	}
	reads.Used(ctx, "Secret/"+secret.Name, string(secret.UID)+"/"+secret.ResourceVersion)
	password := secret.Data["password"]
	if len(password) == 0 {
		password = secret.Data[builders.KeyRoot]
	}
	if len(password) < 8 || len(password) > 64 {
		return nil, faults.New(faults.Invalid, "BadPassword", "secret "+name, "a root password of 8 to 64 bytes is needed under the key password; found %d bytes", len(password)).
			WithHint(faults.OwnerUser, "correct the Secret, then retry")
	}
	return password, nil
}

// DeleteClusterNamespace deletes it and waits until it is gone. Its content
// must have been removed in order before.
func (a *Activities) DeleteClusterNamespace(ctx context.Context, in contract.DatabaseInput) (contract.None, error) {
	c, err := a.openToDelete(ctx, in.Plan.Shoot)
	if err != nil || c == nil {
		return contract.None{}, err
	}
	woken, stop := c.events(ctx, &corev1.NamespaceList{}, client.MatchingFields{"metadata.name": in.Plan.Namespace})
	defer stop()
	return contract.None{}, wait.For(ctx, in.Plan.Ref, a.poll(), woken, func(ctx context.Context) (bool, string, error) {
		ns := &corev1.Namespace{}
		exists, err := c.find(ctx, ns, "", in.Plan.Namespace)
		if err != nil || !exists || ns.Annotations[v1.TagID] != in.Plan.Ref.ID {
			return err == nil, "", err
		}
		return false, remaining(ns), c.remove(ctx, ns)
	})
}

// remaining is what the namespace controller says that it waits for.
func remaining(ns *corev1.Namespace) string {
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			return "namespace " + ns.Name + ": " + c.Message
		}
	}
	return "namespace " + ns.Name + ": waiting until it is gone"
}
