package v1_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/api/v1/crdtest"
	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
)

// compiled schemas are kept: compiling CEL takes longer than all cases do.
var compiled = sync.OnceValues(func() (map[string]*crdtest.Kind, error) { return crdtest.Load("../../config/crd") })

// load returns the schemas and the tables of this group.
func load(t *testing.T) (map[string]*crdtest.Kind, []admissioncases.Kind) {
	t.Helper()
	schemas, err := compiled()
	require.NoError(t, err)
	tables, err := admissioncases.Load()
	require.NoError(t, err)
	return schemas, tables
}

// must returns the object of a table's method.
func must(t *testing.T) func(o map[string]any, err error) map[string]any {
	return func(o map[string]any, err error) map[string]any {
		t.Helper()
		require.NoError(t, err)
		return o
	}
}

func TestEveryKindHasATable(t *testing.T) {
	schemas, tables := load(t) // structural schema, CEL compilation and cost
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	var want, got []string
	for kind, goType := range scheme.KnownTypes(v1.GroupVersion) {
		if goType.PkgPath() == "github.com/tidbcloud/infra-orchestrator/api/v1" && !strings.HasSuffix(kind, "List") {
			want = append(want, kind)
		}
	}
	for _, table := range tables {
		got = append(got, table.Kind)
	}
	require.ElementsMatch(t, want, got)
	for _, table := range tables {
		k := schemas[table.Kind]
		for name, o := range map[string]map[string]any{"full": must(t)(table.With(nil)), "minimal": must(t)(table.Small(nil))} {
			require.Empty(t, k.Unknown(o), "%s %s: fields that the schema does not know", name, table.Kind)
			require.Empty(t, k.Create(o), "%s %s", name, table.Kind)
			require.Empty(t, k.Update(o, o), "%s %s: a change of nothing", name, table.Kind)
			require.Empty(t, k.Update(k.Default(o), o), "%s %s: defaults are no change", name, table.Kind)
		}
	}
}

func TestRules(t *testing.T) {
	schemas, tables := load(t)
	for _, table := range tables {
		k := schemas[table.Kind]
		for _, c := range table.Cases {
			t.Run(table.Kind+"/"+c.Name, func(t *testing.T) {
				admit := func(changes admissioncases.Changes) field.ErrorList {
					o := must(t)(table.With(changes))
					if c.From == nil {
						return k.Create(o)
					}
					from := must(t)(table.With(*c.From))
					require.Equal(t, c.InProcess == "", len(k.Create(from)) == 0, "inProcess is for objects that an API server does not admit")
					return k.Update(o, from)
				}
				require.Empty(t, admit(c.Pass), "must pass")
				refused := admit(c.Fail)
				require.NotEmpty(t, refused, "must be refused")
				for _, err := range refused {
					if nameOf(err) == c.Path && strings.Contains(err.ErrorBody(), c.Says) {
						return
					}
				}
				t.Errorf("want %s: ...%s...\nhave %v", c.Path, c.Says, refused.ToAggregate())
			})
		}
	}
}

// nameOf is the field of an error, empty for the whole object.
func nameOf(err *field.Error) string {
	if err.Field == "<nil>" {
		return ""
	}
	return err.Field
}

func TestDefaults(t *testing.T) {
	schemas, tables := load(t)
	for _, table := range tables {
		t.Run(table.Kind, func(t *testing.T) {
			want := must(t)(admissioncases.Whole(table.Defaults))
			require.Equal(t, want, schemas[table.Kind].Default(must(t)(table.Small(nil)))["spec"])
		})
	}
}

// An object that is half given gets the other half.
func TestDefaultsInsideOfGivenObjects(t *testing.T) {
	type given = admissioncases.Changes
	schemas, tables := load(t)
	for name, c := range map[string]struct {
		kind    string
		given   given
		path    string
		becomes any
	}{
		"one range":       {"Network", given{"spec.cidr": map[string]any{"vpc": "172.16.0.0/16"}}, "spec.cidr.pods", "100.64.0.0/11"},
		"half a window":   {"Network", given{"spec.maintenanceWindow": map[string]any{"begin": "210000+0000"}}, "spec.maintenanceWindow.end", "230000+0000"},
		"half a pool":     {"Network", given{"spec.systemPool": map[string]any{"maximum": 5}}, "spec.systemPool.minimum", int64(2)},
		"one endpoint":    {"Cluster", given{"spec.endpoints": map[string]any{"public": map[string]any{}}}, "spec.endpoints.private.enabled", true},
		"a backup time":   {"Cluster", given{"spec.backupPolicy": map[string]any{"timeUTC": "03:00"}}, "spec.backupPolicy.retentionDays", int64(7)},
		"encryption {}":   {"Cluster", given{"spec.encryption": map[string]any{}}, "spec.encryption.mode", "ServiceManaged"},
		"one prefix":      {"ProviderType", given{"spec.networkLimits": map[string]any{"minPrefix": 18}}, "spec.networkLimits.maxPrefix", int64(23)},
		"one timeout":     {"ProviderType", given{"spec.timeouts": map[string]any{"wake": "1h"}}, "spec.timeouts.shootDelete", "90m"},
		"TiFlash's class": {"Cluster", given{"spec.topology.tiflash": map[string]any{"replicas": 1, "machineClass": "8C32G", "storage": map[string]any{"size": "1Ti"}}}, "spec.topology.tiflash.storage.class", "Standard"},
		"a dialect":       {"Import", given{"spec.format": "CSV", "spec.csv": map[string]any{"header": false}}, "spec.csv.nullValue", `\N`},
		"a GCP peer":      {"NetworkPeer", given{"spec.target": nil, "spec.external": map[string]any{"gcp": map[string]any{"projectID": "cust-prod", "network": "default"}}}, "spec.external.gcp.exportCustomRoutes", true},
		"half of tls":     {"TiCDC", given{"spec.tls": map[string]any{"enabled": false}}, "spec.tls.certDuration", "8760h"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, table := range tables {
				if table.Kind != c.kind {
					continue
				}
				o := must(t)(table.Small(c.given))
				require.Empty(t, schemas[c.kind].Create(o))
				got, found, err := unstructured.NestedFieldNoCopy(schemas[c.kind].Default(o), strings.Split(c.path, ".")...)
				require.NoError(t, err)
				require.True(t, found, c.path)
				require.Equal(t, c.becomes, got)
				return
			}
			t.Fatal("no such kind")
		})
	}
}

// Every kind has an example in the API reference, and it is valid.
func TestExamples(t *testing.T) {
	schemas, tables := load(t)
	reference, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	examples, err := admissioncases.Examples(string(reference))
	require.NoError(t, err)
	for _, table := range tables {
		o := examples[table.Kind]
		require.NotNil(t, o, "docs/api.md has no example of %s", table.Kind)
		require.Empty(t, schemas[table.Kind].Unknown(o))
		require.Empty(t, schemas[table.Kind].Create(o))
	}
}
