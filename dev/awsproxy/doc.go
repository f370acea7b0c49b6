// Package awsproxy is the AWS of the devstack: the emulator moto as a child
// process on loopback, and in front of it an HTTP proxy that makes it behave as
// AWS does for the calls of this project.
//
// The proxy
//   - supplies what moto lacks or gets wrong (one file for each service:
//     PrivateLink, network load balancers, dependency errors of a VPC, key
//     states, caller references, ...);
//   - turns "not implemented" into an AWS error that names the operation;
//   - injects the faults of package control;
//   - records every call.
//
// Clients point BaseEndpoint (AWS_ENDPOINT_URL) at it and use path-style S3.
// Signatures are not checked. The account follows from the access key as in
// moto: 123456789012 for any key that AssumeRole did not issue. An access key
// that begins with AKIAINVALID is refused as AWS refuses an unknown one.
//
// Requests other than those of S3 are handled one after the other, so that a
// check and the change that depends on it are one step.
package awsproxy
