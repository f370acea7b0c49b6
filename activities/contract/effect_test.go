package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// declared lists the activities of this package by their Go name, from its
// source: a new one cannot be forgotten here.
func declared(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if name := activityName(value); name != "" {
						found[n.Names[i].Name] = name
					}
				}
			case *ast.KeyValueExpr: // of a cloud's row
				if name := activityName(n.Value); name != "" {
					found[name] = name
				}
			}
			return true
		})
	}
	require.Greater(t, len(found), 40, "the contract is not found any more")
	return found
}

// activityName is the Name in Activity[In, Out]{Name: "..."}; empty for
// anything else.
func activityName(e ast.Expr) string {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	generic, ok := literal.Type.(*ast.IndexListExpr)
	if !ok {
		return ""
	}
	if id, ok := generic.X.(*ast.Ident); !ok || id.Name != "Activity" {
		return ""
	}
	for _, element := range literal.Elts {
		pair := element.(*ast.KeyValueExpr)
		if pair.Key.(*ast.Ident).Name == "Name" {
			name, _ := strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
			return name
		}
	}
	return ""
}

func TestEveryActivityIsClassified(t *testing.T) {
	for _, activity := range declared(t) {
		_, known := contract.EffectOf(activity)
		require.True(t, known, "%s: add the verb of its name to effects, in effect.go: is it audited?", activity)
		require.Equal(t, 1, strings.Count(activity, "."), "%s is <system>.<name>", activity)
	}
}

// What changes the world, by name: a verb that is classified wrongly shows
// here, and so does an activity whose name hides that it changes something.
func TestEffects(t *testing.T) {
	for activity, want := range map[string]contract.Effect{
		contract.AWS.EnsureBucket.Name: contract.Mutates, contract.AWS.DeleteKey.Name: contract.Mutates, contract.RetryShoot.Name: contract.Mutates,
		contract.BootstrapShoot.Name: contract.Mutates, contract.CleanShoot.Name: contract.Mutates, contract.RemoveFinalizer.Name: contract.Mutates,
		contract.EnsureRootPassword.Name: contract.Mutates, contract.DeleteDatabase.Name: contract.Mutates,
		contract.ReadObject.Name: contract.Reads, contract.WaitShootReady.Name: contract.Reads, contract.AWS.Sweep.Name: contract.Reads,
		contract.WaitBootstrapped.Name: contract.Reads, contract.AWS.VerifyCredentials.Name: contract.Reads, contract.AWS.DiscoverVPC.Name: contract.Reads,
		contract.ApplyObjectStatus.Name: contract.Tells, contract.ApplyOperationStatus.Name: contract.Tells,
	} {
		got, known := contract.EffectOf(activity)
		require.True(t, known, activity)
		require.Equal(t, want, got, activity)
	}
}

func TestUnknownIsAudited(t *testing.T) {
	for _, activity := range []string{"aws.Frobnicate", "aws.ensureBucket", "", "aws."} {
		effect, known := contract.EffectOf(activity)
		require.False(t, known, activity)
		require.Equal(t, contract.Mutates, effect, activity)
	}
}

// Whether Gone out of an activity is final goes by its verb, too.
func TestRemoves(t *testing.T) {
	for _, activity := range declared(t) {
		switch verb := contract.VerbOf(activity); verb {
		case "Clean", "Delete", "Remove":
			require.True(t, contract.Removes(activity), activity)
		default:
			require.False(t, contract.Removes(activity), activity)
		}
	}
}
