package devserver

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	clusterName = "active"
	storeName   = "sqlite"
	// historyShards: a hop of a workflow waits about 43 ms when another task of
	// its shard is under way. With one shard that is every hop, 0.9 s for a
	// Network whose activities answer at once; with 4 it is every third Network,
	// with 64 (0.15 s) none. They cost 22 MiB. Fixed for the life of a database
	// file.
	historyShards = 64
)

// serverConfig is the static configuration of all services of a server.
func serverConfig(o Options, store *config.SQL, ports *reservation) (*config.Config, map[primitives.ServiceName]static.Hosts, error) {
	httpPort, err := ports.port(o.IP, 0)
	if err != nil {
		return nil, nil, err
	}
	frontend := net.JoinHostPort(o.IP, strconv.Itoa(o.Port))
	cfg := &config.Config{}
	cfg.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: o.IP}
	cfg.Persistence = config.Persistence{
		DefaultStore:     storeName,
		VisibilityStore:  storeName,
		NumHistoryShards: historyShards,
		DataStores:       map[string]config.DataStore{storeName: {SQL: store}},
	}
	cfg.ClusterMetadata = &cluster.Config{
		FailoverVersionIncrement: 10,
		MasterClusterName:        clusterName,
		CurrentClusterName:       clusterName,
		ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
			Enabled: true, InitialFailoverVersion: 1,
			RPCAddress: frontend, HTTPAddress: net.JoinHostPort(o.IP, strconv.Itoa(httpPort)),
		}},
	}
	cfg.DCRedirectionPolicy.Policy = "noop"
	const off = "disabled"
	cfg.Archival.History.State, cfg.Archival.Visibility.State = off, off
	cfg.NamespaceDefaults.Archival.History.State, cfg.NamespaceDefaults.Archival.Visibility.State = off, off
	cfg.PublicClient.HostPort = frontend

	hosts := map[primitives.ServiceName]static.Hosts{}
	cfg.Services = map[string]config.Service{}
	for _, name := range temporal.DefaultServices {
		rpc := config.RPC{BindOnIP: o.IP}
		if name == string(primitives.FrontendService) {
			rpc.GRPCPort, rpc.HTTPPort = o.Port, httpPort
		} else if rpc.GRPCPort, err = ports.port(o.IP, 0); err != nil {
			return nil, nil, fmt.Errorf("service %s: %w", name, err)
		}
		cfg.Services[name] = config.Service{RPC: rpc}
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(net.JoinHostPort(o.IP, strconv.Itoa(rpc.GRPCPort)))
	}
	return cfg, hosts, nil
}

// dynamicConfig is what a development server needs: new search attributes and
// endpoints visible at once, and the persistence limits that this costs lifted
// (the official CLI does the same). Fairness between the product's accounts is
// off by default in the server; a cluster turns it on with
// deploy/temporal/dynamic-config.yaml.
func dynamicConfig(extra map[string]any) dynamicconfig.StaticClient {
	dyn := dynamicconfig.StaticClient{
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key():     true,
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key():                8096,
		dynamicconfig.MatchingEnableFairness.Key():                      true,
		dynamicconfig.MakeKey("frontend.persistenceMaxQPS"):             10000,
		dynamicconfig.MakeKey("history.persistenceMaxQPS"):              45000,
		dynamicconfig.MakeKey("system.forceNexusEndpointRefreshOnRead"): true,
	}
	for key, value := range extra {
		dyn[dynamicconfig.MakeKey(key)] = value
	}
	return dyn
}
