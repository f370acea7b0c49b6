package wait

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// beatEvery must stay well under the heartbeat timeout of operation.Do (15 s).
const beatEvery = 3 * time.Second

// pulse is the heartbeat of an activity that waits.
type pulse struct {
	mu   sync.Mutex
	last []any // what is heartbeated: a sentence, or nothing yet
}

type pulseKey struct{}

// Beat heartbeats for the activity of ctx at an interval, whatever the activity
// does meanwhile, with what it has said last (see Say), until rest is called.
// The SDK sends only as many as its throttle lets through, and ends ctx when
// the activity is cancelled or its attempt is lost. Within another Beat, and
// outside of an activity, it does nothing.
func Beat(ctx context.Context, every time.Duration) (_ context.Context, rest func()) {
	if _, beating := ctx.Value(pulseKey{}).(*pulse); beating || !activity.IsActivity(ctx) {
		return ctx, func() {}
	}
	p := &pulse{}
	ctx = context.WithValue(ctx, pulseKey{}, p)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ctx.Done():
				return
			case <-t.C:
				p.beat(ctx)
			}
		}
	}()
	return ctx, func() {
		close(quit)
		<-ended
	}
}

// Say heartbeats the sentence at once, and with each beat from then on.
func Say(ctx context.Context, sentence string) {
	p, ok := ctx.Value(pulseKey{}).(*pulse)
	if !ok {
		return
	}
	p.mu.Lock()
	p.last = []any{sentence}
	p.mu.Unlock()
	p.beat(ctx)
}

func (p *pulse) beat(ctx context.Context) {
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	activity.RecordHeartbeat(ctx, last...)
}
