package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// fieldManager of everything that the supervisor applies.
const fieldManager = "devstack"

// crdKind is applied by the same code as all else, then waited for.
const crdKind = "CustomResourceDefinition"

// applier applies manifests with server-side apply.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // loopback: no client-side limit
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// applyFolder applies every manifest of a folder, in the order of file names,
// and returns what it applied. CRDs are served when it returns.
func (a *applier) applyFolder(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
	objects, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s holds no manifest", folder)
	}
	for _, object := range objects {
		if err := a.apply(ctx, object); err != nil {
			return nil, fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range objects {
		if object.GetKind() != crdKind {
			continue
		}
		if err := a.waitEstablished(ctx, object); err != nil {
			return nil, err
		}
	}
	a.mapper.Reset()
	return objects, nil
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	client, err := a.resource(object)
	if err != nil {
		return err
	}
	_, err = client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// webhookConfigurations is the name of the bridge's webhook configurations.
const webhookConfigurations = "infra-orchestrator"

// forgetWebhooks removes the configurations of the bridge's webhooks.
func (a *applier) forgetWebhooks(ctx context.Context) error {
	for _, kind := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: kind}
		err := a.client.Resource(gvr).Delete(ctx, webhookConfigurations, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// get reads an object anew.
func (a *applier) get(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client, err := a.resource(object)
	if err != nil {
		return nil, err
	}
	return client.Get(ctx, object.GetName(), metav1.GetOptions{})
}

func (a *applier) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return a.client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
	}
	return a.client.Resource(mapping.Resource), nil
}

// stuckAfter is how long a definition may stay unserved before it is touched;
// usually it takes a few milliseconds, and five seconds where there are several
// API servers.
const stuckAfter = 7 * time.Second

// waitEstablished waits until the API server serves a CRD. The server's own
// answer is asked, too: the condition comes a moment before the routes.
func (a *applier) waitEstablished(ctx context.Context, crd *unstructured.Unstructured) error {
	began, touched := time.Now(), false
	for {
		got, err := a.get(ctx, crd)
		if err != nil {
			return err
		}
		established, err := a.served(ctx, got)
		if established || err != nil {
			return err
		}
		if !touched && time.Since(began) > stuckAfter {
			touched = true
			if err := a.touch(ctx, got); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("custom resource definition %s is not served: %w", crd.GetName(), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// touch changes a definition in a way that means nothing, so that the API
// server looks at it again: one that ended between accepting the names of a
// definition and serving them does not come back to it by itself.
func (a *applier) touch(ctx context.Context, crd *unstructured.Unstructured) error {
	client, err := a.resource(crd)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"devstack/touched":%q}}}`, time.Now().UTC().Format(time.RFC3339))
	_, err = client.Patch(ctx, crd.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager + "-touch"})
	return err
}

func (a *applier) served(ctx context.Context, crd *unstructured.Unstructured) (bool, error) {
	if status, _ := condition(crd, "Established"); status != string(metav1.ConditionTrue) {
		return false, nil
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		gvr := schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
		_, err := a.client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// readFolder reads the YAML files of a folder, but for those that are left out.
func readFolder(folder string, without ...string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml")) // sorted
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		if slices.Contains(without, filepath.Base(file)) {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		more, err := decodeManifests(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

// decodeManifests decodes a stream of YAML documents; empty ones do not count.
func decodeManifests(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(data) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		if object.GetName() == "" {
			return nil, fmt.Errorf("a document of kind %s lacks metadata.name", object.GetKind())
		}
		objects = append(objects, object)
	}
}

// condition returns status and message of a condition; "" when it is not there.
func condition(object *unstructured.Unstructured, name string) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		if c["type"] == name {
			status, _ = c["status"].(string)
			message, _ = c["message"].(string)
			return status, message
		}
	}
	return "", ""
}
