package stack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Samples reads deploy/samples/aws, in order of file name.
func Samples() ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(Root(), "deploy", "samples", "aws", "*.yaml"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var all []*unstructured.Unstructured
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := dec.Decode(&u.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if len(u.Object) > 0 {
				all = append(all, u)
			}
		}
	}
	return all, nil
}

// MarkedSamples are the samples with a marker in all credentials.
func MarkedSamples(marker string) ([]*unstructured.Unstructured, error) {
	all, err := Samples()
	if err != nil {
		return nil, err
	}
	secrets := 0
	for _, o := range all {
		if o.GetKind() != "Secret" {
			continue
		}
		secrets++
		data, _, err := unstructured.NestedStringMap(o.Object, "stringData")
		if err != nil {
			return nil, err
		}
		for k, v := range data {
			data[k] = v[:min(4, len(v))] + marker + strings.ToUpper(k)
		}
		if err := unstructured.SetNestedStringMap(o.Object, data, "stringData"); err != nil {
			return nil, err
		}
	}
	if secrets == 0 {
		return nil, errors.New("the samples have no Secret to mark")
	}
	return all, nil
}

// EnsureNamespace makes a namespace, which samples need: they are for an
// installed system, so they do not bring it.
func (s *Stack) EnsureNamespace(ctx context.Context, name string) error {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("Namespace")
	u.SetName(name)
	return s.Apply(ctx, u)
}

// Apply applies objects, as kubectl apply --server-side does.
func (s *Stack) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		ac := client.ApplyConfigurationFromUnstructured(o)
		if err := s.Kube.Apply(ctx, ac, client.FieldOwner("e2e"), client.ForceOwnership); err != nil {
			return err
		}
	}
	return nil
}
