package loadbalancer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"
	corev1 "k8s.io/api/core/v1"
)

// cloud makes the load balancers of one shoot.
type cloud struct {
	technicalID string
	elb         *elb.Client
	ec2         *ec2.Client
}

func newCloud(cfg aws.Config, technicalID string) *cloud {
	return &cloud{technicalID: technicalID, elb: elb.NewFromConfig(cfg), ec2: ec2.NewFromConfig(cfg)}
}

var notAlphanumeric = regexp.MustCompile(`[^a-zA-Z0-9]`)

// resourceName is k8s-<8>-<8>-<10>, which fits the 32 characters of ELB names;
// extra tells target groups of one Service apart.
func (c *cloud) resourceName(namespace, name, extra string) string {
	sum := sha256.Sum256([]byte(c.technicalID + "/" + namespace + "/" + name + "/" + extra))
	part := func(s string) string {
		s = notAlphanumeric.ReplaceAllString(s, "")
		return s[:min(8, len(s))]
	}
	return "k8s-" + part(namespace) + "-" + part(name) + "-" + hex.EncodeToString(sum[:])[:10]
}

// tags of all that belongs to a Service: the controller's own, and those by
// which the in-tree provider and Gardener find load balancers of a cluster.
func (c *cloud) tags(s *corev1.Service) []types.Tag {
	all := extraTags(s)
	maps.Copy(all, map[string]string{
		"elbv2.k8s.aws/cluster":                  c.technicalID,
		"service.k8s.aws/stack":                  s.Namespace + "/" + s.Name,
		"kubernetes.io/cluster/" + c.technicalID: "owned",
		"kubernetes.io/service-name":             s.Namespace + "/" + s.Name,
	})
	var tags []types.Tag
	for _, key := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, types.Tag{Key: aws.String(key), Value: aws.String(all[key])})
	}
	return tags
}

// ensure returns the load balancer's host name.
func (c *cloud) ensure(ctx context.Context, s *corev1.Service) (string, error) {
	scheme := types.LoadBalancerSchemeEnumInternal
	if s.Annotations[annotationPrefix+"scheme"] == string(types.LoadBalancerSchemeEnumInternetFacing) {
		scheme = types.LoadBalancerSchemeEnumInternetFacing
	}
	lb, err := c.find(ctx, s.Namespace, s.Name)
	if err != nil {
		return "", err
	}
	if lb == nil {
		subnets, err := c.subnets(ctx, scheme)
		if err != nil {
			return "", err
		}
		out, err := c.elb.CreateLoadBalancer(ctx, &elb.CreateLoadBalancerInput{
			Name: aws.String(c.resourceName(s.Namespace, s.Name, "")), Type: types.LoadBalancerTypeEnumNetwork, Scheme: scheme,
			Subnets: subnets, Tags: c.tags(s),
		})
		if err != nil {
			return "", fmt.Errorf("create load balancer: %w", err)
		}
		lb = &out.LoadBalancers[0]
	}
	for _, port := range s.Spec.Ports {
		if err := c.ensurePort(ctx, s, lb, port); err != nil {
			return "", fmt.Errorf("port %d: %w", port.Port, err)
		}
	}
	return aws.ToString(lb.DNSName), nil
}

// find returns nil when there is no load balancer for the Service.
func (c *cloud) find(ctx context.Context, namespace, name string) (*types.LoadBalancer, error) {
	out, err := c.elb.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{Names: []string{c.resourceName(namespace, name, "")}})
	if hasCode(err, "LoadBalancerNotFound") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find load balancer: %w", err)
	}
	return &out.LoadBalancers[0], nil
}

// subnets are those that Gardener tagged for the scheme, one for each zone.
func (c *cloud) subnets(ctx context.Context, scheme types.LoadBalancerSchemeEnum) ([]string, error) {
	role := "kubernetes.io/role/internal-elb"
	if scheme == types.LoadBalancerSchemeEnumInternetFacing {
		role = "kubernetes.io/role/elb"
	}
	out, err := c.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{
		{Name: aws.String("tag-key"), Values: []string{role}},
		{Name: aws.String("tag-key"), Values: []string{"kubernetes.io/cluster/" + c.technicalID}},
	}})
	if err != nil {
		return nil, fmt.Errorf("find subnets: %w", err)
	}
	var ids []string
	for _, subnet := range out.Subnets {
		if hasTag(subnet.Tags, role) && hasTag(subnet.Tags, "kubernetes.io/cluster/"+c.technicalID) {
			ids = append(ids, aws.ToString(subnet.SubnetId))
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("unable to resolve at least one subnet (tags %s and kubernetes.io/cluster/%s)", role, c.technicalID)
	}
	slices.Sort(ids)
	return ids, nil
}

