package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/process"
)

// outage makes one system unreachable for a while.
type outage struct {
	begin func() error
	end   func(ctx context.Context) error

	mu     sync.Mutex
	active bool
	timer  *time.Timer
}

// set begins an outage that ends by itself after d, moves the end of a running
// one, or, with d 0, ends it. failed gets the error of an end that comes by
// itself.
func (o *outage) set(ctx context.Context, d time.Duration, failed func(error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	if d <= 0 {
		return o.finish(ctx)
	}
	if !o.active {
		if err := o.begin(); err != nil {
			return err
		}
		o.active = true
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.timer != timer { // another call came first
			return
		}
		if err := o.finish(context.Background()); err != nil {
			failed(err)
		}
	})
	o.timer = timer
	return nil
}

func (o *outage) finish(ctx context.Context) error {
	if !o.active {
		return nil
	}
	if err := o.end(ctx); err != nil {
		return err
	}
	o.active = false
	return nil
}

// outages by control.System constant. A system goes away as it does in life:
// the API server closes its socket, garden and Temporal are killed.
func (s *Stack) newOutages() map[string]*outage {
	restart := func(name string) *outage {
		return &outage{
			begin: func() error { s.child(name).Kill(); return nil },
			end:   func(ctx context.Context) error { return s.child(name).Start(ctx) },
		}
	}
	return map[string]*outage{
		control.SystemGarden:   restart(processGarden),
		control.SystemTemporal: restart(processTemporal),
		control.SystemAPIServer: {
			begin: s.cluster.StopAPIServer,
			end:   s.cluster.StartAPIServer,
		},
	}
}

// Outage implements control.Supervisor.
func (s *Stack) Outage(ctx context.Context, system string, d time.Duration) error {
	if aws := (lateCloud{s}).cloud(); aws != nil && system == control.SystemAWS {
		aws.Outage(d)
		s.screen.stamp("outage of %s: %s", system, outageLength(d))
		return nil
	}
	s.mu.Lock()
	o, ok := s.outages[system]
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("system %q: %w; there are apiserver, garden, temporal and aws once the stack is up", system, control.ErrNotFound)
	}
	err := o.set(ctx, d, func(err error) { s.screen.stamp("the outage of %s does not end: %v", system, err) })
	if err == nil {
		s.screen.stamp("outage of %s: %s", system, outageLength(d))
		s.saveState()
	}
	return err
}

func outageLength(d time.Duration) string {
	if d <= 0 {
		return "over"
	}
	return d.String()
}

// Processes implements control.Supervisor.
func (s *Stack) Processes() []control.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []control.Process
	for _, name := range s.order {
		list = append(list, s.children[name].Info())
	}
	if s.aws != nil {
		list = append(list, control.Process{Name: processMoto, PID: s.aws.Moto.PID(), Running: s.motoRuns(), Log: s.logFile(processMoto)})
	}
	return list
}

func (s *Stack) motoRuns() bool {
	select {
	case <-s.aws.Moto.Done():
		return false
	default:
		return true
	}
}

// Do implements control.Supervisor.
func (s *Stack) Do(ctx context.Context, name string, action control.Action) error {
	c := s.child(name)
	if c == nil {
		if name == processMoto {
			return fmt.Errorf("%s cannot be restarted: its account would come back empty; use the outage of aws", name)
		}
		return fmt.Errorf("process %q: %w", name, control.ErrNotFound)
	}
	defer s.saveState()
	s.screen.stamp("%s: %s", name, action)
	switch action {
	case control.ActionKill:
		c.Kill()
	case control.ActionStop:
		c.Stop()
	case control.ActionStart:
		return c.Start(ctx)
	case control.ActionWipe:
		return s.wipe(ctx, c)
	default:
		return fmt.Errorf("action %q is unknown", action)
	}
	return nil
}

// wipe has a process lose all that it has stored, as when a database is lost.
func (s *Stack) wipe(ctx context.Context, c *process.Child) error {
	if c.Name() != processTemporal {
		return fmt.Errorf("%s cannot be wiped: only %s can", c.Name(), processTemporal)
	}
	c.Kill()
	if err := os.RemoveAll(filepath.Dir(s.temporalFile())); err != nil {
		return err
	}
	return c.Start(ctx)
}
