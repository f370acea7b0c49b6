package contract

// GCPNetworkPlan is what only a Network on GCP has. Beside it NetworkPlan holds
// with these meanings: VPCCIDR is the subnet of the nodes (a network has no
// range on GCP), ExistingVPC is unused, Account.ProjectID is the project.
type GCPNetworkPlan struct {
	// InternalCIDR is a subnet for internal load balancers; empty puts them
	// into the subnet of the nodes.
	InternalCIDR string `json:"internalCIDR,omitempty"`
	// PSCNATCIDR is the subnet of Private Service Connect, /16 to /20.
	PSCNATCIDR string `json:"pscNATCIDR"`
	// PSCConnections that PSCNATCIDR has room for.
	PSCConnections int32 `json:"pscConnections"`
	// ExistingNetwork and ExistingRouter name a network that is not ours, and
	// its Cloud Router; both or none.
	ExistingNetwork string `json:"existingNetwork,omitempty"`
	ExistingRouter  string `json:"existingRouter,omitempty"`
	// NATAddresses names reserved external addresses; none lets GCP choose.
	NATAddresses []string `json:"natAddresses,omitempty"`
	// NodeServiceAccount is the e-mail of what nodes are; empty means the
	// service account that Gardener makes for the Shoot.
	NodeServiceAccount string `json:"nodeServiceAccount,omitempty"`
}
