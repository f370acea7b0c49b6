// Command temporaldev is the Temporal of a devstack: server, web UI, namespace
// and search attributes in one process, on loopback, with SQLite.
//
// It is a module of its own because the server and the SDK that the product
// uses need different versions of go.temporal.io/api: the two meet over gRPC.
// It also takes the flags of "temporal server start-dev", so that
// testsuite.StartDevServer of the Temporal SDK can start it (ExistingPath).
//
// For development and tests only: neither server nor UI authenticates anybody.
package main
