// Package temporal is the part of our API that is visible in Temporal:
// workflow ids, signal names and search attributes. The bridge, the workers,
// infractl and operators' queries rely on them.
package temporal

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
)

// TaskQueue of object and operation workflows.
const TaskQueue = "infra"

// SignalChanged tells an object workflow that its object is at a generation.
// Argument: Changed. Losing it costs latency only; the resync repeats it.
const SignalChanged = "changed"

// Changed is the argument of SignalChanged.
type Changed struct {
	Generation int64 `json:"generation"`
}

// Object is the argument of an object workflow: who it is for. The workflow
// type is the kind. Carried is empty at the first start; the workflow fills it
// when it continues as new.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ID is the identity annotation.
	ID      string `json:"id"`
	Carried any    `json:"carried,omitempty"`
}

// ObjectID is the workflow id of an object workflow: cluster/<namespace>/<name>.
func ObjectID(kind, namespace, name string) string {
	return strings.ToLower(kind) + "/" + namespace + "/" + name
}

// OperationID is the workflow id of an operation:
// <object id>/<operation>/<generation>.<attempt>.
func OperationID(objectID, operation string, generation, attempt int64) string {
	return fmt.Sprintf("%s/%s/%d.%d", objectID, strings.ToLower(operation), generation, attempt)
}

// OperationNumber reads generation and attempt out of an operation's id. An
// object's operations run one after the other, each with a higher number than
// the one before; generation first. It is 0, 0 for what is no such id.
func OperationNumber(operationID string) (generation, attempt int64) {
	number := operationID[strings.LastIndexByte(operationID, '/')+1:]
	if n, err := fmt.Sscanf(number, "%d.%d", &generation, &attempt); n != 2 || err != nil {
		return 0, 0
	}
	return generation, attempt
}

// LaterOperation says whether operation a ran after b, both of one object.
func LaterOperation(a, b string) bool {
	generationA, attemptA := OperationNumber(a)
	generationB, attemptB := OperationNumber(b)
	return cmp.Or(cmp.Compare(generationA, generationB), cmp.Compare(attemptA, attemptB)) > 0
}

// Search attributes. All are of type Keyword.
var (
	AttrKind       = temporal.NewSearchAttributeKeyKeyword("InfraKind")
	AttrNamespace  = temporal.NewSearchAttributeKeyKeyword("InfraNamespace")
	AttrName       = temporal.NewSearchAttributeKeyKeyword("InfraName")
	AttrAccount    = temporal.NewSearchAttributeKeyKeyword("InfraAccount")
	AttrProvider   = temporal.NewSearchAttributeKeyKeyword("InfraProvider")
	AttrRegion     = temporal.NewSearchAttributeKeyKeyword("InfraRegion")
	AttrPhase      = temporal.NewSearchAttributeKeyKeyword("InfraPhase")
	AttrStep       = temporal.NewSearchAttributeKeyKeyword("InfraStep")
	AttrFaultClass = temporal.NewSearchAttributeKeyKeyword("InfraFaultClass")
)

// SearchAttributes lists the names of all search attributes, for registration.
func SearchAttributes() []string {
	return []string{
		AttrKind.GetName(), AttrNamespace.GetName(), AttrName.GetName(), AttrAccount.GetName(),
		AttrProvider.GetName(), AttrRegion.GetName(), AttrPhase.GetName(), AttrStep.GetName(), AttrFaultClass.GetName(),
	}
}
