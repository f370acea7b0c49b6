// Package stack starts the processes of a benchmark, each alone in its process
// so that what it costs can be told apart, and reads what they have used.
package stack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 30 * time.Second
)

// Process is a running child that has said that it is ready.
type Process struct {
	Name  string
	cmd   *exec.Cmd
	log   *os.File
	ended chan error
}

// Start starts a program and decodes the line of JSON that it prints when it
// is ready into hello. Its log goes to dir. It is killed when this process ends.
func Start(ctx context.Context, dir, name string, hello any, program string, args ...string) (*Process, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stderr = environment(), log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, cmd: cmd, log: log, ended: make(chan error, 1)}
	if err := startHere(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w (make build makes it)", name, err)
	}
	line := make(chan error, 1)
	go func() {
		reader := bufio.NewReader(out)
		first, err := reader.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(first, hello)
		}
		line <- err
		_, _ = reader.WriteTo(log)
		p.ended <- cmd.Wait()
	}()
	select {
	case err = <-line:
	case <-time.After(startTimeout):
		err = fmt.Errorf("not ready after %s", startTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w, see %s", name, err, log.Name()), p.Stop())
	}
	return p, nil
}

// spawn starts children on one thread that lasts: the kernel kills them when
// the thread that started them ends.
var spawn = func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
}()

func startHere(cmd *exec.Cmd) error {
	result := make(chan error)
	spawn <- func() { result <- cmd.Start() }
	return <-result
}

// environment is ours without anything that leads to a real cluster or cloud.
func environment() (env []string) {
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOGC", "GOMAXPROCS", "GODEBUG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Stop ends the process and waits for it.
func (p *Process) Stop() error {
	defer p.log.Close()
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-p.ended: //nolint:errcheck // a process that is asked to end ends with an error
		return nil
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended //nolint:errcheck // it was killed, so how it ended says nothing
		return fmt.Errorf("%s did not stop within %s and was killed", p.Name, stopTimeout)
	}
}

// PID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }
