package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// welcome is the one screen that says where things are and what to do next.
func (s *Stack) welcome(self string, removed bool) string {
	st := s.state
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("")
	line("  Temporal UI     %s", st.TemporalUI)
	line("  kubeconfig      %s", st.Kubeconfig)
	line("  control API     %s   (faults, kills, outages; GET / explains)", st.Control)
	line("  AWS emulator    %s", st.AWS)
	line("  logs            %s", st.Logs)
	if removed {
		line("  state           %s (temporary; --data-dir keeps it)", st.DataDir)
	} else {
		line("  state           %s (kept)", st.DataDir)
	}
	line("")
	line("Type next, in another terminal:")
	line("")
	env := self + " env"
	if !removed {
		env += " --data-dir " + st.DataDir
	}
	line("  eval \"$(%s)\"", env)
	line("  %s kubectl -n %s get networks,clusters -w", self, st.Namespace)
	describe := self + " kubectl -n " + st.Namespace + " describe cluster c1"
	if infractl := filepath.Join(filepath.Dir(self), "infractl"); isFile(infractl) {
		describe = infractl + " describe cluster c1"
	}
	line("  %s", describe)
	return b.String()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
