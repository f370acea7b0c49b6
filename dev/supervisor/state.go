package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// stateFile in the data folder says where everything is. It is there from the
// moment that the stack is up until it stops.
const stateFile = "stack.json"

// State is the content of stack.json. Tests and "devstack env" read it.
type State struct {
	// PID of the supervisor.
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"startedAt"`
	DataDir   string    `json:"dataDir"`
	Logs      string    `json:"logs"`
	Speed     float64   `json:"speed"`
	Namespace string    `json:"namespace"`

	// Kubeconfig of the management cluster, as its admin; GardenKubeconfig of
	// the garden (the same API server, which aggregates Gardener's).
	Kubeconfig       string `json:"kubeconfig"`
	GardenKubeconfig string `json:"gardenKubeconfig"`
	APIServer        string `json:"apiServer"`

	TemporalAddress   string `json:"temporalAddress"`
	TemporalNamespace string `json:"temporalNamespace"`
	TemporalUI        string `json:"temporalUI"`

	Control       string `json:"control"`
	AWS           string `json:"aws"`
	ConfigService string `json:"configService"`

	// Metrics and Probes of bridge and worker, by process name.
	Metrics map[string]string `json:"metrics,omitempty"`
	Probes  map[string]string `json:"probes,omitempty"`

	// Processes as of the last start or stop of one.
	Processes []control.Process `json:"processes"`
}

// ErrNoStack is returned when no stack is running.
var ErrNoStack = errors.New("no devstack is running")

// ReadState reads the state of the stack in dataDir. A stack that is gone is
// ErrNoStack.
func ReadState(dataDir string) (State, error) {
	var s State
	data, err := os.ReadFile(filepath.Join(dataDir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%w in %s", ErrNoStack, dataDir)
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", filepath.Join(dataDir, stateFile), err)
	}
	if syscall.Kill(s.PID, 0) != nil {
		return s, fmt.Errorf("%w in %s: its process %d is gone", ErrNoStack, dataDir, s.PID)
	}
	return s, nil
}

// FindState reads the state of the stack in dataDir or, when that is empty, of
// the only running stack whose folder is temporary.
func FindState(dataDir string) (State, error) {
	if dataDir != "" {
		return ReadState(dataDir)
	}
	folders, err := filepath.Glob(filepath.Join(temporaryFolders(), "*"))
	if err != nil {
		return State{}, err
	}
	var running []State
	for _, folder := range folders {
		if s, err := ReadState(folder); err == nil {
			running = append(running, s)
		}
	}
	switch len(running) {
	case 0:
		return State{}, fmt.Errorf("%w; one with --data-dir is found with the same --data-dir only", ErrNoStack)
	case 1:
		return running[0], nil
	}
	names := ""
	for _, s := range running {
		names += "\n  " + s.DataDir
	}
	return State{}, fmt.Errorf("%d devstacks are running; choose one with --data-dir:%s", len(running), names)
}

// write replaces the file whole, so that no reader sees half of it.
func (s State) write() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	unfinished := filepath.Join(s.DataDir, stateFile+".new")
	if err := os.WriteFile(unfinished, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, filepath.Join(s.DataDir, stateFile))
}

// temporaryFolders is where the folders of stacks without --data-dir are.
func temporaryFolders() string {
	return filepath.Join(os.TempDir(), "devstack-"+strconv.Itoa(os.Getuid()))
}

// openDataDir makes the data folder and says how to leave it.
func openDataDir(dataDir string) (dir string, leave func(), err error) {
	if dataDir != "" {
		if s, err := ReadState(dataDir); err == nil {
			return "", nil, fmt.Errorf("a devstack runs in %s already, as process %d", dataDir, s.PID)
		}
		if err := os.MkdirAll(dataDir, 0o700); err != nil {
			return "", nil, err
		}
		return dataDir, func() { _ = os.Remove(filepath.Join(dataDir, stateFile)) }, nil
	}
	if err := os.MkdirAll(temporaryFolders(), 0o700); err != nil {
		return "", nil, err
	}
	removeLeftFolders()
	if dir, err = os.MkdirTemp(temporaryFolders(), time.Now().Format("0102-150405-")); err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// removeLeftFolders removes the temporary folders of stacks that were killed.
// A folder without stack.json belongs to one that is starting, unless it is old.
func removeLeftFolders() {
	folders, _ := filepath.Glob(filepath.Join(temporaryFolders(), "*"))
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil {
			continue
		}
		_, err = os.Stat(filepath.Join(folder, stateFile))
		if err != nil && time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if _, err := ReadState(folder); errors.Is(err, ErrNoStack) {
			_ = os.RemoveAll(folder)
		}
	}
}
