package lifecycle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernel asks for a verb's traits. It names a verb only where it says which
// one is due.
func TestTheKernelComparesNoVerbs(t *testing.T) {
	verbs := map[string]bool{"Create": true, "Update": true, "Delete": true}
	named := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return verbs[e.Name]
		case *ast.SelectorExpr:
			x, ok := e.X.(*ast.Ident)
			return ok && x.Name == "lifecycle" && verbs[e.Sel.Name]
		case *ast.CallExpr: // string(lifecycle.Delete)
			return len(e.Args) == 1 && verbs[strings.TrimPrefix(exprText(e.Args[0]), "lifecycle.")]
		}
		return false
	}
	for _, room := range []string{".", "../object", "../operation"} {
		files, err := filepath.Glob(filepath.Join(room, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == "decide.go" {
				continue
			}
			fset := token.NewFileSet()
			parsed, err := parser.ParseFile(fset, file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BinaryExpr:
					if (n.Op == token.EQL || n.Op == token.NEQ) && (named(n.X) || named(n.Y)) {
						t.Errorf("%s compares a verb: ask for its traits", fset.Position(n.Pos()))
					}
				case *ast.CaseClause:
					for _, e := range n.List {
						if named(e) {
							t.Errorf("%s compares a verb: ask for its traits", fset.Position(e.Pos()))
						}
					}
				}
				return true
			})
		}
	}
}

func exprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return exprText(e.X) + "." + e.Sel.Name
	}
	return ""
}
