package contract

import "strings"

// Effect is what an activity does to the world.
type Effect string

const (
	// Reads: it looks, waits or computes, and changes nothing.
	Reads Effect = "reads"
	// Tells: it writes what is for people to read, or what operations agree on
	// among themselves: status, Events, leases.
	Tells Effect = "tells"
	// Mutates: it changes a cloud, a garden, a shoot, or a custom resource's
	// metadata. Each call is audited (workers/audit).
	Mutates Effect = "mutates"
)

// effects by the verb that an activity's name begins with, after its system:
// the names follow the rules of this package, so the verb says it.
var effects = map[string]Effect{
	"Allocate": Reads, "Discover": Reads, "Fetch": Reads, "List": Reads, "Observe": Reads, "Plan": Reads, "Read": Reads, "Sweep": Reads,
	"Verify": Reads, "Wait": Reads,
	"Acquire": Tells, "Apply": Tells, "Release": Tells,
	"Answer": Mutates, "Bootstrap": Mutates, "Clean": Mutates, "Delete": Mutates, "Ensure": Mutates, "Remove": Mutates, "Retire": Mutates, "Retry": Mutates,
}

// EffectOf derives an activity's effect from its name, such as
// "aws.EnsureBucket". known is false for a verb that nobody has classified:
// it then counts as Mutates, so that nothing goes unaudited, and the test of
// this package fails.
func EffectOf(activity string) (effect Effect, known bool) {
	if effect, known = effects[VerbOf(activity)]; known {
		return effect, true
	}
	return Mutates, false
}

// VerbOf is the verb that an activity's name begins with: Ensure, Wait, ….
func VerbOf(activity string) string {
	name := activity[strings.LastIndexByte(activity, '.')+1:]
	end := 1
	for end < len(name) && (name[end] < 'A' || name[end] > 'Z') {
		end++
	}
	return name[:min(end, len(name))]
}

// removing are the verbs of activities that take something away.
var removing = map[string]bool{"Clean": true, "Delete": true, "Remove": true}

// Removes reports whether an activity takes something away. Then faults.Gone
// out of it is final: something is not there that it can do nothing without.
// Out of any other activity it may pass: what was made a moment ago is not
// visible yet, or what was listed is gone at the next call.
func Removes(activity string) bool { return removing[VerbOf(activity)] }
