// Package balancing implements the activities of the workflow BalanceReplicas.
// What is decided is in packages balancing and balancing/round; here is what
// is read before and written after.
package balancing

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

// Reasons of Events. The first two are the original's.
const (
	ReasonUnable           = "UnableToBalance"
	ReasonStatusNotUpdated = "StatusNotUpdated"
	// ReasonScaled tells of a change.
	ReasonScaled = "ReplicasChanged"
	// ReasonContested tells that somebody else scales a target, or has stopped.
	ReasonContested = "TargetContested"
)

// Component is the source of Events, as the original's.
const Component = "balancer-controller"

// Activities implements the contract's balancing activities.
type Activities struct {
	// Cache of all namespaces.
	Cache Cache
	// Client reads Balancers live, and writes them.
	Client client.Client
	// Scales of targets, live.
	Scales Scales
	// Writers tells who else scales a target; nil: nobody knows.
	Writers Writers
	// Events about Balancers; repetitions are counted.
	Events record.EventRecorder
	// Metrics of sweeps, may be nil.
	Metrics *Metrics
	// Now is time.Now when nil.
	Now func() time.Time
}

// Register registers all activities of this package.
func (a *Activities) Register(r contract.Registry) {
	contract.Register(r, contract.PlanBalancers, a.PlanBalancers)
	contract.Register(r, contract.EnsureBalanced, a.EnsureBalanced)
	contract.Register(r, contract.ApplyBalancerStatuses, a.ApplyBalancerStatuses)
}

// AddToScheme adds all types that these activities read and write.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}

func (a *Activities) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// planOne is one round over one Balancer. A panic becomes the failure of that
// Balancer.
func planOne(b *v1alpha1.Balancer, read func(i int) round.Target, pods *podIndex, now time.Time) (plan round.Plan) {
	defer func() {
		if cause := recover(); cause != nil {
			plan = round.Plan{Selector: b.Status.Selector, Failure: &round.Failure{
				Phase: round.Internal, Err: fmt.Errorf("this is a defect of the balancer, report it: %v", cause),
			}}
		}
	}()
	targets := make([]round.Target, len(b.Spec.Targets))
	kinds, keys := make([]schema.GroupKind, len(targets)), make([]string, len(targets))
	for i := range targets {
		targets[i] = read(i)
		ref := b.Spec.Targets[i].ScaleTargetRef
		kinds[i], keys[i] = groupKind(ref.APIVersion, ref.Kind), targets[i].Owner
	}
	return round.Make(inputOf(b, targets, pods.of(kinds, keys), now))
}

// summary is what a plan changes, for people: "a 3→5, b 7→5".
func summary(b *v1alpha1.Balancer, plan round.Plan, errs map[int]error) string {
	var parts []string
	for _, c := range plan.Changes {
		if errs[c.Target] == nil {
			parts = append(parts, fmt.Sprintf("%s %d→%d", b.Spec.Targets[c.Target].Name, c.From, c.To))
		}
	}
	const most = 8 // a summary is one line
	if len(parts) > most {
		parts = append(parts[:most], fmt.Sprintf("%d more", len(parts)-most))
	}
	return strings.Join(parts, ", ")
}
