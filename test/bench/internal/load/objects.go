package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// samples are the objects of deploy/samples/aws: the Network and the Cluster
// are templates, all else is shared by all of them.
type samples struct {
	shared           []*unstructured.Unstructured
	network, cluster *unstructured.Unstructured
}

func readSamples(folder string) (s samples, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return s, err
	}
	for _, f := range files { // in order of name
		data, err := os.ReadFile(f)
		if err != nil {
			return s, err
		}
		for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
			u := &unstructured.Unstructured{}
			if err := dec.Decode(&u.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return s, fmt.Errorf("%s: %w", f, err)
			}
			if len(u.Object) > 0 {
				s.add(u)
			}
		}
	}
	if s.network == nil || s.cluster == nil {
		return s, fmt.Errorf("%s holds no Network or no Cluster", folder)
	}
	return s, nil
}

func (s *samples) add(u *unstructured.Unstructured) {
	switch u.GetKind() {
	case v1.KindNetwork:
		s.network = u
		return
	case v1.KindCluster:
		s.cluster = u
		return
	case v1.KindAccount:
		unstructured.RemoveNestedField(u.Object, "spec", "quotas") // it would refuse the eleventh Network
	case v1.KindProvider, v1.KindProviderType:
		// Nobody claims them where there is no bridge.
		u.SetAnnotations(map[string]string{v1.AnnotationID: fmt.Sprintf("%016x", len(s.shared)+1)})
	}
	s.shared = append(s.shared, u)
}

// pair is the i-th Network and its Cluster.
func (s *samples) pair(i int) []*unstructured.Unstructured {
	network, cluster := s.network.DeepCopy(), s.cluster.DeepCopy()
	network.SetName(fmt.Sprintf("n%d", i))
	cluster.SetName(fmt.Sprintf("c%d", i))
	_ = unstructured.SetNestedField(cluster.Object, network.GetName(), "spec", "network") // fails only where spec is no map
	return []*unstructured.Unstructured{network, cluster}
}

// one is the Network of a crowd, member its i-th Cluster.
func (s *samples) one() *unstructured.Unstructured {
	network := s.network.DeepCopy()
	network.SetName("n0")
	return network
}

func (s *samples) member(i int) *unstructured.Unstructured {
	cluster := s.pair(i)[1]
	_ = unstructured.SetNestedField(cluster.Object, "n0", "spec", "network") // fails only where spec is no map
	return cluster
}
