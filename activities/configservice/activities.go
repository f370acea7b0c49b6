package configservice

import (
	"context"
	"net/url"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Activities implements the contract's config activities.
type Activities struct {
	Client *Client
}

// Register registers all activities of this package.
func (a *Activities) Register(r contract.Registry) {
	contract.Register(r, contract.FetchNetworkConfig, a.FetchNetworkConfig)
	contract.Register(r, contract.FetchClusterConfig, a.FetchClusterConfig)
}

// FetchNetworkConfig asks which bundle a new Network gets, and fetches it, so
// that a broken one is found before anything is built on it.
func (a *Activities) FetchNetworkConfig(ctx context.Context, in contract.ConfigQuery) (contract.ConfigRef, error) {
	ref, err := a.Client.which(ctx, "/v1/network-config", url.Values{
		"cloud": {in.Cloud}, "region": {in.Region}, "tenant": {in.Tenant},
	})
	if err != nil {
		return contract.ConfigRef{}, err
	}
	_, err = a.Client.NetworkConfig(ctx, ref.Hash)
	return ref, err
}

// FetchClusterConfig asks which configuration a Cluster gets, and fetches it.
func (a *Activities) FetchClusterConfig(ctx context.Context, in contract.ConfigQuery) (contract.ConfigRef, error) {
	ref, err := a.Client.which(ctx, "/v1/cluster-config", url.Values{
		"cloud": {in.Cloud}, "region": {in.Region}, "tenant": {in.Tenant},
		"operator": {in.Operator}, "version": {in.Version},
	})
	if err != nil {
		return contract.ConfigRef{}, err
	}
	_, err = a.Client.ClusterConfig(ctx, ref.Hash)
	return ref, err
}
