package workflowtest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// also are the forms that a history of a form has as well.
var also = map[Form][]Form{ShootFailed: {Stalled}, Dependents: {Stalled}, Replaced: {Success}}

// What proves a form must not pass for another one: each golden history is of
// the form that its name says, and of no other.
func TestProofsTellFormsApart(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "*", histories, "*.json*"))
	require.NoError(t, err)
	all := []Form{Success, Stalled, Cancelled, Preempted, Forced, Retained, ShootFailed, Dependents, Replaced}
	seen := map[Form]int{}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".gz"), ".json")
		if strings.HasPrefix(name, "Object") || strings.HasSuffix(name, "BalanceReplicas") {
			continue
		}
		is := Success
		if _, form, ok := strings.Cut(name, "."); ok {
			is = Form(form)
		}
		seen[is]++
		h := load(t, f)
		for _, form := range all {
			if form == is || slices.Contains(also[is], form) {
				require.NoError(t, proves(form, h), "%s is no %s", f, form)
			} else {
				require.Error(t, proves(form, h), "%s passes for %s", f, form)
			}
		}
	}
	for _, form := range all {
		require.NotZero(t, seen[form], form)
	}
}

// An object workflow that has started its operation does not attach to it; one
// that waits for an operation has not attached before that has ended.
func TestProofOfAttaching(t *testing.T) {
	folder := filepath.Join("..", "network", histories)
	h := load(t, filepath.Join(folder, "ObjectCreateNetwork."+string(Attached)+".json.gz"))
	require.NoError(t, attaches(h, "CreateNetwork"))
	for i, e := range h.GetEvents() {
		if e.GetActivityTaskCompletedEventAttributes() != nil {
			h.Events = h.GetEvents()[:i]
			break
		}
	}
	require.Error(t, attaches(h, "CreateNetwork"), "the wait has not ended")
	require.Error(t, attaches(load(t, filepath.Join(folder, "ObjectCreateNetwork.json")), "CreateNetwork"))
}
