package kube

import (
	"context"
	"time"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	sacontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

const (
	// gcDiscovery is how often the garbage collector looks for new kinds. The
	// controller manager's fixed 30 s would leave the dependents of a freshly
	// installed CRD behind for that long.
	gcDiscovery = 2 * time.Second
	// gcInitialSync bounds the collector's wait for its first caches.
	gcInitialSync = 30 * time.Second
	// workers is the concurrency of each controller: a laptop's share.
	workers = 2
)

// loops collects the controllers of one cluster: constructors add their run
// functions, start runs them when all informers exist.
type loops struct {
	client  kubernetes.Interface
	shared  informers.SharedInformerFactory
	objects metadatainformer.SharedInformerFactory
	started chan struct{}
	runs    []func(context.Context)
}

func (l *loops) add(runs ...func(context.Context)) { l.runs = append(l.runs, runs...) }

func (l *loops) start(ctx context.Context) {
	l.shared.Start(ctx.Done())
	l.objects.Start(ctx.Done())
	close(l.started)
	for _, run := range l.runs {
		go run(ctx)
	}
}

// startControllers runs Kubernetes' controllers until ctx ends. They are
// started one by one because kube-controller-manager fits only once into a
// process.
func startControllers(ctx context.Context, c *Cluster) error {
	config := c.Config()
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	l := &loops{
		client:  client,
		shared:  informers.NewSharedInformerFactory(client, 0),
		objects: metadatainformer.NewSharedInformerFactory(objects, 0),
		started: make(chan struct{}),
	}
	if err := addObjectControllers(ctx, l, objects); err != nil {
		return err
	}
	if err := addIdentityControllers(ctx, l, c); err != nil {
		return err
	}
	if c.opts.Workloads {
		if err := addWorkloadControllers(ctx, l); err != nil {
			return err
		}
		if err := addVolumeControllers(ctx, l, c.opts.Volumes); err != nil {
			return err
		}
		if c.opts.Autoscaling {
			if err := addAutoscaler(ctx, l, c); err != nil {
				return err
			}
		}
	}
	l.start(ctx)
	return nil
}

// addObjectControllers adds what every API server needs: garbage collection
// and the deletion of namespaces (which takes at least 5 s, by its design).
func addObjectControllers(ctx context.Context, l *loops, objects metadata.Interface) error {
	discovery := l.client.Discovery()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	gc, err := garbagecollector.NewGarbageCollector(ctx, l.client, objects, mapper,
		garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(l.shared, l.objects), l.started)
	if err != nil {
		return err
	}
	ns := namespace.NewNamespaceController(ctx, l.client, objects, discovery.ServerPreferredNamespacedResources,
		l.shared.Core().V1().Namespaces(), 5*time.Minute, "kubernetes")
	l.add(
		func(ctx context.Context) { gc.Run(ctx, workers, gcInitialSync) },
		func(ctx context.Context) { gc.Sync(ctx, discovery, gcDiscovery) },
		func(ctx context.Context) { ns.Run(ctx, workers) },
	)
	return nil
}

// addIdentityControllers adds default service accounts, token Secrets, the root
// CA in every namespace, and aggregated cluster roles.
func addIdentityControllers(ctx context.Context, l *loops, c *Cluster) error {
	log, core := klog.FromContext(ctx), l.shared.Core().V1()
	accounts, err := sacontroller.NewServiceAccountsController(log, core.ServiceAccounts(), core.Namespaces(),
		l.client, sacontroller.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	key, err := keyutil.PrivateKeyFromFile(c.file(fileServiceAccount))
	if err != nil {
		return err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return err
	}
	tokens, err := sacontroller.NewTokensController(log, core.ServiceAccounts(), core.Secrets(), l.client,
		sacontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: c.ca.CertPEM})
	if err != nil {
		return err
	}
	publisher, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), l.client, c.ca.CertPEM)
	if err != nil {
		return err
	}
	roles := clusterroleaggregation.NewClusterRoleAggregation(l.shared.Rbac().V1().ClusterRoles(), l.client.RbacV1())
	l.add(
		func(ctx context.Context) { accounts.Run(ctx, 1) },
		func(ctx context.Context) { tokens.Run(ctx, 1) },
		func(ctx context.Context) { publisher.Run(ctx, 1) },
		func(ctx context.Context) { roles.Run(ctx, 1) },
	)
	return nil
}
