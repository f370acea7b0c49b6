package network_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// CloudResourcesReady is told of every Network, also of one without a zone, and
// of one whose zone somebody has left out.
func TestCloudResourcesReadySaysWhatExists(t *testing.T) {
	for name, c := range map[string]struct {
		zone   string
		fails  bool
		status metav1.ConditionStatus
		says   string
	}{
		"all":           {zone: "x.example.com", status: metav1.ConditionTrue, says: "bucket, OIDC provider, DNS zone: there"},
		"DNS None":      {status: metav1.ConditionTrue, says: "not wanted: DNS zone"},
		"zone left out": {zone: "x.example.com", fails: true, status: metav1.ConditionFalse, says: "left out by hand: DNS zone (step EnsureDNSZone)"},
	} {
		t.Run(name, func(t *testing.T) {
			e := workflowtest.NewEnv(t, network.Kind())
			e.Network.DNSZoneName = c.zone
			if c.fails {
				e.Before = func(name string, _ int) error {
					if name == contract.AWS.EnsureZone.Name {
						return faults.New(faults.Quota, "TooMany", "the zone", "no more of them")
					}
					return nil
				}
				e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbSkip) }, time.Minute)
			}
			e.Rest(time.Hour)
			e.RunObject()
			require.Equal(t, v1.OperationSucceeded, e.Current().Operation.State)
			got := e.Condition(v1.ConditionCloudResourcesReady)
			require.Equal(t, c.status, got.Status)
			require.Contains(t, got.Message, c.says)
		})
	}
}
