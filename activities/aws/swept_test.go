package aws

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// taggers are all places that tag with an identity, or have it tagged by a
// controller of the shoot, with the types of what gets the tag.
var taggers = map[string][]string{
	"bucket.go tags":            {typeBucket},
	"key.go create":             {typeKey},
	"role.go exist":             {typeRole},
	"oidc.go create":            {typeOIDC},
	"zone.go tag":               {typeZone},
	"endpointservice.go create": {typeEndpoint},
	"inshoot.go ebsParameters":  {typeVolume},
	"inshoot.go annotateNLB":    {typeLB, typeTargets, typeGroup}, // with listeners and rules, which go with it
}

// TestWhateverTagsIsSwept derives from the sources what gets our tag, and
// compares it with what a sweep asks for. A new place fails it until the table
// says what it tags, and a sweep lists that.
func TestWhateverTagsIsSwept(t *testing.T) {
	var places []string
	for _, dir := range []string{".", "../../builders"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				places = append(places, tagsIn(t, f)...)
			}
		}
	}
	require.Greater(t, len(places), 6, "where we tag is not found any more")
	s := &sweep{in: contract.SweepInput{TechnicalID: "shoot--a--b"}}
	var types []string
	for _, part := range s.byIdentity() {
		types = append(types, part.types...)
	}
	for _, place := range places {
		require.Contains(t, taggers, place, "what does it tag? name the type here, and sweep for it")
		require.Subset(t, types, taggers[place], "%s tags it, and no sweep asks for it", place)
	}
	for place := range taggers {
		require.Contains(t, places, place, "it tags no more")
	}
	// What Gardener tags with the cluster and what costs, or keeps a VPC.
	var ofCluster []string
	for _, part := range s.byCluster() {
		ofCluster = append(ofCluster, part.types...)
	}
	require.ElementsMatch(t, []string{typeVPC, typeNAT, typeAddress, typeInstance, typeVolume, typeLB, typeGroup, typeInterface}, ofCluster)
}

// tagsIn finds the functions of a file that tag in the cloud: by
// identityTags, by a StorageClass's tagSpecification, by the annotation for
// tags of a Service.
func tagsIn(t *testing.T, file string) (places []string) {
	t.Helper()
	parsed, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		place := filepath.Base(file) + " " + f.Name.Name
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.Ident); ok && called.Name == "identityTags" {
					places = append(places, place)
				}
			case *ast.BasicLit:
				if strings.Contains(n.Value, "tagSpecification") || strings.Contains(n.Value, "additional-resource-tags") {
					places = append(places, place)
				}
			}
			return true
		})
	}
	return slices.Compact(places)
}
