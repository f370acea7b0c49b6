// Package manifests reads the manifests in deploy/ for tests.
package manifests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Load decodes every manifest of a folder (kustomization.yaml aside) strictly
// into Kubernetes' own types: an unknown kind or field is an error.
func Load(folder string) ([]runtime.Object, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no manifests in %s: %w", folder, err)
	}
	var objs []runtime.Object
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objs = append(objs, some...)
	}
	return objs, nil
}

func decode(data []byte) ([]runtime.Object, error) {
	codec := serializer.NewCodecFactory(clientgoscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objs []runtime.Object
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objs, nil
		}
		if err != nil {
			return nil, err
		}
		obj, _, err := codec.Decode(doc, nil, nil)
		if err != nil {
			return nil, err
		}
		objs = append(objs, obj)
	}
}

// Arguments returns the arguments of a container of a Deployment.
func Arguments(folder, deployment, container string) ([]string, error) {
	objs, err := Load(folder)
	if err != nil {
		return nil, err
	}
	for _, o := range objs {
		d, ok := o.(*appsv1.Deployment)
		if !ok || d.Name != deployment {
			continue
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			if c.Name == container {
				return c.Args, nil
			}
		}
	}
	return nil, fmt.Errorf("no container %s in a Deployment %s in %s", container, deployment, folder)
}
