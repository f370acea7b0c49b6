package kube

import (
	"context"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/podgc"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

// addWorkloadControllers adds what turns workload objects into pods, and what
// watches over nodes.
func addWorkloadControllers(ctx context.Context, l *loops) error {
	core, apps, batch := l.shared.Core().V1(), l.shared.Apps().V1(), l.shared.Batch().V1()
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), l.client)
	if err != nil {
		return err
	}
	daemons, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(),
		core.Pods(), core.Nodes(), l.client, flowcontrol.NewBackOff(time.Second, time.Minute))
	if err != nil {
		return err
	}
	jobs, err := job.NewController(ctx, l.client, core.Pods(), batch.Jobs(), nil, nil)
	if err != nil {
		return err
	}
	cronjobs, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), l.client)
	if err != nil {
		return err
	}
	replicas := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), l.client, replicaset.BurstReplicas)
	stateful := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(),
		core.PersistentVolumeClaims(), apps.ControllerRevisions(), l.client)
	endpoints := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
		l.shared.Discovery().V1().EndpointSlices(), 100, l.client, 0)
	ttl := ttlafterfinished.New(ctx, batch.Jobs(), l.client)
	l.add(
		func(ctx context.Context) { deployments.Run(ctx, workers) },
		func(ctx context.Context) { replicas.Run(ctx, workers) },
		func(ctx context.Context) { stateful.Run(ctx, workers) },
		func(ctx context.Context) { daemons.Run(ctx, workers) },
		func(ctx context.Context) { jobs.Run(ctx, workers) },
		func(ctx context.Context) { cronjobs.Run(ctx, workers) },
		func(ctx context.Context) { endpoints.Run(ctx, workers) },
		func(ctx context.Context) { ttl.Run(ctx, workers) },
	)
	return addNodeControllers(ctx, l)
}

// addNodeControllers adds the node life cycle (which also takes away the
// not-ready taint that admission puts on every new node) and the removal of
// pods whose node is gone.
func addNodeControllers(ctx context.Context, l *loops) error {
	const (
		// Those of the controller manager, but nodes are looked at each second
		// instead of each five: a new node is usable at once.
		monitorPeriod  = time.Second
		startupGrace   = time.Minute
		monitorGrace   = 50 * time.Second
		evictionRate   = 0.1
		evictionRate2  = 0.01
		largeCluster   = 50
		unhealthyShare = 0.55
		// terminatedPods is the controller manager's default threshold.
		terminatedPods = 12500
	)
	core := l.shared.Core().V1()
	nodes, err := nodelifecycle.NewNodeLifecycleController(ctx, l.shared.Coordination().V1().Leases(), core.Pods(),
		core.Nodes(), l.shared.Apps().V1().DaemonSets(), l.client,
		monitorPeriod, startupGrace, monitorGrace, evictionRate, evictionRate2, largeCluster, unhealthyShare)
	if err != nil {
		return err
	}
	orphans := podgc.NewPodGC(ctx, l.client, core.Pods(), core.Nodes(), terminatedPods)
	l.add(
		func(ctx context.Context) { nodes.Run(ctx) },
		func(ctx context.Context) { orphans.Run(ctx) },
	)
	return nil
}
