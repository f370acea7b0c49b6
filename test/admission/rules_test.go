package admission

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
)

// The API server refuses what the table says, in its words, and admits the
// object beside it.
func TestRules(t *testing.T) {
	var refusals atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, table := range server.tables {
			for i, c := range table.Cases {
				if c.InProcess != "" {
					continue // an object that the API server does not admit cannot be changed
				}
				t.Run(table.Kind+"/"+c.Name, func(t *testing.T) {
					t.Parallel()
					name := fmt.Sprintf("case-%d", i)
					admit := dryRun(t, table, c, name)
					require.NoError(t, admit(c.Pass), "must pass")
					requireRefusal(t, admit(c.Fail), c)
					refusals.Add(1)
				})
			}
		}
	})
	t.Logf("%d refusals", refusals.Load())
	require.GreaterOrEqual(t, refusals.Load(), int64(250))
}

// dryRun returns a function that asks the API server about the object of a
// table with changes: as a creation, or as an update of the case's object.
func dryRun(t *testing.T, table admissioncases.Kind, c admissioncases.Case, name string) func(admissioncases.Changes) error {
	build := func(changes admissioncases.Changes) *unstructured.Unstructured {
		o, err := table.With(changes)
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: o}
		u.SetNamespace(namespace)
		if _, given := changes["metadata.name"]; !given {
			u.SetName(name)
		}
		return u
	}
	if c.From == nil {
		return func(changes admissioncases.Changes) error {
			return server.client.Create(t.Context(), build(changes), client.DryRunAll, strictly)
		}
	}
	from := build(*c.From)
	require.NoError(t, server.client.Create(t.Context(), from, strictly))
	return func(changes admissioncases.Changes) error {
		u := build(changes)
		u.SetResourceVersion(from.GetResourceVersion())
		return server.client.Update(t.Context(), u, client.DryRunAll, strictly)
	}
}

// strictly refuses unknown fields, as kubectl does.
const strictly = client.FieldValidation(metav1.FieldValidationStrict)

// requireRefusal wants the field and the words of a case among the causes.
func requireRefusal(t *testing.T, err error, c admissioncases.Case) {
	t.Helper()
	var status apierrors.APIStatus
	require.True(t, errors.As(err, &status), "must be refused: %v", err)
	require.EqualValues(t, http.StatusUnprocessableEntity, status.Status().Code, "%v", err)
	for _, cause := range status.Status().Details.Causes {
		if strings.TrimPrefix(cause.Field, "<nil>") == c.Path && strings.Contains(cause.Message, c.Says) {
			return
		}
	}
	t.Fatalf("want %s: ...%s...\nhave %v", c.Path, c.Says, err)
}
