// Package balancing decides how many replicas each target of a Balancer gets. It is pure: it reads no clock, no
// cluster and no randomness, so the same input always has the same answer.
//
//   - [Validate] finds what is wrong with a specification, in sentences for its author.
//   - [Count] turns the pods of one target into a [Summary].
//   - [Place] applies the policy: the goal, including replicas that stand in for blocked ones elsewhere.
//   - [Step] turns the goal into the changes that may be made now: growth first, within the [Limits].
//
// Package balancing/round joins them into one round over one Balancer.
//
// With default [Options] the answers are those of the original Balancer (kubernetes/autoscaler), which the oracle
// files in testdata check. All replica counts are int32 as in the Kubernetes API; sums are made in int64.
package balancing
