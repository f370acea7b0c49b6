package shoot

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// forward wakes once for any number of events that come before it is read,
// until the watch ends.
func forward(ctx context.Context, in <-chan watch.Event, woken chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-in:
			if !ok {
				return
			}
			select {
			case woken <- struct{}{}:
			default:
			}
		}
	}
}
