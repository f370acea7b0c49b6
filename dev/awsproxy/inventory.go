package awsproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// Tags by which the inventory finds owners.
const (
	tagOwner      = "infra.cloud.pingcap.com/id"
	tagClusterPfx = "kubernetes.io/cluster/"
)

// Inventory implements control.Cloud: it lists VPCs, subnets, security groups,
// internet and NAT gateways, addresses, route tables, volumes, key pairs, VPC endpoints,
// endpoint services, load balancers, target groups, roles, OIDC providers,
// instance profiles, KMS keys and aliases, hosted zones and buckets, in every
// account and region in which a client has called. What AWS makes by itself
// with a VPC (its default security group, its main route table) is left out
// unless it is tagged or q.All is set; so are deleted NAT gateways, as they
// stay visible for an hour.
func (p *Proxy) Inventory(ctx context.Context, q control.InventoryQuery) ([]control.Resource, error) {
	p.mu.Lock()
	places := maps.Clone(p.places)
	p.mu.Unlock()
	var all []control.Resource
	var errs []error
	globals := map[string]bool{}
	for at, accessKey := range places {
		in := inspector{cfg: p.configFor(accessKey, at.region), account: at.account, region: at.region, proxy: p}
		lists := in.regional()
		if !globals[at.account] {
			globals[at.account] = true
			lists = append(lists, in.global()...)
		}
		for _, list := range lists {
			found, err := list(ctx)
			errs = append(errs, err)
			all = append(all, found...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	all = slices.DeleteFunc(all, func(r control.Resource) bool { return !wanted(q, r) })
	slices.SortFunc(all, func(a, b control.Resource) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// wanted applies the query.
func wanted(q control.InventoryQuery, r control.Resource) bool {
	switch {
	case q.Owner != "":
		return r.Owner == q.Owner
	case q.Cluster != "":
		return r.Cluster == q.Cluster
	}
	return q.All || r.Owner != "" || r.Cluster != ""
}

// configFor is an SDK configuration that reaches the emulator in process.
func (p *Proxy) configFor(accessKey, region string) aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: aws.String("http://aws.devstack"),
		HTTPClient:       &http.Client{Transport: p.Transport(), Timeout: time.Minute},
		Credentials:      credentials.NewStaticCredentialsProvider(accessKey, "devstack", ""),
		RetryMaxAttempts: 1,
	}
}

// resource fills owner and cluster from the tags.
func (in inspector) resource(kind, id, name, state string, tags map[string]string) control.Resource {
	r := control.Resource{Account: in.account, Type: kind, ID: id, Name: name, State: state, Tags: tags, Owner: tags[tagOwner]}
	for key := range tags {
		if cluster, ok := strings.CutPrefix(key, tagClusterPfx); ok {
			r.Cluster = cluster
		}
	}
	if r.Name == "" {
		r.Name = tags["Name"]
	}
	return r
}
