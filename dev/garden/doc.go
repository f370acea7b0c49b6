// Package garden runs the real gardener-apiserver behind a management cluster:
// as a child process of the same binary, on the same etcd, aggregated by
// APIServices. Validation, defaulting, deletion confirmation, the semantics of
// gardener.cloud/operation and adminkubeconfig are therefore Gardener's own.
//
// It also seeds the garden with what its operators would provide: a Project, a
// CloudProfile and a Seed. What turns Shoots into clusters is in package
// gardenlet.
package garden
