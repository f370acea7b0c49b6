// Package wake tells waits that something they care about has changed, so that
// they look within a second of the event rather than at the next poll.
package wake

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key is an object by its kind and name, or all objects that refer to it.
type Key struct {
	Kind, Namespace, Name string
	// Users: not the object itself, but whatever refers to it.
	Users bool
}

// KeyOf is the key of an object.
func KeyOf(o client.Object) Key {
	return Key{Kind: KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// KindOf is the kind of an object, by its Go type: objects of a typed cache do
// not say it themselves.
func KindOf(o client.Object) string { return reflect.TypeOf(o).Elem().Name() }

// Hub passes the events of informers on to those who wait for them. An event
// costs its own subscribers, however many others there are. The zero value is
// ready; a nil Hub never wakes anybody, waits then only poll.
type Hub struct {
	// References are what an object refers to; see Key.Users. Nil for nothing.
	References func(o client.Object) []Key

	mu   sync.RWMutex
	subs map[Key]map[*subscription]struct{}
}

type subscription struct {
	event func(o client.Object, gone bool)
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
			AddFunc:    func(o any) { h.Notify(nil, o) },
			UpdateFunc: func(before, o any) { h.Notify(before, o) },
			DeleteFunc: func(o any) {
				if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
					o = last.Obj
				}
				h.Notify(o, nil)
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// Subscribe returns a channel that is ready after an event of one of the keys;
// any number of events before it is read count as one. Call stop when done.
func (h *Hub) Subscribe(keys ...Key) (woken <-chan struct{}, stop func()) {
	if h == nil {
		return nil, func() {}
	}
	ch := make(chan struct{}, 1)
	return ch, h.On(func(client.Object, bool) {
		select {
		case ch <- struct{}{}:
		default:
		}
	}, keys...)
}

// On calls event after each event of one of the keys, until stop is called. It
// must be quick, and gets the object as it is, or as it was if it is gone.
func (h *Hub) On(event func(o client.Object, gone bool), keys ...Key) (stop func()) {
	if h == nil {
		return func() {}
	}
	s := &subscription{event}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[Key]map[*subscription]struct{}{}
	}
	for _, k := range keys {
		if h.subs[k] == nil {
			h.subs[k] = map[*subscription]struct{}{}
		}
		h.subs[k][s] = struct{}{}
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, k := range keys {
			if delete(h.subs[k], s); len(h.subs[k]) == 0 {
				delete(h.subs, k)
			}
		}
	}
}

// Notify passes on that an object has come (no before), has changed, or is gone
// (no now).
func (h *Hub) Notify(before, now any) {
	was, _ := before.(client.Object)
	is, _ := now.(client.Object)
	subject, gone := is, false
	if subject == nil {
		subject, gone = was, true
	}
	if subject == nil {
		return
	}
	keys := []Key{KeyOf(subject)}
	if h.References != nil {
		for _, o := range []client.Object{was, is} {
			if o != nil {
				keys = append(keys, h.References(o)...)
			}
		}
	}
	for _, s := range h.subscribers(keys) {
		s.event(subject, gone)
	}
}

// subscribers of the keys, each once.
func (h *Hub) subscribers(keys []Key) []*subscription {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(keys) == 1 {
		return slices.Collect(maps.Keys(h.subs[keys[0]]))
	}
	all := map[*subscription]struct{}{}
	for _, k := range keys {
		maps.Copy(all, h.subs[k])
	}
	return slices.Collect(maps.Keys(all))
}
