// Package audited lets an activity say which external resources it changes, as
// it changes them. What its output cannot say, since there are many or since
// the activity fails half-way, is in the audit log all the same; and a wait
// that changes something after all does not do so unseen.
package audited

import (
	"context"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Recorder writes changes down; the audit (workers/audit) is one. It calls do
// once, or not at all if the change cannot be written down, and returns its
// error as it is.
type Recorder interface {
	Change(do func() error, resources []v1.Resource) error
}

type recorderKey struct{}

// With returns a context whose changes r records.
func With(ctx context.Context, r Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// Change makes one change, do, to one external resource. State says how that is
// afterwards: Present, or Deleting.
func Change(ctx context.Context, r v1.Resource, do func() error) error {
	return ChangeAll(ctx, []v1.Resource{r}, do)
}

// ChangeAll makes one change, do, to several resources at once.
func ChangeAll(ctx context.Context, resources []v1.Resource, do func() error) error {
	if r, ok := ctx.Value(recorderKey{}).(Recorder); ok {
		return r.Change(do, resources)
	}
	return do()
}
