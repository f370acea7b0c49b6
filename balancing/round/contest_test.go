package round

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidbcloud/infra-orchestrator/balancing"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// memories are what is remembered of a target that should have 7 replicas.
var memories = map[string]struct {
	target  Target
	set     *Setting
	contest *Contest
}{
	"never scaled by us": {target: Target{Replicas: 12}},
	"as we set it": {
		target: Target{Replicas: 7, Set: set(7, time.Minute)}, set: set(7, time.Minute),
	},
	"overruled for the first time": {
		target:  Target{Replicas: 12, Set: set(7, time.Minute), Writer: Writer{Name: "x"}},
		contest: &Contest{By: "x", From: 7, To: 12, Times: 1, Last: noon},
	},
	"our own write that was not remembered": {
		target: Target{Replicas: 5, Set: set(3, time.Minute), Writer: Writer{Ours: true}}, set: set(5, 0),
	},
	"somebody else wrote what we want": {
		target: Target{Replicas: 7, Set: set(3, time.Minute), Writer: Writer{Name: "x"}}, set: set(7, 0),
	},
	"an object that was made anew": {
		target: Target{Replicas: 1, Object: "new", Set: set(7, time.Minute), Contest: &Contest{Times: 3}},
	},
	"the last time that it is set back": {
		target:  Target{Replicas: 12, Set: set(7, time.Minute), Contest: &Contest{Times: Patience - 1}},
		contest: &Contest{By: "somebody else (who it is cannot be read)", From: 7, To: 12, Times: Patience, Last: noon},
	},
	"once too often": {
		target:  Target{Replicas: 12, Set: set(7, time.Minute), Contest: &Contest{Times: Patience}, Writer: Writer{Name: "x"}},
		contest: &Contest{By: "x", From: 7, To: 12, Times: Patience + 1, Last: noon, Left: true, Until: noon.Add(FirstPause)},
	},
	"once too often, by an autoscaler": {
		target:  Target{Replicas: 12, Set: set(7, time.Minute), Contest: &Contest{Times: Patience}, Writer: Writer{Autoscaler: "h"}},
		contest: &Contest{By: "HorizontalPodAutoscaler h", Autoscaler: "h", From: 7, To: 12, Times: Patience + 1, Last: noon, Left: true},
	},
	"overruled after ours had stood for long": {
		target:  Target{Replicas: 12, Set: set(7, Calm+time.Second), Contest: &Contest{Times: Patience}, Writer: Writer{Name: "x"}},
		contest: &Contest{By: "x", From: 7, To: 12, Times: 1, Last: noon},
	},
	"left alone": {
		target:  Target{Replicas: 12, Contest: &Contest{Left: true, Times: 4, Until: noon.Add(time.Second)}},
		contest: &Contest{Left: true, Times: 4, Until: noon.Add(time.Second)},
	},
	"left alone for long enough": {
		target:  Target{Replicas: 12, Contest: &Contest{Left: true, Times: 4, Until: noon}},
		contest: &Contest{Times: 4},
	},
	"an autoscaler refers to it when the pause is over": {
		target:  Target{Replicas: 12, Contest: &Contest{Left: true, Times: 4, Until: noon}, Writer: Writer{Autoscaler: "h"}},
		contest: &Contest{Left: true, Times: 4, Autoscaler: "h"},
	},
	"its autoscaler is still there": {
		target:  Target{Replicas: 12, Contest: &Contest{Left: true, Times: 4, Autoscaler: "h"}, Writer: Writer{Autoscaler: "h"}},
		contest: &Contest{Left: true, Times: 4, Autoscaler: "h"},
	},
	"its autoscaler may be gone": {
		target:  Target{Replicas: 12, Contest: &Contest{Left: true, Times: 4, Autoscaler: "h"}},
		contest: &Contest{Left: true, Times: 4, Autoscaler: "h"},
	},
	"its autoscaler is gone": {
		target: Target{Replicas: 12, Contest: &Contest{Left: true, Times: 4, Autoscaler: "h"}, Writer: Writer{NoAutoscaler: true}},
	},
	"the other gave in": {
		target: Target{Replicas: 7, Contest: &Contest{Left: true, Times: 4, Until: noon.Add(time.Hour)}},
		set:    set(7, 0), contest: &Contest{Times: 4},
	},
	"not yet calm": {
		target: Target{Replicas: 7, Set: set(7, Calm), Contest: &Contest{Times: 2}}, set: set(7, Calm), contest: &Contest{Times: 2},
	},
	"calm": {
		target: Target{Replicas: 7, Set: set(7, Calm+time.Second), Contest: &Contest{Times: 2}}, set: set(7, Calm+time.Second),
	},
}

func set(replicas int32, ago time.Duration) *Setting {
	return &Setting{Replicas: replicas, At: noon.Add(-ago)}
}

func TestContest(t *testing.T) {
	for name, c := range memories {
		t.Run(name, func(t *testing.T) {
			set, contest := c.target.remember(noon, 7)
			if diff := cmp.Diff(c.set, set) + cmp.Diff(c.contest, contest); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPauses(t *testing.T) {
	for times, want := range map[int32]time.Duration{4: 2 * time.Minute, 5: 4 * time.Minute, 8: 32 * time.Minute, 11: LongestPause, 1 << 30: LongestPause} {
		if got := pause(times); got != want {
			t.Errorf("overruled %d times: %s, want %s", times, got, want)
		}
	}
}

// A target that is left alone has what it has; limits do not keep the others
// from what they should have, and it is told.
func TestOthersGoOn(t *testing.T) {
	in := web(10, 12, 1) // a, of which 3 are wanted, has 12
	in.Targets[0].Contest = &Contest{By: "x", From: 3, To: 12, Times: 4, Left: true, Until: in.Now.Add(time.Hour)}
	surge, unavailable := int32(1), int32(1)
	in.Limits = balancing.Limits{MaxSurge: &surge, MaxUnavailable: &unavailable}
	plan := Make(in)
	want := []balancing.Change{{Target: 1, From: 1, To: 7}}
	if diff := cmp.Diff(want, plan.Changes); diff != "" {
		t.Error(diff)
	}
	if plan.Targets[0].Desired != 3 || plan.News {
		t.Errorf("plan %+v", plan)
	}
	c := plan.Condition(nil)
	if c.OK || c.Reason != "TargetContested" || !strings.Contains(c.Message, "target a was scaled from 3 to 12 by x, 4 times in a row. It is left alone until 2026-08-01T13:00:00Z") {
		t.Errorf("condition %+v", c)
	}
}
