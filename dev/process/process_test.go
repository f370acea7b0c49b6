package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentEnv makes the test binary a parent that starts one child, prints its
// pid, and waits to be killed.
const parentEnv = "PROCESS_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		c := New(Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"600"}, Log: filepath.Join(dir, "log")}, nil)
		if err := c.Start(context.Background()); err != nil {
			panic(err)
		}
		os.Stdout.WriteString(strconv.Itoa(c.Info().PID) + "\n")
		select {}
	}
	os.Exit(m.Run())
}

func shell(t *testing.T, script string) Spec {
	return Spec{
		Name: "child", Path: "/bin/sh", Args: []string{"-c", script},
		Env: Environment(), Log: filepath.Join(t.TempDir(), "child.log"),
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestFirstLineAndRestart(t *testing.T) {
	// In one write: Stop may come right after the first line.
	spec := shell(t, `printf 'hello %d\nmore\n' $$; exec sleep 600`)
	var lines []string
	spec.FirstLine = func(line []byte) error {
		lines = append(lines, string(line))
		return nil
	}
	c := New(spec, func(_ *Child, err error) { t.Errorf("reported as ended by itself: %v", err) })
	for range 2 {
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		pid := c.Info().PID
		c.Stop()
		if c.Info().Running || alive(pid) {
			t.Error("runs after Stop")
		}
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "hello ") || lines[0] == lines[1] {
		t.Errorf("first lines: %q", lines)
	}
	if tail := LogTail(spec.Log); !strings.Contains(tail, "more") {
		t.Errorf("log lacks the output: %s", tail)
	}
}

func TestStopKillsWholeGroup(t *testing.T) {
	spec := shell(t, `sleep 600 & echo $!; wait`)
	var grandchild int
	spec.FirstLine = func(line []byte) (err error) {
		grandchild, err = strconv.Atoi(strings.TrimSpace(string(line)))
		return err
	}
	c := New(spec, nil)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Stop()
	for deadline := time.Now().Add(5 * time.Second); alive(grandchild) && !zombie(grandchild); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("grandchild %d runs after Stop", grandchild)
		}
	}
}

// zombie: in a container nobody may reap orphans; dead they are all the same.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestUnexpectedEndIsReported(t *testing.T) {
	ended := make(chan error, 1)
	c := New(shell(t, `exit 3`), func(_ *Child, err error) { ended <- err })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was told")
	}
}

func TestNotReadyNamesTheLog(t *testing.T) {
	spec := shell(t, `echo port is taken >&2; exit 1`)
	spec.Ready = func(context.Context) error { return errors.New("connection refused") }
	err := New(spec, nil).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "port is taken") {
		t.Errorf("got %v", err)
	}
}

func TestChildDiesWithKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent-death signal")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 32)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatal(err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for deadline := time.Now().Add(5 * time.Second); alive(pid) && !zombie(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("child %d outlived its killed parent", pid)
		}
	}
}

func TestEnvironmentKeepsCredentialsOut(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of-a-real-account")
	t.Setenv("KUBECONFIG", "/of/a/real/cluster")
	env := strings.Join(Environment("INFRA_ENV=dev"), "\n")
	if strings.Contains(env, "real") || !strings.Contains(env, "INFRA_ENV=dev") {
		t.Errorf("got %s", env)
	}
}
