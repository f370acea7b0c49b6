// Package aws implements the activities of contract/aws.go on the AWS SDK.
//
// Every resource is found again by an identity that its creating call already
// set: a name derived from the owner's identity (buckets, roles, aliases, OIDC
// providers), a tag (keys, endpoint services) or a caller reference (hosted
// zones). So a create whose answer was lost is adopted by the next attempt.
// What has our name but not our identity is foreign: an Ensure answers
// Conflict, a Delete lets it be.
//
// The SDK repeats nothing by itself but throttled calls, because Temporal does,
// with the error shown; and because a repeated create hides that the first one
// worked. Calls keep within what AWS grants their account (limits.go).
package aws

import (
	"context"
	"time"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/ratelimit"
)

// Credentials reads a Provider's access key. The management package implements
// it over the worker's cache of Secrets.
type Credentials interface {
	// AWS returns the access key in the Secret of the Provider namespace/provider,
	// and a version that changes whenever the key does (such as the Secret's uid
	// and resourceVersion). Errors are faults.
	AWS(ctx context.Context, namespace, provider string) (accessKeyID, secretAccessKey string, version string, err error)
}

// Options configure New. The zero value of each field but Credentials is its
// default.
type Options struct {
	// Credentials is required.
	Credentials Credentials
	// Endpoint replaces all AWS endpoints by an emulator's URL, such as
	// http://127.0.0.1:4566. Empty means AWS.
	Endpoint string
	// Limits holds the token buckets of the accounts; see allowances. Default: a
	// pool of its own, without metrics.
	Limits *ratelimit.Pool
	// Poll is the interval of the Wait… activities. Default 10 s, 1 s with an
	// Endpoint.
	Poll time.Duration
	// Settle bounds how long one call waits for AWS to show what it has just
	// accepted, before it gives up with a Transient fault. Default 30 s.
	Settle time.Duration
	// SettlePoll is how often it looks meanwhile. Default 2 s, 200 ms with an
	// Endpoint.
	SettlePoll time.Duration
}

func (o Options) withDefaults() Options {
	poll, settlePoll := 10*time.Second, 2*time.Second
	if o.Endpoint != "" {
		poll, settlePoll = time.Second, 200*time.Millisecond
	}
	if o.Limits == nil {
		o.Limits = ratelimit.NewPool(ratelimit.Options{})
	}
	setDefault(&o.Poll, poll)
	setDefault(&o.Settle, 30*time.Second)
	setDefault(&o.SettlePoll, settlePoll)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Activities implements the AWS activities. It is safe for concurrent use.
type Activities struct {
	options Options
	// clients returns the clients of an account; tests replace it.
	clients func(ctx context.Context, account contract.CloudAccount) (*clients, error)
}

// New returns the activities.
func New(o Options) *Activities {
	o = o.withDefaults()
	return &Activities{options: o, clients: newFactory(o).get}
}

// Register registers every AWS activity with a worker, of either queue.
func (a *Activities) Register(r contract.Registry) {
	contract.Register(r, contract.AWS.VerifyCredentials, a.VerifyAWSCredentials)
	contract.Register(r, contract.AWS.EnsureBucket, a.EnsureBucket)
	contract.Register(r, contract.AWS.DeleteBucket, a.DeleteBucket)
	contract.Register(r, contract.AWS.DiscoverVPC, a.DiscoverVPC)
	contract.Register(r, contract.AWS.EnsureIssuer, a.EnsureOIDCProvider)
	contract.Register(r, contract.AWS.DeleteIssuer, a.DeleteOIDCProvider)
	contract.Register(r, contract.AWS.EnsureZone, a.EnsureHostedZone)
	contract.Register(r, contract.AWS.DeleteZone, a.DeleteHostedZone)
	contract.Register(r, contract.AWS.EnsureKey, a.EnsureKey)
	contract.Register(r, contract.AWS.DeleteKey, a.DeleteKey)
	contract.Register(r, contract.AWS.EnsureIdentity, a.EnsureRole)
	contract.Register(r, contract.AWS.DeleteIdentity, a.DeleteRole)
	contract.Register(r, contract.AWS.EnsureEndpointService, a.EnsureEndpointService)
	contract.Register(r, contract.AWS.DeleteEndpointService, a.DeleteEndpointService)
	contract.Register(r, contract.AWS.EnsureRecords, a.EnsureRecords)
	contract.Register(r, contract.AWS.DeleteRecords, a.DeleteRecords)
	contract.Register(r, contract.AWS.DeleteVolumes, a.DeleteVolumes)
	contract.Register(r, contract.AWS.Sweep, a.SweepAWS)
	contract.Register(r, contract.AWS.ListVPCDependents, a.ListVPCDependents)
	contract.Register(r, contract.AWS.WaitLoadBalancerActive, a.WaitLoadBalancerActive)
	contract.Register(r, contract.AWS.WaitLoadBalancerGone, a.WaitLoadBalancerGone)
}
