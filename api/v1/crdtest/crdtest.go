// Package crdtest runs the schema of CustomResourceDefinitions in process, as
// an API server does: pruning, defaulting, OpenAPI validation, list types and
// CEL rules including transition rules. It is for tests.
package crdtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

// Kind admits objects of one kind.
type Kind struct {
	// Structural is the schema of the kind's first version.
	Structural *schema.Structural

	openAPI validation.SchemaValidator
	rules   *cel.Validator
}

// Load reads every CustomResourceDefinition of a folder; the key is the kind.
func Load(dir string) (map[string]*Kind, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no CRD in %s (%w)", dir, err)
	}
	kinds := map[string]*Kind{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd, err := Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if kinds[crd.Spec.Names.Kind], err = New(crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return kinds, nil
}

// Parse reads a CustomResourceDefinition and validates it as an API server
// does on create: structural schema, defaults, CEL rules and their cost.
func Parse(raw []byte) (*apiextensions.CustomResourceDefinition, error) {
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &external); err != nil {
		return nil, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	var crd apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, &crd, nil); err != nil {
		return nil, err
	}
	// An API server fills it before it validates.
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	return &crd, crdvalidation.ValidateCustomResourceDefinition(context.Background(), &crd).ToAggregate()
}

// New compiles the schema of the kind's first version.
func New(crd *apiextensions.CustomResourceDefinition) (*Kind, error) {
	v, err := apiextensions.GetSchemaForVersion(crd, crd.Spec.Versions[0].Name)
	if err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(v.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	openAPI, _, err := validation.NewSchemaValidator(v.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &Kind{
		Structural: structural, openAPI: openAPI,
		rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Default returns the object without unknown fields and with every default.
func (k *Kind) Default(object map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(object)
	pruning.Prune(out, k.Structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(out, k.Structural)
	defaulting.Default(out, k.Structural)
	return out
}

// Unknown lists the fields that pruning would drop: typing errors.
func (k *Kind) Unknown(object map[string]any) []string {
	return pruning.PruneWithOptions(runtime.DeepCopyJSON(object), k.Structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Create returns what an API server says to a new object.
func (k *Kind) Create(object map[string]any) field.ErrorList {
	o := k.Default(object)
	errs := validation.ValidateCustomResource(nil, o, k.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.Structural, o)...)
	if blocked(errs) {
		return errs
	}
	more, _ := k.rules.Validate(context.Background(), nil, k.Structural, o, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, more...)
}

// Update returns what an API server says to a change of old, which need not be
// valid itself: what did not change is not held against the change.
func (k *Kind) Update(object, old map[string]any) field.ErrorList {
	o, before := k.Default(object), k.Default(old)
	correlated := common.NewCorrelatedObject(o, before, &model.Structural{Structural: k.Structural})
	errs := validation.ValidateCustomResourceUpdate(nil, o, before, k.openAPI, validation.WithRatcheting(correlated))
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.Structural, o)...)
	if blocked(errs) {
		return errs
	}
	more, _ := k.rules.Validate(context.Background(), nil, k.Structural, o, before, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
	return append(errs, more...)
}

// blocked reports whether an API server leaves the CEL rules out, as the object
// is too malformed for them.
func blocked(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// Decode reads a manifest in YAML or JSON as an API server does: whole numbers
// stay whole.
func Decode(manifest []byte) (map[string]any, error) {
	raw, err := yaml.YAMLToJSONStrict(manifest)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(raw, &out)
}
