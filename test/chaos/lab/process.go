package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// spawner starts all children on one thread that lasts: the kernel delivers the
// parent-death signal when the thread that started the child ends.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// spec says how to run a process.
type spec struct {
	name, path string
	args, env  []string
	log        string // appended to
}

// keeper keeps a process alive: one that ends is started again at once, as a
// Deployment would.
type keeper struct {
	spec   spec
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	starts int
	// ends are ends that nobody asked for: other than by SIGKILL.
	ends []string
}

func keep(s spec) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{spec: s, cancel: cancel, done: make(chan struct{})}
	go k.run(ctx)
	return k
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	for ctx.Err() == nil {
		began := time.Now()
		err := k.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if !killed(err) {
			k.mu.Lock()
			k.ends = append(k.ends, fmt.Sprintf("%s ended by itself after %s: %v, see %s", k.spec.name, time.Since(began).Round(time.Millisecond), err, k.spec.log))
			k.mu.Unlock()
			select { // a process that cannot start must not spin
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}
}

// once runs the process to its end. When ctx ends it is asked to end.
func (k *keeper) once(ctx context.Context) error {
	out, err := os.OpenFile(k.spec.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, k.spec.path, k.spec.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = k.spec.env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return err
	}
	k.mu.Lock()
	k.starts++
	k.mu.Unlock()
	return cmd.Wait()
}

// stop ends the process for good.
func (k *keeper) stop() { k.cancel(); <-k.done }

// unexpected lists ends other than by SIGKILL.
func (k *keeper) unexpected() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ends
}

func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
