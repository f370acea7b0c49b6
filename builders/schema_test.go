package builders

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// requireValid validates an object against a schema in testdata, and requires
// that it has no field that the schema does not know.
func requireValid(t *testing.T, file string, obj map[string]any) {
	t.Helper()
	validator, structural := schemaOf(t, file)
	require.Empty(t, validation.ValidateCustomResource(nil, obj, validator), "against %s", file)
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(obj), structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	require.Empty(t, unknown, "fields that %s does not know", file)
}

func schemaOf(t *testing.T, file string) (validation.SchemaValidator, *structuralschema.Structural) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "schemas", file))
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, json.Unmarshal(raw, &crd))
	var internal apiextensions.JSONSchemaProps
	require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil))
	validator, _, err := validation.NewSchemaValidator(&internal)
	require.NoError(t, err)
	structural, err := structuralschema.NewStructural(&internal)
	require.NoError(t, err)
	return validator, structural
}

// generic turns a typed object into what an API server receives.
func generic(t *testing.T, obj any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(obj)
	require.NoError(t, err)
	m := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &m))
	delete(m, "status")
	if meta, ok := m["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	return m
}

func TestTheValidatorRefuses(t *testing.T) {
	validator, _ := schemaOf(t, "tidbclusters.pingcap.com.json")
	bad := map[string]any{"spec": map[string]any{"tikv": map[string]any{"replicas": "three"}}}
	require.NotEmpty(t, validation.ValidateCustomResource(nil, bad, validator))
}
