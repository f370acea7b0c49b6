package aws

import (
	"context"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// DeleteEndpointService implements contract.AWS.DeleteEndpointService.
func (a *Activities) DeleteEndpointService(ctx context.Context, in contract.EndpointServiceInput) (contract.None, error) {
	e, err := a.endpoint(ctx, in)
	if err != nil {
		return contract.None{}, err
	}
	ours, err := e.find(ctx)
	if err != nil {
		return contract.None{}, err
	}
	for _, s := range ours {
		id := awssdk.ToString(s.ServiceId)
		if err := e.reject(ctx, id); err != nil {
			return contract.None{}, err
		}
		if err := e.delete(ctx, id); err != nil {
			return contract.None{}, err
		}
		if err := e.proveGone(ctx, id); err != nil {
			return contract.None{}, err
		}
	}
	return contract.None{}, nil
}

// live reports whether a connection keeps its service from being deleted.
func live(s ec2types.State) bool {
	switch s {
	case ec2types.StatePendingAcceptance, ec2types.StatePending, ec2types.StateAvailable, ec2types.StatePartial:
		return true
	default:
		return false
	}
}

// connections returns the endpoints that are, or want to be, connected.
func (e *endpoint) connections(ctx context.Context, service string) ([]string, error) {
	var endpoints []string
	pages := ec2.NewDescribeVpcEndpointConnectionsPaginator(e.ec2, &ec2.DescribeVpcEndpointConnectionsInput{
		Filters: []ec2types.Filter{filter("service-id", service)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, e.fault(err)
		}
		for _, c := range page.VpcEndpointConnections {
			// AWS has written states both as Available and as available.
			if awssdk.ToString(c.ServiceId) == service && live(canonical(c.VpcEndpointState)) {
				endpoints = append(endpoints, awssdk.ToString(c.VpcEndpointId))
			}
		}
	}
	return endpoints, nil
}

func canonical(s ec2types.State) ec2types.State {
	if s == "" {
		return s
	}
	return ec2types.State(string(s[0]&^0x20) + string(s[1:]))
}

// reject ends all connections, for a service with any cannot be deleted. A call
// is refused as a whole when one of the endpoints has gone since it was listed;
// then those that are left are listed anew.
func (e *endpoint) reject(ctx context.Context, service string) error {
	rejected := false
	err := e.a.settle(ctx, e.resource(), "rid of its connections", func() (bool, error) {
		endpoints, err := e.connections(ctx, service)
		if err != nil || len(endpoints) == 0 {
			return err == nil, err
		}
		out, err := e.ec2.RejectVpcEndpointConnections(ctx, &ec2.RejectVpcEndpointConnectionsInput{
			ServiceId: &service, VpcEndpointIds: endpoints,
		})
		if err != nil {
			return false, e.fault(err)
		}
		rejected = true
		return true, e.refusals(out.Unsuccessful)
	})
	if err != nil || !rejected {
		return err
	}
	return e.a.settle(ctx, e.resource(), "without connections", func() (bool, error) {
		left, err := e.connections(ctx, service)
		return len(left) == 0, err
	})
}

func (e *endpoint) delete(ctx context.Context, service string) error {
	out, err := e.ec2.DeleteVpcEndpointServiceConfigurations(ctx, &ec2.DeleteVpcEndpointServiceConfigurationsInput{ServiceIds: []string{service}})
	if err != nil {
		return faults.IgnoreGone(e.fault(err))
	}
	return e.refusals(out.Unsuccessful)
}

// refusals returns the first refusal in an answer of status 200, if any; what
// is gone already is none.
func (e *endpoint) refusals(items []ec2types.UnsuccessfulItem) error {
	for _, item := range items {
		if item.Error == nil {
			continue
		}
		refusal := itemError{code: awssdk.ToString(item.Error.Code), message: awssdk.ToString(item.Error.Message)}
		err := faults.IgnoreGone(faults.FromAWS(refusal, e.resource()+" "+awssdk.ToString(item.ResourceId)))
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *endpoint) proveGone(ctx context.Context, service string) error {
	return e.a.settle(ctx, e.resource(), "deleted", func() (bool, error) {
		s, err := e.get(ctx, service)
		if err == nil {
			return s.ServiceState == ec2types.ServiceStateDeleted, nil
		}
		return goneAsDone(err)
	})
}

// deleteUnused deletes a twin of our service that nobody is connected to.
func (e *endpoint) deleteUnused(ctx context.Context, service string) error {
	connected, err := e.connections(ctx, service)
	if err != nil || len(connected) > 0 {
		return err
	}
	return e.delete(ctx, service)
}
