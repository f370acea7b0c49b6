// Package lifecycle is the kernel under every kind: the object workflow, the
// operation workflow and its steps.
//
// An object workflow (Kind.Object) lives as long as its custom resource. It
// decides which operation is due (decide, a pure function), runs one at a time
// as a child workflow, and owns phase, observedGeneration and the condition
// Ready.
//
// An operation workflow (Run) is a list of steps with a beginning and an end.
// The runner gives each step its budget, its progress on the custom resource
// and in the Temporal UI, and the stall: a fault that somebody must mend does
// not end the operation, it waits, visibly, and goes on.
//
// To add a step: write it in the kind's file beside its neighbour and name it
// in the step list. To add a kind: declare a Kind and its operations, and
// register it in workers.
package lifecycle
