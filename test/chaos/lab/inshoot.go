package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// made are the kinds of what we make in a shoot for a Cluster. All of it carries
// the Cluster's identity as a label.
var made = [][2]string{
	{"v1", "Namespace"}, {"v1", "ResourceQuota"}, {"v1", "ServiceAccount"}, {"v1", "Secret"}, {"v1", "Service"}, {"storage.k8s.io/v1", "StorageClass"},
	{"pingcap.com/v1alpha1", "TidbCluster"}, {"pingcap.com/v1alpha1", "TidbInitializer"}, {"pingcap.com/v1alpha1", "BackupSchedule"},
}

// inside is the cluster of a Shoot, for a look.
type inside struct{ client.Client }

// enter goes into the shoot of a Network; nil when there is no Shoot, or no
// worker of the lane has opened it, so that nothing of ours can be in it.
func (l *Lane) enter(n *v1.Network, look Look) (*inside, error) {
	if n == nil || n.Status.Shoot == nil {
		return nil, nil
	}
	shoot := n.Status.Shoot.Namespace + "/" + n.Status.Shoot.Name
	config := l.Gate.ShootConfig(shoot)
	if config == nil || !slices.ContainsFunc(look.Pools, func(p invariants.Pool) bool { return p.Shoot == shoot }) {
		return nil, nil
	}
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	return &inside{c}, err
}

// networkOf is the Network of a Cluster.
func (l *Lane) networkOf(c *v1.Cluster) *v1.Network {
	n, _ := l.Checker.Latest(invariants.Key{Kind: v1.KindNetwork, Namespace: c.Namespace, Name: string(c.Spec.Network)}).(*v1.Network)
	return n
}

func (s *inside) list(ctx context.Context, apiVersion, kind string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	if err := s.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("%ss in the shoot: %w", kind, err)
	}
	return list.Items, nil
}

// ofCluster lists what there is of a Cluster, kind by kind: what carries its
// identity, what has it in its name, and what is in a namespace that has.
func (s *inside) ofCluster(ctx context.Context, id string) (out []unstructured.Unstructured, err error) {
	id8 := id[:min(8, len(id))]
	for _, kind := range append(made, [2]string{"apps/v1", "StatefulSet"}, [2]string{"v1", "PersistentVolumeClaim"}, [2]string{"v1", "PersistentVolume"}) {
		all, err := s.list(ctx, kind[0], kind[1])
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			claim, _, _ := unstructured.NestedString(o.Object, "spec", "claimRef", "namespace")
			operators := o.GetLabels()["app.kubernetes.io/managed-by"] == "tidb-operator" && (kind[1] == "Service" || kind[1] == "Secret")
			theirs := kind[1] == "ServiceAccount" && o.GetName() == "default"
			switch {
			case o.GetLabels()[v1.TagID] == id:
				out = append(out, o)
			case theirs, operators: // of as many as it likes; they go with the namespace
			case strings.Contains(o.GetName(), id8), strings.Contains(o.GetNamespace(), id8), strings.Contains(claim, id8):
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// counts are kinds with how many there are of each; of a Service its type
// counts, too.
func counts(all []unstructured.Unstructured) (out []string) {
	n := map[string]int{}
	for _, o := range all {
		kind := o.GetKind()
		if t, _, _ := unstructured.NestedString(o.Object, "spec", "type"); kind == "Service" {
			kind += " of type " + t
		}
		n[kind]++
	}
	for kind, many := range n {
		out = append(out, fmt.Sprintf("in the shoot: %d %s", many, kind))
	}
	return out
}

// inShoot describes what an object has in a shoot, for State.
func (l *Lane) inShoot(ctx context.Context, o v1.Object, look Look) ([]string, error) {
	switch o := o.(type) {
	case *v1.Network:
		s, err := l.enter(o, look)
		if err != nil || s == nil {
			return nil, err
		}
		all, err := s.list(ctx, "apps/v1", "Deployment")
		all = slices.DeleteFunc(all, func(d unstructured.Unstructured) bool { // a database may have some
			return d.GetLabels()["app.kubernetes.io/managed-by"] == "tidb-operator"
		})
		return counts(all), err
	case *v1.Cluster:
		s, err := l.enter(l.networkOf(o), look)
		if err != nil || s == nil {
			return nil, err
		}
		all, err := s.ofCluster(ctx, o.Annotations[v1.AnnotationID])
		return counts(all), err
	}
	return nil, nil
}

// leftInShoot lists what a Cluster that is gone has left in its shoot.
func (l *Lane) leftInShoot(ctx context.Context, gone *v1.Cluster, look Look) (left []string, err error) {
	s, err := l.enter(l.networkOf(gone), look)
	if err != nil || s == nil {
		return nil, err
	}
	all, err := s.ofCluster(ctx, gone.Annotations[v1.AnnotationID])
	for _, o := range all {
		kind := o.GetKind()
		if t, _, _ := unstructured.NestedString(o.Object, "spec", "type"); kind == "Service" {
			kind = t + " Service"
		}
		left = append(left, kind+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	}
	return left, err
}
