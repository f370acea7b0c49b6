package gardenlet

import (
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// carePause is the time between the end of an operation and the first look.
	carePause = 500 * time.Millisecond
	// carePeriod is gardenlet's own.
	carePeriod = 30 * time.Second
	// statusLabel mirrors the health for selectors.
	statusLabel = "shoot.gardener.cloud/status"
)

// health is one condition's outcome.
type health struct {
	status          gardencorev1beta1.ConditionStatus
	reason, message string
}

var (
	healthyConditions = map[gardencorev1beta1.ConditionType]health{
		gardencorev1beta1.ShootAPIServerAvailable:             {gardencorev1beta1.ConditionTrue, "HealthzRequestSucceeded", "API server /healthz endpoint responded with success status code."},
		gardencorev1beta1.ShootControlPlaneHealthy:            {gardencorev1beta1.ConditionTrue, "ControlPlaneRunning", "All control plane components are healthy."},
		gardencorev1beta1.ShootObservabilityComponentsHealthy: {gardencorev1beta1.ConditionTrue, "ObservabilityComponentsRunning", "All observability components are healthy."},
		gardencorev1beta1.ShootEveryNodeReady:                 {gardencorev1beta1.ConditionTrue, "EveryNodeReady", "All nodes are ready."},
		gardencorev1beta1.ShootSystemComponentsHealthy:        {gardencorev1beta1.ConditionTrue, "SystemComponentsRunning", "All system components are healthy."},
	}
	hibernated = health{gardencorev1beta1.ConditionTrue, "ConditionNotChecked", "Shoot cluster has been hibernated."}
	webhooksOK = health{gardencorev1beta1.ConditionTrue, "NoProblematicWebhooks", "All webhooks are properly configured."}
	certsOK    = health{gardencorev1beta1.ConditionTrue, "NoExpiringCACertificates", "All CA certificates are still valid for at least 8760h0m0s."}
)

// conditionOrder is that of Gardener's status.
var conditionOrder = []gardencorev1beta1.ConditionType{
	gardencorev1beta1.ShootAPIServerAvailable,
	gardencorev1beta1.ShootControlPlaneHealthy,
	gardencorev1beta1.ShootObservabilityComponentsHealthy,
	gardencorev1beta1.ShootEveryNodeReady,
	gardencorev1beta1.ShootSystemComponentsHealthy,
}

// initialConditions are those of a Shoot that nobody has checked yet.
// Constraints start as satisfied: Gardener refuses to hibernate otherwise.
func initialConditions(now metav1.Time) (conditions, constraints []gardencorev1beta1.Condition) {
	unknown := health{gardencorev1beta1.ConditionUnknown, "ConditionInitialized", "The condition has been initialized but its semantic check has not been performed yet."}
	for _, t := range conditionOrder {
		conditions = append(conditions, newCondition(t, unknown, now))
	}
	return conditions, []gardencorev1beta1.Condition{
		newCondition(gardencorev1beta1.ShootHibernationPossible, webhooksOK, now),
		newCondition(gardencorev1beta1.ShootMaintenancePreconditionsSatisfied, webhooksOK, now),
		newCondition(gardencorev1beta1.ShootCACertificateValiditiesAcceptable, certsOK, now),
	}
}

func newCondition(t gardencorev1beta1.ConditionType, h health, now metav1.Time) gardencorev1beta1.Condition {
	return gardencorev1beta1.Condition{
		Type: t, Status: h.status, Reason: h.reason, Message: h.message, LastTransitionTime: now, LastUpdateTime: now,
	}
}

// care brings up the cluster of a Shoot that has one (after a restart of the
// devstack), keeps its nodes, and reports what it sees.
func (r *reconciler) care(ctx context.Context, shoot *gardencorev1beta1.Shoot) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: carePeriod}
	technicalID := shoot.Status.TechnicalID
	awake := !shoot.Status.IsHibernated && !hibernationWanted(shoot)
	if awake && technicalID != "" && r.clusters.exists(technicalID) && !r.clusters.running(technicalID) {
		// The port may be another one: as after an operation, tell everybody.
		op := newOperation(r, shoot, technicalID)
		if err := op.startCluster(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	found := r.examine(ctx, shoot)
	base := shoot.DeepCopy()
	for i := range shoot.Status.Conditions {
		c := &shoot.Status.Conditions[i]
		h, ok := found[c.Type]
		if !ok || c.Status == h.status && c.Reason == h.reason && c.Message == h.message {
			continue
		}
		now := metav1.Now()
		if c.Status != h.status {
			c.LastTransitionTime = now
		}
		c.Status, c.Reason, c.Message, c.LastUpdateTime = h.status, h.reason, h.message, now
	}
	if !apiequality.Semantic.DeepEqual(base.Status, shoot.Status) {
		if err := r.client.Status().Patch(ctx, shoot, client.MergeFrom(base)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	return again, r.label(ctx, shoot)
}

// examine looks at a cluster as gardenlet's health checks do.
func (r *reconciler) examine(ctx context.Context, shoot *gardencorev1beta1.Shoot) map[gardencorev1beta1.ConditionType]health {
	found := map[gardencorev1beta1.ConditionType]health{}
	for t, h := range healthyConditions {
		if shoot.Status.IsHibernated {
			h = hibernated
		}
		found[t] = h
	}
	if shoot.Status.IsHibernated {
		return found
	}
	unready, err := r.unreadyNodes(ctx, shoot.Status.TechnicalID)
	if err != nil {
		found[gardencorev1beta1.ShootAPIServerAvailable] = health{gardencorev1beta1.ConditionFalse, "HealthzRequestFailed", fmt.Sprintf("Request to API server /healthz endpoint failed: %v", err)}
		found[gardencorev1beta1.ShootEveryNodeReady] = health{gardencorev1beta1.ConditionUnknown, "ConditionCheckError", "Shoot control plane is not running at the moment."}
	} else if unready != "" {
		found[gardencorev1beta1.ShootEveryNodeReady] = health{gardencorev1beta1.ConditionFalse, "NodeUnhealthy", unready}
	}
	return found
}

// unreadyNodes describes the first node that is not ready; "" when all are.
func (r *reconciler) unreadyNodes(ctx context.Context, technicalID string) (string, error) {
	info, ok := r.clusters.info(technicalID)
	if !ok {
		return "", fmt.Errorf("the API server of %s is not running", technicalID)
	}
	shoot, err := kubernetes.NewForConfig(info.Config)
	if err != nil {
		return "", err
	}
	nodes, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, node := range nodes.Items {
		if !nodeReady(&node) {
			return fmt.Sprintf("Node %q is not ready.", node.Name), nil
		}
	}
	return "", nil
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// label keeps the health label of the Shoot, by Gardener's own rule.
func (r *reconciler) label(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	value := string(gardenerutils.ComputeShootStatus(shoot.Status.LastOperation, shoot.Status.LastErrors, shoot.Status.Conditions...))
	if shoot.Labels[statusLabel] == value {
		return nil
	}
	base := shoot.DeepCopy()
	if shoot.Labels == nil {
		shoot.Labels = map[string]string{}
	}
	shoot.Labels[statusLabel] = value
	return client.IgnoreNotFound(r.client.Patch(ctx, shoot, client.MergeFrom(base)))
}
