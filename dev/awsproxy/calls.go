package awsproxy

import (
	"sync"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// ringSize is how many calls are kept; about 3 MB.
const ringSize = 10000

// ring keeps the newest calls.
type ring struct {
	mu    sync.Mutex
	seq   uint64
	calls []control.Call
}

// add numbers and stores a call.
func (r *ring) add(c control.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	c.Seq = r.seq
	if len(r.calls) == ringSize {
		r.calls = append(r.calls[:0], r.calls[ringSize/4:]...)
	}
	r.calls = append(r.calls, c)
}

// find returns the calls that fit, oldest first.
func (r *ring) find(q control.CallQuery) []control.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []control.Call
	for _, c := range r.calls {
		if c.Seq > q.After && (q.Service == "" || q.Service == c.Service) && (q.Operation == "" || q.Operation == c.Operation) {
			found = append(found, c)
		}
	}
	if q.Limit > 0 && len(found) > q.Limit {
		found = found[len(found)-q.Limit:]
	}
	return found
}

func (r *ring) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}
