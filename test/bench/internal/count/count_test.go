package count

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequest(t *testing.T) {
	for target, want := range map[string]string{
		"GET /apis/cloud.pingcap.com/v1/namespaces/infra/networks/n1":           "get networks",
		"GET /apis/cloud.pingcap.com/v1/namespaces/infra/networks":              "list networks",
		"GET /apis/cloud.pingcap.com/v1/networks?watch=true":                    "watch networks",
		"PATCH /apis/cloud.pingcap.com/v1/namespaces/infra/networks/n1/status":  "patch networks/status",
		"POST /api/v1/namespaces/infra/events":                                  "post events",
		"GET /api/v1/namespaces/infra":                                          "get namespaces",
		"GET /apis":                                                             "get discovery",
		"GET /apis/cloud.pingcap.com/v1":                                        "get discovery",
		"PUT /apis/coordination.k8s.io/v1/namespaces/infra/leases/infra-bridge": "put leases",
	} {
		method, path := split(target)
		require.Equal(t, want, Request(httptest.NewRequest(method, path, nil)), target)
	}
}

func split(s string) (method, path string) {
	for i := range s {
		if s[i] == ' ' {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func TestHandlerCountsRequestsByOperation(t *testing.T) {
	var c Counter
	h := c.Handler().WithTags(map[string]string{"operation": "RespondWorkflowTaskCompleted"})
	h.Counter("temporal_request").Inc(2)
	h.Timer("temporal_workflow_task_execution_latency").Record(1)
	require.Equal(t, map[string]int64{"temporal_request RespondWorkflowTaskCompleted": 2, "temporal_workflow_task_execution_latency": 1}, c.Values())
}
