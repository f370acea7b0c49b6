// Package plan turns custom resources into plans: it validates a resource with
// what it refers to, and resolves every default, name and size. It is pure, so
// that webhooks, operations and a dry run give the same answer.
//
// A plan either succeeds or names all problems at once, as one fault of class
// Invalid: field path, value, rule and way out. What the schema's CEL rules
// refuse cannot reach this package through the API server and is not repeated
// here, except where a wrong value would break a computation.
//
// A resource that is being deleted is not judged: an operation must be able to
// name what it has to remove, however wrong the spec is.
package plan

import (
	"regexp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Options are what a plan needs besides the resources.
type Options struct {
	// Env is the value of the tag v1.TagEnv.
	Env string
	// DefaultProject is the Gardener project of Providers that name none.
	DefaultProject string
	// Usage of the Account by everything but the planned resource. It counts
	// only while the resource is being created.
	Usage Usage
	// ShootHolders are the Networks, older than the planned one, that have its
	// Shoot's name in the same project; see ShootHolders. They count only while
	// the Network is being created.
	ShootHolders []string
	// Problems of the planned object that are found elsewhere, such as of its
	// annotations. An operation is refused with them.
	Problems []Problem
}

var identityFormat = regexp.MustCompile(`^[0-9a-f]{16}$`)

// refOf names an object by its identity. One without a well-formed identity
// cannot be planned: every external name derives from it.
func refOf(kind string, o client.Object) (contract.ObjectRef, error) {
	ref := contract.ObjectRef{
		Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		ID: o.GetAnnotations()[v1.AnnotationID],
	}
	if identityFormat.MatchString(ref.ID) {
		return ref, nil
	}
	return ref, faults.New(faults.Invalid, "NoIdentity", ref.String(),
		"annotation %s is %q, not 16 lower-case hexadecimal digits", v1.AnnotationID, ref.ID).
		WithHint(faults.OwnerOperator, "see whether the bridge runs, it sets the annotation once; if the annotation was edited, put the old value back (external resources carry it as a tag)")
}

// creating reports whether no operation on the object has finished yet: rules
// for new objects apply to it, and to no other.
func creating(o v1.Object) bool {
	return o.GetDeletionTimestamp() == nil && o.Common().ObservedGeneration == 0
}

// or returns the value, or the default when it is zero.
func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
