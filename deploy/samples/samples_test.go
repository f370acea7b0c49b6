// Package samples checks the sample documents of the config-service, and what
// all folders must keep; what deploy/samples/aws says is checked by package plan,
// which plans it.
package samples

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/api/v1/crdtest"
)

func TestNetworkConfigBootstrapsTheOperator(t *testing.T) {
	raw, err := os.ReadFile("config-service/network-config-aws.yaml")
	require.NoError(t, err)
	var config configservice.NetworkConfig
	require.NoError(t, yaml.Unmarshal(raw, &config))
	require.Equal(t, "v1.6.6", config.OperatorVersion)

	crds := map[string]bool{}
	var deployment appsv1.Deployment
	namespaces := map[string]bool{}
	for _, m := range config.Manifests {
		switch m.GetKind() {
		case "CustomResourceDefinition":
			manifest, err := json.Marshal(m.Object)
			require.NoError(t, err)
			crd, err := crdtest.Parse(manifest)
			require.NoError(t, err, m.GetName())
			subresources := crd.Spec.Subresources // of the only version
			require.True(t, subresources == nil || subresources.Status == nil, "%s has no status subresource upstream", m.GetName())
			crds[crd.Spec.Names.Kind] = true
		case "Namespace":
			namespaces[m.GetName()] = true
		case "Deployment":
			manifest, err := json.Marshal(m.Object)
			require.NoError(t, err)
			require.NoError(t, yaml.UnmarshalStrict(manifest, &deployment))
		}
		if ns := m.GetNamespace(); ns != "" {
			require.True(t, namespaces[ns], "namespace %s must come before %s %s", ns, m.GetKind(), m.GetName())
		}
	}
	require.Equal(t, map[string]bool{"TidbCluster": true, "TidbInitializer": true, "Backup": true, "BackupSchedule": true, "Restore": true}, crds)
	require.Equal(t, "tidb-admin/tidb-controller-manager", deployment.Namespace+"/"+deployment.Name)
	require.Equal(t, deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels)
	require.Equal(t, "pingcap/tidb-operator:"+config.OperatorVersion, deployment.Spec.Template.Spec.Containers[0].Image)
}

func TestClusterConfigsPinTheirVersion(t *testing.T) {
	files, err := filepath.Glob("config-service/cluster-config-*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2, "an upgrade needs a newer version")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var config configservice.ClusterConfig
		require.NoError(t, yaml.Unmarshal(raw, &config), file)
		require.Equal(t, "cluster-config-"+config.Version+".yaml", filepath.Base(file))
		for _, component := range []string{"pd", "tikv", "tidb", "tiflash"} {
			require.Equal(t, "pingcap/"+component+":"+config.Version, config.Image(component), file)
		}
		for _, image := range []string{config.Images.Helper, config.Images.Initializer, config.Images.Backup} {
			require.True(t, strings.Contains(image, ":") && !strings.HasSuffix(image, ":latest"), "%s: %q is not pinned", file, image)
		}
	}
}

// Samples are for an installed system. Whoever deletes a folder of them must
// not delete the namespace, in which the roles of the workers live: without
// those no deletion ends, and nobody can give them back in a namespace that is
// being deleted.
func TestNoSampleTakesTheNamespaceAway(t *testing.T) {
	raw, err := os.ReadFile("../kustomize/namespace.yaml")
	require.NoError(t, err)
	installed, err := crdtest.Decode(raw)
	require.NoError(t, err)
	files, err := filepath.Glob("*/*.yaml")
	require.NoError(t, err)
	objects := 0
	for _, file := range files {
		if filepath.Dir(file) == "config-service" { // documents, not objects
			continue
		}
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, document := range strings.Split(string(raw), "\n---\n") {
			o, err := crdtest.Decode([]byte(document))
			require.NoError(t, err, file)
			if o["kind"] == "Namespace" {
				require.NotEqual(t, field(t, installed, "metadata", "name"), field(t, o, "metadata", "name"), file)
			}
			objects++
		}
	}
	require.Greater(t, objects, 10)
}

func field(t *testing.T, o map[string]any, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedString(o, path...)
	require.NoError(t, err)
	require.True(t, found)
	return value
}
