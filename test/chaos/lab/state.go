package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// State describes a settled object and all that it has, without what differs
// from one object to the next: what every run must end in.
func State(o v1.Object, all []stack.Resource) (string, error) {
	c := o.Common()
	lines := []string{"phase " + string(c.Phase)}
	for _, x := range c.Conditions {
		lines = append(lines, fmt.Sprintf("condition %s=%s", x.Type, x.Status))
	}
	for _, r := range c.Resources {
		lines = append(lines, fmt.Sprintf("ledger %s: %s %s", r.Key, r.Type, r.State))
	}
	if c.LastError != nil {
		lines = append(lines, "last error "+c.LastError.Code)
	}
	raw, err := unstructuredStatus(o)
	if err != nil {
		return "", err
	}
	for field, value := range raw {
		if _, isMap := value.(map[string]any); isMap && !slices.Contains(passing, field) {
			lines = append(lines, "status."+field+": "+strings.Join(fields(value.(map[string]any)), ","))
		}
	}
	for _, r := range all {
		if r.Owner == o.GetAnnotations()[v1.AnnotationID] && !invariants.IsPending(r) {
			lines = append(lines, strings.TrimRight("aws "+r.Type+" "+r.State, " "))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// passing are fields of status that tell of an operation, or of other objects.
var passing = []string{"operation", "clusters", "leases"}

// fields lists the names of a map's members that are not empty.
func fields(m map[string]any) (out []string) {
	for k, v := range m {
		if v != nil && v != "" && v != int64(0) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// Twice lists what of an owner exists more than once in AWS.
func Twice(all []stack.Resource, owner string) (out []string) {
	count := map[string]int{}
	for _, r := range all {
		if r.Owner == owner && !invariants.IsPending(r) {
			count[r.Type]++
		}
	}
	for kind, n := range count {
		if n > 1 {
			out = append(out, fmt.Sprintf("%s exists %d times", kind, n))
		}
	}
	slices.Sort(out)
	return out
}

// Left lists what is left of an object that is gone: in AWS, in the garden, in
// the shoot.
func (l *Lane) Left(ctx context.Context, gone v1.Object) (left []string, err error) {
	all, err := l.Checker.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	id := gone.GetAnnotations()[v1.AnnotationID]
	technical := ""
	if n, ok := gone.(*v1.Network); ok && n.Status.Shoot != nil {
		technical = n.Status.Shoot.TechnicalID
	}
	for _, r := range all {
		if (r.Owner == id || (technical != "" && r.Cluster == technical)) && !invariants.IsPending(r) {
			left = append(left, r.Type+" "+r.ID)
		}
	}
	switch o := gone.(type) {
	case *v1.Network:
		more, err := l.leftInGarden(ctx, o)
		return append(left, more...), err
	case *v1.Cluster:
		more, err := l.leftInShoots(ctx, id)
		return append(left, more...), err
	}
	return left, nil
}

// leftInGarden lists the Network's Shoot, and the bindings of its Provider when
// no other Network uses them.
func (l *Lane) leftInGarden(ctx context.Context, n *v1.Network) (left []string, err error) {
	others := false
	for _, kind := range [][2]string{{"core.gardener.cloud/v1beta1", "Shoot"}, {"security.gardener.cloud/v1alpha1", "CredentialsBinding"}, {"v1", "Secret"}} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind[0])
		list.SetKind(kind[1] + "List")
		if err := l.Stack.Kube.List(ctx, list, client.InNamespace("garden-core")); err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			mine := o.GetAnnotations()[v1.TagID] == n.Annotations[v1.AnnotationID]
			ours := o.GetAnnotations()[v1.TagName] != "" && strings.HasPrefix(o.GetAnnotations()[v1.TagName], n.Namespace+"/")
			binds := o.GetAnnotations()["infra.cloud.pingcap.com/provider"] == n.Namespace+"/"+string(n.Spec.Provider)
			switch {
			case kind[1] == "Shoot" && mine, kind[1] != "Shoot" && binds && !others:
				left = append(left, kind[1]+" "+o.GetName())
			case kind[1] == "Shoot" && ours:
				others = true
			}
		}
	}
	return left, nil
}

// leftInShoots lists what a Cluster has left in the shoots that the lane's
// worker has opened. A shoot that is gone has nothing.
func (l *Lane) leftInShoots(ctx context.Context, id string) (left []string, err error) {
	id8 := id[:min(8, len(id))]
	for _, config := range l.Gate.ShootConfigs() {
		c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
		if err != nil {
			continue // no API server answers there any more
		}
		var spaces corev1.NamespaceList
		var volumes corev1.PersistentVolumeList
		var classes storagev1.StorageClassList
		if err := errors.Join(c.List(ctx, &spaces), c.List(ctx, &volumes), c.List(ctx, &classes)); err != nil {
			continue
		}
		for _, o := range spaces.Items {
			if strings.Contains(o.Name, id8) {
				left = append(left, "namespace "+o.Name)
			}
		}
		for _, o := range volumes.Items {
			if o.Spec.ClaimRef != nil && strings.Contains(o.Spec.ClaimRef.Namespace, id8) {
				left = append(left, "volume "+o.Name)
			}
		}
		for _, o := range classes.Items {
			if strings.Contains(o.Name, id8) {
				left = append(left, "storage class "+o.Name)
			}
		}
	}
	return left, nil
}

// unstructuredStatus is an object's status as a map.
func unstructuredStatus(o v1.Object) (map[string]any, error) {
	raw, err := toMap(o)
	if err != nil {
		return nil, err
	}
	status, _, err := unstructured.NestedMap(raw, "status")
	return status, err
}
