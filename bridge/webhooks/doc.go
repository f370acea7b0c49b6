// Package webhooks answers the API server's admission reviews for all kinds of
// ours. It decides nothing itself: it reads what the rules look at from caches
// and asks package admission, which the operations ask too.
//
// An answer takes no request to the API server, except where a cache that is a
// moment behind would refuse what is right: a reference that is not in the cache
// is read live before it is called missing, as manifests that refer to each
// other are applied together. What two requests at once can slip past the caches
// (one Shoot name twice, the last of a quota) is found by the operation's first
// step, in the same words.
package webhooks
