// Package process runs the children of a devstack: each in a process group of
// its own, logging to a file, and none outliving this process, however it ends.
//
// A child that ends is not started again by itself: tests kill workers to see
// what happens, and a crash should be seen, not papered over.
package process
