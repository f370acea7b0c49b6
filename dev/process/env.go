package process

import (
	"os"
	"slices"
	"strings"
)

// inherited are the variables that a child gets from this process. Nothing
// else: whoever has credentials of a real cloud, or the address of a real
// cluster, in the environment must not have a devstack use them.
var inherited = []string{
	"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GOMAXPROCS", "GODEBUG", "GOCOVERDIR",
}

// Environment returns what every child may know of this process's environment,
// followed by the given variables ("KEY=value").
func Environment(variables ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(inherited, name) {
			env = append(env, variable)
		}
	}
	return append(env, variables...)
}
