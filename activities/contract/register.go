package contract

import (
	"context"

	"go.temporal.io/sdk/activity"
)

// Registry is the part of a Temporal worker that registers activities.
type Registry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// Register registers f as the implementation of a; the compiler checks that
// they fit.
func Register[In, Out any](r Registry, a Activity[In, Out], f func(context.Context, In) (Out, error)) {
	r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: a.Name})
}
