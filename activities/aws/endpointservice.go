package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// endpointAPI is what is called of EC2 for PrivateLink services.
type endpointAPI interface {
	CreateVpcEndpointServiceConfiguration(context.Context, *ec2.CreateVpcEndpointServiceConfigurationInput, ...func(*ec2.Options)) (*ec2.CreateVpcEndpointServiceConfigurationOutput, error)
	DescribeVpcEndpointServiceConfigurations(context.Context, *ec2.DescribeVpcEndpointServiceConfigurationsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointServiceConfigurationsOutput, error)
	ModifyVpcEndpointServiceConfiguration(context.Context, *ec2.ModifyVpcEndpointServiceConfigurationInput, ...func(*ec2.Options)) (*ec2.ModifyVpcEndpointServiceConfigurationOutput, error)
	DeleteVpcEndpointServiceConfigurations(context.Context, *ec2.DeleteVpcEndpointServiceConfigurationsInput, ...func(*ec2.Options)) (*ec2.DeleteVpcEndpointServiceConfigurationsOutput, error)
	DescribeVpcEndpointServicePermissions(context.Context, *ec2.DescribeVpcEndpointServicePermissionsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointServicePermissionsOutput, error)
	ModifyVpcEndpointServicePermissions(context.Context, *ec2.ModifyVpcEndpointServicePermissionsInput, ...func(*ec2.Options)) (*ec2.ModifyVpcEndpointServicePermissionsOutput, error)
	DescribeVpcEndpointConnections(context.Context, *ec2.DescribeVpcEndpointConnectionsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointConnectionsOutput, error)
	RejectVpcEndpointConnections(context.Context, *ec2.RejectVpcEndpointConnectionsInput, ...func(*ec2.Options)) (*ec2.RejectVpcEndpointConnectionsOutput, error)
}

// endpoint is the endpoint service of an owner, in one activity call.
type endpoint struct {
	a   *Activities
	c   *clients
	ec2 endpointAPI
	in  contract.EndpointServiceInput
}

func (a *Activities) endpoint(ctx context.Context, in contract.EndpointServiceInput) (*endpoint, error) {
	if err := needIdentity(in.Owner); err != nil {
		return nil, err
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return nil, err
	}
	return &endpoint{a: a, c: c, ec2: c.ec2, in: in}, nil
}

func (e *endpoint) resource() string { return "endpoint service of " + e.in.Owner.String() }

func (e *endpoint) fault(err error) error { return faults.FromAWS(err, e.resource()) }

// EnsureEndpointService implements contract.AWS.EnsureEndpointService. The ledger
// entry's ID is the service's, vpce-svc-....
func (a *Activities) EnsureEndpointService(ctx context.Context, in contract.EndpointServiceInput) (contract.EndpointService, error) {
	e, err := a.endpoint(ctx, in)
	if err != nil {
		return contract.EndpointService{}, err
	}
	if in.LoadBalancerID == "" {
		return contract.EndpointService{}, faults.New(faults.Invalid, "NoLoadBalancer", e.resource(), "the load balancer is not known yet")
	}
	ours, err := e.find(ctx)
	if err != nil {
		return contract.EndpointService{}, err
	}
	if len(ours) == 0 {
		made, err := e.create(ctx)
		if err != nil {
			return contract.EndpointService{}, err
		}
		ours = []ec2types.ServiceConfiguration{*made}
	}
	keep := ours[0]
	for _, twin := range ours[1:] {
		if err := e.deleteUnused(ctx, awssdk.ToString(twin.ServiceId)); err != nil {
			return contract.EndpointService{}, err
		}
	}
	err = a.steady(ctx, e.resource(), func() error {
		if err := e.correct(ctx, keep); err != nil {
			return err
		}
		return e.permit(ctx, keep.ServiceId)
	})
	if err != nil {
		return contract.EndpointService{}, err
	}
	return e.observe(ctx, awssdk.ToString(keep.ServiceId))
}

