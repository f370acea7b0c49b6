package shoot

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// EnsureService applies the Service of type LoadBalancer.
func (a *Activities) EnsureService(ctx context.Context, in contract.DatabaseInput) (contract.Outcome, error) {
	u, err := builders.Service(in.Plan)
	if err != nil {
		return contract.Outcome{}, err
	}
	c, err := a.open(ctx, in.Plan.Shoot)
	if err != nil {
		return contract.Outcome{}, err
	}
	return present("Service", in.Plan.Namespace, u.GetName()), c.ensure(ctx, u)
}

// WaitServiceAddress waits for the load balancer's host name.
func (a *Activities) WaitServiceAddress(ctx context.Context, in contract.DatabaseInput) (contract.ServiceAddress, error) {
	c, err := a.open(ctx, in.Plan.Shoot)
	if err != nil {
		return contract.ServiceAddress{}, err
	}
	woken, stop := c.events(ctx, &corev1.ServiceList{}, client.InNamespace(in.Plan.Namespace))
	defer stop()
	out := contract.ServiceAddress{Port: in.Plan.Port}
	err = wait.For(ctx, in.Plan.Ref, a.poll(), woken, func(ctx context.Context) (bool, string, error) {
		s := &corev1.Service{}
		exists, err := c.find(ctx, s, in.Plan.Namespace, builders.ServiceName)
		if err != nil {
			return false, "", err
		}
		name := "service " + in.Plan.Namespace + "/" + builders.ServiceName
		if !exists {
			return false, "", faults.New(faults.Gone, "NotFound", name+" in shoot "+in.Plan.Shoot.String(), "it does not exist any more").
				WithHint(faults.OwnerOperator, "find out who deleted it, then retry the step that makes it")
		}
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if ingress.Hostname != "" {
				out.Hostname = ingress.Hostname
				return true, "", nil
			}
		}
		return false, name + ": waiting until its load balancer has a host name", nil
	})
	return out, err
}

// DeleteService deletes the Service and waits until it is gone: its finalizer
// stands for the load balancer.
func (a *Activities) DeleteService(ctx context.Context, in contract.DatabaseInput) (contract.None, error) {
	c, err := a.openToDelete(ctx, in.Plan.Shoot)
	if err != nil || c == nil {
		return contract.None{}, err
	}
	woken, stop := c.events(ctx, &corev1.ServiceList{}, client.InNamespace(in.Plan.Namespace))
	defer stop()
	return contract.None{}, wait.For(ctx, in.Plan.Ref, a.poll(), woken, func(ctx context.Context) (bool, string, error) {
		s := &corev1.Service{}
		exists, err := c.find(ctx, s, in.Plan.Namespace, builders.ServiceName)
		if err != nil || !exists || s.Annotations[v1.TagID] != in.Plan.Ref.ID {
			return err == nil, "", err
		}
		return false, "service " + in.Plan.Namespace + "/" + s.Name + ": waiting until its load balancer is gone", c.remove(ctx, s)
	})
}
