//go:build unix

package supervisor

import (
	"errors"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// redirectStderr makes f this process's standard error until restore. Should
// the process crash meanwhile, the crash is written to both.
func redirectStderr(f *os.File) (restore func(), err error) {
	const stderr = 2
	saved, err := unix.Dup(stderr)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(saved)
	screen := os.NewFile(uintptr(saved), "stderr")
	if err := errors.Join(debug.SetCrashOutput(screen, debug.CrashOptions{}), unix.Dup2(int(f.Fd()), stderr)); err != nil {
		return nil, errors.Join(err, screen.Close())
	}
	return func() {
		_ = unix.Dup2(saved, stderr)
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_ = screen.Close()
	}, nil
}
