package contract

import (
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Cloud is what differs between clouds: the activities of one, by what they are
// for. An activity that a cloud lacks has no name, and its step nothing to do.
// Every created resource carries the tags (labels) v1.TagID, TagKind, TagName
// and TagEnv of its Owner, set in the creating call.
type Cloud struct {
	// Name as spec and status say it: AWS.
	Name string
	// VolumeType and RecordType are types of resources in the ledger, whose
	// field provider is Ledger.
	VolumeType, RecordType, Ledger string

	// VerifyCredentials asks STS who the credentials belong to; another
	// account than Account.AccountID is an Auth fault.
	VerifyCredentials Activity[CloudAccount, CloudIdentity]

	// EnsureBucket: private, encrypted, versioned, public access blocked,
	// incomplete uploads expire after 7 days.
	EnsureBucket Activity[CloudResourceInput, Outcome]
	// DeleteBucket empties and deletes, or keeps a bucket with objects when
	// Retain is set (Outcome.Resource.State Retained).
	DeleteBucket Activity[DeleteBucketInput, Outcome]

	// DiscoverVPC finds the VPC that Gardener made, by the tag
	// kubernetes.io/cluster/<technicalID>; exactly one, or a fault.
	DiscoverVPC Activity[DiscoverVPCInput, VPC]

	// EnsureIssuer makes the issuer's provider, then removes what the owner
	// has for another issuer: that of a Shoot that is no more.
	EnsureIssuer Activity[IssuerInput, Outcome]
	// DeleteIssuer removes every provider of the owner, whatever its issuer;
	// IssuerURL may be empty.
	DeleteIssuer Activity[IssuerInput, None]

	// EnsureZone: Private associates VPCID; CallerReference is the
	// identity; waits for INSYNC.
	EnsureZone Activity[ZoneInput, Zone]
	// DeleteZone empties our zone (all but NS and SOA) and deletes it.
	DeleteZone Activity[ZoneInput, None]

	// EnsureKey makes the KMS key and its alias (Name, "alias/..."). A key of
	// ours without an alias is adopted; one that is pending deletion is revived.
	EnsureKey Activity[CloudResourceInput, Outcome]
	// DeleteKey removes the alias and schedules the key's deletion in 30 days.
	DeleteKey Activity[CloudResourceInput, Outcome]

	// EnsureIdentity makes the cluster's IAM role, its trust in the Network's OIDC
	// provider and its inline policy.
	EnsureIdentity Activity[IdentityInput, Outcome]
	DeleteIdentity Activity[CloudResourceInput, None]

	// WaitLoadBalancerActive finds the NLB by its DNS name and waits until it
	// is active.
	WaitLoadBalancerActive Activity[LoadBalancerInput, LoadBalancer]
	// WaitLoadBalancerGone waits until no load balancer carries the tag
	// kubernetes.io/service-name=<namespace>/... of the cluster in the VPC.
	WaitLoadBalancerGone Activity[LoadBalancerInput, None]

	// EnsureEndpointService makes the PrivateLink service over the NLB, with
	// AcceptanceRequired, and sets its allowed principals.
	EnsureEndpointService Activity[EndpointServiceInput, EndpointService]
	// DeleteEndpointService rejects live connections, deletes the service and
	// proves that it is gone.
	DeleteEndpointService Activity[EndpointServiceInput, None]

	// EnsureRecords upserts CNAME records and an owner TXT record for each.
	EnsureRecords Activity[RecordsInput, Outcome]
	// DeleteRecords deletes the records whose owner TXT is ours.
	DeleteRecords Activity[RecordsInput, None]

	// DeleteVolumes deletes the EBS volumes that carry the Owner's identity and
	// are attached to nothing. The storage driver deletes them with their claims;
	// these are of a shoot that went before it had. The Note names what was deleted.
	DeleteVolumes Activity[SweepInput, Outcome]

	// Sweep lists what still carries the Owner's identity tag, over all
	// services that we create in, EBS volumes among them; and, with a TechnicalID,
	// what Gardener and the shoot's own controllers made for that Shoot: VPC, NAT
	// gateways, addresses, instances, volumes, load balancers, security groups,
	// network interfaces. It deletes nothing. A KMS key that is pending deletion
	// does not count.
	Sweep Activity[SweepInput, Leftovers]
	// ListVPCDependents lists what keeps a VPC from being deleted, for people.
	ListVPCDependents Activity[DiscoverVPCInput, Leftovers]
}

// clouds are all that there are.
var clouds = []Cloud{AWS}

// CloudOf is the cloud of a name; false for one that there is none of.
func CloudOf(name string) (Cloud, bool) {
	for _, c := range clouds {
		if c.Name == name {
			return c, true
		}
	}
	return Cloud{}, false
}

// CloudIdentity is who the credentials belong to.
type CloudIdentity struct {
	Principal string `json:"arn"`
	AccountID string `json:"accountID"`
}

// CloudResourceInput names one AWS resource of an owner.
type CloudResourceInput struct {
	Account CloudAccount `json:"account"`
	Owner   ObjectRef    `json:"owner"`
	Env     string       `json:"env,omitempty"`
	Name    string       `json:"name"`
}

// DeleteBucketInput says which bucket, and whether to keep one with objects.
type DeleteBucketInput struct {
	CloudResourceInput
	Retain bool `json:"retain,omitempty"`
}

// DiscoverVPCInput names a Shoot's VPC.
type DiscoverVPCInput struct {
	Account     CloudAccount `json:"account"`
	TechnicalID string       `json:"technicalID"` // shoot--<project>--<name>
}

// VPC is what peers, zones and people need to know of a Network's VPC.
type VPC struct {
	ID            string   `json:"id"`
	CIDR          string   `json:"cidr"`
	RouteTableIDs []string `json:"routeTableIDs"`
	Zones         []string `json:"zones"`
}

// IssuerInput names the IAM OIDC provider of a shoot's issuer. IssuerURL
// is needed to ensure one, not to delete.
type IssuerInput struct {
	Account   CloudAccount `json:"account"`
	Owner     ObjectRef    `json:"owner"`
	Env       string       `json:"env,omitempty"`
	IssuerURL string       `json:"issuerURL"`
}

// ZoneInput describes a Network's DNS zone.
type ZoneInput struct {
	CloudResourceInput        // Name is the domain name, without the last dot
	Visibility         string `json:"visibility,omitempty"` // Private or Public
	VPCID              string `json:"vpcID,omitempty"`
}

// Zone is a Route 53 zone.
type Zone struct {
	ID          string      `json:"id"` // Z...
	Name        string      `json:"name"`
	NameServers []string    `json:"nameServers,omitempty"`
	Resource    v1.Resource `json:"resource"`
}

// IdentityInput describes a cluster's IAM role.
type IdentityInput struct {
	CloudResourceInput
	IssuerID string `json:"oidcProviderARN,omitempty"`
	Issuer   string `json:"oidcIssuer,omitempty"`
	// Subjects that may assume it: system:serviceaccount:<ns>:<name>.
	Subjects []string `json:"subjects,omitempty"`
	// Bucket and Prefix that it may read and write.
	Bucket string `json:"bucket,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	KeyID  string `json:"keyARN,omitempty"`
}

// LoadBalancerInput names a cluster's NLB: by DNS name when waiting for it, by
// the service's namespace when waiting for its absence.
type LoadBalancerInput struct {
	Account          CloudAccount `json:"account"`
	Cluster          ObjectRef    `json:"cluster"`
	Hostname         string       `json:"hostname,omitempty"`
	ServiceNamespace string       `json:"serviceNamespace,omitempty"`
	VPCID            string       `json:"vpcID,omitempty"`
}

// LoadBalancer is an NLB.
type LoadBalancer struct {
	ID       string `json:"arn"`
	Hostname string `json:"hostname"`
}

// EndpointServiceInput describes a cluster's PrivateLink service.
type EndpointServiceInput struct {
	Account           CloudAccount `json:"account"`
	Owner             ObjectRef    `json:"owner"`
	Env               string       `json:"env,omitempty"`
	LoadBalancerID    string       `json:"loadBalancerARN,omitempty"`
	AllowedPrincipals []string     `json:"allowedPrincipals,omitempty"`
}

// EndpointService is a PrivateLink service.
type EndpointService struct {
	ID          string      `json:"id"`          // vpce-svc-...
	ServiceName string      `json:"serviceName"` // com.amazonaws.vpce.<region>.vpce-svc-...
	State       string      `json:"state"`
	Resource    v1.Resource `json:"resource"`
}

// RecordsInput describes DNS records in a zone: name to target.
type RecordsInput struct {
	Account CloudAccount `json:"account"`
	Owner   ObjectRef    `json:"owner"`
	ZoneID  string       `json:"zoneID"`
	Records []Record     `json:"records"`
}

// Record is one CNAME.
type Record struct {
	Name   string `json:"name"` // fully qualified, without the last dot
	Target string `json:"target,omitempty"`
}

// SweepInput names whose resources to list. TechnicalID is that of a Shoot of
// the Owner that is gone; empty when there was none.
type SweepInput struct {
	Account     CloudAccount `json:"account"`
	Owner       ObjectRef    `json:"owner"`
	TechnicalID string       `json:"technicalID,omitempty"`
}

// Leftovers lists resources.
type Leftovers struct {
	Resources []v1.Resource `json:"resources,omitempty"`
}
