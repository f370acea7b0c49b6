// Package archtest checks the arrows between the parts of this module:
// cmd → workers → activities, workflows → contract, faults, api; bridge →
// admission → plan → api.
package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/tidbcloud/infra-orchestrator/"

// pkg is a package of this module with its imports, tests' included, and
// everything that its build links.
type pkg struct {
	imports, deps []string
}

// packages asks the go command once for all packages of the module.
var packages = sync.OnceValues(func() (map[string]pkg, error) {
	// A look at every source file tells the go command's test cache that this
	// test depends on it.
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	const format = `{{.ImportPath}}|{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}|{{join .Deps " "}}`
	cmd := exec.Command("go", "list", "-e", "-f", format, module+"...")
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, &exec.Error{Name: "go list: " + stderr.String(), Err: err}
	}
	found := map[string]pkg{}
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		found[strings.TrimPrefix(parts[0], module)] = pkg{imports: strings.Fields(parts[1]), deps: strings.Fields(parts[2])}
	}
	return found, nil
})

func load(t *testing.T) map[string]pkg {
	t.Helper()
	found, err := packages()
	require.NoError(t, err)
	for _, name := range []string{"bridge", "cmd/bridge", "workflows/lifecycle", "activities/contract", "api/v1"} {
		require.Contains(t, found, name, "go list finds the module")
	}
	return found
}

// within reports whether a package is folder or under it.
func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// No part links more than it needs: who links a cloud SDK can call a cloud.
func TestLinks(t *testing.T) {
	sdks := []string{"github.com/aws/aws-sdk-go", "cloud.google.com/go"}
	for folder, forbidden := range map[string][]string{
		"bridge":              append([]string{"github.com/gardener/"}, sdks...),
		"cmd/bridge":          append([]string{"github.com/gardener/"}, sdks...),
		"cmd/infractl":        append([]string{"github.com/gardener/"}, sdks...),
		"workflows":           sdks,
		"api":                 append([]string{"github.com/gardener/"}, sdks...),
		"faults":              sdks,
		"plan":                sdks,
		"admission":           append([]string{"github.com/gardener/"}, sdks...),
		"builders":            sdks,
		"activities/contract": sdks,
		"internal/runtime":    append([]string{"github.com/gardener/"}, sdks...),
	} {
		for name, p := range load(t) {
			if !within(name, folder) {
				continue
			}
			for _, dep := range p.deps {
				for _, f := range forbidden {
					if strings.HasPrefix(dep, f) {
						t.Errorf("%s links %s", name, dep)
					}
				}
			}
		}
	}
}

// The worker does link the AWS SDK: were it not so, TestLinks would look for
// the wrong thing.
func TestLinksSeesTheSDK(t *testing.T) {
	found := false
	for _, dep := range load(t)["cmd/worker"].deps {
		found = found || strings.HasPrefix(dep, "github.com/aws/aws-sdk-go")
	}
	require.True(t, found)
}

// Arrows point one way. The right side lists which folders of this module the
// left side may import, itself always.
func TestArrows(t *testing.T) {
	allowed := map[string][]string{
		"api":                 {"internal/admissioncases"}, // the table of its tests, which imports nothing of ours
		"faults":              {"api"},
		"activities/contract": {"api", "faults"},
		"plan":                {"api", "faults", "activities/contract"},
		"builders":            {"api", "faults", "activities/contract", "activities/configservice", "plan"},
		"workflows":           {"api", "faults", "activities/contract"},
		"admission":           {"api", "plan"},
		"bridge":              {"api", "admission", "plan", "internal/admissioncases"},
		"internal/runtime":    {"api"},
		"cmd/bridge":          {"api", "bridge", "internal", "plan"},
		"cmd/infractl":        {"api", "internal"},
	}
	for folder, may := range allowed {
		for name, p := range load(t) {
			if !within(name, folder) {
				continue
			}
			for _, imported := range p.imports {
				local, ours := strings.CutPrefix(imported, module)
				if !ours || within(local, folder) || allowedIn(local, may) {
					continue
				}
				t.Errorf("%s imports %s; %s may import %s only", name, local, folder, strings.Join(may, ", "))
			}
		}
	}
}

func allowedIn(local string, may []string) bool {
	for _, m := range may {
		if within(local, m) {
			return true
		}
	}
	return false
}

// Commands and workers are on top: nothing below imports them; activities and
// workflows know each other by contract only.
func TestNothingImportsUpwards(t *testing.T) {
	for name, p := range load(t) {
		for _, imported := range p.imports {
			local, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			switch {
			case within(local, "cmd") && !within(name, local):
				t.Errorf("%s imports the command %s", name, local)
			case within(local, "workers") && !within(name, "cmd") && !within(name, "workers"):
				t.Errorf("%s imports %s; only commands do", name, local)
			case within(local, "workflows") && within(name, "activities"):
				t.Errorf("%s imports %s; activities know no workflow", name, local)
			}
		}
	}
}
