package gardenlet

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCodesOf(t *testing.T) {
	for name, tc := range map[string]struct {
		err       error
		codes     []gardencorev1beta1.ErrorCode
		retryable bool
	}{
		"plain":        {errors.New("connection refused"), nil, true},
		"quota":        {fmt.Errorf("task: %w", &InfraError{Code: "ERR_INFRA_QUOTA_EXCEEDED"}), []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraQuotaExceeded}, false},
		"dependencies": {&InfraError{Code: "ERR_INFRA_DEPENDENCIES"}, []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraDependencies}, false},
		"rate limits":  {&InfraError{Code: "ERR_INFRA_RATE_LIMITS_EXCEEDED"}, []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraRateLimitsExceeded}, false},
		"depleted":     {&InfraError{Code: "ERR_INFRA_RESOURCES_DEPLETED"}, []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraResourcesDepleted}, true},
		"cleanup":      {&InfraError{Code: "ERR_CLEANUP_CLUSTER_RESOURCES"}, []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorCleanupClusterResources}, true},
		"no code":      {&InfraError{Message: "odd"}, nil, true},
		"fault": {fmt.Errorf("task: %w", newFaultError(Fault{Codes: []string{"ERR_INFRA_UNAUTHORIZED", "ERR_INFRA_RESOURCES_DEPLETED"}}, "step")),
			[]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthorized, gardencorev1beta1.ErrorInfraResourcesDepleted}, false},
	} {
		t.Run(name, func(t *testing.T) {
			codes := codesOf(tc.err)
			if !slices.Equal(codes, tc.codes) {
				t.Errorf("codes %v, want %v", codes, tc.codes)
			}
			if final := v1beta1helper.HasNonRetryableErrorCode(gardencorev1beta1.LastError{Codes: codes}); final == tc.retryable {
				t.Errorf("gives up: %t", final)
			}
		})
	}
}

func TestStatusOverAnOperation(t *testing.T) {
	shoot := testShoot(neverRan)
	shoot.Spec.Networking = &gardencorev1beta1.Networking{Nodes: new("10.250.0.0/16"), Pods: new("100.64.0.0/11")}
	r := &reconciler{opts: Options{ClusterIdentity: "devstack"}}
	op := newOperation(r, shoot, "shoot--core--n1")
	status := &shoot.Status

	op.begin(status)
	if o := status.LastOperation; o.Type != opCreate || o.State != processing || o.Progress != 0 {
		t.Errorf("begins as %+v", o)
	}
	if status.UID != shoot.UID || status.TechnicalID != "shoot--core--n1" || status.ObservedGeneration != 2 ||
		*status.SeedName != "seed" || *status.ClusterIdentity != "shoot--core--n1-u-devstack" || status.RetryCycleStartTime == nil {
		t.Errorf("status %+v", status)
	}
	if len(status.Conditions) != 5 || v1beta1helper.GetCondition(status.Constraints, gardencorev1beta1.ShootHibernationPossible).Status != gardencorev1beta1.ConditionTrue {
		t.Errorf("conditions %+v, constraints %+v", status.Conditions, status.Constraints)
	}
	op.progress(status, 42, "Waiting")
	if o := status.LastOperation; o.Progress != 42 || o.Description != "Waiting" || o.State != processing {
		t.Errorf("goes on as %+v", o)
	}
	status.LastErrors = []gardencorev1beta1.LastError{{Description: "old"}}
	op.succeed(status)
	if o := status.LastOperation; o.Type != opCreate || o.State != succeeded || o.Progress != 100 || len(status.LastErrors) != 0 || status.RetryCycleStartTime != nil {
		t.Errorf("ends as %+v, errors %v", o, status.LastErrors)
	}
	if n := status.Networking; n == nil || !slices.Equal(n.Nodes, []string{"10.250.0.0/16"}) || len(n.Services) != 0 {
		t.Errorf("networking %+v", n)
	}
	for _, c := range status.Conditions {
		if c.Status != gardencorev1beta1.ConditionProgressing {
			t.Errorf("%s is %s before anybody has looked", c.Type, c.Status)
		}
	}
}

// status.hibernated tells what has been reached, not what is wanted.
func TestHibernatedFollowsSuccess(t *testing.T) {
	shoot := testShoot(last(opCreate, succeeded), wantsAsleep)
	op := newOperation(&reconciler{}, shoot, "shoot--core--n1")
	op.begin(&shoot.Status)
	if shoot.Status.IsHibernated {
		t.Error("hibernated before the operation has succeeded")
	}
	op.succeed(&shoot.Status)
	if !shoot.Status.IsHibernated {
		t.Error("not hibernated afterwards")
	}
}

// A retry of the same generation belongs to the cycle that has begun.
func TestRetryCycle(t *testing.T) {
	started := metav1.NewTime(time.Now().Add(-time.Hour))
	for name, tc := range map[string]struct {
		shoot changes
		kept  bool
	}{
		"again":         {changes{last(opCreate, errored)}, true},
		"changed":       {changes{last(opCreate, errored), changed}, false},
		"to be gone":    {changes{last(opCreate, errored), deleting}, false},
		"gone, again":   {changes{last(opRemove, errored), deleting}, true},
		"after a while": {changes{last(opReconcile, errored), func(s *gardencorev1beta1.Shoot) { s.Status.RetryCycleStartTime = nil }}, false},
	} {
		set := func(s *gardencorev1beta1.Shoot) { s.Status.RetryCycleStartTime = &started }
		shoot := testShoot(append(changes{set}, tc.shoot...)...)
		newOperation(&reconciler{}, shoot, "shoot--core--n1").begin(&shoot.Status)
		if kept := shoot.Status.RetryCycleStartTime.Equal(&started); kept != tc.kept {
			t.Errorf("%s: the cycle is kept: %t, want %t", name, kept, tc.kept)
		}
	}
}
