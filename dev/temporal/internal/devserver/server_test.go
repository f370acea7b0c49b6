package devserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
)

// serveEnv makes the test binary a server on the file that it names, until it
// is killed.
const serveEnv = "TEMPORALDEV_TEST_SERVE"

func TestMain(m *testing.M) {
	if file := os.Getenv(serveEnv); file != "" {
		s, err := Start(context.Background(), Options{DBFile: file, Headless: true, SearchAttributes: DefaultSearchAttributes()})
		if err != nil {
			panic(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(s.Addresses()); err != nil {
			panic(err)
		}
		select {}
	}
	os.Exit(m.Run())
}

func TestDefaultSearchAttributesAreTheProducts(t *testing.T) {
	source, err := os.ReadFile("../../../../api/temporal/temporal.go")
	if err != nil {
		t.Fatal(err)
	}
	have := DefaultSearchAttributes()
	found := regexp.MustCompile(`NewSearchAttributeKey(\w+)\("(\w+)"\)`).FindAllSubmatch(source, -1)
	if len(found) != len(have) {
		t.Errorf("api/temporal declares %d search attributes, the default list has %d", len(found), len(have))
	}
	for _, m := range found {
		want, err := enumspb.IndexedValueTypeFromString(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := have[string(m[2])]; !ok || got != want {
			t.Errorf("%s: declared %s in api/temporal, default list says %s", m[2], want, got)
		}
	}
}

func TestExistingFileGetsMissingSearchAttributes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	opts := Options{DBFile: filepath.Join(t.TempDir(), "state", "temporal.db"), Headless: true}
	s, err := Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()

	opts.SearchAttributes = DefaultSearchAttributes()
	if s, err = Start(ctx, opts); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c, err := s.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: "infra"})
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range opts.SearchAttributes {
		if got.GetCustomAttributes()[name] != kind {
			t.Errorf("search attribute %s is missing", name)
		}
	}
}

// A port that is free when it is chosen may be somebody else's when it is opened.
func TestPortTakenIsAnError(t *testing.T) {
	store, err := openStore("")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Headless: true}.withDefaults()
	for _, service := range []string{"frontend", "history", "matching", "worker"} {
		t.Run(service, func(t *testing.T) {
			ports := &reservation{}
			o, err := o.withPorts(ports)
			if err != nil {
				t.Fatal(err)
			}
			cfg, hosts, err := serverConfig(o, store, ports)
			if err != nil {
				t.Fatal(err)
			}
			ports.free()
			other, err := net.Listen("tcp", net.JoinHostPort(o.IP, strconv.Itoa(cfg.Services[service].RPC.GRPCPort)))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Close() }()
			if _, err := newServer(o, cfg, hosts); !errors.Is(err, ErrPortTaken) || !strings.Contains(err.Error(), other.Addr().String()) {
				t.Errorf("got %v, want that %s is taken", err, other.Addr())
			}
		})
	}
}

// Ports that are chosen for one server are never two times the same, and nobody
// else's until they are let go.
func TestReservedPortsAreHeld(t *testing.T) {
	ports := &reservation{}
	defer ports.free()
	port, err := ports.port("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ports.port("127.0.0.1", port); err == nil {
		t.Errorf("port %d was given twice", port)
	}
}

func TestFileSurvivesKill(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "temporal.db")
	address, kill := serveElsewhere(t, ctx, file)
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Namespace: "infra"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "network/infra/n1", TaskQueue: "nobody-polls"}, "CreateNetwork")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	kill()

	s, err := Start(ctx, Options{DBFile: file, Headless: true, SearchAttributes: DefaultSearchAttributes()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c, err = s.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	desc, err := c.DescribeWorkflowExecution(ctx, "network/infra/n1", run.GetRunID())
	if err != nil {
		t.Fatal(err)
	}
	if got := desc.GetWorkflowExecutionInfo().GetStatus(); got != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Errorf("workflow is %s after the server was killed, want Running", got)
	}
}

// serveElsewhere runs a server in a process of its own; kill is SIGKILL.
func serveElsewhere(t *testing.T, ctx context.Context, file string) (address string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		kill()
		t.Fatalf("the server told no address: %v", err)
	}
	var addresses Addresses
	if err := json.Unmarshal(line, &addresses); err != nil {
		kill()
		t.Fatal(err)
	}
	return addresses.Address, kill
}
