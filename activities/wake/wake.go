// Package wake tells waits that something they may care about has changed, so
// that they look within a second of the event rather than at the next poll.
package wake

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hub passes the events of informers on to waits. The zero value is ready; a
// nil Hub never wakes anybody, waits then only poll.
type Hub struct {
	mu   sync.RWMutex
	subs map[*subscription]struct{}
}

type subscription struct {
	match func(client.Object) bool
	ch    chan struct{}
}

// Watch passes on the events of these kinds from now on. It starts their
// informers; ctx bounds the wait for that.
func (h *Hub) Watch(ctx context.Context, informers cache.Informers, kinds ...client.Object) error {
	for _, kind := range kinds {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { h.notify(o) },
			UpdateFunc: func(_, o any) { h.notify(o) },
			DeleteFunc: func(o any) {
				if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
					o = last.Obj
				}
				h.notify(o)
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// Subscribe returns a channel that is ready after an event of an object that
// match accepts; any number of events before it is read count as one. match
// runs for every event and must be quick. Call stop when done.
func (h *Hub) Subscribe(match func(client.Object) bool) (woken <-chan struct{}, stop func()) {
	if h == nil {
		return nil, func() {}
	}
	s := &subscription{match: match, ch: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[*subscription]struct{}{}
	}
	h.subs[s] = struct{}{}
	return s.ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, s)
	}
}

func (h *Hub) notify(o any) {
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.subs {
		if s.match(object) {
			select {
			case s.ch <- struct{}{}:
			default:
			}
		}
	}
}
