package admissioncases

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChanges(t *testing.T) {
	k := Kind{Kind: "Network", Object: map[string]any{
		"metadata": map[string]any{"name": "n1"},
		"spec":     map[string]any{"zones": []any{"a", "b"}, "pools": []any{map[string]any{"size": 1}}},
	}}
	for name, c := range map[string]struct {
		changes Changes
		spec    map[string]any
	}{
		"none":         {nil, map[string]any{"zones": []any{"a", "b"}, "pools": []any{map[string]any{"size": int64(1)}}}},
		"a new object": {Changes{"spec.dns.mode": "x", "spec.pools": nil}, map[string]any{"zones": []any{"a", "b"}, "dns": map[string]any{"mode": "x"}}},
		"in a list":    {Changes{"spec.pools.0.size": 2, "spec.zones.1": "c"}, map[string]any{"zones": []any{"a", "c"}, "pools": []any{map[string]any{"size": int64(2)}}}},
		"no such":      {Changes{"spec.other": nil, "spec.pools": nil}, map[string]any{"zones": []any{"a", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := k.With(c.changes)
			require.NoError(t, err)
			require.Equal(t, "cloud.pingcap.com/v1", o["apiVersion"])
			require.Equal(t, c.spec, o["spec"])
		})
	}
	for _, path := range []string{"spec.zones.2", "spec.zones.x", "spec.zones.0.name", "metadata.name.first"} {
		_, err := k.With(Changes{path: 1})
		require.ErrorContains(t, err, path)
	}
	again, err := k.With(nil)
	require.NoError(t, err)
	require.Equal(t, []any{"a", "b"}, again["spec"].(map[string]any)["zones"], "the object itself has not changed")
}

func TestExamplesOfMarkdown(t *testing.T) {
	got, err := Examples("# A\n```yaml\n# first\nkind: A\nsize: 1\n```\ntext\n```yaml\nkind: B\n```\n")
	require.NoError(t, err)
	require.Equal(t, map[string]map[string]any{"A": {"kind": "A", "size": int64(1)}, "B": {"kind": "B"}}, got)
	_, err = Examples("\n```yaml\na: [\n```\n")
	require.Error(t, err)
}
