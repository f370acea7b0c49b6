// Package supervisor assembles the devstack: it starts every part in the right
// order, tells where things are (stack.json), applies the samples and follows
// them, serves the control API, and stops everything again.
package supervisor
