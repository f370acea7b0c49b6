package balancing

// UnlimitedReplicas stands for an absent maximum.
const UnlimitedReplicas int32 = 1_000_000_000

// Names of the policies, as in spec.policy.policyName.
const (
	PolicyPriority     = "priority"
	PolicyProportional = "proportional"
)

// Target is one scalable object of a Balancer.
type Target struct {
	// Name is the key that the policies use.
	Name string
	// Min is the number of replicas that the target always gets, even beyond Spec.Replicas.
	Min int32
	// Max is the most that it gets; nil means UnlimitedReplicas.
	Max *int32
}

// Spec is what a Balancer wants.
type Spec struct {
	// Replicas is the total to spread. See DefaultReplicas for a Balancer that does not tell.
	Replicas int32
	// Targets in the order of the manifest. The order decides in which order changes are made, not how many.
	Targets []Target
	// Policy spreads the replicas.
	Policy Policy
}

// Policy names a policy and holds its parameters. Only the block of the named policy is read.
type Policy struct {
	// Name is PolicyPriority or PolicyProportional.
	Name string
	// Priorities are the parameters of PolicyPriority; nil if the manifest has none.
	Priorities *Priorities
	// Proportions are the parameters of PolicyProportional; nil if the manifest has none.
	Proportions *Proportions
}

// Priorities fills targets one after the other.
type Priorities struct {
	// TargetOrder holds names of targets, the best first. Nil is an error, empty is not. Unlisted targets get Min.
	TargetOrder []string
}

// Proportions fills targets by weight.
type Proportions struct {
	// TargetProportions maps names of targets to weights. Nil is an error, empty is not. A target without a
	// positive weight gets Min.
	TargetProportions map[string]int32
}

// Rounding is the method that turns proportional shares into whole replicas.
type Rounding string

const (
	// DHondt gives each replica to the largest weight/(replicas+1). It is the original's method and favours big
	// targets: 60/30/10 with 5 replicas gives 4/1/0. Adding a replica never takes one from a target.
	DHondt Rounding = "DHondt"
	// SainteLague gives each replica to the largest weight/(2·replicas+1), which favours nobody: 60/30/10 with 5
	// gives 3/2/0. Adding a replica never takes one from a target.
	SainteLague Rounding = "SainteLague"
	// LargestRemainder gives everybody the whole part of its share and the rest to the largest fractions. No target
	// is a whole replica or more away from its share, but adding a replica to the total may move one.
	LargestRemainder Rounding = "LargestRemainder"
)

// TieBreak decides between targets with the same claim.
type TieBreak string

const (
	// TieBreakName prefers the first name in byte order, as the original: over many Balancers that is always the
	// same target.
	TieBreakName TieBreak = "Name"
	// TieBreakHash prefers by a hash of Options.Seed and the name: evenly over many Balancers, and the same at each
	// round of one.
	TieBreakHash TieBreak = "Hash"
)

// Options change how PolicyProportional rounds. The zero value is the original's behaviour.
type Options struct {
	// Rounding defaults to DHondt.
	Rounding Rounding
	// TieBreak defaults to TieBreakName.
	TieBreak TieBreak
	// Seed of TieBreakHash; use the Balancer's namespace/name.
	Seed string
}

// Placement is the goal that a policy computes.
type Placement struct {
	// Replicas of each target, by index of Spec.Targets.
	Replicas []int32
	// Fallback of each target: how many of its replicas are expected not to start, and are placed elsewhere as
	// duplicates as far as there is room. A positive number here is what the next round passes as Summary.Held.
	Fallback []int32
	// Missing is by how much the minimums exceed Spec.Replicas.
	Missing int32
	// Overflow is how many replicas found no room.
	Overflow int32
}
