// Package invariants asserts what must hold at every moment, whatever crashes:
// the invariants of a control plane that owns things in clouds. A Checker
// watches all custom resources and looks into the AWS emulator now and then;
// every end-to-end and every chaos test runs one.
//
// The numbers in messages are those of the project's list: 1 nothing exists
// twice, 2 nothing exists without an owner, 3 nothing outlives its owner, 4 no
// Shoot goes while a Cluster is on it, 5 Ready is about the current spec and a
// world that has it, and conditions do not contradict each other, 6 phases
// change along their tables, 8 one writer of a Shoot at a time, 10 credentials
// are nowhere to be read, 12 progress does not go backwards. The others are
// about kinds and systems that are not built yet.
package invariants

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// Options of a Checker.
type Options struct {
	Stack *stack.Stack
	// Every is how often the AWS emulator is looked into; 3 s when zero.
	Every time.Duration
	// Marker stands in every credential; no look for secrets when empty.
	Marker string
	// Violated is told of each violation at once; may be nil.
	Violated func(sentence string)
}

// Key names a custom resource.
type Key struct{ Kind, Namespace, Name string }

// String is kind/namespace/name.
func (k Key) String() string { return k.Kind + "/" + k.Namespace + "/" + k.Name }

// KeyOf names an object.
func KeyOf(o client.Object) Key {
	return Key{reflect.Indirect(reflect.ValueOf(o)).Type().Name(), o.GetNamespace(), o.GetName()}
}

// Checker watches.
type Checker struct {
	opts   Options
	cancel context.CancelFunc
	wg     sync.WaitGroup

	listing sync.Mutex // held while the emulator is listed

	mu         sync.Mutex
	next       *listing // that has not begun yet
	latest     map[Key]v1.Object
	changed    chan struct{} // closed and replaced at each change
	violations []string
	told       map[string]bool
	// retained are external ids that a ledger called Retained, by identity.
	retained map[string]map[string]bool
	// technical are the names that Shoots have in the cloud, with their Networks.
	technical map[string]Key
	// looks counts completed looks into the cloud.
	looks int
	// shoots are all that were ever seen, by their names in the cloud; identities
	// those that an object ever had. What has another owner is a test's own.
	shoots, identities map[string]bool
	// looking is held by looks, and by tests that use the cloud by themselves.
	looking sync.RWMutex
}

// Suspend keeps the checker from looking into the cloud until resume is called:
// for tests that make things there without any object.
func (c *Checker) Suspend() (resume func()) {
	c.looking.Lock()
	return c.looking.Unlock
}

// lists are the kinds that are watched.
func lists() []client.ObjectList {
	return []client.ObjectList{&v1.ProviderTypeList{}, &v1.ProviderList{}, &v1.NetworkList{}, &v1.ClusterList{}}
}

// Start watches until Stop.
func Start(opts Options) *Checker {
	if opts.Every == 0 {
		opts.Every = 3 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Checker{opts: opts, cancel: cancel, latest: map[Key]v1.Object{}, changed: make(chan struct{}), told: map[string]bool{},
		retained: map[string]map[string]bool{}, technical: map[string]Key{}}
	for _, list := range lists() {
		c.wg.Go(func() { c.watch(ctx, list) })
	}
	c.wg.Go(func() { c.lookAround(ctx) })
	return c
}

// Stop ends the watching and returns what was violated, in order.
func (c *Checker) Stop() []string {
	c.cancel()
	c.wg.Wait()
	return c.Violations()
}

// Violations so far.
func (c *Checker) Violations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.violations...)
}

// Looks is how often the cloud was looked into.
func (c *Checker) Looks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

func (c *Checker) violate(format string, args ...any) {
	sentence := fmt.Sprintf(format, args...)
	c.mu.Lock()
	known := c.told[sentence]
	if !known {
		c.told[sentence] = true
		c.violations = append(c.violations, time.Now().Format("15:04:05.000 ")+sentence)
	}
	c.mu.Unlock()
	if !known && c.opts.Violated != nil {
		c.opts.Violated(sentence)
	}
}