func hasTag(tags []ec2types.Tag, key string) bool {
	return slices.ContainsFunc(tags, func(t ec2types.Tag) bool { return aws.ToString(t.Key) == key })
}

func (c *cloud) ensurePort(ctx context.Context, s *corev1.Service, lb *types.LoadBalancer, port corev1.ServicePort) error {
	target := types.TargetTypeEnumInstance
	targetPort := port.NodePort
	if kind := s.Annotations[annotationPrefix+"nlb-target-type"]; kind == "ip" || s.Annotations[annotationPrefix+"type"] == "nlb-ip" {
		target, targetPort = types.TargetTypeEnumIp, port.TargetPort.IntVal
	}
	if targetPort == 0 {
		targetPort = port.Port
	}
	name := aws.String(c.resourceName(s.Namespace, s.Name, fmt.Sprint(port.Port)))
	var group string
	out, err := c.elb.CreateTargetGroup(ctx, &elb.CreateTargetGroupInput{
		Name: name, Protocol: types.ProtocolEnumTcp, Port: aws.Int32(targetPort), VpcId: lb.VpcId, TargetType: target, Tags: c.tags(s),
	})
	switch {
	case err == nil:
		group = aws.ToString(out.TargetGroups[0].TargetGroupArn)
	case hasCode(err, "DuplicateTargetGroupName"):
		found, err := c.elb.DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{Names: []string{*name}})
		if err != nil {
			return fmt.Errorf("find target group: %w", err)
		}
		group = aws.ToString(found.TargetGroups[0].TargetGroupArn)
	default:
		return fmt.Errorf("create target group: %w", err)
	}
	_, err = c.elb.CreateListener(ctx, &elb.CreateListenerInput{
		LoadBalancerArn: lb.LoadBalancerArn, Protocol: types.ProtocolEnumTcp, Port: aws.Int32(port.Port), Tags: c.tags(s),
		DefaultActions: []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: aws.String(group)}},
	})
	if err != nil && !hasCode(err, "DuplicateListener") {
		return fmt.Errorf("create listener: %w", err)
	}
	return nil
}

// remove deletes the load balancer with its listeners, then the target groups
// of the Service. A load balancer under an endpoint service is ResourceInUse.
func (c *cloud) remove(ctx context.Context, namespace, name string) error {
	lb, err := c.find(ctx, namespace, name)
	if err != nil {
		return err
	}
	if lb != nil {
		if _, err := c.elb.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerArn: lb.LoadBalancerArn}); err != nil {
			return fmt.Errorf("delete load balancer: %w", err)
		}
	}
	pages := elb.NewDescribeTargetGroupsPaginator(c.elb, &elb.DescribeTargetGroupsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("find target groups: %w", err)
		}
		for _, group := range page.TargetGroups {
			if err := c.removeGroup(ctx, aws.ToString(group.TargetGroupArn), namespace+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeGroup deletes a target group if its tags say that it is the Service's.
func (c *cloud) removeGroup(ctx context.Context, arn, service string) error {
	out, err := c.elb.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: []string{arn}})
	if hasCode(err, "TargetGroupNotFound") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the tags of %s: %w", arn, err)
	}
	has := map[string]string{}
	for _, d := range out.TagDescriptions {
		for _, t := range d.Tags {
			has[aws.ToString(t.Key)] = aws.ToString(t.Value)
		}
	}
	if has["elbv2.k8s.aws/cluster"] != c.technicalID || has["service.k8s.aws/stack"] != service {
		return nil
	}
	if _, err := c.elb.DeleteTargetGroup(ctx, &elb.DeleteTargetGroupInput{TargetGroupArn: &arn}); err != nil {
		return fmt.Errorf("delete target group: %w", err)
	}
	return nil
}

func hasCode(err error, code string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == code
}
