package stack

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	sdk "go.temporal.io/sdk/client"
)

// StartTemporal runs a Temporal server in memory, without a devstack, until
// stop. The client is in the namespace infra.
func StartTemporal() (c sdk.Client, stop func(), err error) {
	cmd := exec.Command(filepath.Join(Bin(), "temporaldev"), "--headless", "--namespace", "infra")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("temporaldev: %w (make build makes it)", err)
	}
	end := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	var told struct{ Address string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err = errors.Join(err, json.Unmarshal(line, &told)); err != nil {
		end()
		return nil, nil, err
	}
	c, err = sdk.Dial(sdk.Options{HostPort: told.Address, Namespace: "infra", Logger: quiet{}})
	if err != nil {
		end()
		return nil, nil, err
	}
	return c, func() { c.Close(); end() }, nil
}
