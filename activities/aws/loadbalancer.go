package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// loadBalancerAPI is what is called of Elastic Load Balancing.
type loadBalancerAPI interface {
	DescribeLoadBalancers(context.Context, *elb.DescribeLoadBalancersInput, ...func(*elb.Options)) (*elb.DescribeLoadBalancersOutput, error)
	DescribeTags(context.Context, *elb.DescribeTagsInput, ...func(*elb.Options)) (*elb.DescribeTagsOutput, error)
}

// serviceTags name the Service that a load balancer serves, as namespace/name:
// that of the cloud provider, and that of the AWS Load Balancer Controller.
var serviceTags = []string{"kubernetes.io/service-name", "service.k8s.aws/stack"}

// loadBalancers lists all load balancers of the region, 400 a call: AWS filters
// them by name and ARN only.
func loadBalancers(ctx context.Context, api loadBalancerAPI) ([]elbtypes.LoadBalancer, error) {
	var all []elbtypes.LoadBalancer
	pages := elb.NewDescribeLoadBalancersPaginator(api, &elb.DescribeLoadBalancersInput{PageSize: awssdk.Int32(400)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return all, faults.FromAWS(err, "load balancers")
		}
		all = append(all, page.LoadBalancers...)
	}
	return all, nil
}

// loadBalancersTagged returns those of arns whose tags match. One call names
// twenty at most, and fails as a whole when one of them has gone since it was
// listed; then each is asked alone, and those that are gone are left out.
func loadBalancersTagged(ctx context.Context, api loadBalancerAPI, arns []string, match func([]elbtypes.Tag) bool) ([]string, error) {
	var found []string
	for chunk := range slices.Chunk(arns, 20) {
		descriptions, err := describeTags(ctx, api, chunk)
		if err != nil {
			return nil, err
		}
		for _, d := range descriptions {
			if match(d.Tags) {
				found = append(found, awssdk.ToString(d.ResourceArn))
			}
		}
	}
	return found, nil
}

func describeTags(ctx context.Context, api loadBalancerAPI, arns []string) ([]elbtypes.TagDescription, error) {
	out, err := api.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: arns})
	switch err := faults.FromAWS(err, "load balancers' tags"); {
	case err == nil:
		return out.TagDescriptions, nil
	case !faults.Is(err, faults.Gone):
		return nil, err
	case len(arns) == 1:
		return nil, nil
	}
	var all []elbtypes.TagDescription
	for _, arn := range arns {
		one, err := describeTags(ctx, api, []string{arn})
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

func elbTag(t elbtypes.Tag) (*string, *string) { return t.Key, t.Value }

// WaitLoadBalancerActive implements contract.AWS.WaitLoadBalancerActive.
func (a *Activities) WaitLoadBalancerActive(ctx context.Context, in contract.LoadBalancerInput) (contract.LoadBalancer, error) {
	resource := "load balancer " + in.Hostname
	if in.Hostname == "" {
		return contract.LoadBalancer{}, faults.New(faults.Invalid, "NoHostname", resource, "the Service has no load balancer hostname yet")
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return contract.LoadBalancer{}, err
	}
	var out contract.LoadBalancer
	err = wait.For(ctx, in.Cluster, a.options.Poll, nil, func(ctx context.Context) (bool, string, error) {
		all, err := loadBalancers(ctx, c.elb)
		if err != nil {
			return false, "", err
		}
		at := slices.IndexFunc(all, func(lb elbtypes.LoadBalancer) bool {
			return strings.EqualFold(awssdk.ToString(lb.DNSName), in.Hostname)
		})
		if at < 0 {
			return false, resource + " is not listed by AWS yet", nil
		}
		out = contract.LoadBalancer{ID: awssdk.ToString(all[at].LoadBalancerArn), Hostname: awssdk.ToString(all[at].DNSName)}
		return activeLoadBalancer(all[at].State, resource)
	})
	return out, err
}

// activeLoadBalancer judges a load balancer's state.
func activeLoadBalancer(s *elbtypes.LoadBalancerState, resource string) (done bool, sentence string, err error) {
	if s == nil {
		return false, resource + " has no state yet", nil
	}
	reason := awssdk.ToString(s.Reason)
	switch s.Code {
	case elbtypes.LoadBalancerStateEnumActive:
		return true, "", nil
	case elbtypes.LoadBalancerStateEnumFailed:
		return false, "", faults.New(faults.Dependency, "LoadBalancerFailed", resource, "AWS could not set it up: %s", reason).
			WithHint(faults.OwnerOperator, "see its subnets for free addresses; delete the load balancer so that the Service gets another one; the operation goes on by itself")
	default:
		return false, strings.TrimSpace(fmt.Sprintf("%s is %s %s", resource, s.Code, reason)), nil
	}
}

// WaitLoadBalancerGone implements contract.AWS.WaitLoadBalancerGone.
func (a *Activities) WaitLoadBalancerGone(ctx context.Context, in contract.LoadBalancerInput) (contract.None, error) {
	if in.ServiceNamespace == "" {
		return contract.None{}, faults.New(faults.Invalid, "NoServiceNamespace", in.Cluster.String(), "whose load balancers to await is not named")
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return contract.None{}, err
	}
	return contract.None{}, wait.For(ctx, in.Cluster, a.options.Poll, nil, func(ctx context.Context) (bool, string, error) {
		left, err := serviceLoadBalancers(ctx, c.elb, in)
		if err != nil || len(left) == 0 {
			return err == nil, "", err
		}
		return false, fmt.Sprintf("load balancer %s is still there", left[0]), nil
	})
}

// serviceLoadBalancers returns the load balancers of the namespace's Services,
// in the VPC when it is named: a namespace is unique within one shoot only.
func serviceLoadBalancers(ctx context.Context, api loadBalancerAPI, in contract.LoadBalancerInput) ([]string, error) {
	all, err := loadBalancers(ctx, api)
	if err != nil {
		return nil, err
	}
	var arns []string
	for _, lb := range all {
		if in.VPCID == "" || awssdk.ToString(lb.VpcId) == in.VPCID {
			arns = append(arns, awssdk.ToString(lb.LoadBalancerArn))
		}
	}
	return loadBalancersTagged(ctx, api, arns, func(tags []elbtypes.Tag) bool {
		return slices.ContainsFunc(serviceTags, func(key string) bool {
			return strings.HasPrefix(tagValue(tags, key, elbTag), in.ServiceNamespace+"/")
		})
	})
}
