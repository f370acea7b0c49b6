package aws

import (
	"context"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	taggingtypes "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// taggingAPI is what is called of the Resource Groups Tagging API: the index
// over all tags of a region. It is how to find by tag what its own service
// cannot filter (KMS keys, OIDC providers, load balancers), at a cost that does
// not grow with what else the account has.
//
// The index is some seconds late, in both directions: what it lists is looked at
// before anything is done with it, and what was just made is found by its name
// or ARN first.
type taggingAPI interface {
	tagging.GetResourcesAPIClient
}

// Types of the index.
const (
	taggedKeys          = "kms:key"
	taggedOIDCProviders = "iam:oidc-provider"
	taggedLoadBalancers = "elasticloadbalancing:loadbalancer"
	taggedTargetGroups  = "elasticloadbalancing:targetgroup"
)

// tagged lists the ARNs of a type that carry the identity.
func tagged(ctx context.Context, api taggingAPI, kind, identity string) ([]string, error) {
	return taggedKey(ctx, api, kind, v1.TagID, identity)
}

// taggedKey lists the ARNs of a type that carry a tag, with one of the values
// if any are named.
func taggedKey(ctx context.Context, api taggingAPI, kind, key string, values ...string) ([]string, error) {
	var arns []string
	pages := tagging.NewGetResourcesPaginator(api, &tagging.GetResourcesInput{
		ResourceTypeFilters: []string{kind}, ResourcesPerPage: awssdk.Int32(100),
		TagFilters: []taggingtypes.TagFilter{{Key: &key, Values: values}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, faults.FromAWS(err, "tags of "+kind)
		}
		for _, m := range page.ResourceTagMappingList {
			arns = append(arns, awssdk.ToString(m.ResourceARN))
		}
	}
	return arns, nil
}

// globalRegion is the region in which the index has what belongs to no region.
func globalRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "cn-north-1"
	case strings.HasPrefix(region, "us-gov-"):
		return "us-gov-west-1"
	default:
		return "us-east-1"
	}
}
