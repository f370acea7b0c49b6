// Package references keeps out of the tree what its readers cannot look up:
// notes, numbers and codes of documents that are not part of it. What such a
// document says is said where it is needed, and upstream sources are URLs.
package references

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// code is how worked cases of other documents were numbered: S2, T18. S3 is
// Amazon's.
const code = `[IRTU][0-9]{1,2}|S[12456789]`

// strangers are references to what is not in the tree.
var strangers = map[string]*regexp.Regexp{
	"a document":        regexp.MustCompile(`\b(design|kinds|infrastructure|originals|issue[0-9]*)\.md\b|\bfacts/[a-z]`),
	"an issue":          regexp.MustCompile(`\b[Ii]ssues? [0-9]+\b|\b(later|earlier|next|future) issues?\b|\bissues? to come\b`),
	"a report":          regexp.MustCompile(`\b[Rr]eports? R?[0-9]+\b`),
	"an earlier system": regexp.MustCompile(`\bseed's(:|,| look-ups| list)|\b(of|what) the seed( says| lists|\b \()|infra-provider\.json`),
	"a worked case":     regexp.MustCompile(`\((` + code + `)(, (` + code + `))*[):,]|\b[Cc]ases? (` + code + `)\b|// (` + code + `)(, | and | to |: )|\bis (` + code + `)(:| to )|"(` + code + `)( mended)?"`),
	"a repository":      regexp.MustCompile(`\b[A-Z]:(pkg|charts|cmd|docs|internal)/`),
}

// TestNothingRefersToWhatIsNotInTheTree goes over all texts of the tree.
func TestNothingRefersToWhatIsNotInTheTree(t *testing.T) {
	seen := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".cache", ".devstack", "bin", "dist", "testdata", "node_modules"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !isText(path) || strings.HasPrefix(d.Name(), "zz_generated") || strings.HasSuffix(path, "internal/references/references_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for what, stranger := range strangers {
			for _, at := range stranger.FindAllIndex(content, -1) {
				line := 1 + bytes.Count(content[:at[0]], []byte("\n"))
				t.Errorf("%s:%d names %s that no reader has, %q: say what it means", strings.TrimPrefix(path, root+"/"), line, what, content[at[0]:at[1]])
			}
		}
		return nil
	}))
	require.Greater(t, seen, 500, "it looks at the whole tree")
}

// isText says whether people read the file.
func isText(path string) bool {
	if slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".sh"}, filepath.Ext(path)) {
		return true
	}
	base, folder := filepath.Base(path), filepath.Base(filepath.Dir(path))
	return base == "Makefile" || base == "Dockerfile" || (folder == "hack" || folder == ".ci") && filepath.Ext(path) == ""
}

func TestStrangers(t *testing.T) {
	for text, is := range map[string]bool{
		"by infrastructure.md 1.4: the":                    true,
		"(issue 3, item 1)":                                true,
		"is lost (T18), one moved":                         true,
		"for ever (T18, T19); ours":                        true,
		"// Worked case T10, and its end":                  true,
		"// S5 and report 1: flipping":                     true,
		"(report 10)":                                      true,
		`{"U2 mended", []string{"old a"}`:                  true,
		"The sweep for orphans (issue to come)":            true,
		"left for later issues:":                           true,
		"(G:pkg/utils/gardener X).":                        true,
		"https://github.com/gardener/gardener/issues/1234": false,
		`Type in that system's terms, "S3::Bucket"`:        false,
		"s3.AWSConfig[C]":                                  false,
		"the Shoot's seed has no capacity":                 false,
		"the seed that a run begins with":                  false,
		`{"S3", "HeadBucket"}`:                             false,
	} {
		found := false
		for _, stranger := range strangers {
			found = found || stranger.MatchString(text)
		}
		require.Equal(t, is, found, text)
	}
}
