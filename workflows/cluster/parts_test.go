package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/cluster"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// What somebody has left out does not exist, and EndpointsReady does not say so.
func TestEndpointsReadySaysWhatExists(t *testing.T) {
	for name, c := range map[string]struct {
		fails  string // an activity, until its step is skipped
		plan   func(*contract.ClusterPlan)
		status metav1.ConditionStatus
		says   string
	}{
		"all":                        {status: metav1.ConditionTrue, says: "load balancer, endpoint service, DNS records: there"},
		"endpoint service left out":  {fails: contract.AWS.EnsureEndpointService.Name, status: metav1.ConditionFalse, says: "left out by hand: endpoint service (step EnsureEndpointService)"},
		"DNS records left out":       {fails: contract.AWS.EnsureRecords.Name, status: metav1.ConditionFalse, says: "left out by hand: DNS records (step EnsureDNSRecords)"},
		"a Network without DNS zone": {plan: func(p *contract.ClusterPlan) { p.DNSZoneID = "" }, status: metav1.ConditionTrue, says: "not wanted: DNS records"},
	} {
		t.Run(name, func(t *testing.T) {
			e := workflowtest.NewEnv(t, cluster.Kind())
			if c.plan != nil {
				c.plan(&e.Cluster)
			}
			if c.fails != "" {
				e.Before = func(name string, _ int) error {
					if name == c.fails {
						return faults.New(faults.Quota, "TooMany", "the thing", "no more of them")
					}
					return nil
				}
				e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbSkip) }, time.Minute)
			}
			e.Rest(time.Hour)
			e.RunObject()
			require.Equal(t, v1.OperationSucceeded, e.Current().Operation.State)
			got := e.Condition(v1.ConditionEndpointsReady)
			require.Equal(t, c.status, got.Status)
			require.Contains(t, got.Message, c.says)
		})
	}
}