// find returns our services that are not on their way out, the one to keep
// first: that over our load balancer, then by ID, since EC2 tells no age.
func (e *endpoint) find(ctx context.Context) ([]ec2types.ServiceConfiguration, error) {
	all, err := endpointServices(ctx, e.ec2, e.in.Owner.ID)
	if err != nil {
		return nil, e.fault(err)
	}
	slices.SortFunc(all, func(a, b ec2types.ServiceConfiguration) int {
		aOver, bOver := e.over(a), e.over(b)
		switch {
		case aOver && !bOver:
			return -1
		case bOver && !aOver:
			return 1
		}
		return strings.Compare(awssdk.ToString(a.ServiceId), awssdk.ToString(b.ServiceId))
	})
	return all, nil
}

func (e *endpoint) over(s ec2types.ServiceConfiguration) bool {
	return slices.Contains(s.NetworkLoadBalancerArns, e.in.LoadBalancerID)
}

// endpointServices lists the living services of an identity. Tags are compared
// here too: emulators ignore the filter.
func endpointServices(ctx context.Context, api endpointAPI, identity string) ([]ec2types.ServiceConfiguration, error) {
	var ours []ec2types.ServiceConfiguration
	pages := ec2.NewDescribeVpcEndpointServiceConfigurationsPaginator(api, &ec2.DescribeVpcEndpointServiceConfigurationsInput{
		Filters: []ec2types.Filter{filter("tag:"+v1.TagID, identity)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range page.ServiceConfigurations {
			if identityIn(s.Tags, ec2Tag) == identity && alive(s.ServiceState) {
				ours = append(ours, s)
			}
		}
	}
	return ours, nil
}

func ec2Tag(t ec2types.Tag) (*string, *string) { return t.Key, t.Value }

func alive(s ec2types.ServiceState) bool {
	return s != ec2types.ServiceStateDeleting && s != ec2types.ServiceStateDeleted && s != ec2types.ServiceStateFailed
}

// create makes the service. EC2 remembers a client token together with the
// parameters: of a service that was deleted since, or with other parameters,
// the token is used up, and the next one is tried.
func (e *endpoint) create(ctx context.Context) (*ec2types.ServiceConfiguration, error) {
	name := tag{"Name", "ic-" + e.in.Owner.ID8() + "-db"}
	for epoch := range 3 {
		out, err := e.ec2.CreateVpcEndpointServiceConfiguration(ctx, &ec2.CreateVpcEndpointServiceConfigurationInput{
			ClientToken:             awssdk.String(token(e.in.Owner.ID, "endpoint-service", e.in.LoadBalancerID, fmt.Sprint(epoch))),
			AcceptanceRequired:      awssdk.Bool(true),
			NetworkLoadBalancerArns: []string{e.in.LoadBalancerID},
			TagSpecifications: []ec2types.TagSpecification{{
				ResourceType: ec2types.ResourceTypeVpcEndpointService,
				Tags: tagsAs(append(identityTags(e.in.Owner, e.in.Env), name), func(k, v *string) ec2types.Tag {
					return ec2types.Tag{Key: k, Value: v}
				}),
			}},
		})
		if f := faults.As(e.fault(err)); f != nil && f.Code == "IdempotentParameterMismatch" {
			continue
		}
		if err != nil {
			return nil, e.fault(err)
		}
		used, err := e.ended(ctx, awssdk.ToString(out.ServiceConfiguration.ServiceId))
		if err != nil {
			return nil, err
		}
		if !used {
			return out.ServiceConfiguration, nil
		}
	}
	return nil, faults.New(faults.Conflict, "ClientTokensUsedUp", e.resource(), "EC2 answers each create with a service that was deleted before").
		WithHint(faults.OwnerOperator, "retry tomorrow, EC2 forgets client tokens after a day")
}

// token derives an EC2 client token, at most 64 characters.
func token(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// ended reports whether the service that a create answered with was deleted
// before: it is on its way out, or AWS does not show it for all the time that a
// new one may take. Should a new one take even longer, find sees both later.
func (e *endpoint) ended(ctx context.Context, id string) (bool, error) {
	over := false
	err := e.a.settle(ctx, e.resource(), "created", func() (bool, error) {
		s, err := e.get(ctx, id)
		over = err == nil && !alive(s.ServiceState)
		return err == nil, err
	})
	if f := faults.As(err); f != nil && f.Code == codeNotSettled {
		return true, nil
	}
	return over, err
}

// get returns a service in whatever state it is, or a Gone fault.
func (e *endpoint) get(ctx context.Context, id string) (*ec2types.ServiceConfiguration, error) {
	out, err := e.ec2.DescribeVpcEndpointServiceConfigurations(ctx, &ec2.DescribeVpcEndpointServiceConfigurationsInput{ServiceIds: []string{id}})
	if err != nil {
		return nil, e.fault(err)
	}
	for _, s := range out.ServiceConfigurations {
		if awssdk.ToString(s.ServiceId) == id {
			return &s, nil
		}
	}
	return nil, faults.New(faults.Gone, "NotFound", "endpoint service "+id, "it is not there")
}

// correct puts the load balancer and the acceptance right; consumers keep
// their endpoints when a load balancer is exchanged.
func (e *endpoint) correct(ctx context.Context, s ec2types.ServiceConfiguration) error {
	if e.over(s) && len(s.NetworkLoadBalancerArns) == 1 && awssdk.ToBool(s.AcceptanceRequired) {
		return nil
	}
	in := &ec2.ModifyVpcEndpointServiceConfigurationInput{ServiceId: s.ServiceId}
	if !awssdk.ToBool(s.AcceptanceRequired) {
		in.AcceptanceRequired = awssdk.Bool(true)
	}
	if !e.over(s) {
		in.AddNetworkLoadBalancerArns = []string{e.in.LoadBalancerID}
	}
	in.RemoveNetworkLoadBalancerArns = slices.DeleteFunc(slices.Clone(s.NetworkLoadBalancerArns), func(arn string) bool { return arn == e.in.LoadBalancerID })
	_, err := e.ec2.ModifyVpcEndpointServiceConfiguration(ctx, in)
	return e.fault(err)
}

// permit makes the allowed principals those of the input, as EC2 wants it: by
// a difference.
func (e *endpoint) permit(ctx context.Context, id *string) error {
	var have []string
	pages := ec2.NewDescribeVpcEndpointServicePermissionsPaginator(e.ec2, &ec2.DescribeVpcEndpointServicePermissionsInput{ServiceId: id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return e.fault(err)
		}
		for _, p := range page.AllowedPrincipals {
			have = append(have, awssdk.ToString(p.Principal))
		}
	}
	in := &ec2.ModifyVpcEndpointServicePermissionsInput{
		ServiceId:               id,
		AddAllowedPrincipals:    without(e.in.AllowedPrincipals, have),
		RemoveAllowedPrincipals: without(have, e.in.AllowedPrincipals),
	}
	if len(in.AddAllowedPrincipals)+len(in.RemoveAllowedPrincipals) == 0 {
		return nil
	}
	_, err := e.ec2.ModifyVpcEndpointServicePermissions(ctx, in)
	return e.fault(err)
}

// without returns what is in a and not in b, each once, sorted.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// observe waits until the service can be used.
func (e *endpoint) observe(ctx context.Context, id string) (contract.EndpointService, error) {
	var s *ec2types.ServiceConfiguration
	err := e.a.settle(ctx, e.resource(), "available", func() (done bool, err error) {
		s, err = e.get(ctx, id)
		return err == nil && s.ServiceState == ec2types.ServiceStateAvailable, err
	})
	if err != nil {
		return contract.EndpointService{}, err
	}
	return contract.EndpointService{
		ID: id, ServiceName: awssdk.ToString(s.ServiceName), State: string(s.ServiceState),
		Resource: ledger(e.c, typeEndpoint, id),
	}, nil
}
