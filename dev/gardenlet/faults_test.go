package gardenlet

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// switchable is a fault that can be switched off, and tells when it was asked for.
type switchable struct {
	mu    sync.Mutex
	fault Fault
	on    bool
	asked chan struct{}
}

func (s *switchable) Shoot(string, string, string) (Fault, bool) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault, s.on
}

func (s *switchable) off() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = false
}

// meet has a step meet a fault, in the background.
func meet(t *testing.T, faults Faults) (c client.Client, reported *int32, done <-chan error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := gardencorev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	shoot := testShoot()
	c = fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot.DeepCopy()).Build()
	r := &reconciler{opts: Options{Faults: faults, Pace: Pace{Factor: 0.5}}, client: c}
	op := &operation{reconciler: r, shoot: shoot, phase: PhaseCreate, generation: shoot.Generation}
	reported, ended := new(int32), make(chan error, 1)
	go func() {
		ended <- op.meetFaults(t.Context(), step{description: "Waiting", progress: 34}, 42, func(progress int32) error {
			*reported = progress
			return nil
		})
	}()
	return c, reported, ended
}

func TestStuckUntilSwitchedOff(t *testing.T) {
	faults := &switchable{fault: Fault{Kind: FaultStuck, Progress: 40}, on: true, asked: make(chan struct{})}
	_, reported, done := meet(t, faults)
	for range 3 { // it keeps asking, and stays
		select {
		case <-faults.asked:
		case err := <-done:
			t.Fatalf("went on: %v", err)
		}
	}
	faults.off()
	// The last question may be on its way.
	for {
		select {
		case <-faults.asked:
			continue
		case err := <-done:
			if err != nil || *reported != 40 {
				t.Errorf("ended with %v at %d %%", err, *reported)
			}
		}
		return
	}
}

func TestStuckUntilTheShootChanges(t *testing.T) {
	faults := &switchable{fault: Fault{Kind: FaultStuck, Progress: 34}, on: true, asked: make(chan struct{})}
	c, _, done := meet(t, faults)
	<-faults.asked
	shoot := &gardencorev1beta1.Shoot{}
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(testShoot()), shoot); err != nil {
		t.Fatal(err)
	}
	shoot.Generation++
	if err := c.Update(context.Background(), shoot); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-faults.asked:
			continue
		case err := <-done:
			if !errors.Is(err, errSuperseded) {
				t.Errorf("ended with %v, want %v", err, errSuperseded)
			}
		}
		return
	}
}

func TestDelayIsScaled(t *testing.T) {
	begin := time.Now()
	_, reported, done := meet(t, fixedFault{PhaseCreate, Fault{Kind: FaultDelay, Progress: 34, Delay: time.Second}})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 500*time.Millisecond || *reported != 34 {
		t.Errorf("took %s at %d %%, want half of the 1 s or a little more", took, *reported)
	}
}

func TestFaultErrorHasAMessage(t *testing.T) {
	for message, want := range map[string]string{
		"quota is used up": `task "Waiting" failed: quota is used up`,
		"":                 `task "Waiting" failed: Waiting: the provider extension reports an error`,
	} {
		_, _, done := meet(t, fixedFault{PhaseCreate, Fault{Kind: FaultError, Progress: 34, Message: message}})
		if err := <-done; err == nil || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}
