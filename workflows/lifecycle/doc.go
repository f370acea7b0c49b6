// Package lifecycle is what the two machines of the kernel agree on, and what
// the kinds and the workers need of both: kinds and their verbs, the input and
// the result of an operation, the rules of verbs (Allow, a pure function), the
// signals between an object and its operation, and who calls an activity.
//
// Package object is the one machine: an object workflow lives as long as its
// custom resource, decides which operation is due, and runs one at a time as a
// child. Package operation is the other: a list of steps with a beginning and
// an end. Neither imports the other; the kinds import operation and this
// package.
//
// To add a step: write it in the kind's file beside its neighbour and name it
// in the step list. To add a kind: declare a Kind and its operations, and
// register it in workers.
package lifecycle
