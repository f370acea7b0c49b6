package kube

import (
	"context"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// startScheduler runs kube-scheduler until ctx ends.
//
// It starts the scheduler proper and leaves out the command around it (leader
// election, health server, configz): that part registers itself once per
// process and exits the process when it is told to stop.
func startScheduler(ctx context.Context, c *Cluster) error {
	o := options.NewOptionsWithComponentGlobalsRegistry(newRegistry())
	if err := parseFlags(*o.Flags, []string{
		"--kubeconfig=" + c.Kubeconfig(), "--secure-port=0", "--leader-elect=false",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}); err != nil {
		return err
	}
	if err := o.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	config, scheduler, err := app.Setup(ctx, o)
	if err != nil {
		return err
	}
	go func() {
		config.EventBroadcaster.StartRecordingToSink(ctx.Done())
		defer config.EventBroadcaster.Shutdown()
		config.InformerFactory.Start(ctx.Done())
		config.DynInformerFactory.Start(ctx.Done())
		config.InformerFactory.WaitForCacheSync(ctx.Done())
		config.DynInformerFactory.WaitForCacheSync(ctx.Done())
		if err := scheduler.WaitForHandlersSync(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Scheduler starts with incomplete caches", "cluster", c.opts.Name)
		}
		scheduler.Run(ctx)
	}()
	return nil
}
