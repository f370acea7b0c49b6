package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// common is a custom resource of any kind, as far as all kinds are alike.
type common struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any  `json:"spec"`
	Status            v1.CommonStatus `json:"status"`
}

type object struct {
	common
	raw map[string]any // as the API server gave it
}

// reader reads custom resources and events from the management cluster.
type reader struct {
	client    client.Client
	namespace string
}

func newReader(cfg *rest.Config, namespace string) (*reader, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	return &reader{client: c, namespace: namespace}, nil
}

func (r *reader) get(ctx context.Context, k v1.Kind, name string) (object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion.WithKind(k.Name))
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, u); err != nil {
		if apierrors.IsNotFound(err) {
			return object{}, fmt.Errorf("there is no %s %q in namespace %q", k.Name, name, r.namespace)
		}
		return object{}, explain(k, err)
	}
	return toObject(u)
}

func (r *reader) list(ctx context.Context, k v1.Kind) ([]object, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(v1.GroupVersion.WithKind(k.Name + "List"))
	if err := r.client.List(ctx, l, client.InNamespace(r.namespace)); err != nil {
		return nil, explain(k, err)
	}
	objs := make([]object, 0, len(l.Items))
	for i := range l.Items {
		o, err := toObject(&l.Items[i])
		if err != nil {
			return nil, err
		}
		objs = append(objs, o)
	}
	return objs, nil
}

// events returns the object's events, oldest first.
func (r *reader) events(ctx context.Context, o object) ([]corev1.Event, error) {
	var l corev1.EventList
	err := r.client.List(ctx, &l, client.InNamespace(o.Namespace),
		client.MatchingFields{"involvedObject.uid": string(o.UID)})
	if err != nil {
		return nil, fmt.Errorf("events of %s %s: %w", o.Kind, o.Name, err)
	}
	slices.SortStableFunc(l.Items, compareEvents)
	return l.Items, nil
}

// compareEvents orders events by time; those of one second, as they were
// written.
func compareEvents(a, b corev1.Event) int {
	if c := eventTime(a).Compare(eventTime(b)); c != 0 {
		return c
	}
	c, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	if err != nil {
		return 0
	}
	return c
}

func toObject(u *unstructured.Unstructured) (object, error) {
	o := object{raw: u.Object}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o.common); err != nil {
		return o, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return o, nil
}

func explain(k v1.Kind, err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("this cluster does not know the kind %s: are the CRDs installed, and is it the right context? (%w)", k.Name, err)
	}
	return fmt.Errorf("read %s: %w", k.Plural, err)
}
