package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Balancer spreads replicas over several scalable objects, such as Deployments
// of different zones, and presents them as one to autoscalers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=balancers,singular=balancer,scope=Namespaced
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.policy.policyName`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Balancing",type=string,JSONPath=`.status.conditions[?(@.type=="Balancing")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Balancing")].reason`
// +kubebuilder:printcolumn:name="Missing",type=integer,JSONPath=`.status.missingReplicas`,priority=1
// +kubebuilder:printcolumn:name="Overflow",type=integer,JSONPath=`.status.overflowReplicas`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Balancer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is wanted.
	Spec BalancerSpec `json:"spec"`
	// Status tells what is; only the balancer writes it.
	// +optional
	Status BalancerStatus `json:"status,omitempty"`
}

// BalancerList is a list of Balancers.
//
// +kubebuilder:object:root=true
type BalancerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Balancer `json:"items"`
}

// BalancerSpec says what is wanted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.policy.priorities) || self.policy.policyName != 'priority' || self.policy.priorities.targetOrder.all(n, self.targets.exists(t, t.name == n))",message="targetOrder may only list names of targets"
// +kubebuilder:validation:XValidation:rule="!has(self.policy.proportions) || self.policy.policyName != 'proportional' || self.policy.proportions.targetProportions.all(n, self.targets.exists(t, t.name == n))",message="targetProportions may only list names of targets"
type BalancerSpec struct {
	// Replicas is the total to spread over the targets. Without a value the
	// balancer sets it once, to the sum of minReplicas and at least 1; from then
	// on it is the autoscaler's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// Targets are the objects over which replicas are spread.
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	Targets []BalancerTarget `json:"targets"`
	// Policy says how replicas are spread.
	Policy BalancerPolicy `json:"policy"`
	// Selector must match the pods of every target; status.selector shows it to
	// autoscalers. {} matches all.
	Selector metav1.LabelSelector `json:"selector"`
	// Rebalancing limits how a changed split is reached. Without it everything
	// changes at once.
	// +optional
	Rebalancing *Rebalancing `json:"rebalancing,omitempty"`
}

