package awsproxy

import (
	"bufio"
	"context"
	_ "embed" // the launcher
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

//go:embed serve.py
var launcher string

// Moto is the emulator as a child process. It keeps everything in memory: a
// restart is an empty account.
type Moto struct {
	// URL is where it listens, on loopback.
	URL string

	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	err   error
}

// startTimeout is generous for a cold disk; usually it takes one second.
const startTimeout = 60 * time.Second

// StartMoto starts the emulator with the python of EnsureMoto and returns when
// it accepts connections. Its log is appended to logFile. It ends with Stop,
// with ctx, and with this process.
func StartMoto(ctx context.Context, python, logFile string) (*Moto, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open moto's log: %w", err)
	}
	cmd := exec.CommandContext(ctx, python, "-u", "-c", launcher)
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), "MOTO_IAM_LOAD_MANAGED_POLICIES=false", "PYTHONDONTWRITEBYTECODE=")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start moto: %w", err), log.Close())
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start moto: %w", err), log.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start moto: %w", err), log.Close())
	}
	m := &Moto{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	ports := make(chan string, 1)
	go m.watch(stdout, log, ports)
	select {
	case port := <-ports:
		m.URL = "http://127.0.0.1:" + port
		return m, nil
	case <-m.done:
		return nil, fmt.Errorf("moto ended while starting (%w); see %s", m.err, logFile)
	case <-time.After(startTimeout):
		m.Stop()
		return nil, fmt.Errorf("moto did not listen within %s; see %s", startTimeout, logFile)
	}
}

// watch hands out the port, copies the rest to the log and reaps the process.
func (m *Moto) watch(stdout io.Reader, log *os.File, ports chan<- string) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if port, ok := strings.CutPrefix(lines.Text(), "listening "); ok {
			select {
			case ports <- port:
				continue
			default:
			}
		}
		_, _ = fmt.Fprintln(log, lines.Text())
	}
	m.err = m.cmd.Wait()
	if m.err == nil {
		m.err = errors.New("exit status 0")
	}
	_ = log.Close()
	close(m.done)
}

// Done is closed when the process has ended.
func (m *Moto) Done() <-chan struct{} { return m.done }

// PID is the process id.
func (m *Moto) PID() int { return m.cmd.Process.Pid }

// Stop ends the process and waits for it.
func (m *Moto) Stop() {
	_ = m.stdin.Close()
	select {
	case <-m.done:
		return
	case <-time.After(2 * time.Second):
	}
	_ = m.cmd.Process.Kill()
	<-m.done
}
