package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// Kinds whose way to Ready is shown, of the group of our CRDs.
const ourGroup = "cloud.pingcap.com"

var followedKinds = map[string]bool{"Network": true, "Cluster": true}

// followed picks the objects that the screen follows.
func followed(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var picked []*unstructured.Unstructured
	for _, object := range objects {
		if object.GroupVersionKind().Group == ourGroup && followedKinds[object.GetKind()] {
			picked = append(picked, object)
		}
	}
	return picked
}

// follow shows a progress line for each object until all are Ready for their
// current generation.
func follow(ctx context.Context, a *applier, objects []*unstructured.Unstructured, screen *board) error {
	width := 0
	for _, object := range objects {
		width = max(width, len(title(object)))
	}
	var wg sync.WaitGroup
	errs := make([]error, len(objects))
	for i, object := range objects {
		wg.Go(func() { errs[i] = followOne(ctx, a, object, width, screen) })
	}
	wg.Wait()
	screen.freeze()
	return errors.Join(errs...)
}

func followOne(ctx context.Context, a *applier, object *unstructured.Unstructured, width int, screen *board) error {
	last := object
	for {
		ready, seen, err := followWatch(ctx, a, object, func(now *unstructured.Unstructured) {
			head, detail := progressOf(now)
			screen.progress(title(object), fmt.Sprintf("%-*s  %s", width, title(object), head), detail)
		})
		if ready {
			return nil
		}
		if seen != nil {
			last = seen
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not Ready: %s", title(object), explain(last))
		case <-time.After(200 * time.Millisecond):
			// The watch ended, as watches do, or the API server is away: go on.
			_ = err
		}
	}
}

// followWatch watches one object until it is Ready or the watch ends.
func followWatch(ctx context.Context, a *applier, object *unstructured.Unstructured, show func(*unstructured.Unstructured)) (ready bool, last *unstructured.Unstructured, err error) {
	client, err := a.resource(object)
	if err != nil {
		return false, nil, err
	}
	w, err := client.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", object.GetName()).String(),
	})
	if err != nil {
		return false, nil, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		now, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return false, last, nil
		}
		last = now
		show(now)
		if isReady(now) {
			return true, now, nil
		}
	}
	return false, last, nil
}

// isReady: Ready=True for the current generation.
func isReady(object *unstructured.Unstructured) bool {
	status, _ := condition(object, "Ready")
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return status == string(metav1.ConditionTrue) && observed == object.GetGeneration()
}

func title(object *unstructured.Unstructured) string {
	return strings.ToLower(object.GetKind()) + "/" + object.GetName()
}

// progressOf is where the object is (phase, percent, step), and what it waits
// for there.
func progressOf(object *unstructured.Unstructured) (head, detail string) {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(object.Object, append([]string{"status"}, path...)...)
		return s
	}
	phase := text("phase")
	if phase == "" {
		return "not seen by a worker yet", ""
	}
	if isReady(object) {
		return fmt.Sprintf("%-9s 100 %%  Ready", phase), ""
	}
	percent, _, _ := unstructured.NestedInt64(object.Object, "status", "operation", "progress")
	head = strings.TrimRight(fmt.Sprintf("%-9s %3d %%  %s", phase, percent, text("operation", "step")), " ")
	if stalled, message := condition(object, "Stalled"); stalled == string(metav1.ConditionTrue) {
		head += "  STALLED: " + message
	}
	return head, text("operation", "waitingFor")
}

// explain says why an object is not Ready, for the end of a run that failed.
func explain(object *unstructured.Unstructured) string {
	head, detail := progressOf(object)
	line := progressText{head: head, detail: detail}.String()
	if _, message := condition(object, "Ready"); message != "" {
		line += " (" + message + ")"
	}
	return line
}
