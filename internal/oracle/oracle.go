// Package oracle runs test cases that were computed by the programs which this project replaces.
//
// A case passes, or it is an exception: the original shows a defect that we mended on purpose. An exception is
// recognised by its cause, proven by the test itself (usually by switching the mended behaviour back to the
// original's and seeing the original's answer), so that case files which the author never saw can be run too.
package oracle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// DirVariable names the environment variable with the folder of other case files of the same formats.
const DirVariable = "ORACLE_DIR"

// Verdict is what came of one case.
type Verdict struct {
	// Diff describes the difference to the original's answer, "" if there is none.
	Diff string
	// Cause is a key of the exception table if the test has proven that the difference comes from a mended defect.
	Cause string
}

// Exception is one row of an exception table.
type Exception struct {
	// Quirk is the defect of the original, as marked [Q] in the specification, and what we do instead.
	Quirk string
	// IDs are the cases of the file in testdata that it concerns, in the order of the file.
	IDs []string
}

// Case is a decoded line of a case file.
type Case interface{ CaseID() string }

// Run checks every case of a file, prints cases, passes and exceptions, and fails the test for each difference that
// is not an exception of the table. With the project's own file the exceptions must be exactly those listed; with
// DirVariable set, those of a known cause are accepted whatever their id.
func Run[T Case](t *testing.T, file string, table map[string]Exception, check func(T) Verdict) {
	t.Helper()
	cases, own := read[T](t, file)
	passes, found := 0, map[string][]string{}
	for _, c := range cases {
		verdict := check(c)
		switch _, known := table[verdict.Cause]; {
		case verdict.Diff == "":
			passes++
		case known:
			found[verdict.Cause] = append(found[verdict.Cause], c.CaseID())
		default:
			t.Errorf("%s: differs from the original, cause %q unknown: %s", c.CaseID(), verdict.Cause, verdict.Diff)
		}
	}
	exceptions := 0
	for cause, row := range table {
		ids := found[cause]
		exceptions += len(ids)
		if own && !slices.Equal(ids, row.IDs) {
			t.Errorf("exceptions of cause %q: found %q, the table lists %q", cause, ids, row.IDs)
		}
	}
	t.Logf("%s: %d cases, %d passes, %d exceptions", file, len(cases), passes, exceptions)
	for _, cause := range sorted(found) {
		t.Logf("  exception %s: %s [Q] %s", cause, strings.Join(found[cause], " "), table[cause].Quirk)
	}
}

func read[T any](t *testing.T, file string) (cases []T, own bool) {
	t.Helper()
	dir, foreign := os.LookupEnv(DirVariable)
	if !foreign || dir == "" {
		dir, foreign = "testdata", false
	}
	f, err := os.Open(filepath.Join(dir, file))
	if foreign && errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s=%s holds no %s", DirVariable, dir, file)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var c T
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(fmt.Errorf("%s line %d: %w", file, n, err))
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s holds no case", filepath.Join(dir, file))
	}
	return cases, !foreign
}

func sorted(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
