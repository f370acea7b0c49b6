package builders

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheMistakeDoesNotCompile is about a mistake that is easily made: a Shoot on one cloud with the
// configuration of another. Each file of testdata/mistakes is type-checked as
// if it were part of this package, and must fail as it says.
func TestTheMistakeDoesNotCompile(t *testing.T) {
	imports := compiled(t)
	fset := token.NewFileSet()
	sources := sourceFiles(t, fset)
	mistakes, err := filepath.Glob(filepath.Join("testdata", "mistakes", "*.go"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(mistakes), 8)
	wrong := regexp.MustCompile(`(?m)^// wrong: (.*)$`)
	for _, path := range mistakes {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			file, err := parser.ParseFile(fset, path, text, 0)
			require.NoError(t, err)
			var found []string
			config := types.Config{Importer: imports(fset), Error: func(err error) { found = append(found, err.Error()) }}
			_, _ = config.Check("builders", fset, append(sources[:len(sources):len(sources)], file), nil)
			says := wrong.FindSubmatch(text)
			if says == nil {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1, "%v", found)
			require.Contains(t, found[0], path, "the mistake is in that file")
			require.Contains(t, found[0], string(says[1]))
		})
	}
}

// compiled imports packages from what the go command has compiled for this
// package's build.
func compiled(t *testing.T) func(*token.FileSet) types.Importer {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", `{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}`, ".").Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[name] = file
	}
	return func(fset *token.FileSet) types.Importer {
		return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	}
}

func sourceFiles(t *testing.T, fset *token.FileSet) (out []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(fset, name, nil, 0)
			require.NoError(t, err)
			out = append(out, file)
		}
	}
	return out
}

// A blob that is made elsewhere would go round the types: only encode makes a
// RawExtension of bytes, in the whole product.
func TestOnlyEncodeMakesBlobs(t *testing.T) {
	var makers []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch filepath.ToSlash(path) {
			case "../dev", "../test", "../tools", "../hack", "../bin": // other modules, and nothing of ours
				return fs.SkipDir
			}
			if name := d.Name(); name == "testdata" || name != ".." && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_generated") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CompositeLit); ok && len(c.Elts) > 0 {
				if s, ok := c.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "RawExtension" {
					makers = append(makers, filepath.ToSlash(path))
				}
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"../builders/cloud.go"}, makers)
}
