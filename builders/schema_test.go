package builders

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// schema is a CRD's schema, as an API server would use it.
type schema struct {
	validator  validation.SchemaValidator
	structural *structuralschema.Structural
	rules      *cel.Validator // x-kubernetes-validations; nil without any
}

var schemas sync.Map

// requireValid validates an object against a schema in testdata, its CEL rules
// included, and requires that it has no field that the schema does not know.
func requireValid(t *testing.T, file string, obj map[string]any) {
	t.Helper()
	require.Empty(t, problems(t, file, obj), "against %s", file)
}

func problems(t *testing.T, file string, obj map[string]any) (found []string) {
	t.Helper()
	s := schemaOf(t, file)
	errs := validation.ValidateCustomResource(nil, obj, s.validator)
	celErrs, _ := s.rules.Validate(context.Background(), fieldpath.NewPath(""), s.structural, obj, nil, math.MaxInt64)
	for _, e := range append(errs, celErrs...) {
		found = append(found, e.Error())
	}
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(obj), s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		found = append(found, path+": unknown field")
	}
	return found
}

func schemaOf(t *testing.T, file string) *schema {
	t.Helper()
	if s, ok := schemas.Load(file); ok {
		return s.(*schema)
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "schemas", file))
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, json.Unmarshal(raw, &crd))
	var internal apiextensions.JSONSchemaProps
	require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil))
	s := &schema{}
	s.validator, _, err = validation.NewSchemaValidator(&internal)
	require.NoError(t, err)
	s.structural, err = structuralschema.NewStructural(&internal)
	require.NoError(t, err)
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	schemas.Store(file, s)
	return s
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

// Wrong types, unknown fields and broken CEL rules are all noticed.
func TestTheValidatorRefuses(t *testing.T) {
	bad := map[string]any{"spec": map[string]any{"tikv": map[string]any{"replicas": "three"}}}
	require.NotEmpty(t, problems(t, "tidbclusters.pingcap.com.json", bad))

	groups, err := Groups(clusterPlan(), clusterConfig())
	require.NoError(t, err)
	pd := groups[0].Object
	spec := pd["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	spec["volumes"].([]any)[0].(map[string]any)["name"] = "other"
	spec["colour"] = "blue"
	found := problems(t, "pdgroups.core.pingcap.com.json", pd)
	require.Len(t, found, 2, "%v", found)
	require.Contains(t, found[0], "data volume must be configured")
	require.Contains(t, found[1], "spec.template.spec.colour")
}
