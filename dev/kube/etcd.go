package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcdStartTimeout bounds the start of etcd; a healthy start takes 0.2 s, a
// large data folder on a slow disk a few seconds.
const etcdStartTimeout = time.Minute

// Etcd is a running single-member etcd.
type Etcd struct {
	// URL is where clients reach it: http://127.0.0.1:<port>.
	URL string

	server *embed.Etcd
}

// StartEtcd runs etcd in this process with its data in dir. addr is the client
// address on loopback; "127.0.0.1:0", or empty, takes a free port.
//
// It does not fsync: killing the machine, not the process, may lose the last
// writes. Its ticks are so short that the only member elects itself at once.
func StartEtcd(dir, addr string) (*Etcd, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	client := url.URL{Scheme: "http", Host: addr}
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}

	cfg := embed.NewConfig()
	cfg.Name = "devstack"
	cfg.Dir = dir
	// Into a file: stopping etcd logs errors that mean nothing to a person.
	cfg.LogLevel = "error"
	cfg.LogOutputs = []string{filepath.Join(filepath.Dir(dir), "etcd.log")}
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 20, 200
	// Old revisions are of no use here, and a long session would fill the disk.
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = "periodic", "10m"
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &Etcd{URL: "http://" + server.Clients[0].Addr().String(), server: server}, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", dir, err)
	case <-time.After(etcdStartTimeout):
		server.Close()
		return nil, fmt.Errorf("start etcd in %s: not ready after %s", dir, etcdStartTimeout)
	}
}

// DeletePrefix removes every key of the cluster that used the given prefix, for
// example "/shoot--core--n1". Call it when that cluster's API server is stopped.
func (e *Etcd) DeletePrefix(ctx context.Context, prefix string) error {
	prefix = "/" + strings.Trim(prefix, "/") + "/"
	if prefix == "//" {
		return errors.New("delete etcd prefix: refusing the empty prefix, it would wipe every cluster")
	}
	client := v3client.New(e.server.Server)
	defer client.Close()
	if _, err := client.Delete(ctx, prefix, clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("delete etcd prefix %s: %w", prefix, err)
	}
	return nil
}

// Close stops etcd. Stop the API servers first: they retry noisily without it.
func (e *Etcd) Close() { e.server.Close() }
