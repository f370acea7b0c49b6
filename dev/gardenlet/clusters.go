package gardenlet

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/tidbcloud/infra-orchestrator/dev/kube"
)

const (
	// addonPause is the time between an addon's error and its next start.
	addonPause = 2 * time.Second
	// addonStop bounds the wait for addons before their API server goes.
	addonStop = 10 * time.Second
)

// clusters are the API servers of the Shoots, by technical id.
type clusters struct {
	opts Options

	mu  sync.Mutex
	all map[string]*shootCluster
}

type shootCluster struct {
	*kube.Cluster
	info   ShootInfo
	cancel context.CancelFunc
	addons sync.WaitGroup
}

func newClusters(opts Options) *clusters {
	return &clusters{opts: opts, all: map[string]*shootCluster{}}
}

// start runs the cluster of a Shoot, unless it runs already.
func (c *clusters) start(ctx context.Context, shoot *gardencorev1beta1.Shoot, technicalID string) (*kube.Cluster, error) {
	// Operations on one Shoot are serialised; the lock only guards the map, so
	// that clusters start side by side.
	if running, ok := c.get(technicalID); ok {
		return running.Cluster, nil
	}
	info := newShootInfo(shoot, technicalID)
	opts := kube.Options{
		Name:                 technicalID,
		Dir:                  c.dir(technicalID),
		Etcd:                 c.opts.Etcd,
		ServiceAccountIssuer: issuerURL(shoot),
		Workloads:            true,
	}
	if c.opts.Volumes != nil {
		opts.Volumes = c.opts.Volumes(info)
	}
	cluster, err := kube.Start(ctx, opts)
	if err != nil {
		return nil, err
	}
	info.Config, info.Kubeconfig = cluster.Config(), cluster.Kubeconfig()
	addonCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	running := &shootCluster{Cluster: cluster, info: info, cancel: cancel}
	for _, addon := range c.opts.Addons {
		running.addons.Go(func() { c.runAddon(addonCtx, addon, info) })
	}
	go c.logFailures(addonCtx, cluster)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[technicalID] = running
	return cluster, nil
}

func (c *clusters) runAddon(ctx context.Context, addon ShootAddon, info ShootInfo) {
	for ctx.Err() == nil {
		if err := addon(ctx, info); err != nil && ctx.Err() == nil {
			c.opts.Log.Error(err, "Addon ended, starting it again", "shoot", info.TechnicalID)
		}
		select {
		case <-ctx.Done():
		case <-time.After(addonPause):
		}
	}
}

func (c *clusters) logFailures(ctx context.Context, cluster *kube.Cluster) {
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-cluster.Failed():
			c.opts.Log.Error(err, "Shoot cluster failed", "shoot", cluster.Name())
		}
	}
}

// stop ends a cluster, addons first. Its data stays. One that does not run is fine.
func (c *clusters) stop(technicalID string) error {
	running, ok := c.get(technicalID)
	if !ok {
		return nil
	}
	running.cancel()
	ended := make(chan struct{})
	go func() { running.addons.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(addonStop):
		c.opts.Log.Info("Addons do not end; stopping their API server anyway", "shoot", technicalID)
	}
	err := running.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, technicalID)
	return err
}

// destroy ends a cluster and removes all that it stored.
func (c *clusters) destroy(ctx context.Context, technicalID string) error {
	if err := c.stop(technicalID); err != nil {
		return err
	}
	if err := c.opts.Etcd.DeletePrefix(ctx, "/"+technicalID); err != nil {
		return err
	}
	return os.RemoveAll(c.dir(technicalID))
}

func (c *clusters) stopAll() error {
	var errs []error
	for _, info := range c.infos() {
		errs = append(errs, c.stop(info.TechnicalID))
	}
	return errors.Join(errs...)
}

// exists tells whether the cluster has ever been started and not been destroyed.
func (c *clusters) exists(technicalID string) bool {
	_, err := os.Stat(c.dir(technicalID))
	return !errors.Is(err, fs.ErrNotExist)
}

func (c *clusters) running(technicalID string) bool {
	_, ok := c.get(technicalID)
	return ok
}

func (c *clusters) info(technicalID string) (ShootInfo, bool) {
	running, ok := c.get(technicalID)
	if !ok {
		return ShootInfo{}, false
	}
	return running.info, true
}

func (c *clusters) infos() []ShootInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []ShootInfo
	for running := range maps.Values(c.all) {
		list = append(list, running.info)
	}
	slices.SortFunc(list, func(a, b ShootInfo) int { return cmp.Compare(a.TechnicalID, b.TechnicalID) })
	return list
}

func (c *clusters) get(technicalID string) (*shootCluster, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	running, ok := c.all[technicalID]
	return running, ok
}

func (c *clusters) dir(technicalID string) string { return filepath.Join(c.opts.Dir, technicalID) }

func newShootInfo(shoot *gardencorev1beta1.Shoot, technicalID string) ShootInfo {
	info := ShootInfo{
		Namespace: shoot.Namespace, Name: shoot.Name, UID: string(shoot.UID), TechnicalID: technicalID,
		Provider: shoot.Spec.Provider.Type, Region: shoot.Spec.Region,
	}
	for _, pool := range shoot.Spec.Provider.Workers {
		info.Zones = append(info.Zones, pool.Zones...)
	}
	slices.Sort(info.Zones)
	info.Zones = slices.Compact(info.Zones)
	return info
}
