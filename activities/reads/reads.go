// Package reads notes which versions of the objects in the management cluster
// an attempt of an activity has used, so that a stall waits for what is newer
// than that. It holds names and versions, never contents.
package reads

import (
	"context"
	"maps"
	"sync"
)

type record struct {
	mu       sync.Mutex
	versions map[string]string
}

type recordKey struct{}

// Note begins the notes of an attempt.
func Note(ctx context.Context) context.Context {
	return context.WithValue(ctx, recordKey{}, &record{versions: map[string]string{}})
}

// Used notes that an object, kind/name, was read at a version; "" when it does
// not exist. Of two versions the first one counts: what was made of it may be
// what failed. Without Note it does nothing.
func Used(ctx context.Context, object, version string) {
	r, ok := ctx.Value(recordKey{}).(*record)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.versions[object]; !known {
		r.versions[object] = version
	}
}

// Noting says whether notes are made.
func Noting(ctx context.Context) bool { return ctx.Value(recordKey{}) != nil }

// Of is what the attempt has used so far.
func Of(ctx context.Context) map[string]string {
	r, ok := ctx.Value(recordKey{}).(*record)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.versions)
}
