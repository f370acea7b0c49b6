package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	mergePatch = types.MergePatchType
	// cleanupTimeout is how long one attempt waits for the user's objects to go.
	cleanupTimeout = time.Minute
	// cleanupLeast is the shortest that a faster pace makes it.
	cleanupLeast = 20 * time.Second
)

// cleaned are the kinds that Gardener removes from a shoot before it takes its
// workers away, in its order: what is deleted first would make the rest again.
var cleaned = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "", Version: "v1", Resource: "pods"},
	{Group: "", Version: "v1", Resource: "services"},
	{Group: "", Version: "v1", Resource: "persistentvolumeclaims"},
}

// cleanShoot removes the user's objects from a shoot and waits until those are
// gone that hold on to the cloud: load balancers and dynamically made volumes.
// Volumes with the reclaim policy Retain stay behind, as in Gardener: whoever
// deletes a Shoot over them leaks their disks.
func cleanShoot(ctx context.Context, config *rest.Config, timeout time.Duration) error {
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	shoot, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, kind := range cleaned {
		if err := deleteAll(ctx, objects, kind); err != nil {
			return fmt.Errorf("delete %s: %w", kind.Resource, err)
		}
	}
	var left []string
	err = wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, max(timeout, 10*time.Second), true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = remaining(ctx, shoot, objects)
		return len(left) == 0, err
	})
	if err != nil && len(left) > 0 && ctx.Err() == nil {
		return &InfraError{
			Code:    string(gardencorev1beta1.ErrorCleanupClusterResources),
			Message: fmt.Sprintf("%d object(s) are still present in the shoot cluster: %s", len(left), strings.Join(left[:min(len(left), 10)], ", ")),
		}
	}
	return err
}

// deleteAll deletes every object of a kind except Kubernetes' own.
func deleteAll(ctx context.Context, objects metadata.Interface, kind schema.GroupVersionResource) error {
	list, err := objects.Resource(kind).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	var errs []error
	for _, o := range list.Items {
		if kind.Resource == "services" && o.Namespace == "default" && o.Name == "kubernetes" {
			continue
		}
		err := objects.Resource(kind).Namespace(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// remaining names what is left and holds on to the cloud.
func remaining(ctx context.Context, shoot kubernetes.Interface, objects metadata.Interface) ([]string, error) {
	var left []string
	crds, err := objects.Resource(cleaned[0]).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, crd := range crds.Items {
		left = append(left, "customresourcedefinition "+crd.Name)
	}
	services, err := shoot.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			left = append(left, "service "+s.Namespace+"/"+s.Name)
		}
	}
	claims, err := shoot.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range claims.Items {
		left = append(left, "persistentvolumeclaim "+c.Namespace+"/"+c.Name)
	}
	volumes, err := shoot.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range volumes.Items {
		if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			left = append(left, "persistentvolume "+v.Name)
		}
	}
	return left, nil
}
