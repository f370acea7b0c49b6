package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// fakeLink has endpoint services with client tokens, permissions and
// connections.
type fakeLink struct {
	ec2API
	lossy
	services    map[string]*ec2types.ServiceConfiguration
	tokens      map[string]string
	permissions map[string][]string
	connections []ec2types.VpcEndpointConnection
}

func newFakeLink() *fakeLink {
	return &fakeLink{services: map[string]*ec2types.ServiceConfiguration{}, tokens: map[string]string{}, permissions: map[string][]string{}}
}

func (f *fakeLink) CreateVpcEndpointServiceConfiguration(_ context.Context, in *ec2.CreateVpcEndpointServiceConfigurationInput, _ ...func(*ec2.Options)) (*ec2.CreateVpcEndpointServiceConfigurationOutput, error) {
	id, ok := f.tokens[*in.ClientToken]
	if !ok {
		id = fmt.Sprintf("vpce-svc-%d", len(f.services)+1)
		f.tokens[*in.ClientToken] = id
		f.services[id] = &ec2types.ServiceConfiguration{
			ServiceId: awssdk.String(id), ServiceName: awssdk.String("com.amazonaws.vpce." + id), ServiceState: ec2types.ServiceStateAvailable,
			NetworkLoadBalancerArns: in.NetworkLoadBalancerArns, AcceptanceRequired: in.AcceptanceRequired, Tags: in.TagSpecifications[0].Tags,
		}
	}
	service := *f.services[id]
	return &ec2.CreateVpcEndpointServiceConfigurationOutput{ServiceConfiguration: &service}, f.after("CreateVpcEndpointServiceConfiguration")
}

func (f *fakeLink) DescribeVpcEndpointServiceConfigurations(_ context.Context, in *ec2.DescribeVpcEndpointServiceConfigurationsInput, _ ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointServiceConfigurationsOutput, error) {
	out := &ec2.DescribeVpcEndpointServiceConfigurationsOutput{}
	for _, id := range slices.Sorted(maps.Keys(f.services)) {
		if len(in.ServiceIds) == 0 || slices.Contains(in.ServiceIds, id) {
			out.ServiceConfigurations = append(out.ServiceConfigurations, *f.services[id])
		}
	}
	return out, nil
}

func (f *fakeLink) ModifyVpcEndpointServiceConfiguration(_ context.Context, in *ec2.ModifyVpcEndpointServiceConfigurationInput, _ ...func(*ec2.Options)) (*ec2.ModifyVpcEndpointServiceConfigurationOutput, error) {
	if err := f.unknown("ModifyVpcEndpointServiceConfiguration", "InvalidVpcEndpointServiceId.NotFound"); err != nil {
		return nil, err
	}
	s := f.services[*in.ServiceId]
	if in.AcceptanceRequired != nil {
		s.AcceptanceRequired = in.AcceptanceRequired
	}
	s.NetworkLoadBalancerArns = append(without(s.NetworkLoadBalancerArns, in.RemoveNetworkLoadBalancerArns), in.AddNetworkLoadBalancerArns...)
	return &ec2.ModifyVpcEndpointServiceConfigurationOutput{}, f.after("ModifyVpcEndpointServiceConfiguration")
}

func (f *fakeLink) DescribeVpcEndpointServicePermissions(_ context.Context, in *ec2.DescribeVpcEndpointServicePermissionsInput, _ ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointServicePermissionsOutput, error) {
	if err := f.unknown("DescribeVpcEndpointServicePermissions", "InvalidVpcEndpointServiceId.NotFound"); err != nil {
		return nil, err
	}
	out := &ec2.DescribeVpcEndpointServicePermissionsOutput{}
	for _, p := range f.permissions[*in.ServiceId] {
		out.AllowedPrincipals = append(out.AllowedPrincipals, ec2types.AllowedPrincipal{Principal: &p})
	}
	return out, nil
}

func (f *fakeLink) ModifyVpcEndpointServicePermissions(_ context.Context, in *ec2.ModifyVpcEndpointServicePermissionsInput, _ ...func(*ec2.Options)) (*ec2.ModifyVpcEndpointServicePermissionsOutput, error) {
	if err := f.unknown("ModifyVpcEndpointServicePermissions", "InvalidVpcEndpointServiceId.NotFound"); err != nil {
		return nil, err
	}
	f.permissions[*in.ServiceId] = append(without(f.permissions[*in.ServiceId], in.RemoveAllowedPrincipals), in.AddAllowedPrincipals...)
	return &ec2.ModifyVpcEndpointServicePermissionsOutput{}, f.after("ModifyVpcEndpointServicePermissions")
}

func (f *fakeLink) DescribeVpcEndpointConnections(context.Context, *ec2.DescribeVpcEndpointConnectionsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointConnectionsOutput, error) {
	return &ec2.DescribeVpcEndpointConnectionsOutput{VpcEndpointConnections: slices.Clone(f.connections)}, nil
}

func (f *fakeLink) RejectVpcEndpointConnections(_ context.Context, in *ec2.RejectVpcEndpointConnectionsInput, _ ...func(*ec2.Options)) (*ec2.RejectVpcEndpointConnectionsOutput, error) {
	if err := f.unknown("RejectVpcEndpointConnections", "InvalidVpcEndpointId.NotFound"); err != nil {
		return nil, err
	}
	for i := range f.connections {
		if slices.Contains(in.VpcEndpointIds, *f.connections[i].VpcEndpointId) {
			f.connections[i].VpcEndpointState = ec2types.StateRejected
		}
	}
	return &ec2.RejectVpcEndpointConnectionsOutput{}, f.after("RejectVpcEndpointConnections")
}

func (f *fakeLink) DeleteVpcEndpointServiceConfigurations(_ context.Context, in *ec2.DeleteVpcEndpointServiceConfigurationsInput, _ ...func(*ec2.Options)) (*ec2.DeleteVpcEndpointServiceConfigurationsOutput, error) {
	out := &ec2.DeleteVpcEndpointServiceConfigurationsOutput{}
	for _, c := range f.connections {
		if slices.Contains(in.ServiceIds, *c.ServiceId) && live(canonical(c.VpcEndpointState)) {
			out.Unsuccessful = append(out.Unsuccessful, ec2types.UnsuccessfulItem{ResourceId: c.ServiceId, Error: &ec2types.UnsuccessfulItemError{
				Code: awssdk.String("ExistingVpcEndpointConnections"), Message: awssdk.String("Service has existing active VPC Endpoint connections!"),
			}})
			return out, nil
		}
	}
	for _, id := range in.ServiceIds {
		f.services[id].ServiceState = ec2types.ServiceStateDeleted
	}
	return out, f.after("DeleteVpcEndpointServiceConfigurations")
}
