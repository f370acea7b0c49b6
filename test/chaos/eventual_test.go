package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// eventualEvery is how many operations on something fresh lie between two that
// find nothing. An activity makes up to a dozen calls about a bucket; were all
// struck, it would rightly stall.
const eventualEvery = 4

// freshFor is how long something is fresh: in life it is seconds, here an
// activity is repeated meanwhile.
const freshFor = 20 * time.Second

// TestEventual has AWS be eventually consistent in every operation: the first
// call of each kind about something fresh answers that it does not exist, and
// whatever is listed may be gone at the next look. Nobody notices.
func TestEventual(t *testing.T) {
	if !full() {
		t.Skip("part of make chaos; TestSeeded has a pass of it")
	}
	expect, _ := dryRun(t)
	ownStack(t)
	var all unseen
	side(passes(eventualEvery), func(k int) {
		inLanes(t, "eventual", expect, func(j *journey) error { return eventually(t, j, k, &all) })
	})
	fmt.Println("eventual:", all.String())
	if sample() == 0 {
		for _, service := range []string{"iam", "kms", "s3", "ec2", "route53"} {
			require.NotZero(t, all.services()[service], "no call to %s was struck", service)
		}
	}
	failUnconverged(t, "eventual")
}

// eventually runs every operation in a lane whose account is eventually
// consistent: every so many-th operation on what is fresh, from the skip-th on.
func eventually(t *testing.T, j *journey, skip int, all *unseen) error {
	ctx := within(t, 30*time.Minute)
	id, off, err := beEventual(ctx, j.lane, skip)
	if err != nil {
		return err
	}
	j.before = func(string, invariants.Key) string {
		return fmt.Sprintf("AWS eventually consistent, every %dth from the %dth", eventualEvery, skip+1)
	}
	err = j.whole(nothing)
	all.add(ctx, j.lane.Stack, id)
	return errors.Join(err, off(ctx))
}

// beEventual puts a lane into an account that is eventually consistent.
func beEventual(ctx context.Context, l *lab.Lane, skip int) (id string, off func(context.Context) error, err error) {
	account, err := l.OwnAccount(ctx)
	if err != nil {
		return "", nil, err
	}
	id, err = l.Stack.AddFault(ctx, stack.Fault{Target: "aws", Kind: "eventual", Account: account, Every: eventualEvery, Skip: skip, Delay: freshFor.String()})
	return id, func(ctx context.Context) error { return l.Stack.RemoveFault(ctx, id) }, err
}

// unseen counts what was struck, by kind of call.
type unseen struct {
	mu sync.Mutex
	by map[string]int // service.operation
}

func (u *unseen) add(ctx context.Context, s *stack.Stack, fault string) {
	calls, err := s.Calls(ctx, "")
	if err != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = map[string]int{}
	}
	for _, c := range calls {
		if c.Fault == fault {
			u.by[c.Service+"."+c.Operation]++
		}
	}
}

// services counts by service.
func (u *unseen) services() map[string]int {
	out := map[string]int{}
	for what, n := range u.by {
		service, _, _ := strings.Cut(what, ".")
		out[service] += n
	}
	return out
}

func (u *unseen) String() string {
	total := 0
	kinds := make([]string, 0, len(u.by))
	for what, n := range u.by {
		kinds = append(kinds, fmt.Sprintf("%s %d", what, n))
		total += n
	}
	slices.Sort(kinds)
	return fmt.Sprintf("%d calls found nothing: %s", total, strings.Join(kinds, ", "))
}