// Violate records a violation that somebody else has seen.
func (c *Checker) Violate(format string, args ...any) { c.violate(format, args...) }

// watchPause is the time until an API server that is away is asked again.
const watchPause = 200 * time.Millisecond

// watch follows one kind, over outages of the API server.
func (c *Checker) watch(ctx context.Context, list client.ObjectList) {
	for ctx.Err() == nil {
		c.watchOnce(ctx, list.DeepCopyObject().(client.ObjectList))
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

func (c *Checker) watchOnce(ctx context.Context, list client.ObjectList) {
	if err := c.opts.Stack.Kube.List(ctx, list); err != nil {
		return
	}
	there := map[Key]bool{}
	for _, o := range objectsOf(list) {
		there[KeyOf(o)] = true
		c.observe(o)
	}
	c.forgetMissing(kindOfList(list), there)
	w, err := c.opts.Stack.Kube.Watch(ctx, list.DeepCopyObject().(client.ObjectList), &client.ListOptions{
		Raw: rawOptions(list.GetResourceVersion()),
	})
	if err != nil {
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(v1.Object)
		switch {
		case e.Type == watch.Error || (!ok && e.Type != watch.Bookmark):
			return
		case e.Type == watch.Deleted:
			c.gone(KeyOf(o))
		case e.Type == watch.Added, e.Type == watch.Modified:
			c.observe(o)
		}
	}
}

func kindOfList(list client.ObjectList) string {
	name := reflect.Indirect(reflect.ValueOf(list)).Type().Name()
	return name[:len(name)-len("List")]
}

func (c *Checker) forgetMissing(kind string, there map[Key]bool) {
	c.mu.Lock()
	var missing []Key
	for k := range c.latest {
		if k.Kind == kind && !there[k] {
			missing = append(missing, k)
		}
	}
	c.mu.Unlock()
	for _, k := range missing {
		c.gone(k)
	}
}

// observe checks a new state of an object against the one before.
func (c *Checker) observe(o v1.Object) {
	key := KeyOf(o)
	c.mu.Lock()
	before := c.latest[key]
	c.mu.Unlock()
	if before != nil && before.GetUID() == o.GetUID() && before.GetResourceVersion() == o.GetResourceVersion() {
		return
	}
	for _, sentence := range compare(key, before, o) {
		c.violate("%s", sentence)
	}
	c.noSecretIn(key.String(), o)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest[key] = o
	if id := o.GetAnnotations()[v1.AnnotationID]; id != "" {
		c.knows(id)
	}
	c.remember(key, o)
	close(c.changed)
	c.changed = make(chan struct{})
}

// remember keeps what must be known of an object when it is gone. The caller
// holds the lock.
func (c *Checker) remember(key Key, o v1.Object) {
	id := o.GetAnnotations()[v1.AnnotationID]
	for _, r := range o.Common().Resources {
		if r.State == v1.ResourceRetained && id != "" {
			if c.retained[id] == nil {
				c.retained[id] = map[string]bool{}
			}
			c.retained[id][r.ID] = true
		}
	}
	if n, ok := o.(*v1.Network); ok && n.Status.Shoot != nil && n.Status.Shoot.TechnicalID != "" {
		c.technical[n.Status.Shoot.TechnicalID] = key
	}
}

func (c *Checker) gone(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.latest, key)
	close(c.changed)
	c.changed = make(chan struct{})
}

// Latest is an object as last seen; nil when it is not there.
func (c *Checker) Latest(key Key) v1.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.latest[key]; o != nil {
		return o.DeepCopyObject().(v1.Object)
	}
	return nil
}

// Await waits until an object is as wanted; the wanted function gets nil while
// it is not there. It returns the object as last seen.
func (c *Checker) Await(ctx context.Context, key Key, wanted func(v1.Object) bool) (v1.Object, error) {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		o := c.Latest(key)
		if wanted(o) {
			return o, nil
		}
		select {
		case <-ctx.Done():
			return o, fmt.Errorf("%s: not in time: %s", key, Describe(o))
		case <-changed:
		}
	}
}
