// Package operation runs an operation on an object: a list of steps with a
// beginning and an end (Run). It gives each step its budget, its progress on
// the custom resource and in the Temporal UI, and the stall: a fault that
// somebody must mend does not end the operation, it waits, visibly, and goes
// on. A creation that is cancelled undoes what its steps have made.
//
// Its functions are for the Run of a Step; outside of one they panic.
package operation
