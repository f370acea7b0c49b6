package lifecycle_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const workflows = "github.com/tidbcloud/infra-orchestrator/workflows/"

// The object and the operation know each other by what this package says only,
// and the kinds know nothing of the object.
func TestWhoImportsWhom(t *testing.T) {
	forbidden := map[string][]string{
		"lifecycle": {"object", "operation", "network", "cluster", "provider"},
		"object":    {"operation", "network", "cluster", "provider"},
		"operation": {"object", "network", "cluster", "provider"},
		"network":   {"object", "cluster", "provider"},
		"cluster":   {"object", "network", "provider"},
		"provider":  {"object", "cluster", "network"},
	}
	for room, others := range forbidden {
		files, err := filepath.Glob(filepath.Join("..", room, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, room)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, i := range parsed.Imports {
				path, err := strconv.Unquote(i.Path.Value)
				require.NoError(t, err)
				require.NotContains(t, others, strings.TrimPrefix(path, workflows), "%s imports it", file)
			}
		}
	}
}
