// Package control is the devstack's switchboard: the registry of faults and
// stuck states that the proxy in front of the AWS emulator and all stand-ins
// consult, and the HTTP API with which people and tests turn them on and off,
// look into the emulator, and stop and start processes while the stack runs.
//
// The package knows no cloud and no process by itself: the AWS proxy and the
// supervisor are handed in as the interfaces Cloud and Supervisor.
package control
