package v1

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// The table says what the CRDs say, and has each of them.
func TestKindsAreThoseOfTheCRDs(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/cloud.pingcap.com_*.yaml")
	require.NoError(t, err)
	require.Len(t, Kinds(), len(files))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd struct {
			Spec struct {
				Names struct {
					Kind, Plural string
					ShortNames   []string
				}
			}
		}
		require.NoError(t, yaml.Unmarshal(raw, &crd))
		k, known := KindOf(crd.Spec.Names.Kind)
		require.True(t, known, crd.Spec.Names.Kind)
		require.Equal(t, crd.Spec.Names.Plural, k.Plural)
		for _, short := range crd.Spec.Names.ShortNames {
			require.Contains(t, k.Short, short)
		}
		for _, word := range append([]string{k.Name, k.Plural, k.Plural + "." + GroupName}, k.Short...) {
			require.True(t, k.Is(word), word)
		}
	}
}

func TestKindsMakeWhatTheySay(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, AddToScheme(scheme))
	for _, k := range Kinds() {
		for made, want := range map[runtime.Object]string{k.New(): k.Name, k.NewList(): k.Name + "List"} {
			gvks, _, err := scheme.ObjectKinds(made)
			require.NoError(t, err)
			require.Equal(t, want, gvks[0].Kind)
		}
		of, known := KindOfObject(k.New())
		require.True(t, known)
		require.Equal(t, k.Name, of.Name)
	}
}

// A field of a spec that names another object, by its type, has a row: else
// nobody waits for its end, and nobody is told that it is missing.
func TestEveryReferenceHasARow(t *testing.T) {
	// What these name is looked at by the rules of their own kind only.
	apart := []string{"Network spec.account", "Import spec.source.s3.secretRef", "Import spec.source.gcs.secretRef", "TiCDC spec.downstream.secretRef"}
	for _, k := range Kinds() {
		spec, ok := reflect.TypeOf(k.New()).Elem().FieldByName("Spec")
		require.True(t, ok, k.Name)
		for _, field := range references(spec.Type, "spec") {
			has := slices.ContainsFunc(k.References, func(r Reference) bool {
				return r.Field == field || r.Field == field+".name"
			})
			listed := slices.ContainsFunc(apart, func(a string) bool { return strings.HasPrefix(k.Name+" "+field, a) })
			require.True(t, has != listed, "%s %s", k.Name, field)
		}
		for _, r := range k.References {
			require.Empty(t, r.Name(Kinds()[0].New()), "of another kind")
			if r.Kind != KindSecret {
				_, known := KindOf(r.Kind)
				require.True(t, known, r.Kind)
			}
		}
	}
}

// references lists the paths of the fields that name objects.
func references(t reflect.Type, path string) (out []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return references(t.Elem(), path)
	case reflect.Struct:
		if t == reflect.TypeFor[SecretReference]() {
			return []string{path}
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.PkgPath == "" && name != "" && strings.HasPrefix(t.PkgPath(), "github.com/tidbcloud") {
				out = append(out, references(f.Type, path+"."+name)...)
			}
		}
	case reflect.String:
		if t == reflect.TypeFor[ReferenceName]() {
			return []string{path}
		}
	}
	return out
}
