package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/balancing"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// widgets is any kind with the subresource scale, and the role that lets
// Balancers scale it, as docs/balancing.md shows it.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.shop.example.com}
spec:
  group: shop.example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources:
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: infra-balancer-widgets
  labels: {balancer.x-k8s.io/aggregate-to-balancer: "true"}
rules:
- apiGroups: [shop.example.com]
  resources: [widgets/scale]
  verbs: [get, update]
`

func documents(t *testing.T, raw []byte) (list []*unstructured.Unstructured) {
	t.Helper()
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := dec.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		list = append(list, u)
	}
}

// asBalancer is a client with the rights of the Deployment infra-balancer.
func asBalancer(t *testing.T) *rest.Config {
	t.Helper()
	rc, err := clientcmd.BuildConfigFromFlags("", world.State.Kubeconfig)
	require.NoError(t, err)
	rc.QPS, rc.Burst = 200, 400
	rc.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:infra:infra-balancer",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:infra", "system:authenticated"},
	}
	return rc
}

// rights: the activities, with the shipped roles, do all that they do; a kind
// that nobody has told them of is refused, and its role changes that.
func rights(t *testing.T) {
	s := newShop(t, "rights")
	ctx := within(t, 2*time.Minute)
	raw, err := os.ReadFile(filepath.Join(stack.Root(), "deploy", "kustomize", "rbac-balancer.yaml"))
	require.NoError(t, err)
	for _, o := range documents(t, raw) {
		if o.GetKind() != "ServiceAccount" { // whose namespace may not be there yet
			require.NoError(t, world.Apply(ctx, o))
		}
	}
	kind, role := documents(t, []byte(widgets))[0], documents(t, []byte(widgets))[1]
	require.NoError(t, world.Apply(ctx, kind))
	s.node("a", 100)
	s.deployment("a", 0)
	s.statefulSet("c")
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(0)}, "status": map[string]any{"selector": "workload=b"}}}
	widget.SetAPIVersion("shop.example.com/v1")
	widget.SetKind("Widget")
	widget.SetNamespace(s.namespace)
	widget.SetName("b")
	eventually(t, 30*time.Second, "the kind is served", func() error { return s.kube.Create(ctx, widget) })

	acts := balancerActivities(ctx, t)
	s.appsMayBeScaled(ctx, acts)
	b := ref("shop.example.com/v1", "Widget", "b")
	_, err = acts.Scales.Get(ctx, s.namespace, b)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.NoError(t, world.Apply(ctx, role))
	eventually(t, 30*time.Second, "with its role the Widget may be scaled", func() error {
		_, err := acts.Scales.Get(ctx, s.namespace, b)
		return err
	})

	s.balancer(10, func(o *v1alpha1.Balancer) {
		o.Spec.Policy, o.Spec.Replicas, o.Spec.Targets[1].ScaleTargetRef = proportions(70, 30), nil, b
	})
	name := contract.BalancerRef{Namespace: s.namespace, Name: "web"}
	eventually(t, 30*time.Second, "one round over the Balancer", func() error {
		out, err := acts.EnsureBalanced(ctx, name)
		if out.Failure != "" {
			err = errors.New(out.Failure)
		}
		return err
	})
	_, err = acts.PlanBalancers(ctx, contract.PlanBalancersInput{})
	require.NoError(t, err)
	statuses, err := acts.ApplyBalancerStatuses(ctx, contract.BalancerStatusesInput{Balancers: []contract.BalancerRef{name}})
	require.NoError(t, err)
	require.Equal(t, contract.StatusesOutcome{Written: 1}, statuses)

	// And the product's own worker scales the Widget.
	s.patch(`{"spec":{"replicas":10}}`)
	eventually(t, 30*time.Second, "the Widget has its share", func() error {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(widget), widget); err != nil {
			return err
		}
		if n, _, _ := unstructured.NestedInt64(widget.Object, "spec", "replicas"); n != 3 {
			return fmt.Errorf("%d replicas", n)
		}
		return nil
	})
}

// ref refers to a target.
func ref(apiVersion, kind, name string) autoscalingv2.CrossVersionObjectReference {
	return autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
}

// appsMayBeScaled: the kinds of group apps need no further role.
func (s *shop) appsMayBeScaled(ctx context.Context, acts *balancing.Activities) {
	s.t.Helper()
	var sets appsv1.ReplicaSetList
	eventually(s.t, 30*time.Second, "the Deployment has a ReplicaSet", func() error {
		err := s.kube.List(ctx, &sets, client.InNamespace(s.namespace))
		if err == nil && len(sets.Items) == 0 {
			err = errors.New("none")
		}
		return err
	})
	for _, r := range []autoscalingv2.CrossVersionObjectReference{
		ref("apps/v1", "Deployment", "a"), ref("apps/v1", "StatefulSet", "c"), ref("apps/v1", "ReplicaSet", sets.Items[0].Name),
	} {
		eventually(s.t, 30*time.Second, r.Kind+" may be scaled", func() error {
			scale, err := acts.Scales.Get(ctx, s.namespace, r)
			if err == nil {
				err = acts.Scales.Set(ctx, scale, scale.Spec.Replicas, "rights")
			}
			return err
		})
	}
}

// balancerActivities are the activities with the rights of the Deployment,
// without Temporal.
func balancerActivities(ctx context.Context, t *testing.T) *balancing.Activities {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, balancing.AddToScheme(scheme))
	cache, err := balancing.NewInformerCache(asBalancer(t), scheme)
	require.NoError(t, err)
	running, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	synced := make(chan struct{})
	go func() { _ = cache.Run(running, slog.New(slog.DiscardHandler), func() { close(synced) }) }()
	select {
	case <-synced:
	case <-ctx.Done():
		t.Fatal("the caches do not sync: may it list all that it lists?")
	}
	live, err := client.New(asBalancer(t), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return &balancing.Activities{Cache: cache, Client: live, Scales: balancing.LiveScales{Client: live}, Events: record.NewFakeRecorder(1000)}
}
