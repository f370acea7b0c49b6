package provider_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/provider"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// An older version has told that a deletion succeeded although the finalizer is
// there still, since the identity had been taken away. Put back, the deletion
// goes on.
func TestADeletionThatLeftItsFinalizerGoesOn(t *testing.T) {
	for name, force := range map[string]bool{"plain": false, "forced": true} {
		t.Run(name, func(t *testing.T) {
			e := workflowtest.NewEnv(t, provider.Kind())
			e.OnActivity(contract.RemoveFinalizer.Name, mock.Anything, mock.Anything).Return(func(_ context.Context, ref contract.ObjectRef) (contract.None, error) {
				if e.Current().ID == ref.ID {
					e.Change(func(s *contract.ObjectState) { s.Exists = false })
				}
				return contract.None{}, nil
			})
			e.Change(func(s *contract.ObjectState) {
				s.ID, s.Deleting, s.Held, s.Generation, s.ObservedGeneration, s.ForceDelete = "", true, true, 2, 1, force
				s.Operation = &v1.OperationStatus{ID: "provider/infra/x1/delete/2.1", UID: s.UID, Type: "Delete", Generation: 2, State: v1.OperationSucceeded}
			})
			e.RegisterDelayedCallback(func() {
				require.Equal(t, "IdentityMissing", e.Current().Ready.Reason)
				e.Change(func(s *contract.ObjectState) { s.ID = e.Object.ID })
				e.Nudge()
			}, time.Hour)
			e.Rest(24 * time.Hour)
			e.RunObject()
			require.False(t, e.Current().Exists)
		})
	}
}
