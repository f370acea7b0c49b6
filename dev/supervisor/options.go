package supervisor

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Namespace of our custom resources and of their workflows in Temporal.
const Namespace = "infra"

// Options of a devstack.
type Options struct {
	// DataDir keeps state over restarts. Empty: a temporary folder, removed at
	// the end.
	DataDir string
	// Root is the checkout; the defaults of the paths below are relative to it.
	Root string
	// CRDs, Manifests (those that ship, for the rights of the product), Samples
	// and ConfigService are folders of YAML files. Bin holds the binaries
	// temporaldev, bridge and worker.
	CRDs, Manifests, Samples, ConfigService, Bin string
	// Venv is the folder of the Python environment of the AWS emulator. It is
	// shared by all stacks of a checkout, since making it takes a while.
	Venv string
	// Speed divides all simulated times; 1 gives a Shoot in about 10 s.
	Speed float64
	// Ports by name (see PortNames); what is not named gets a free one.
	Ports map[string]int
	// BalancerPeriod is the time between two sweeps over all Balancers; zero for
	// the bridge's own default.
	BalancerPeriod time.Duration
	// TemporalConfig is dynamic configuration of the Temporal server, KEY=JSON.
	TemporalConfig []string
	// NoSamples applies no samples. NoProduct starts neither bridge nor worker.
	NoSamples, NoProduct bool
	// ExitWhenReady ends the stack, without error, when the samples are Ready.
	ExitWhenReady bool
	// Timeout bounds the start, and then the samples' way to Ready.
	Timeout time.Duration
}

// Names of the ports that Options.Ports can fix.
const (
	PortAPIServer     = "apiserver"
	PortTemporal      = "temporal"
	PortTemporalUI    = "temporal-ui"
	PortControl       = "control"
	PortAWS           = "aws"
	PortConfigService = "config-service"
)

// PortNames lists the ports that can be fixed.
func PortNames() []string {
	return []string{PortAPIServer, PortTemporal, PortTemporalUI, PortControl, PortAWS, PortConfigService}
}

// Complete fills defaults and refuses what cannot work, before anything runs.
func (o *Options) Complete() error {
	for path, fallback := range map[*string]string{
		&o.CRDs:          "config/crd",
		&o.Manifests:     "deploy/kustomize",
		&o.Samples:       "deploy/samples/aws",
		&o.ConfigService: "deploy/samples/config-service",
		&o.Bin:           "bin",
		&o.Venv:          ".cache/moto",
	} {
		if *path == "" {
			*path = filepath.Join(o.Root, fallback)
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	if o.DataDir != "" {
		abs, err := filepath.Abs(o.DataDir)
		if err != nil {
			return err
		}
		o.DataDir = abs
	}
	if o.Speed <= 0 {
		return fmt.Errorf("--speed is %g, want more than 0", o.Speed)
	}
	if o.ExitWhenReady && o.NoSamples {
		return fmt.Errorf("--exit-when-ready waits for the samples, so it excludes --no-samples")
	}
	if o.NoProduct && !o.NoSamples {
		return fmt.Errorf("--no-product needs --no-samples: without bridge and worker no sample becomes Ready")
	}
	for name, port := range o.Ports {
		if !slices.Contains(PortNames(), name) {
			return fmt.Errorf("--ports: %q is none of %s", name, strings.Join(PortNames(), ", "))
		}
		if port < 1 || port > 65535 {
			return fmt.Errorf("--ports: %s=%d is no port", name, port)
		}
	}
	return o.needs()
}

// needs checks what must exist already, so that a wrong path is told at once
// and not after a minute.
func (o *Options) needs() error {
	want := map[string]string{
		o.CRDs:                              "the custom resource definitions (make generate writes them)",
		o.ConfigService:                     "the documents of the config-service",
		filepath.Join(o.Bin, "temporaldev"): "Temporal (make build)",
	}
	if !o.NoSamples {
		want[o.Samples] = "the samples"
	}
	if !o.NoProduct {
		want[o.Manifests] = "the manifests, for the rights of the product"
		want[filepath.Join(o.Bin, "bridge")] = "the bridge (make build)"
		want[filepath.Join(o.Bin, "worker")] = "the worker (make build)"
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s: %w", want[path], err)
		}
	}
	return nil
}

// listenAddress is where the named part listens: its fixed port, or any free.
func (o *Options) listenAddress(name string) string {
	return "127.0.0.1:" + strconv.Itoa(o.Ports[name])
}

// temporalFlags are what temporaldev is told beside its addresses.
func (o *Options) temporalFlags() (flags []string) {
	for _, value := range o.TemporalConfig {
		flags = append(flags, "--dynamic-config-value", value)
	}
	return flags
}
