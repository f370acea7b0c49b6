package v1

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What status says is explained in the reference, value by value: nobody can
// ask the author of a manifest what is meant.
func TestEveryValueOfStatusIsExplained(t *testing.T) {
	raw, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) ?\\|$")
	for _, kind := range []string{"Phase", "OperationState", "StepState", "ResourceState"} {
		_, section, found := strings.Cut(string(raw), "\n#### "+kind+"\n")
		require.True(t, found, kind)
		section, _, _ = strings.Cut(section, "\n#### ")
		values := row.FindAllStringSubmatch(section, -1)
		require.GreaterOrEqual(t, len(values), 5, kind)
		for _, v := range values {
			require.NotEmpty(t, strings.TrimSpace(v[2]), "%s %s", kind, v[1])
		}
	}
}
