// Package object is the workflow of a custom resource. It reads the object,
// decides which operation is due (decide, a pure function), runs one at a time
// as a child workflow, answers verbs, grants leases to others where its kind
// does, and owns phase, observedGeneration and the condition Ready. While
// nothing is due it rests.
package object
