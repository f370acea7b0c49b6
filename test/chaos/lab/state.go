package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// Look is what there is besides the objects at one moment.
type Look struct {
	Cloud []stack.Resource
	// Pools of all Shoots. Each Shoot has some.
	Pools []invariants.Pool
}

// Look looks around; while a system is away, until it is back.
func (l *Lane) Look(ctx context.Context) (look Look, err error) {
	for {
		if look, err = l.look(ctx); err == nil {
			return look, nil
		}
		select {
		case <-ctx.Done():
			return look, errors.Join(err, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

func (l *Lane) look(ctx context.Context) (look Look, err error) {
	if look.Cloud, err = l.Checker.Inventory(ctx); err != nil {
		return look, err
	}
	shoots := &unstructured.UnstructuredList{}
	shoots.SetAPIVersion("core.gardener.cloud/v1beta1")
	shoots.SetKind("ShootList")
	err = l.Stack.Kube.List(ctx, shoots)
	for _, s := range shoots.Items {
		look.Pools = append(look.Pools, invariants.PoolsOf(&s)...)
	}
	return look, err
}

// State describes a settled object and all that it has in AWS, in the Shoot and
// inside it, without what differs from one object to the next: what every run
// must end in.
func (l *Lane) State(ctx context.Context, o v1.Object, look Look) (string, error) {
	inside, err := l.inShoot(ctx, o, look)
	if err != nil {
		return "", err
	}
	lines, err := described(o, look)
	lines = append(lines, inside...)
	slices.Sort(lines)
	return strings.Join(lines, "\n"), err
}

func described(o v1.Object, look Look) ([]string, error) {
	c := o.Common()
	lines := []string{"phase " + string(c.Phase)}
	for _, x := range c.Conditions {
		if x.Type != v1.ConditionInUse { // which tells of other objects
			lines = append(lines, fmt.Sprintf("condition %s=%s", x.Type, x.Status))
		}
	}
	for _, r := range c.Resources {
		lines = append(lines, fmt.Sprintf("ledger %s: %s %s", r.Key, r.Type, r.State))
	}
	if c.LastError != nil {
		lines = append(lines, "last error "+c.LastError.Code)
	}
	raw, err := unstructuredStatus(o)
	if err != nil {
		return nil, err
	}
	for field, value := range raw {
		if _, isMap := value.(map[string]any); isMap && !slices.Contains(passing, field) {
			lines = append(lines, "status."+field+": "+strings.Join(fields(value.(map[string]any)), ","))
		}
	}
	for _, r := range look.Cloud {
		if r.Owner == o.GetAnnotations()[v1.AnnotationID] && !invariants.IsPending(r) {
			lines = append(lines, strings.TrimRight("aws "+r.Type+" "+r.State, " "))
		}
	}
	return append(lines, pools(o, look.Pools)...), nil
}

// pools are an object's worker pools, without their names: those that the
// Shoot has, and those that status tells of.
func pools(o v1.Object, all []invariants.Pool) (lines []string) {
	shoot, owner := "", ""
	switch o := o.(type) {
	case *v1.Network: // those that belong to no Cluster
		if o.Status.Shoot != nil {
			shoot = o.Status.Shoot.Namespace + "/" + o.Status.Shoot.Name
		}
	case *v1.Cluster:
		owner = o.Annotations[v1.AnnotationID]
		for _, p := range o.Status.Pools {
			lines = append(lines, fmt.Sprintf("pool told: %s in %s, %d %s, retiring %t", p.Component, p.Zone, p.Nodes, p.MachineType, p.Retiring))
		}
	default:
		return nil
	}
	for _, p := range all {
		if p.Owner == owner && (owner != "" || p.Shoot == shoot) {
			lines = append(lines, fmt.Sprintf("pool in the Shoot: %s in %s, %d to %d %s, retiring %t", p.Component, p.Zones, p.Minimum, p.Maximum, p.MachineType, p.Retiring))
		}
	}
	return lines
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

// Twice lists what of an owner exists more than once in AWS, and where it has
// more than one worker pool.
func Twice(look Look, owner string) (out []string) {
	count := map[string]int{}
	for _, r := range look.Cloud {
		if r.Owner == owner && !invariants.IsPending(r) {
			count[invariants.Once(r)]++
		}
	}
	for kind, n := range count {
		if n > 1 {
			out = append(out, fmt.Sprintf("%s exists %d times", kind, n))
		}
	}
	slices.Sort(out)
	return append(out, invariants.PoolsTwice(slices.DeleteFunc(slices.Clone(look.Pools), func(p invariants.Pool) bool { return p.Owner != owner }))...)
}

// Left lists what is left of an object that is gone: in AWS, in the garden, in
// the Shoot and inside it.
func (l *Lane) Left(ctx context.Context, gone v1.Object) (left []string, err error) {
	look, err := l.Look(ctx)
	if err != nil {
		return nil, err
	}
	id := gone.GetAnnotations()[v1.AnnotationID]
	technical := ""
	if n, ok := gone.(*v1.Network); ok && n.Status.Shoot != nil {
		technical = n.Status.Shoot.TechnicalID
	}
	for _, r := range look.Cloud {
		if (r.Owner == id || (technical != "" && r.Cluster == technical)) && !invariants.IsPending(r) {
			left = append(left, r.Type+" "+r.ID)
		}
	}
	switch o := gone.(type) {
	case *v1.Network:
		more, err := l.leftInGarden(ctx, o)
		return append(left, more...), err
	case *v1.Cluster:
		for _, p := range look.Pools {
			if p.Owner == id {
				left = append(left, "worker pool "+p.Shoot+" "+p.Name)
			}
		}
		more, err := l.leftInShoot(ctx, o, look)
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

// unstructuredStatus is an object's status as a map.
func unstructuredStatus(o v1.Object) (map[string]any, error) {
	raw, err := toMap(o)
	if err != nil {
		return nil, err
	}
	status, _, err := unstructured.NestedMap(raw, "status")
	return status, err
}
