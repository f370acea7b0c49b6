package loadbalancer

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// Names that the real controller uses.
const (
	finalizer        = "service.k8s.aws/resources"
	annotationPrefix = "service.beta.kubernetes.io/aws-load-balancer-"
	class            = "service.k8s.aws/nlb"
)

// stuckPoll is how often a stuck Service is looked at again.
const stuckPoll = 500 * time.Millisecond

type reconciler struct {
	client client.Client
	shoot  gardenlet.ShootInfo
	faults *control.Registry
	events events.EventRecorder
	cloud  func(context.Context) (*cloud, error)
}

// Reconcile brings the load balancer of one Service to what it asks for.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var service corev1.Service
	if err := r.client.Get(ctx, req.NamespacedName, &service); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owned := controllerutil.ContainsFinalizer(&service, finalizer)
	if !wanted(&service) && !owned {
		return ctrl.Result{}, nil
	}
	if r.faults.Stuck(control.TargetLoadBalancer, control.Subject{
		Shoot: r.shoot.TechnicalID, ShootName: r.shoot.Name, Namespace: service.Namespace, Name: service.Name,
	}) {
		return ctrl.Result{RequeueAfter: stuckPoll}, nil
	}
	cloud, err := r.cloud(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !service.DeletionTimestamp.IsZero() || !wanted(&service) {
		err = r.remove(ctx, cloud, &service)
	} else {
		err = r.ensure(ctx, cloud, &service)
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: stuckPoll / 5}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// wanted reports whether the Service is for this controller.
func wanted(s *corev1.Service) bool {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return false
	}
	if s.Spec.LoadBalancerClass != nil {
		return *s.Spec.LoadBalancerClass == class
	}
	switch s.Annotations[annotationPrefix+"type"] {
	case "external", "nlb", "nlb-ip":
		return true
	}
	return false
}

// ensure sets the finalizer first, so that nothing in the cloud is forgotten.
func (r *reconciler) ensure(ctx context.Context, cloud *cloud, s *corev1.Service) error {
	if !controllerutil.ContainsFinalizer(s, finalizer) {
		before := s.DeepCopy()
		controllerutil.AddFinalizer(s, finalizer)
		if err := r.client.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	host, err := cloud.ensure(ctx, s)
	if err != nil {
		r.events.Eventf(s, nil, corev1.EventTypeWarning, "FailedDeployModel", "Reconcile", "Failed deploy model due to %v", err)
		return fmt.Errorf("service %s/%s: %w", s.Namespace, s.Name, err)
	}
	if in := s.Status.LoadBalancer.Ingress; len(in) == 1 && in[0].Hostname == host {
		return nil
	}
	before := s.DeepCopy()
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: host}}
	if err := r.client.Status().Patch(ctx, s, client.MergeFrom(before)); err != nil {
		return err
	}
	r.events.Eventf(s, nil, corev1.EventTypeNormal, "SuccessfullyReconciled", "Reconcile", "Successfully reconciled")
	return nil
}

// remove drops the finalizer once nothing is left.
func (r *reconciler) remove(ctx context.Context, cloud *cloud, s *corev1.Service) error {
	if err := cloud.remove(ctx, s.Namespace, s.Name); err != nil {
		r.events.Eventf(s, nil, corev1.EventTypeWarning, "FailedDeployModel", "Reconcile", "Failed deploy model due to %v", err)
		return fmt.Errorf("service %s/%s: %w", s.Namespace, s.Name, err)
	}
	before := s.DeepCopy()
	controllerutil.RemoveFinalizer(s, finalizer)
	return r.client.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// extraTags reads "a=b,c=d".
func extraTags(s *corev1.Service) map[string]string {
	tags := map[string]string{}
	for _, pair := range strings.Split(s.Annotations[annotationPrefix+"additional-resource-tags"], ",") {
		if key, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && key != "" {
			tags[key] = value
		}
	}
	return tags
}
