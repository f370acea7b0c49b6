package lifecycle

// Traits are what the kernel must know of a verb. It never asks which verb it
// is, so a kind can have verbs of its own.
type Traits struct {
	// Makes: what its steps have made is undone when it is cancelled. Until it
	// has ended the object is not usable, so a stall shows it as Failed.
	Makes bool
	// Yields: between two steps it gives way to a newer generation.
	Yields bool
	// Final: it removes the object. Nothing but the object's return to life by
	// force comes after it, and it overtakes every other operation.
	Final bool
	// Ends: it may end Failed by itself, and is then not begun again unasked.
	Ends bool
	// Uncancellable: neither the verb cancel nor Temporal's cancellation ends it.
	Uncancellable bool
}

// Urgent says whether somebody waits for it.
func (t Traits) Urgent() bool { return t.Makes || t.Final || t.Ends }

var traits = map[Verb]Traits{
	Create: {Makes: true},
	Update: {Yields: true},
	Delete: {Final: true, Uncancellable: true},
}

// Traits of the verb; none for one that has no row.
func (v Verb) Traits() Traits { return traits[v] }

// Known says whether the verb has a row.
func (v Verb) Known() bool { _, is := traits[v]; return is }
