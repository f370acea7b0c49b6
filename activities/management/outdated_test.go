package management

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// An operation that somebody reset in Temporal after a later one has begun.
func TestReportOfAnOperationThatALaterOneHasFollowed(t *testing.T) {
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	for name, c := range map[string]struct {
		told, reports v1.OperationStatus
		refused       bool
	}{
		"its own":              {v1.OperationStatus{ID: "network/a/n1/create/1.2", StartedAt: at(200)}, v1.OperationStatus{ID: "network/a/n1/create/1.2", StartedAt: at(200)}, false},
		"the next one's first": {v1.OperationStatus{ID: "network/a/n1/create/1.1", StartedAt: at(100)}, v1.OperationStatus{ID: "network/a/n1/create/1.2", StartedAt: at(200)}, false},
		"a former one's":       {v1.OperationStatus{ID: "network/a/n1/create/1.2", StartedAt: at(200)}, v1.OperationStatus{ID: "network/a/n1/create/1.1", StartedAt: at(100)}, true},
		"of a restored object": {v1.OperationStatus{ID: "network/a/n1/update/7.2", StartedAt: at(100)}, v1.OperationStatus{ID: "network/a/n1/create/1.1", StartedAt: at(200)}, false},
		"the clocks are apart": {v1.OperationStatus{ID: "network/a/n1/create/1.1", StartedAt: at(201)}, v1.OperationStatus{ID: "network/a/n1/create/1.2", StartedAt: at(200)}, false},
		"nothing was told":     {v1.OperationStatus{}, v1.OperationStatus{ID: "network/a/n1/create/1.1", StartedAt: at(100)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := network()
			n.Status.Operation = &c.told
			a, log := activities(t, interceptor.Funcs{}, n)
			_, err := a.ApplyOperationStatus(t.Context(), contract.OperationReport{Ref: networkRef, UID: "uid-1", Operation: c.reports})
			if !c.refused {
				require.NoError(t, err)
				require.Len(t, *log, 1)
				return
			}
			require.True(t, faults.Is(err, faults.Gone), "%v", err)
			require.Equal(t, networkRef.String(), faults.As(err).Resource, "by which the operation knows that it is meant")
			require.Empty(t, *log)
		})
	}
}

// One that was reset in Temporal after its object had gone makes nothing more; a
// deletion's last reports come when the object is gone.
func TestReportOfAnOperationWhoseObjectHasGone(t *testing.T) {
	a, log := activities(t, interceptor.Funcs{}, network())
	for kind, gone := range map[string]bool{"Create": true, "Update": true, "Delete": false} {
		_, err := a.ApplyOperationStatus(t.Context(), contract.OperationReport{Ref: networkRef, UID: "uid-0", Operation: v1.OperationStatus{ID: "x", Type: kind}})
		require.Equal(t, gone, faults.Is(err, faults.Gone), "%s: %v", kind, err)
		if gone {
			require.Equal(t, networkRef.String(), faults.As(err).Resource)
		}
	}
	require.Empty(t, *log)
}
