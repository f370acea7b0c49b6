// Package tracker hands out names of instances that stay the same until the instance has been seen.
//
// A controller reads the world through a cache that lags. If it wants three instances, creates three and is run
// again before the cache shows them, it must not create three more. It therefore asks an [Allocator] for the name
// of its 1st, 2nd, 3rd new instance. A name that was handed out and not yet observed is offered again in the next
// round, so that the second create finds the first one's object instead of making another.
//
// One [Factory] per process keeps the state of every kind; kinds and namespaces are independent of each other.
// Names are made of the group's name, a hyphen and a six character suffix of [a-z0-9]: seven characters more than
// the group. The package does not limit the length; the caller picks a group name that leaves room for it.
//
// The state lives in memory. After a restart names that were handed out and never created are forgotten, which is
// safe when caches are listed before the first round. Where a name must survive a restart (workflows), the caller
// records it durably before its first use and tells it to the tracker with [Tracker.Track].
//
// All types are safe for concurrent use.
package tracker
