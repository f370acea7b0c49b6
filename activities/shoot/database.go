package shoot

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// EnsureDatabase applies the TidbCluster: its spec only, since the kind has no
// status subresource and a whole update would overwrite the operator's status.
func (a *Activities) EnsureDatabase(ctx context.Context, in contract.DatabaseInput) (contract.Outcome, error) {
	config, err := a.Documents.ClusterConfig(ctx, in.ConfigHash)
	if err != nil {
		return contract.Outcome{}, err
	}
	u, err := builders.TidbCluster(in.Plan, config)
	if err != nil {
		return contract.Outcome{}, err
	}
	c, err := a.open(ctx, in.Plan.Shoot)
	if err != nil {
		return contract.Outcome{}, err
	}
	return present("TidbCluster", in.Plan.Namespace, in.Plan.Name), c.ensure(ctx, u)
}

// WaitDatabaseReady waits until the database has looked ready for a while.
func (a *Activities) WaitDatabaseReady(ctx context.Context, in contract.DatabaseInput) (contract.DatabaseStatus, error) {
	config, err := a.Documents.ClusterConfig(ctx, in.ConfigHash)
	if err != nil {
		return contract.DatabaseStatus{}, err
	}
	c, err := a.open(ctx, in.Plan.Shoot)
	if err != nil {
		return contract.DatabaseStatus{}, err
	}
	woken, stop := c.events(ctx, pingcapList("TidbCluster"), client.InNamespace(in.Plan.Namespace))
	defer stop()
	var good steady
	var out contract.DatabaseStatus
	name := "database " + in.Plan.Namespace + "/" + in.Plan.Name
	err = wait.For(ctx, in.Plan.Ref, a.poll(), woken, func(ctx context.Context) (bool, string, error) {
		tc := pingcap("TidbCluster")
		exists, err := c.find(ctx, tc, in.Plan.Namespace, in.Plan.Name)
		if err != nil {
			return false, "", err
		}
		if !exists {
			return false, "", faults.New(faults.Gone, "NotFound", name+" in shoot "+in.Plan.Shoot.String(), "its TidbCluster does not exist any more").
				WithHint(faults.OwnerOperator, "find out who deleted it, then retry the step that makes it")
		}
		lack := judgeDatabase(tc, in.Plan, config)
		// Half a poll of slack: ticks are not exact.
		if good.look(lack == "", time.Now(), a.poll()/2) {
			out = databaseStatus(tc, in.Plan)
			return true, "", nil
		}
		if lack == "" {
			lack = "ready, looking once more"
		}
		return false, name + ": " + lack, nil
	})
	return out, err
}

// EnsureRootPassword sets the root password once, with a TidbInitializer. One
// that failed before this attempt is replaced.
func (a *Activities) EnsureRootPassword(ctx context.Context, in contract.DatabaseInput) (contract.None, error) {
	if in.Plan.RootPasswordSecret == "" {
		return contract.None{}, nil
	}
	config, err := a.Documents.ClusterConfig(ctx, in.ConfigHash)
	if err != nil {
		return contract.None{}, err
	}
	want, err := builders.TidbInitializer(in.Plan, config)
	if err != nil {
		return contract.None{}, err
	}
	c, err := a.open(ctx, in.Plan.Shoot)
	if err != nil {
		return contract.None{}, err
	}
	woken, stop := c.events(ctx, pingcapList("TidbInitializer"), client.InNamespace(in.Plan.Namespace))
	defer stop()
	first := true
	return contract.None{}, wait.For(ctx, in.Plan.Ref, a.poll(), woken, func(ctx context.Context) (bool, string, error) {
		done, sentence, err := c.initialize(ctx, want, first)
		first = false
		return done, sentence, err
	})
}

// initialize looks at the initializer, and makes it when it is missing.
func (c *cluster) initialize(ctx context.Context, want *unstructured.Unstructured, first bool) (done bool, sentence string, err error) {
	have := pingcap("TidbInitializer")
	exists, err := c.find(ctx, have, want.GetNamespace(), want.GetName())
	if err != nil {
		return false, "", err
	}
	name := describe(want, want.GetNamespace(), want.GetName())
	if !exists {
		return false, name + ": waiting until it has run", c.ensure(ctx, want)
	}
	phase, _, _ := unstructured.NestedString(have.Object, "status", "phase")
	switch {
	case phase == "Completed":
		return true, "", nil
	case phase == "Failed" && first:
		return false, name + ": failed before, is made again", c.remove(ctx, have, client.PropagationPolicy("Background"))
	case phase == "Failed":
		return false, "", faults.New(faults.Dependency, "InitializerFailed", name+" in shoot "+c.ref.String(), "its Job failed, so root has no password yet").
			WithHint(faults.OwnerOperator, "read the Job's log in the shoot, remove the cause, then retry")
	}
	return false, fmt.Sprintf("%s: waiting until it has run (phase %q)", name, phase), nil
}

// DeleteDatabase frees the database and its volumes, in the operator's order:
// volumes to Delete, TidbCluster, Pods, claims, volumes. Every look does what
// can be done then, so it goes on wherever an earlier worker stopped.
func (a *Activities) DeleteDatabase(ctx context.Context, in contract.DatabaseInput) (contract.None, error) {
	c, err := a.openToDelete(ctx, in.Plan.Shoot)
	if err != nil || c == nil {
		return contract.None{}, err
	}
	woken, stop := c.events(ctx, &corev1.PodList{}, client.InNamespace(in.Plan.Namespace))
	defer stop()
	return contract.None{}, wait.For(ctx, in.Plan.Ref, a.poll(), woken, func(ctx context.Context) (bool, string, error) {
		return c.freeDatabase(ctx, in.Plan)
	})
}

func (c *cluster) freeDatabase(ctx context.Context, plan contract.ClusterPlan) (done bool, sentence string, err error) {
	name := "database " + plan.Namespace + "/" + plan.Name
	volumes, err := c.releaseVolumes(ctx, claimedFrom(plan.Namespace))
	if err != nil {
		return false, "", err
	}
	for _, kind := range []string{"TidbInitializer", "TidbCluster"} {
		tc := pingcap(kind)
		object := plan.Name
		if kind == "TidbInitializer" {
			object = builders.InitializerName
		}
		exists, err := c.find(ctx, tc, plan.Namespace, object)
		if err != nil {
			return false, "", err
		}
		if exists && tc.GetAnnotations()[v1.TagID] == plan.Ref.ID {
			return false, name + ": waiting until its " + kind + " is gone", c.remove(ctx, tc, client.PropagationPolicy("Background"))
		}
	}
	instance := []client.ListOption{client.InNamespace(plan.Namespace), client.MatchingLabels{"app.kubernetes.io/instance": plan.Name, "app.kubernetes.io/managed-by": "tidb-operator"}}
	var pods corev1.PodList
	if err := c.list(ctx, &pods, instance...); err != nil {
		return false, "", err
	}
	if len(pods.Items) > 0 {
		return false, name + ": waiting until its Pods are gone: " + wait.Missing(podNames(pods.Items), 5), nil
	}
	// The operator put the volumes back to Retain for as long as it managed the
	// TidbCluster; releaseVolumes has just corrected that for the last time.
	claims, err := c.removeClaims(ctx, client.InNamespace(plan.Namespace))
	if err != nil {
		return false, "", err
	}
	left := slices.Concat(claims, volumes)
	return len(left) == 0, name + ": waiting until these are gone: " + wait.Missing(left, 5), nil
}

func podNames(pods []corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}
