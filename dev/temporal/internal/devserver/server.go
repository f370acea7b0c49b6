package devserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

// pollInterval between two attempts to reach a server that is starting.
const pollInterval = 20 * time.Millisecond

// ErrPortTaken is the error of a start that lost a port, which was free a moment
// before, to another process. A new process gets other ones.
var ErrPortTaken = errors.New("a port is taken")

// Server is a running Temporal server and UI.
type Server struct {
	opts   Options
	server temporal.Server
	ui     *uiserver.Server // nil when headless
}

// Start runs a server and returns when it answers, its namespace exists and
// the search attributes are registered.
func Start(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	store, err := openStore(opts.DBFile)
	if err != nil {
		return nil, err
	}
	if err := ensureNamespace(store, opts.Namespace, opts.SearchAttributes); err != nil {
		return nil, err
	}
	// Ports last: what comes before takes a second.
	ports := &reservation{}
	defer ports.free()
	if opts, err = opts.withPorts(ports); err != nil {
		return nil, err
	}
	cfg, hosts, err := serverConfig(opts, store, ports)
	if err != nil {
		return nil, err
	}
	ports.free()
	s := &Server{opts: opts}
	if s.server, err = newServer(opts, cfg, hosts); err != nil {
		return nil, fmt.Errorf("cannot set up the Temporal server: %w", err)
	}
	if err := s.server.Start(); err != nil { // does not block without InterruptOn
		return nil, fmt.Errorf("cannot start the Temporal server: %w", err)
	}
	s.startUI()
	if err := s.settle(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("the Temporal server on %s does not become ready: %w", s.address(), err)
	}
	return s, nil
}

// Addresses at which the server and its UI answer.
func (s *Server) Addresses() Addresses {
	return Addresses{Address: s.address(), UI: s.uiURL(), Namespace: s.opts.Namespace, DBFile: s.opts.DBFile}
}

// Stop ends UI and server. Running workflows stay in the database file.
func (s *Server) Stop() {
	if s.ui != nil {
		s.ui.Stop()
	}
	if err := s.server.Stop(); err != nil {
		s.opts.Logger.Warn("Temporal server did not stop cleanly", "error", err)
	}
}

func (s *Server) address() string {
	return net.JoinHostPort(s.opts.IP, strconv.Itoa(s.opts.Port))
}

func (s *Server) uiURL() string {
	if s.opts.Headless {
		return ""
	}
	return "http://" + net.JoinHostPort(s.opts.IP, strconv.Itoa(s.opts.UIPort))
}

// newServer opens the ports of all services. One that somebody else has is
// ErrPortTaken; those that are open by then stay so until this process ends.
func newServer(o Options, cfg *config.Config, hosts map[primitives.ServiceName]static.Hosts) (s temporal.Server, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case portTaken:
			err = fmt.Errorf("%w: %s", ErrPortTaken, string(r))
		default:
			panic(r)
		}
	}()
	logger := serverLogger{o.Logger}
	authorizer, err := authorization.GetAuthorizerFromConfig(&cfg.Global.Authorization)
	if err != nil {
		return nil, err
	}
	claims, err := authorization.GetClaimMapperFromConfig(&cfg.Global.Authorization, logger)
	if err != nil {
		return nil, err
	}
	return temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims }),
		temporal.WithDynamicConfigClient(dynamicConfig(o.Dynamic)),
	)
}

func (s *Server) startUI() {
	if s.opts.Headless {
		return
	}
	s.ui = uiserver.NewServer(uioptions.WithConfigProvider(&uiconfig.Config{
		Host:                s.opts.IP,
		Port:                s.opts.UIPort,
		TemporalGRPCAddress: s.address(),
		EnableUI:            true,
		DefaultNamespace:    s.opts.Namespace,
		CORS:                uiconfig.CORS{CookieInsecure: true}, // plain HTTP on loopback
		HideLogs:            true,
		DisableNewsFetch:    true, // a devstack talks to nobody outside
	}))
	go func() {
		if err := s.ui.Start(); err != nil {
			s.opts.Logger.Error("Temporal UI ended", "error", err)
		}
	}()
}

// settle waits until the frontend answers for the namespace, registers search
// attributes, and waits for the UI.
func (s *Server) settle(ctx context.Context) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := s.ensureSearchAttributes(ctx, c); err != nil {
		return fmt.Errorf("search attributes: %w", err)
	}
	if s.opts.Headless {
		return nil
	}
	return poll(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.uiURL()+"/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("web UI answers %s", resp.Status)
		}
		return nil
	})
}

func (s *Server) dial(ctx context.Context) (c client.Client, err error) {
	err = poll(ctx, func() error {
		c, err = client.DialContext(ctx, client.Options{
			HostPort: s.address(), Namespace: s.opts.Namespace, Logger: s.opts.Logger,
		})
		if err != nil {
			return err
		}
		if _, err := c.CheckHealth(ctx, nil); err != nil {
			c.Close()
			return err
		}
		return nil
	})
	return c, err
}

// ensureSearchAttributes adds what a database file of an earlier version lacks.
func (s *Server) ensureSearchAttributes(ctx context.Context, c client.Client) error {
	have, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.opts.Namespace})
	if err != nil {
		return err
	}
	missing := map[string]enumspb.IndexedValueType{}
	for name, kind := range s.opts.SearchAttributes {
		if _, ok := have.GetCustomAttributes()[name]; !ok {
			missing[name] = kind
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: s.opts.Namespace, SearchAttributes: missing,
	})
	return err
}

// poll repeats try until it succeeds or ctx ends.
func poll(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pollInterval):
		}
	}
}
