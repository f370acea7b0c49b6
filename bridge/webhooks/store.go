package webhooks

import (
	"context"
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// liveTimeout bounds a read past the cache. The API server waits for the whole
// answer for 5 s.
const liveTimeout = 2 * time.Second

// store reads one kind. Objects are the cache's own: nobody may change them.
type store[T client.Object] struct {
	indexer cache.Indexer
	live    client.Reader
	fresh   func() T
}

// get returns an object, the zero value when there is none. One that is not in
// the cache is read live: it may have been created a moment ago.
func (s *store[T]) get(ctx context.Context, namespace, name string) (T, error) {
	var none T
	if name == "" {
		return none, nil
	}
	if o, ok := s.cached(namespace, name); ok {
		return o, nil
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	o := s.fresh()
	err := s.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
	switch {
	case err == nil:
		return o, nil
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return none, nil
	}
	return none, fmt.Errorf("look up %T %s: %w", o, name, err)
}

// cached returns an object of the cache.
func (s *store[T]) cached(namespace, name string) (T, bool) {
	var none T
	item, ok, err := s.indexer.GetByKey(namespace + "/" + name)
	if !ok || err != nil {
		return none, false
	}
	o, ok := item.(T)
	return o, ok
}

// by lists the objects that an index has under a value, in no order.
func (s *store[T]) by(index, namespace, value string) iter.Seq[T] {
	return func(yield func(T) bool) {
		items, err := s.indexer.ByIndex(index, namespace+"/"+value)
		if err != nil {
			panic(err) // an index that does not exist is a mistake of this package
		}
		each(items, yield)
	}
}

// all lists everything.
func (s *store[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) { each(s.indexer.List(), yield) }
}

func each[T any](items []any, yield func(T) bool) {
	for _, item := range items {
		if o, ok := item.(T); ok && !yield(o) {
			return
		}
	}
}

// indexed makes an index of the values that a function finds in an object. An
// empty value is not indexed.
func indexed[T client.Object](values func(T) []string) cache.IndexFunc {
	return func(item any) ([]string, error) {
		o, ok := item.(T)
		if !ok {
			return nil, nil
		}
		var keys []string
		for _, value := range values(o) {
			if value != "" {
				keys = append(keys, o.GetNamespace()+"/"+value)
			}
		}
		return keys, nil
	}
}
