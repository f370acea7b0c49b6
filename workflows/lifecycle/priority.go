package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"

	sdk "go.temporal.io/sdk/temporal"
)

// Priority keys: of the tasks that wait in a queue, those with the smaller one
// go first. Temporal has five, and takes 3 where none is given. 1 is for object
// workflows, which the bridge starts: they decide, in milliseconds, what is due.
const (
	priorityUser   = 2 // somebody waits for a creation or a deletion
	priorityUpdate = 4 // what exists goes on working meanwhile
	priorityResync = 5 // nobody has asked for anything
)

// maxFairnessKey is Temporal's limit, in bytes.
const maxFairnessKey = 64

// PriorityOf says how the tasks of an operation stand among those that wait.
// Its activities inherit it, and so do their retries.
//
// Within a priority Temporal deals tasks out in turn by fairness key, which is
// the account: whoever has a thousand tasks waiting holds up nobody else's one.
func PriorityOf(in Input) sdk.Priority {
	p := sdk.Priority{PriorityKey: priorityResync, FairnessKey: fairnessKey(in)}
	switch t := in.Verb.Traits(); {
	case t.Urgent():
		p.PriorityKey = priorityUser
	case t.Yields:
		p.PriorityKey = priorityUpdate
	}
	return p
}

// fairnessKey is the account; for objects that have none (ProviderTypes, or a
// Network whose Provider is not there yet) the namespace. A name longer than
// the limit keeps its beginning, for people, and gets a hash.
func fairnessKey(in Input) string {
	key := "account/" + in.Facts.Account
	switch {
	case in.Facts.Account != "":
	case in.Facts.Provider != "":
		key = "provider/" + in.Facts.Provider
	default:
		key = "namespace/" + in.Object.Namespace
	}
	if len(key) <= maxFairnessKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:8])
	return key[:maxFairnessKey-len(hash)-1] + "-" + hash
}