// BalancerTarget is one scalable object.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not exceed maxReplicas"
type BalancerTarget struct {
	// Name by which the policy refers to the target.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// ScaleTargetRef names the object. It is in the Balancer's namespace and has
	// the subresource scale: a Deployment, a StatefulSet, a custom resource, …
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`
	// MinReplicas is what the target always gets, even beyond spec.replicas.
	// Absent: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// MaxReplicas is the most that the target gets. Absent: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}

// Names of policies.
const (
	// PriorityPolicyName fills one target after the other.
	PriorityPolicyName = "priority"
	// ProportionalPolicyName fills targets by weight.
	ProportionalPolicyName = "proportional"
)

// BalancerPolicy says how replicas are spread.
//
// +kubebuilder:validation:XValidation:rule="self.policyName in ['priority', 'proportional']",message="policyName must be priority or proportional"
// +kubebuilder:validation:XValidation:rule="self.policyName != 'priority' || has(self.priorities)",message="policy priority needs priorities"
// +kubebuilder:validation:XValidation:rule="self.policyName != 'proportional' || has(self.proportions)",message="policy proportional needs proportions"
type BalancerPolicy struct {
	// PolicyName is priority or proportional.
	PolicyName string `json:"policyName"`
	// Priorities are the parameters of policy priority.
	// +optional
	Priorities *PriorityPolicy `json:"priorities,omitempty"`
	// Proportions are the parameters of policy proportional.
	// +optional
	Proportions *ProportionalPolicy `json:"proportions,omitempty"`
	// Fallback places replicas elsewhere that do not start where they should.
	// Absent: never.
	// +optional
	Fallback *Fallback `json:"fallback,omitempty"`
}

// PriorityPolicy fills one target after the other.
type PriorityPolicy struct {
	// TargetOrder lists names of targets, the best first. A target that is not
	// listed gets minReplicas.
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	TargetOrder []string `json:"targetOrder"`
}

// ProportionalPolicy fills targets by weight.
//
// +kubebuilder:validation:XValidation:rule="self.targetProportions.all(n, self.targetProportions[n] >= 0)",message="weights must not be negative"
// +kubebuilder:validation:XValidation:rule="self.targetProportions.exists(n, self.targetProportions[n] > 0)",message="at least one weight must be above 0"
type ProportionalPolicy struct {
	// TargetProportions maps names of targets to weights. A target without a
	// positive weight gets minReplicas.
	// +kubebuilder:validation:MinProperties=2
	// +kubebuilder:validation:MaxProperties=100
	TargetProportions map[string]int32 `json:"targetProportions"`
	// Rounding turns shares into whole replicas. DHondt favours big targets and
	// SainteLague nobody; neither takes a replica away because the total grows.
	// LargestRemainder keeps every target within one replica of its share.
	// +optional
	// +kubebuilder:default=DHondt
	// +kubebuilder:validation:Enum=DHondt;SainteLague;LargestRemainder
	Rounding string `json:"rounding,omitempty"`
	// TieBreak decides between targets with the same claim: Name prefers the
	// first in byte order, Hash another target in each Balancer, always the same.
	// +optional
	// +kubebuilder:default=Name
	// +kubebuilder:validation:Enum=Name;Hash
	TieBreak string `json:"tieBreak,omitempty"`
}

// Fallback places replicas elsewhere that do not start where they should.
type Fallback struct {
	// StartupTimeoutSeconds is how long a pod may take.
	// +kubebuilder:validation:Minimum=0
	StartupTimeoutSeconds int32 `json:"startupTimeoutSeconds"`
	// Scope says which pods take too long: those that are Pending (NotStarted),
	// or also those that run and are not ready (Unavailable).
	// +optional
	// +kubebuilder:default=NotStarted
	// +kubebuilder:validation:Enum=NotStarted;Unavailable
	Scope string `json:"scope,omitempty"`
}

// Rebalancing limits how a changed split is reached, over the sum of all
// targets. Numbers, or percentages of spec.replicas: maxSurge is rounded up,
// maxUnavailable down.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxSurge) || !has(self.maxUnavailable) || !(string(self.maxSurge) in ['0', '0%']) || !(string(self.maxUnavailable) in ['0', '0%'])",message="maxSurge and maxUnavailable must not both be 0: no replica could ever move"
type Rebalancing struct {
	// MaxSurge is how many replicas may exist beyond spec.replicas while
	// replicas move. Those that stand in for blocked ones come on top. Absent:
	// any number.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^[0-9]+%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || self >= 0",message="limits must not be negative"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// MaxUnavailable is how many of spec.replicas may be missing or not ready
	// because replicas move. Absent: any number.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^[0-9]+%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || self >= 0",message="limits must not be negative"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// ConditionBalancing is the type of the condition that tells the outcome of
// the last round.
const ConditionBalancing = "Balancing"

// ConditionContested is the type of the condition that tells of somebody else
// who scales a target. It is there once somebody did.
const ConditionContested = "Contested"

// Reasons of condition Contested.
const (
	// ReasonOverruled: a target was scaled by somebody else, and set back.
	ReasonOverruled = "Overruled"
	// ReasonLeftAlone: it happened too often, and the target is left alone.
	ReasonLeftAlone = "LeftAlone"
	// ReasonSettled: it is over.
	ReasonSettled = "Settled"
)

// BalancerStatus tells what is.
type BalancerStatus struct {
	// Replicas is the number of pods of all targets, started or not.
	Replicas int32 `json:"replicas"`
	// Selector is spec.selector as text, for autoscalers.
	Selector string `json:"selector"`
	// Conditions holds the condition Balancing, and Contested once somebody else
	// has scaled a target.
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the spec that the rest tells of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// MissingReplicas is by how much the sum of minReplicas exceeds
	// spec.replicas.
	// +optional
	MissingReplicas int32 `json:"missingReplicas,omitempty"`
	// OverflowReplicas is how many replicas found no room in any target.
	// +optional
	OverflowReplicas int32 `json:"overflowReplicas,omitempty"`
	// Targets tells of each target, in the order of the spec.
	// +optional
	// +listType=atomic
	Targets []BalancerTargetStatus `json:"targets,omitempty"`
}

// BalancerTargetStatus tells of one target.
type BalancerTargetStatus struct {
	// Name of the target.
	Name string `json:"name"`
	// Desired is how many replicas the policy gives to the target.
	Desired int32 `json:"desired"`
	// Observed is the number of its pods, started or not.
	Observed int32 `json:"observed"`
	// Ready is how many of them are ready.
	Ready int32 `json:"ready"`
	// Blocked is how many of them did not start within the timeout.
	// +optional
	Blocked int32 `json:"blocked,omitempty"`
	// Fallback is how many replicas other targets got in place of those that
	// are not expected to start here. The balancer remembers it from one round
	// to the next: it ends when the replicas are ready.
	// +optional
	Fallback int32 `json:"fallback,omitempty"`
	// LastSet is what the balancer wrote last to the scale of the target, as long
	// as it stands.
	// +optional
	LastSet *TargetSetting `json:"lastSet,omitempty"`
	// Contest tells of somebody else who scales the target. Absent: nobody did
	// for an hour.
	// +optional
	Contest *TargetContest `json:"contest,omitempty"`
}

// TargetSetting is a number that the balancer wrote.
type TargetSetting struct {
	// Replicas that were written.
	Replicas int32 `json:"replicas"`
	// UID of the object.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Time of the write.
	Time metav1.Time `json:"time"`
}

// TargetContest tells of somebody else who scales a target.
type TargetContest struct {
	// By is who, as far as it can be read from the object's managedFields and
	// from the HorizontalPodAutoscalers of the namespace.
	By string `json:"by"`
	// Autoscaler is the HorizontalPodAutoscaler that refers to the target.
	// +optional
	Autoscaler string `json:"autoscaler,omitempty"`
	// From is what the balancer had set, the last time.
	From int32 `json:"from"`
	// To is what the other made of it.
	To int32 `json:"to"`
	// Times is how often in a row that has happened.
	Times int32 `json:"times"`
	// LastTime is when it was seen last.
	LastTime metav1.Time `json:"lastTime"`
	// LeftAlone tells that the balancer does not scale the target: until the
	// time in until, or as long as autoscaler refers to it.
	// +optional
	LeftAlone bool `json:"leftAlone,omitempty"`
	// Until is when the balancer sets the target again, to see whether it stands.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}
