// Package devserver runs a Temporal server with its web UI in this process.
package devserver

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"

	enumspb "go.temporal.io/api/enums/v1"
)

// Options of a server. The zero value of each field is its default.
type Options struct {
	IP        string // address to listen on; default 127.0.0.1
	Port      int    // gRPC port of the frontend; 0 takes a free one
	UIPort    int    // HTTP port of the UI; 0 takes a free one
	Headless  bool   // no UI
	Namespace string // default "infra"
	DBFile    string // SQLite file; empty: in memory

	// SearchAttributes to have in Namespace, also in a file made before.
	SearchAttributes map[string]enumspb.IndexedValueType
	// Dynamic configuration on top of what a devstack needs.
	Dynamic map[string]any
	// Logger of server, UI and client; default: none.
	Logger *slog.Logger
}

// Addresses of a running server, as told to whoever started it.
type Addresses struct {
	Address   string `json:"address"`      // host:port, gRPC
	UI        string `json:"ui,omitempty"` // URL; empty when headless
	Namespace string `json:"namespace"`
	DBFile    string `json:"dbFile,omitempty"`
}

// DefaultSearchAttributes are those of the product, api/temporal. This module
// cannot import that package (see the command's documentation); a test keeps
// the two alike.
func DefaultSearchAttributes() map[string]enumspb.IndexedValueType {
	attrs := map[string]enumspb.IndexedValueType{}
	for _, name := range []string{
		"InfraKind", "InfraNamespace", "InfraName", "InfraAccount", "InfraProvider",
		"InfraRegion", "InfraPhase", "InfraStep", "InfraFaultClass",
	} {
		attrs[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return attrs
}

// withDefaults fills what is empty.
func (o Options) withDefaults() Options {
	if o.IP == "" {
		o.IP = "127.0.0.1"
	}
	if o.Namespace == "" {
		o.Namespace = "infra"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// withPorts settles the ports.
func (o Options) withPorts(r *reservation) (Options, error) {
	var err error
	if o.Port, err = r.port(o.IP, o.Port); err != nil {
		return o, fmt.Errorf("frontend: %w", err)
	}
	if o.Headless {
		o.UIPort = 0
		return o, nil
	}
	if o.UIPort, err = r.port(o.IP, o.UIPort); err != nil {
		return o, fmt.Errorf("web UI: %w", err)
	}
	return o, nil
}

// reservation holds ports until those that shall have them open them: the
// server and the UI open their sockets themselves, and nobody else may come in
// between.
type reservation struct{ held []net.Listener }

// free lets the ports go.
func (r *reservation) free() {
	for _, l := range r.held {
		_ = l.Close()
	}
	r.held = nil
}

// port proves that a wanted port is free, or finds a free one, and holds it. This
// is the place for a readable error.
func (r *reservation) port(ip string, want int) (int, error) {
	if want == 0 {
		return r.freePort(ip)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(want)))
	if err != nil {
		return 0, fmt.Errorf("port %d of %s cannot be listened on (is another devstack running?): %w", want, ip, err)
	}
	r.held = append(r.held, l)
	return l.Addr().(*net.TCPAddr).Port, nil
}

// freePort finds one below 32768, where Linux begins to take ports for outgoing
// connections: there, one that is free now may be a connection's a moment later.
func (r *reservation) freePort(ip string) (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if _, err = r.port(ip, port); err == nil {
			return port, nil
		}
	}
	return 0, err
}
