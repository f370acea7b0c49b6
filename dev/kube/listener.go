package kube

import (
	"net"
	"sync"
)

// cuttable is a listener whose connections can be reset all at once. A graceful
// end alone would leave watches open for many seconds: no outage that a client
// would notice.
type cuttable struct {
	net.Listener

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil after the cut
}

func newCuttable(l net.Listener) *cuttable {
	return &cuttable{Listener: l, conns: map[net.Conn]struct{}{}}
}

// Accept implements net.Listener. After the cut it closes what comes in, until
// the server has closed the listener itself: the server takes an error of
// Accept for a failure and panics.
func (c *cuttable) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.keep(conn) {
			return &counted{Conn: conn, of: c}, nil
		}
		_ = conn.Close()
	}
}

func (c *cuttable) keep(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		return false
	}
	c.conns[conn] = struct{}{}
	return true
}

// cut closes every connection and lets none in any more.
func (c *cuttable) cut() {
	c.mu.Lock()
	conns := c.conns
	c.conns = nil
	c.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
}

// counted is forgotten by its listener when it closes.
type counted struct {
	net.Conn
	of *cuttable
}

func (c *counted) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn) // of a nil map: nothing
	c.of.mu.Unlock()
	return c.Conn.Close()
}
