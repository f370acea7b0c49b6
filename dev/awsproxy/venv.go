package awsproxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the list of Python packages
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// MotoVersion is the emulator's version, as pinned in requirements.txt.
const MotoVersion = "5.2.5"

//go:embed requirements.txt
var requirements string

// minPython is the oldest Python that moto's pinned packages support.
const minPython = "3.10"

// checkPython prints the version, or fails when it is too old or lacks what
// venv needs. Debian ships venv without ensurepip.
const checkPython = `import sys
if sys.version_info < (3, 10): print("old", sys.version.split()[0]); sys.exit(3)
try:
    import venv, ensurepip
except ImportError as e: print(e); sys.exit(4)
print(sys.version.split()[0])`

// EnsureMoto makes a virtual environment with moto under cacheDir, or reuses the
// one that an earlier run made from the same list, and returns its python. It
// tells progress in short sentences. Making it takes 10 to 30 s and needs PyPI
// (pip's usual settings and environment apply).
func EnsureMoto(ctx context.Context, cacheDir string, progress func(string)) (python string, err error) {
	if progress == nil {
		progress = func(string) {}
	}
	base, version, err := findPython(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(version + "\n" + requirements))
	dir := filepath.Join(cacheDir, "moto-"+MotoVersion+"-"+hex.EncodeToString(sum[:6]))
	python = filepath.Join(dir, "bin", "python")
	stamp := filepath.Join(dir, "complete")
	if _, err := os.Stat(stamp); err == nil && exec.CommandContext(ctx, python, "-c", "import moto").Run() == nil {
		return python, nil
	}
	// A start that is broken off says nothing of the environment, which other
	// stacks may be using.
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	// A folder without the stamp is what an interrupted run left.
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("remove an unfinished Python environment: %w", err)
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	progress(fmt.Sprintf("AWS emulator: making a Python %s environment in %s", version, dir))
	if err := run(ctx, base, "-m", "venv", dir); err != nil {
		return "", fmt.Errorf("make a Python virtual environment: %w", err)
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements), 0o600); err != nil {
		return "", fmt.Errorf("write the list of Python packages: %w", err)
	}
	progress("AWS emulator: installing moto " + MotoVersion + " from PyPI (once, about 15 s)")
	err = run(ctx, python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-input", "--disable-pip-version-check", "-r", list)
	if err != nil {
		return "", fmt.Errorf("install moto %s from PyPI (is the network there? behind a proxy set PIP_INDEX_URL): %w", MotoVersion, err)
	}
	if err := run(ctx, python, "-c", "import moto.moto_server.werkzeug_app, waitress"); err != nil {
		return "", fmt.Errorf("the installed moto does not load: %w", err)
	}
	if err := os.WriteFile(stamp, nil, 0o600); err != nil {
		return "", fmt.Errorf("mark the Python environment as complete: %w", err)
	}
	return python, nil
}

// findPython returns the path and version of a python3 that can make virtual
// environments, or says what to install.
func findPython(ctx context.Context) (path, version string, err error) {
	path, err = exec.LookPath("python3")
	if err != nil {
		return "", "", fmt.Errorf("python3 is not on the PATH; the AWS emulator needs Python %s or newer with venv", minPython)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "-c", checkPython)
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	text := strings.TrimSpace(out.String())
	var exit *exec.ExitError
	switch {
	case err == nil:
		return path, text, nil
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		return "", "", fmt.Errorf("%s is Python %s; the AWS emulator needs %s or newer", path, strings.TrimPrefix(text, "old "), minPython)
	case errors.As(err, &exit) && exit.ExitCode() == 4:
		return "", "", fmt.Errorf("%s cannot make virtual environments (%s); on Debian and Ubuntu: apt-get install python3-venv", path, text)
	}
	return "", "", fmt.Errorf("%s does not run: %w: %s", path, err, text)
}

// run runs a command and puts the end of its output into the error.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err == nil {
		return nil
	}
	const most = 2000
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(out))
}
