package temporal

// UpdateVerb asks an object workflow, or the operation that it runs, for a
// verb. Argument VerbRequest, answer VerbReply. Both validate it: a verb that
// makes no sense now is refused with a sentence that says why; an operation
// does so before anything is written into its history, an object's workflow
// after a look at the object.
const UpdateVerb = "verb"

// Verbs that people may ask for: by the annotation
// infra.cloud.pingcap.com/operation, by UpdateVerb, by infractl.
const (
	VerbRetry     = "retry"     // run the stalled step again, or a cancelled or failed operation anew
	VerbSkip      = "skip"      // go on without the step; only steps that are marked skippable
	VerbPause     = "pause"     // finish the running activity, start no other
	VerbResume    = "resume"    // end a pause
	VerbCancel    = "cancel"    // stop the operation and undo what it made
	VerbReconcile = "reconcile" // run the steps again although nothing changed
)

// Verbs lists the verbs in the order of their use, for help and completion.
func Verbs() []string {
	return []string{VerbRetry, VerbSkip, VerbPause, VerbResume, VerbCancel, VerbReconcile}
}

// VerbRequest is the argument of UpdateVerb.
type VerbRequest struct {
	Verb string `json:"verb"`
	// Step, when set, must be the step that the operation is in, so that a verb
	// does not hit a step that its sender has not seen. retry and skip only.
	Step string `json:"step,omitempty"`
	// By says who asks, such as alice@laptop; for the audit and the Event.
	By string `json:"by,omitempty"`
}

// VerbReply is the answer of UpdateVerb.
type VerbReply struct {
	// Text is one sentence: what happens now.
	Text string `json:"text"`
}

// What a Network's object workflow serves to operations.
const (
	// UpdateAcquire asks for a lease or lock. It is answered at once: granted, or
	// with a place in the queue.
	UpdateAcquire = "acquire"
	// SignalRelease gives it back, or withdraws a request that waits. It is a
	// signal because a workflow refuses updates when ten of them are under way:
	// whoever has something to give back must never be refused.
	SignalRelease = "release"
	// UpdateRelease is SignalRelease as an update, as operations sent it that
	// began on an earlier version.
	UpdateRelease = "release"
)
