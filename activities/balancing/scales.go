package balancing

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scale is the scale of one object as it was read.
type Scale struct {
	// Kind of the object, as far as the API server knows it.
	Kind schema.GroupVersionKind
	autoscalingv1.Scale
}

// Scales reads and writes the subresource scale of any kind.
type Scales interface {
	// Get reads the scale of an object. Errors are sentences for the condition.
	Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (Scale, error)
	// Set writes spec.replicas, unless the object has changed since it was read:
	// that is a conflict. The field manager is who it is set by.
	Set(ctx context.Context, scale Scale, replicas int32, manager string) error
}

// scaleTimeout bounds one request; an admission webhook has as long by default.
const scaleTimeout = 10 * time.Second

// LiveScales asks the API server.
type LiveScales struct {
	// Client must not read from a cache. It knows all kinds by discovery.
	Client client.Client
}

var _ Scales = LiveScales{}

// Get implements Scales. As the original, it takes the first version of the
// kind that has a scale; the version in the reference does not matter.
func (l LiveScales) Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (Scale, error) {
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return Scale{}, fmt.Errorf("invalid API version in scale target reference: %w", err)
	}
	mappings, err := l.Client.RESTMapper().RESTMappings(schema.GroupKind{Group: gv.Group, Kind: ref.Kind})
	if err == nil && len(mappings) == 0 {
		err = errors.New("unrecognized resource")
	}
	if err != nil {
		return Scale{}, fmt.Errorf("unable to determine resource for scale target reference: %w", err)
	}
	var first error
	for _, m := range mappings {
		scale, err := l.get(ctx, m, namespace, ref.Name)
		if err == nil {
			return scale, nil
		}
		if first == nil {
			first = err
		}
	}
	return Scale{}, scaleError(namespace, ref, first)
}

func scaleError(namespace string, ref autoscalingv2.CrossVersionObjectReference, err error) error {
	return fmt.Errorf("failed to query scale subresource for %s/%s/%s: %w", ref.Kind, namespace, ref.Name, err)
}

func (l LiveScales) get(ctx context.Context, m *meta.RESTMapping, namespace, name string) (Scale, error) {
	out := Scale{Kind: m.GroupVersionKind}
	raw := &unstructured.Unstructured{}
	if err := l.Client.SubResource("scale").Get(ctx, object(out.Kind, namespace, name), raw); err != nil {
		return out, err
	}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, &out.Scale)
}

// Set implements Scales.
func (l LiveScales) Set(ctx context.Context, scale Scale, replicas int32, manager string) error {
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	scale.Spec.Replicas = replicas
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&scale.Scale)
	if err != nil {
		return err
	}
	body := &unstructured.Unstructured{Object: raw}
	body.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	return l.Client.SubResource("scale").Update(ctx, object(scale.Kind, scale.Namespace, scale.Name), client.WithSubResourceBody(body), client.FieldOwner(manager))
}

func object(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
