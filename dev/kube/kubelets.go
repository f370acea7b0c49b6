package kube

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodelease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"
)

// nodeLeaseSeconds is the kubelet's default lease duration.
const nodeLeaseSeconds = 40

// startKubelets runs kwok as the kubelet of every node until ctx ends: nodes
// become Ready, pods Running, pods of Jobs Succeeded, deleted pods vanish.
func startKubelets(ctx context.Context, c *Cluster) error {
	stages, err := kubeletStages()
	if err != nil {
		return err
	}
	conf, err := kubeletClients(c)
	if err != nil {
		return err
	}
	o := config.GetKwokConfiguration(ctx).Options
	conf.ID = "devstack-" + c.opts.Name
	conf.Clock = clock.RealClock{}
	conf.LocalStages = stages
	conf.ManageAllNodes = true
	conf.CIDR, conf.NodeIP, conf.NodePort = o.CIDR, o.NodeIP, o.NodePort
	conf.NodeLeaseDurationSeconds = nodeLeaseSeconds
	conf.NodeLeaseParallelism = o.NodeLeaseParallelism
	conf.PodPlayStageParallelism = o.PodPlayStageParallelism
	conf.NodePlayStageParallelism = o.NodePlayStageParallelism
	conf.PodsOnNodeSyncParallelism = o.PodsOnNodeSyncParallelism
	conf.EnablePodsOnNodeSyncListPager = o.EnablePodsOnNodeSyncListPager
	conf.EnablePodsOnNodeSyncStreamWatch = o.EnablePodsOnNodeSyncStreamWatch
	kwok, err := controllers.NewController(conf)
	if err != nil {
		return err
	}
	return kwok.Start(ctx)
}

// kubeletStages are kwok's own descriptions of how nodes and pods move on.
func kubeletStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for name, manifest := range map[string]string{
		"node-initialize":           nodefast.DefaultNodeInit,
		"node-heartbeat-with-lease": nodelease.DefaultNodeHeartbeatWithLease,
		"pod-ready":                 podfast.DefaultPodReady,
		"pod-complete":              podfast.DefaultPodComplete,
		"pod-delete":                podfast.DefaultPodDelete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](manifest)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", name, err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}
	return stages, nil
}

func kubeletClients(c *Cluster) (conf controllers.Config, err error) {
	clients, err := kwokclient.NewClientset("", c.Kubeconfig())
	if err != nil {
		return conf, err
	}
	if conf.DynamicClient, err = clients.ToDynamicClient(); err != nil {
		return conf, err
	}
	if conf.RESTMapper, err = clients.ToRESTMapper(); err != nil {
		return conf, err
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return conf, err
	}
	if conf.RESTClient, err = rest.RESTClientFor(restConfig); err != nil {
		return conf, err
	}
	if conf.TypedClient, err = kubernetes.NewForConfig(c.config); err != nil {
		return conf, err
	}
	conf.ImpersonatingDynamicClient = clients.ToImpersonatingDynamicClient()
	conf.ImpersonatingTypedClient = clients.ToImpersonatingTypedClient()
	conf.TypedKwokClient, err = versioned.NewForConfig(c.config)
	return conf, err
}
