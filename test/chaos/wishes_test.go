package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
)

// What people do in the middle of a step, besides asking for verbs.
const (
	askDelete = "delete"
	askChange = "change"
)

// asks are all of it.
var asks = []string{temporal.VerbPause, temporal.VerbCancel, temporal.VerbRetry, askDelete, askChange}

// wish is something that people ask for in the middle of a step.
type wish struct {
	step lab.Step
	ask  string
	// door is which way a verb comes: as annotation, else as update.
	annotation bool
}

func (w wish) String() string {
	door := "update"
	if w.annotation {
		door = "annotation"
	}
	if w.ask == askDelete || w.ask == askChange {
		door = "spec"
	}
	return fmt.Sprintf("%s (%s) in step %s", w.ask, door, w.step.Name)
}

// wishes hold what nobody has asked for yet, by operation.
type wishes struct {
	mu   sync.Mutex
	left map[string][]wish
}

func (w *wishes) take(operation string) (wish, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.left[operation]
	if len(all) == 0 {
		return wish{}, false
	}
	w.left[operation] = all[1:]
	return all[0], true
}

func (w *wishes) count(operations ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range operations {
		n += len(w.left[o])
	}
	return n
}

// wishesPerStack is how many wishes one devstack sees.
const wishesPerStack = 150

// split deals the wishes out, the same share of each operation to each.
func (w *wishes) split(most int) []*wishes {
	total := 0
	for _, all := range w.left {
		total += len(all)
	}
	parts := make([]*wishes, (total+most-1)/most)
	for k := range parts {
		parts[k] = &wishes{left: map[string][]wish{}}
		for operation, all := range w.left {
			parts[k].left[operation] = all[k*len(all)/len(parts) : (k+1)*len(all)/len(parts)]
		}
	}
	return parts
}

// allWishes asks for everything at every step of every operation. A step that
// makes no call is over at once: only what takes no answer can be asked in it.
func allWishes(steps map[string][]lab.Step, r *rand.Rand) *wishes {
	out := &wishes{left: map[string][]wish{}}
	for _, operation := range slices.Sorted(keysOf(steps)) {
		if !chosen(operation) {
			continue
		}
		for _, s := range callByCall(steps[operation]) {
			for _, ask := range asks {
				out.left[operation] = append(out.left[operation], wish{step: s, ask: ask, annotation: len(s.Calls) == 0 || r.IntN(2) == 0})
			}
		}
		all := out.left[operation]
		r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		out.left[operation] = sampled(all)
	}
	return out
}

// callByCall takes steps apart: quick steps are told together, so what a trace
// shows as one may be several, each with calls of its own.
func callByCall(steps []lab.Step) (out []lab.Step) {
	for _, s := range steps {
		if len(s.Calls) < 2 {
			out = append(out, s)
			continue
		}
		for _, c := range s.Calls {
			out = append(out, lab.Step{Workflow: s.Workflow, Name: s.Name + ", at " + c.Activity, Calls: []lab.Boundary{c}})
		}
	}
	return out
}
