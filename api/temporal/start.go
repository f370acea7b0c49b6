package temporal

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// StartObject returns how an object workflow is started, or met where it runs
// already, by whoever has something to say to it: the bridge, infractl, an
// operation that asks for a lease. It has no timeouts, since it lives as long
// as its object. Its priority is the highest: object workflows decide in
// milliseconds, and must not queue behind hundreds of somebody's operations.
func StartObject(kind, namespace, name string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                       ObjectID(kind, namespace, name),
		TaskQueue:                TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            kind + " " + namespace + "/" + name,
		Priority:                 temporal.Priority{PriorityKey: 1},
		TypedSearchAttributes: temporal.NewSearchAttributes(
			AttrKind.ValueSet(kind), AttrNamespace.ValueSet(namespace), AttrName.ValueSet(name)),
	}
}
