package webhooks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
)

// Every rule: what passes, what is refused, and in which words. The same table
// is put to an API server by test/admission.
func TestCases(t *testing.T) {
	cases, err := loadCases()
	require.NoError(t, err)
	count := 0
	for _, k := range cases.kinds {
		for _, c := range k.Cases {
			count++
			t.Run(k.Kind+"/"+c.Name, func(t *testing.T) { runCase(t, cases.world, &k, c) })
		}
	}
	require.Greater(t, count, 130)
}

func runCase(t *testing.T, plain admissioncases.World, k *admissioncases.WebhookKind, c admissioncases.WebhookCase) {
	given := given(t, plain, c.Given)
	if c.Pass != nil || c.PassGiven {
		in := plain.Objects
		if c.PassGiven {
			in = given
		}
		r, _ := newWorld(t, in...).ask(operationOf(c), before(t, k, c), object(t, k, c.Pass))
		require.True(t, r.Allowed, "passes: %v", r.Result)
	}
	if c.Delete {
		r, _ := newWorld(t, given...).ask(admissionv1.Delete, object(t, k, c.Fail), nil)
		require.True(t, r.Allowed)
		require.Contains(t, strings.Join(r.Warnings, "\n"), c.Warns)
		return
	}
	w := newWorld(t, given...)
	r, _ := w.ask(operationOf(c), before(t, k, c), object(t, k, c.Fail))
	if c.Warns != "" {
		require.True(t, r.Allowed, "%v", r.Result)
		require.Contains(t, strings.Join(r.Warnings, "\n"), c.Warns)
		return
	}
	found := []string{}
	for _, cause := range refusals(t, r) {
		if cause.Field == c.Path && strings.Contains(cause.Message, c.Says) {
			return
		}
		found = append(found, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
	}
	t.Errorf("want %s: %s\ngot  %s", c.Path, c.Says, strings.Join(found, "\n     "))
}

func operationOf(c admissioncases.WebhookCase) admissionv1.Operation {
	if c.From != nil {
		return admissionv1.Update
	}
	return admissionv1.Create
}

func before(t *testing.T, k *admissioncases.WebhookKind, c admissioncases.WebhookCase) map[string]any {
	if c.From == nil {
		return nil
	}
	return object(t, k, *c.From)
}

func object(t *testing.T, k *admissioncases.WebhookKind, changes admissioncases.Changes) map[string]any {
	t.Helper()
	o, err := k.With(changes)
	require.NoError(t, err)
	return defaulted(t, o)
}

// given is the world with changes.
func given(t *testing.T, w admissioncases.World, changes map[string]*admissioncases.Changes) []map[string]any {
	t.Helper()
	var out []map[string]any
	used := 0
	for _, o := range w.Objects {
		meta, _ := o["metadata"].(map[string]any)
		change, ok := changes[fmt.Sprintf("%s/%s", o["kind"], meta["name"])]
		if !ok {
			out = append(out, o)
			continue
		}
		used++
		if change == nil {
			continue
		}
		changed, err := admissioncases.Change(o, *change)
		require.NoError(t, err)
		out = append(out, changed)
	}
	require.Len(t, changes, used, "every change is of an object of the world")
	return out
}
