package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tidbcloud/infra-orchestrator/dev/awsproxy"
	"github.com/tidbcloud/infra-orchestrator/dev/configservice"
	"github.com/tidbcloud/infra-orchestrator/dev/garden"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
	"github.com/tidbcloud/infra-orchestrator/dev/standin/awsinfra"
	"github.com/tidbcloud/infra-orchestrator/dev/standin/ebs"
	"github.com/tidbcloud/infra-orchestrator/dev/standin/loadbalancer"
	"github.com/tidbcloud/infra-orchestrator/dev/standin/tidboperator"
)

func (s *Stack) startAWS(ctx context.Context) error {
	// The emulator lives as long as its context: that ends with ctx while it
	// starts, not afterwards.
	life, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	started := context.AfterFunc(ctx, giveUp)
	aws, err := awsproxy.Start(life, awsproxy.StackOptions{
		Options:  awsproxy.Options{Speed: s.opts.Speed, Faults: s.faults, Log: s.log.With("part", "aws")},
		Address:  s.opts.listenAddress(PortAWS),
		CacheDir: s.opts.Venv,
		LogDir:   s.state.Logs,
		Progress: func(sentence string) { s.screen.stamp("%s", sentence) },
	})
	if err != nil {
		giveUp()
		return errors.Join(ctx.Err(), err)
	}
	started()
	s.onStop(func() { aws.Stop(); giveUp() })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aws, s.state.AWS = aws, aws.URL
	return nil
}

// startConfigService serves the documents of a folder.
func (s *Stack) startConfigService(context.Context) error {
	service, err := configservice.New(s.opts.ConfigService, s.faults)
	if err != nil {
		return err
	}
	url, stop, err := serve(s.opts.listenAddress(PortConfigService), service)
	if err != nil {
		return err
	}
	s.onStop(stop)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.ConfigService = url
	return nil
}

// startGarden runs Gardener's API server, which the management cluster
// aggregates: one kubeconfig opens both.
func (s *Stack) startGarden(ctx context.Context) error {
	g, err := garden.Start(ctx, garden.Options{
		Cluster: s.cluster, Etcd: s.etcd,
		Dir:   filepath.Join(s.state.DataDir, "garden"),
		Log:   s.logFile(processGarden),
		Ended: s.childEnded,
	})
	if err != nil {
		return err
	}
	// Killed, not asked: it would wait for the watches of its aggregator, and
	// everything that it has is in etcd.
	s.keepChild(g.Child(), g.Child().Kill)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.GardenKubeconfig = s.state.Kubeconfig
	return nil
}

// startGardenlet runs what turns Shoots into clusters, and inside each of these
// the operator of TiDB and the cloud's load balancers.
func (s *Stack) startGardenlet(ctx context.Context) error {
	log := s.log.With("part", "gardenlet")
	infrastructure, err := awsinfra.New(s.cluster.Config(), s.state.AWS, log)
	if err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	g, err := gardenlet.Start(ctx, gardenlet.Options{
		Garden:          s.cluster.Config(),
		Etcd:            s.etcd,
		Dir:             filepath.Join(s.state.DataDir, "shoots"),
		SeedName:        garden.SeedName,
		ClusterIdentity: garden.ClusterIdentity,
		Infrastructure:  infrastructure,
		Volumes:         ebs.Volumes(infrastructure.ConfigFor),
		Addons: []gardenlet.ShootAddon{
			tidboperator.Addon(tidboperator.Options{Faults: s.faults, Speed: s.opts.Speed, Log: s.log.With("part", "tidb-operator")}),
			loadbalancer.Addon(loadbalancer.Options{Config: infrastructure.ConfigFor, Faults: s.faults, Log: s.log.With("part", "load-balancer")}),
		},
		Faults: s.faults,
		Pace:   gardenlet.Pace{Factor: 1 / s.opts.Speed},
		Log:    s.componentLog.WithName("gardenlet"),
	})
	if err != nil {
		return err
	}
	s.onStop(func() {
		if err := g.Stop(); err != nil {
			s.log.Warn("gardenlet did not stop cleanly", "error", err)
		}
	})
	return nil
}
