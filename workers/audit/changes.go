package audit

import (
	"fmt"
	"slices"
	"sync"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// maxChanged bounds a record: a Shoot may hold thousands of volumes.
const maxChanged = 500

// changes collects what an audited activity changes, for its outcome.
type changes struct {
	mu   sync.Mutex
	all  []lifecycle.External
	more int
}

// Change implements audited.Recorder. The intent of the activity stands
// already.
func (c *changes) Change(do func() error, resources []v1.Resource) error {
	done := false
	defer func() { // also when it panics
		for _, r := range resources {
			if !done {
				r.State = ""
			}
			c.add(*external(r))
		}
	}()
	err := do()
	done = err == nil
	return err
}

// add adds a resource; a later change of the same one replaces it.
func (c *changes) add(e lifecycle.External) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := func(x lifecycle.External) bool { return x.Provider == e.Provider && x.Type == e.Type && x.ID == e.ID }
	if at := slices.IndexFunc(c.all, same); at >= 0 {
		c.all[at] = e
		return
	}
	if len(c.all) == maxChanged {
		c.more++
		return
	}
	c.all = append(c.all, e)
}

func (c *changes) into(r *Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Changed, r.ChangedMore = slices.Clone(c.all), c.more
}

// apart records the changes of an activity that is not audited as a whole: each
// has an intent and an outcome of its own.
type apart struct {
	auditor *auditor
	base    Record

	mu sync.Mutex
	n  int
}

// Change implements audited.Recorder.
func (a *apart) Change(do func() error, resources []v1.Resource) error {
	a.mu.Lock()
	a.n++
	r := a.base
	r.Call = fmt.Sprintf("%s/%d", r.Call, a.n)
	a.mu.Unlock()
	for _, one := range resources { // what is about to change is known already
		one.State = ""
		r.Changed = append(r.Changed, *external(one))
	}
	return a.auditor.around(&r, func(c *changes) error { return c.Change(do, resources) })
}

func external(r v1.Resource) *lifecycle.External {
	return &lifecycle.External{Provider: r.Provider, Type: r.Type, ID: r.ID, State: string(r.State)}
}
