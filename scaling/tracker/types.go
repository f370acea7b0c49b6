package tracker

import "errors"

// AllocateFactory creates the Allocators of one kind.
type AllocateFactory interface {
	// New starts a round of the group ns/group and returns its Allocator. instanceNames are all instances that the
	// caller observes now, including those that are being deleted: they are no longer pending, and their names are
	// not generated again while they are in the latest observation of the group.
	//
	// There is one Allocator per group: New also changes what a handle of an earlier round returns.
	New(ns, group string, instanceNames ...string) Allocator
}

// Allocator names the new instances of one group.
type Allocator interface {
	// Allocate returns the name of the index-th new instance of this round, counted from 0 without gaps. Names that
	// were handed out before and not yet observed come first, in byte order; then new ones are generated. The same
	// index gives the same name until the next New. An index beyond the next free one generates a name at each call.
	//
	// Allocate returns "" when no name can be given (see [FallibleAllocator]); the API server refuses to create
	// an object without a name, so an unchecked caller fails there and retries.
	Allocate(index int) string
}

// FallibleAllocator is implemented by every Allocator of this package and tells why there is no name.
type FallibleAllocator interface {
	Allocator
	// TryAllocate is Allocate with the reason: ErrNegativeIndex or ErrNamesExhausted, wrapped with the group.
	TryAllocate(index int) (string, error)
}

// Factory gives the trackers and allocators of each kind of instance. The same kind always gets the same object.
type Factory interface {
	// Tracker returns the Tracker of a kind, for example "tikv".
	Tracker(kind string) Tracker
	// AllocateFactory returns the AllocateFactory of a kind.
	AllocateFactory(kind string) AllocateFactory
}

// NewNameFunc generates a candidate for the full name of an instance.
type NewNameFunc func() string

// Tracker keeps the names that exist, and the group of each.
type Tracker interface {
	// Track records that the instance ns/name exists and belongs to group; group "" means to none. An instance that
	// was recorded under another group moves to this one.
	Track(ns, name, group string)
	// Untrack records that the instance ns/name is gone. Its name is not offered again. Unknown names are ignored.
	Untrack(ns, name string)
}

var (
	// ErrNegativeIndex says that Allocate was called with an index below zero.
	ErrNegativeIndex = errors.New("index is negative")
	// ErrNamesExhausted says that every generated candidate was taken, which only happens when the generator is broken.
	ErrNamesExhausted = errors.New("every generated name is taken")
)
