package gardenlet

import (
	"context"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

const (
	opCreate    = gardencorev1beta1.LastOperationTypeCreate
	opReconcile = gardencorev1beta1.LastOperationTypeReconcile
	opRemove    = gardencorev1beta1.LastOperationTypeDelete

	processing = gardencorev1beta1.LastOperationStateProcessing
	succeeded  = gardencorev1beta1.LastOperationStateSucceeded
	errored    = gardencorev1beta1.LastOperationStateError
	gaveUp     = gardencorev1beta1.LastOperationStateFailed
)

// testShoot is bound, held by the finalizer, and its generation 2 was observed.
func testShoot(changes ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-core", Name: "n1", UID: "u", Generation: 2, Finalizers: []string{finalizer}},
		Spec:       gardencorev1beta1.ShootSpec{SeedName: new("seed")},
		Status:     gardencorev1beta1.ShootStatus{UID: "u", ObservedGeneration: 2},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func last(kind gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: kind, State: state}
	}
}

func unbound(s *gardencorev1beta1.Shoot)     { s.Spec.SeedName = nil }
func changed(s *gardencorev1beta1.Shoot)     { s.Generation++ }
func neverRan(s *gardencorev1beta1.Shoot)    { s.Status = gardencorev1beta1.ShootStatus{} }
func unheld(s *gardencorev1beta1.Shoot)      { s.Finalizers = nil }
func asleep(s *gardencorev1beta1.Shoot)      { s.Status.IsHibernated = true }
func deleting(s *gardencorev1beta1.Shoot)    { s.DeletionTimestamp = new(metav1.Now()) }
func wantsAsleep(s *gardencorev1beta1.Shoot) { hibernate(s, true) }
func wantsAwake(s *gardencorev1beta1.Shoot)  { hibernate(s, false) }

func hibernate(s *gardencorev1beta1.Shoot, enabled bool) {
	s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &enabled}
}

type changes = []func(*gardencorev1beta1.Shoot)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		shoot changes
		want  action
	}{
		"not scheduled":                     {changes{unbound, neverRan}, actBind},
		"scheduled":                         {changes{neverRan}, actOperate},
		"cut off in the middle":             {changes{last(opCreate, processing)}, actOperate},
		"error is tried again":              {changes{last(opCreate, errored)}, actOperate},
		"failed waits":                      {changes{last(opCreate, gaveUp)}, actCare},
		"failed and retried":                {changes{last(opCreate, gaveUp), changed}, actOperate},
		"succeeded":                         {changes{last(opReconcile, succeeded)}, actCare},
		"succeeded and changed":             {changes{last(opReconcile, succeeded), changed}, actOperate},
		"deleted before anything ran":       {changes{neverRan, deleting}, actFinalize},
		"deleted before anything ran, free": {changes{neverRan, deleting, unheld}, actNothing},
		"deletion begins":                   {changes{last(opCreate, succeeded), deleting, changed}, actOperate},
		"deletion of a failed creation":     {changes{last(opCreate, gaveUp), deleting}, actOperate},
		"deletion failed":                   {changes{last(opRemove, gaveUp), deleting}, actNothing},
		"deletion failed and retried":       {changes{last(opRemove, gaveUp), deleting, changed}, actOperate},
		"deletion in error":                 {changes{last(opRemove, errored), deleting}, actOperate},
		"deletion succeeded":                {changes{last(opRemove, succeeded), deleting}, actFinalize},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(testShoot(tc.shoot...)); got != tc.want {
				t.Errorf("decide = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOperation(t *testing.T) {
	for name, tc := range map[string]struct {
		shoot changes
		kind  gardencorev1beta1.LastOperationType
		phase string
	}{
		"first":                        {changes{neverRan}, opCreate, PhaseCreate},
		"creation again":               {changes{last(opCreate, gaveUp)}, opCreate, PhaseCreate},
		"creation again, to be asleep": {changes{last(opCreate, errored), wantsAsleep}, opCreate, PhaseCreate},
		"after the creation":           {changes{last(opCreate, succeeded)}, opReconcile, PhaseReconcile},
		"goes to sleep":                {changes{last(opCreate, succeeded), wantsAsleep}, opReconcile, PhaseHibernate},
		"failed to go to sleep":        {changes{last(opReconcile, gaveUp), wantsAsleep}, opReconcile, PhaseHibernate},
		"sleeps on":                    {changes{last(opReconcile, succeeded), wantsAsleep, asleep}, opReconcile, PhaseReconcile},
		"wakes up":                     {changes{last(opReconcile, succeeded), wantsAwake, asleep}, opReconcile, PhaseWake},
		"wakes up, setting removed":    {changes{last(opReconcile, errored), asleep}, opReconcile, PhaseWake},
		"deleted asleep":               {changes{last(opReconcile, succeeded), wantsAsleep, asleep, deleting}, opRemove, PhaseDelete},
	} {
		t.Run(name, func(t *testing.T) {
			s := testShoot(tc.shoot...)
			if kind, phase := operationType(s), phaseOf(s); kind != tc.kind || phase != tc.phase {
				t.Errorf("%s %s, want %s %s", kind, phase, tc.kind, tc.phase)
			}
		})
	}
}

// The operations' own status writes must not wake the next attempt.
func TestWantedEvents(t *testing.T) {
	base := testShoot(last(opCreate, errored))
	for name, tc := range map[string]struct {
		next *gardencorev1beta1.Shoot
		want bool
	}{
		"status":   {testShoot(last(opCreate, processing)), false},
		"spec":     {testShoot(last(opCreate, errored), changed), true},
		"deletion": {testShoot(last(opCreate, errored), deleting), true},
	} {
		if got := wanted().Update(event.UpdateEvent{ObjectOld: base, ObjectNew: tc.next}); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestPauseGrowsUntilSuccess(t *testing.T) {
	r := &reconciler{attempts: map[string]int{}}
	for i, want := range []time.Duration{2, 4, 8, 16, 16, 16} {
		if got := r.pause("garden-core/n1"); got != want*time.Second {
			t.Errorf("pause %d is %s, want %d s", i, got, want)
		}
	}
	r.succeeded("garden-core/n1")
	if got := r.pause("garden-core/n1"); got != 2*time.Second {
		t.Errorf("after a success the pause is %s", got)
	}
}

type fixedFault struct {
	phase string
	fault Fault
}

func (f fixedFault) Shoot(_, _, phase string) (Fault, bool) { return f.fault, phase == f.phase }

// Whatever progress a fault asks for, exactly one step of its phase meets it.
func TestEveryFaultStrikesOnce(t *testing.T) {
	for _, phase := range []string{PhaseCreate, PhaseReconcile, PhaseHibernate, PhaseWake, PhaseDelete} {
		steps := stepsOf(phase)
		for progress := range 100 {
			faults := fixedFault{phase, Fault{Kind: FaultError, Progress: progress}}
			op := &operation{reconciler: &reconciler{opts: Options{Faults: faults}}, shoot: testShoot(), phase: phase}
			struck := 0
			for i, s := range steps {
				next := int32(100)
				if i+1 < len(steps) {
					next = steps[i+1].progress
				}
				if err := op.meetFaults(context.Background(), s, next, func(int32) error { return nil }); err != nil {
					struck++
				}
			}
			if struck != 1 {
				t.Errorf("%s at %d %%: %d steps failed, want 1", phase, progress, struck)
			}
		}
	}
}
