package awsproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"
)

// StackOptions of Start.
type StackOptions struct {
	Options // Upstream is filled by Start

	// Address to listen on; "127.0.0.1:0" (the default) picks a free port.
	Address string
	// CacheDir keeps the Python environment; required.
	CacheDir string
	// LogDir gets moto.log; required.
	LogDir string
	// Progress gets sentences for the screen; may be nil.
	Progress func(string)
}

// Stack is moto with the proxy in front of it, listening.
type Stack struct {
	*Proxy
	// URL is what AWS_ENDPOINT_URL is set to.
	URL string
	// Moto is the child process.
	Moto *Moto

	server *http.Server
}

// Start makes the Python environment when needed, starts moto and the proxy,
// and returns when calls are answered.
func Start(ctx context.Context, o StackOptions) (*Stack, error) {
	python, err := EnsureMoto(ctx, o.CacheDir, o.Progress)
	if err != nil {
		return nil, err
	}
	moto, err := StartMoto(ctx, python, filepath.Join(o.LogDir, "moto.log"))
	if err != nil {
		return nil, err
	}
	o.Upstream = moto.URL
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		moto.Stop()
		return nil, fmt.Errorf("the AWS proxy cannot listen on %s: %w", o.Address, err)
	}
	s := &Stack{Proxy: New(o.Options), URL: "http://" + listener.Addr().String(), Moto: moto}
	s.server = &http.Server{Handler: s.Proxy, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the AWS proxy stopped", "error", err)
		}
	}()
	return s, nil
}

// Stop closes the proxy and ends moto.
func (s *Stack) Stop() {
	_ = s.server.Close()
	s.Moto.Stop()
}
