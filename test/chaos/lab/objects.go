package lab

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// Kinds in the order of their creation.
var Kinds = []string{v1.KindProviderType, v1.KindProvider, v1.KindNetwork, v1.KindCluster}

// names of the samples.
var names = map[string]string{
	v1.KindProviderType: "aws-gardener", v1.KindProvider: "core-aws", v1.KindNetwork: "n1", v1.KindCluster: "c1",
}

// Key is the lane's object of a kind, as the samples name it.
func (l *Lane) Key(kind string) invariants.Key {
	return invariants.Key{Kind: kind, Namespace: l.Name, Name: names[kind]}
}

// Named is an object of another name.
func (l *Lane) Named(kind, name string) invariants.Key {
	return invariants.Key{Kind: kind, Namespace: l.Name, Name: name}
}

// Sample is the sample of a kind under the object's name.
func (l *Lane) Sample(key invariants.Key) *unstructured.Unstructured {
	for _, o := range l.samples {
		if o.GetKind() != key.Kind {
			continue
		}
		o = o.DeepCopy()
		o.SetName(key.Name)
		if labels := o.GetLabels(); labels[v1.LabelProviderType] != "" && key.Kind == v1.KindProviderType {
			labels[v1.LabelProviderType] = key.Name
			o.SetLabels(labels)
		}
		return o
	}
	panic("no sample of kind " + key.Kind)
}

// Create applies the sample under the object's name; edit may be nil.
func (l *Lane) Create(ctx context.Context, key invariants.Key, edit func(*unstructured.Unstructured)) error {
	o := l.Sample(key)
	if edit != nil {
		edit(o)
	}
	return l.Stack.Apply(ctx, o)
}

// In puts a sample Cluster into a Network.
func In(network string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, network, "spec", "network")
	}
}

// Change changes an object's spec in a way that no external resource needs, and
// returns the new generation.
func (l *Lane) Change(ctx context.Context, key invariants.Key) (int64, error) {
	l.changes++
	patch := map[string]string{
		v1.KindCluster:      fmt.Sprintf(`{"spec":{"displayName":"orders-%d"}}`, l.changes),
		v1.KindNetwork:      fmt.Sprintf(`{"spec":{"bucket":{"retain":%t}}}`, !l.retains(key)),
		v1.KindProvider:     fmt.Sprintf(`{"spec":{"dns":{"parentZoneID":"Z%019d"}}}`, l.changes),
		v1.KindProviderType: fmt.Sprintf(`{"spec":{"timeouts":{"wake":"%dm"}}}`, 31+l.changes%200),
	}[key.Kind]
	o := reference(key)
	err := l.Stack.Kube.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
	return o.GetGeneration(), err
}

// Machine types of the class that TiDB and TiKV of the sample Cluster have: the
// sample's, and another one that has worker pools replaced.
const (
	SampleMachines = "m5.xlarge"
	OtherMachines  = "r5.2xlarge"
)

// SetMachines gives that class a machine type. It is in force when the
// ProviderType is Ready; Clusters follow with their next update.
func (l *Lane) SetMachines(ctx context.Context, machineType string) error {
	key := l.Key(v1.KindProviderType)
	o := reference(key)
	patch := fmt.Sprintf(`[{"op":"test","path":"/spec/machineClasses/1/name","value":"4C16G"},
		{"op":"replace","path":"/spec/machineClasses/1/machineType","value":%q}]`, machineType)
	if err := l.Stack.Kube.Patch(ctx, o, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		return err
	}
	_, err := l.AwaitGeneration(ctx, key, o.GetGeneration())
	return err
}

func (l *Lane) retains(key invariants.Key) bool {
	n, ok := l.Checker.Latest(key).(*v1.Network)
	return ok && n.Spec.Bucket.Retain != nil && *n.Spec.Bucket.Retain
}

// Delete asks for the object's deletion.
func (l *Lane) Delete(ctx context.Context, key invariants.Key) error {
	return client.IgnoreNotFound(l.Stack.Kube.Delete(ctx, reference(key)))
}

// Annotate sets an annotation and returns the object's version after that.
func (l *Lane) Annotate(ctx context.Context, key invariants.Key, name, value string) (version uint64, err error) {
	o := reference(key)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value)
	if err := l.Stack.Kube.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return 0, err
	}
	return versionOf(o)
}

// Generation is the generation of the object's spec now.
func (l *Lane) Generation(ctx context.Context, key invariants.Key) (int64, error) {
	o := reference(key)
	err := l.Stack.Kube.Get(ctx, client.ObjectKeyFromObject(o), o)
	return o.GetGeneration(), err
}

// versionOf is a resource version, which grows with each change in a cluster.
func versionOf(o client.Object) (uint64, error) {
	return strconv.ParseUint(o.GetResourceVersion(), 10, 64)
}

func reference(key invariants.Key) client.Object {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1.GroupVersion.WithKind(key.Kind))
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}

// WorkflowID is the id of an object's workflow, and the beginning of those of
// its operations.
func WorkflowID(key invariants.Key) string {
	return strings.ToLower(key.Kind) + "/" + key.Namespace + "/" + key.Name
}

// AwaitReady waits until the object is Ready for its current generation. An
// operation that stalls meanwhile is an error.
func (l *Lane) AwaitReady(ctx context.Context, key invariants.Key) (v1.Object, error) {
	return l.await(ctx, key, invariants.IsReady)
}

// AwaitGeneration waits until the object is Ready for a generation of at least g.
func (l *Lane) AwaitGeneration(ctx context.Context, key invariants.Key, g int64) (v1.Object, error) {
	return l.await(ctx, key, func(o v1.Object) bool { return o != nil && o.GetGeneration() >= g && invariants.IsReady(o) })
}

// AwaitGone waits until the object does not exist and its workflow has ended
// well. An operation that stalls meanwhile is an error.
func (l *Lane) AwaitGone(ctx context.Context, key invariants.Key) error {
	if _, err := l.await(ctx, key, func(o v1.Object) bool { return o == nil }); err != nil {
		return err
	}
	for {
		err := l.Stack.Temporal.GetWorkflow(ctx, WorkflowID(key), "").Get(ctx, nil)
		var ended *temporal.WorkflowExecutionError
		var unknown *serviceerror.NotFound
		// A Temporal that was wiped never hears of an object whose last finalizer
		// went meanwhile.
		if err == nil || errors.As(err, &unknown) {
			return nil
		}
		if ctx.Err() != nil || errors.As(err, &ended) {
			return fmt.Errorf("%s is gone, but its workflow does not end well: %w", key, err)
		}
		select { // Temporal is away
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (l *Lane) await(ctx context.Context, key invariants.Key, wanted func(v1.Object) bool) (v1.Object, error) {
	failed := ""
	o, err := l.Checker.Await(ctx, key, func(o v1.Object) bool {
		if failed = trouble(o); failed != "" {
			return true
		}
		return wanted(o)
	})
	if failed != "" {
		return o, fmt.Errorf("%s: %s: %s", key, failed, invariants.Describe(o))
	}
	return o, err
}

// trouble says whether an operation stalls or has failed.
func trouble(o v1.Object) string {
	if o == nil {
		return ""
	}
	c := o.Common()
	if stalled := apimeta.FindStatusCondition(c.Conditions, v1.ConditionStalled); stalled != nil && stalled.Status == "True" {
		return "it stalls: " + stalled.Message
	}
	if c.Operation != nil && c.Operation.State == v1.OperationFailed {
		return "its operation failed"
	}
	return ""
}
