// Package updater decides how a group of instances gets to the wanted number and revision, a few instances at a time.
//
//   - [Split] sorts the observed instances into sets, and [Sets.Counts] counts what is available.
//   - [Execute] is the loop of decisions: scale out, update, scale in, wait. It knows numbers only and asks an [Actor].
//   - [Planner] is an Actor that chooses the instances by [Policy] and writes down [Step] values for the caller to do.
//
// All of it is pure. Make a fresh plan at each round from what is observed then.
package updater
