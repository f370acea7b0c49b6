package garden

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner owns what the devstack seeds.
const fieldOwner = client.FieldOwner("devstack-garden")

//go:embed manifests
var manifests embed.FS

// served are the kinds whose lists must answer before the garden counts as up:
// one of each API group that the stack uses.
var served = []schema.GroupVersionKind{
	{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "ShootList"},
	{Group: "security.gardener.cloud", Version: "v1alpha1", Kind: "CredentialsBindingList"},
}

// register makes the management cluster serve Gardener's kinds and fills the
// garden.
func (g *Garden) register(ctx context.Context) error {
	if err := g.apply(ctx, "manifests/apiservices.yaml"); err != nil {
		return fmt.Errorf("register with the management cluster: %w", err)
	}
	if err := retry(ctx, g.answers); err != nil {
		return fmt.Errorf("the management cluster does not serve Gardener's kinds: %w", err)
	}
	// Gardener's admission works on caches that lag behind the objects that a
	// later one refers to.
	for _, file := range []string{"manifests/project.yaml", "manifests/cloudprofile.yaml", "manifests/seed.yaml"} {
		if err := retry(ctx, func(ctx context.Context) error { return g.apply(ctx, file) }); err != nil {
			return fmt.Errorf("seed the garden: %w", err)
		}
	}
	return retry(ctx, g.readyProject)
}

func (g *Garden) answers(ctx context.Context) error {
	for _, kind := range served {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := g.client.List(ctx, list, client.Limit(1)); err != nil {
			return err
		}
	}
	return nil
}

// readyProject does the one thing of gardener-controller-manager that a Project
// needs to be shown as usable.
func (g *Garden) readyProject(ctx context.Context) error {
	project := &unstructured.Unstructured{}
	project.SetGroupVersionKind(schema.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Project"})
	if err := g.client.Get(ctx, client.ObjectKey{Name: ProjectName}, project); err != nil {
		return err
	}
	base := project.DeepCopy()
	status := map[string]any{"phase": "Ready", "observedGeneration": project.GetGeneration()}
	if err := unstructured.SetNestedMap(project.Object, status, "status"); err != nil {
		return err
	}
	return g.client.Status().Patch(ctx, project, client.MergeFrom(base))
}

// apply brings the objects of an embedded file, in its order, by server-side
// apply.
func (g *Garden) apply(ctx context.Context, file string) error {
	text, err := manifests.ReadFile(file)
	if err != nil {
		return err
	}
	t, err := template.New(file).Parse(string(text))
	if err != nil {
		return err
	}
	var rendered bytes.Buffer
	if err := t.Execute(&rendered, map[string]any{
		"Port":             g.port,
		"CABundle":         base64.StdEncoding.EncodeToString(g.opts.Cluster.CA().CertPEM),
		"Service":          serviceName,
		"Namespace":        Namespace,
		"Project":          ProjectName,
		"ProjectNamespace": ProjectNamespace,
		"CloudProfile":     CloudProfileName,
		"Seed":             SeedName,
	}); err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(&rendered, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		config := client.ApplyConfigurationFromUnstructured(object)
		if err := g.client.Apply(ctx, config, fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("%s %s: %w", strings.ToLower(object.GetKind()), object.GetName(), err)
		}
	}
}

// retry calls fn until it succeeds or ctx ends, and then returns fn's own error.
func retry(ctx context.Context, fn func(context.Context) error) error {
	for {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
