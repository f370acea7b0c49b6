package runtime

import (
	"runtime"
	"runtime/debug"
)

// version is set by the build: -ldflags "-X …/internal/runtime.version=v1.2.3".
var version string

// Version returns the version of this build: the one that the build set, else
// the module version that Go recorded, else "devel".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// VersionLine is one line for --version, such as
// "bridge v1.2.3 (go1.26.8, linux/amd64)".
func VersionLine(process string) string {
	return process + " " + Version() + " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
