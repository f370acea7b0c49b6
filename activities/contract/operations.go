package contract

// WaitOperation waits for an operation that runs already: an object workflow
// that was terminated by hand leaves its operation running, and the next one
// attaches to it instead of starting a second.
var WaitOperation = Activity[OperationRun, OperationEnd]{Name: "operations.WaitOperation", Wait: true, Long: true}

// OperationRun names an operation workflow.
type OperationRun struct {
	Object     ObjectRef `json:"object"`
	WorkflowID string    `json:"workflowID"`
	// UID, when set, is that of the object the operation must be for.
	UID string `json:"uid,omitempty"`
}

// Names in an operation's memo: the uid and the identity of its object.
const (
	MemoUID      = "uid"
	MemoIdentity = "identity"
)

// OperationEnd is how an operation ended.
type OperationEnd struct {
	State     string `json:"state,omitempty"` // of lifecycle.Result
	Cancelled bool   `json:"cancelled,omitempty"`
	Failure   string `json:"failure,omitempty"`
	// Unknown: Temporal does not know it. It has lost its data, or has kept it
	// for as long as it keeps what is closed.
	Unknown bool `json:"unknown,omitempty"`
	// Former: it is another object's, which had the same name. Whether it has
	// ended is not said.
	Former bool `json:"former,omitempty"`
	// Identity of that other object.
	Identity string `json:"identity,omitempty"`
}
