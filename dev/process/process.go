package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// grace is how long a child may take to end after SIGTERM before it is killed.
const grace = 10 * time.Second

// Spec says how to run a child. It stays the same over restarts.
type Spec struct {
	// Name in the control API, logs and messages. Required.
	Name string
	// Path of the binary, and its arguments without the binary's name.
	Path string
	Args []string
	// Env is the whole environment ("KEY=value"); see Environment.
	Env []string
	// Dir is the working directory; default: this process's own.
	Dir string
	// Log is the file that standard output and error are appended to. Required.
	Log string
	// Ready, when set, says when the child has started: it is polled until it
	// returns nil, the child ends, or the context of Start ends.
	Ready func(ctx context.Context) error
	// FirstLine, when set, gets the first line that the child prints to standard
	// output; Start waits for it. It comes again after each start.
	FirstLine func(line []byte) error
}

// Child is one child process, running or not.
type Child struct {
	spec Spec
	// ended is told when the child ends without having been asked to.
	ended func(c *Child, err error)

	mu      sync.Mutex // guards a start or stop as a whole
	state   sync.Mutex // guards what follows
	cmd     *exec.Cmd  // nil while not running
	since   time.Time
	exit    chan struct{} // closed when cmd has ended
	exitErr error
	asked   bool // to end
}

// New returns a child that does not run yet. ended, which may be nil, is called
// in a goroutine of its own when the child ends without having been asked to.
func New(spec Spec, ended func(c *Child, err error)) *Child {
	return &Child{spec: spec, ended: ended}
}

// Name of the child.
func (c *Child) Name() string { return c.spec.Name }

// Log is the path of its log file.
func (c *Child) Log() string { return c.spec.Log }

// Start runs the child and returns when it is ready. A child that runs already
// is left as it is. When it does not become ready it is killed.
func (c *Child) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Info().Running {
		return nil
	}
	firstLine, err := c.spawn()
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", c.spec.Name, err)
	}
	if err := c.waitReady(ctx, firstLine); err != nil {
		c.signalAndWait(syscall.SIGKILL)
		return fmt.Errorf("%s does not become ready: %w\n%s", c.spec.Name, err, LogTail(c.spec.Log))
	}
	return nil
}

// Stop asks the child to end, with SIGTERM, and kills it when it does not end
// within 10 s.
func (c *Child) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signalAndWait(syscall.SIGTERM)
}

// Kill ends the child with SIGKILL.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signalAndWait(syscall.SIGKILL)
}

// Info describes the child for the control API.
func (c *Child) Info() control.Process {
	c.state.Lock()
	defer c.state.Unlock()
	info := control.Process{Name: c.spec.Name, Log: c.spec.Log}
	if c.cmd != nil {
		since := c.since
		info.PID, info.Running, info.Since = c.cmd.Process.Pid, true, &since
	}
	return info
}

// spawn starts the process and a goroutine that reaps it. The channel carries
// the first line of output; nil unless FirstLine is set.
func (c *Child) spawn() (<-chan []byte, error) {
	log, err := os.OpenFile(c.spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.spec.Path, c.spec.Args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = c.spec.Env, c.spec.Dir, ownGroup()
	cmd.Stdout, cmd.Stderr = log, log
	var output io.ReadCloser
	if c.spec.FirstLine != nil {
		cmd.Stdout = nil
		if output, err = cmd.StdoutPipe(); err != nil {
			return nil, errors.Join(err, log.Close())
		}
	}
	if err := startOnLastingThread(cmd); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	exit := make(chan struct{})
	c.state.Lock()
	c.cmd, c.since, c.exit, c.exitErr, c.asked = cmd, time.Now(), exit, nil, false
	c.state.Unlock()

	var firstLine chan []byte
	if output != nil {
		firstLine = make(chan []byte, 1)
	}
	go func() {
		if output != nil {
			readOutput(output, log, firstLine)
		}
		err := cmd.Wait()
		_ = log.Close()
		c.reaped(exit, err)
	}()
	return firstLine, nil
}

// readOutput hands over the first line and copies all to the log, until the
// child closes its output.
func readOutput(output io.Reader, log io.Writer, firstLine chan<- []byte) {
	r := bufio.NewReader(output)
	line, err := r.ReadBytes('\n')
	_, _ = log.Write(line)
	if err == nil {
		firstLine <- line
	}
	close(firstLine)
	_, _ = io.Copy(log, r)
}

func (c *Child) reaped(exit chan struct{}, err error) {
	if err == nil {
		err = errors.New("exit status 0")
	}
	c.state.Lock()
	c.cmd, c.exitErr = nil, err
	asked := c.asked
	c.state.Unlock()
	close(exit)
	if !asked && c.ended != nil {
		c.ended(c, err)
	}
}

func (c *Child) waitReady(ctx context.Context, firstLine <-chan []byte) error {
	c.state.Lock()
	exit := c.exit
	c.state.Unlock()
	if firstLine != nil {
		select {
		case line, ok := <-firstLine:
			if !ok {
				return errors.New("it ended without a word on standard output")
			}
			if err := c.spec.FirstLine(line); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if c.spec.Ready == nil {
		return nil
	}
	for {
		err := c.spec.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-exit:
			c.state.Lock()
			defer c.state.Unlock()
			return fmt.Errorf("it ended: %w", c.exitErr)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// signalAndWait signals the child's process group and waits for the child.
func (c *Child) signalAndWait(signal syscall.Signal) {
	c.state.Lock()
	cmd, exit := c.cmd, c.exit
	c.asked = true
	c.state.Unlock()
	if cmd == nil {
		return
	}
	signalGroup(cmd.Process.Pid, signal)
	select {
	case <-exit:
	case <-time.After(grace):
	}
	// Also after a clean end: it may have left children of its own.
	signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	<-exit
}
