package contract

// AWS is the row of Amazon Web Services.
var AWS = Cloud{
	Name: "AWS", Ledger: "aws", VolumeType: "EC2::Volume", RecordType: "Route53::RecordSet",

	VerifyCredentials:      Activity[CloudAccount, CloudIdentity]{Name: "aws.VerifyCredentials"},
	EnsureBucket:           Activity[CloudResourceInput, Outcome]{Name: "aws.EnsureBucket"},
	DeleteBucket:           Activity[DeleteBucketInput, Outcome]{Name: "aws.DeleteBucket"},
	DiscoverVPC:            Activity[DiscoverVPCInput, VPC]{Name: "aws.DiscoverVPC"},
	EnsureIssuer:           Activity[IssuerInput, Outcome]{Name: "aws.EnsureOIDCProvider"},
	DeleteIssuer:           Activity[IssuerInput, None]{Name: "aws.DeleteOIDCProvider"},
	EnsureZone:             Activity[ZoneInput, Zone]{Name: "aws.EnsureHostedZone"},
	DeleteZone:             Activity[ZoneInput, None]{Name: "aws.DeleteHostedZone"},
	EnsureKey:              Activity[CloudResourceInput, Outcome]{Name: "aws.EnsureKey"},
	DeleteKey:              Activity[CloudResourceInput, Outcome]{Name: "aws.DeleteKey"},
	EnsureIdentity:         Activity[IdentityInput, Outcome]{Name: "aws.EnsureRole"},
	DeleteIdentity:         Activity[CloudResourceInput, None]{Name: "aws.DeleteRole"},
	WaitLoadBalancerActive: Activity[LoadBalancerInput, LoadBalancer]{Name: "aws.WaitLoadBalancerActive", Wait: true},
	WaitLoadBalancerGone:   Activity[LoadBalancerInput, None]{Name: "aws.WaitLoadBalancerGone", Wait: true},
	EnsureEndpointService:  Activity[EndpointServiceInput, EndpointService]{Name: "aws.EnsureEndpointService"},
	DeleteEndpointService:  Activity[EndpointServiceInput, None]{Name: "aws.DeleteEndpointService"},
	EnsureRecords:          Activity[RecordsInput, Outcome]{Name: "aws.EnsureRecords"},
	DeleteRecords:          Activity[RecordsInput, None]{Name: "aws.DeleteRecords"},
	DeleteVolumes:          Activity[SweepInput, Outcome]{Name: "aws.DeleteVolumes"},
	Sweep:                  Activity[SweepInput, Leftovers]{Name: "aws.Sweep"},
	ListVPCDependents:      Activity[DiscoverVPCInput, Leftovers]{Name: "aws.ListVPCDependents"},
}
