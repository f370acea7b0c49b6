package round

import (
	"fmt"
	"time"

	"github.com/tidbcloud/infra-orchestrator/balancing"
)

// How long somebody else who scales a target is answered. A target that was overruled is set back at once, Patience
// times in a row; then it is left alone, for FirstPause, twice as long each time that it is overruled again, and
// for LongestPause at most. A number of ours that stands for Calm ends the row.
const (
	Patience     = 3
	FirstPause   = 2 * time.Minute
	LongestPause = 4 * time.Hour
	Calm         = time.Hour
)

// Setting is what the Balancer wrote last to the scale of a target.
type Setting struct {
	Replicas int32
	// Object is the UID of the object whose scale it is: a target that was made anew was overruled by nobody.
	Object string
	At     time.Time
}

// Contest tells of somebody else who scales a target.
type Contest struct {
	// By is who, for people, and Autoscaler the HorizontalPodAutoscaler that refers to the target, if there is one.
	By, Autoscaler string
	// From is what the Balancer had set, To what the other made of it.
	From, To int32
	// Times is how often in a row.
	Times int32
	Last  time.Time
	// Left tells that the target is left alone: until Until, or without one for as long as Autoscaler is there.
	Left  bool
	Until time.Time
}

// Writer is who wrote spec.replicas of a target last, as far as it was looked at.
type Writer struct {
	// Ours tells that it is the Balancer itself: its own write, of which it has no memory.
	Ours bool
	// Name is for people: a field manager, another Balancer. "" if unknown.
	Name string
	// Autoscaler is the HorizontalPodAutoscaler that refers to the target, "" if there is none.
	Autoscaler string
	// NoAutoscaler tells that there is none, for sure.
	NoAutoscaler bool
}

// remember returns what is to be remembered of a target after a look at it: the number that stands as ours, and who
// contests it. goal is what the target should have in the end.
func (t Target) remember(now time.Time, goal int32) (*Setting, *Contest) {
	set, c := t.Set, t.Contest
	if set != nil && set.Object != t.Object {
		return nil, nil
	}
	if set != nil && set.Replicas != t.Replicas && t.Replicas != goal && !t.Writer.Ours {
		return nil, t.overruled(now)
	}
	// Agreed, whoever it was that wrote it.
	if agreed := t.Replicas == goal || t.Writer.Ours; agreed && (set == nil && c != nil || set != nil && set.Replicas != t.Replicas) {
		set = &Setting{Replicas: t.Replicas, Object: t.Object, At: now}
	}
	switch {
	case c == nil:
	case c.Left:
		c = t.left(now, goal)
	case set != nil && now.Sub(set.At) > Calm:
		c = nil
	}
	return set, c
}

// overruled is the contest after somebody else has changed the number that the Balancer had set.
func (t Target) overruled(now time.Time) *Contest {
	c := Contest{By: t.Writer.String(), Autoscaler: t.Writer.Autoscaler, From: t.Set.Replicas, To: t.Replicas, Times: 1, Last: now}
	if t.Contest != nil && now.Sub(t.Set.At) <= Calm {
		c.Times += t.Contest.Times
	}
	c.Left = c.Times > Patience
	if c.Left && c.Autoscaler == "" {
		c.Until = now.Add(pause(c.Times))
	}
	return &c
}

// left is what becomes of a contest for which the target is left alone; nil when the other is gone.
func (t Target) left(now time.Time, goal int32) *Contest {
	c := *t.Contest
	switch {
	case c.Autoscaler != "" && t.Writer.NoAutoscaler:
		return nil
	case t.Replicas == goal: // the count stays until it has lasted
		c.Left, c.Until = false, time.Time{}
	case t.Writer.Autoscaler != "": // it would undo the next try as it did the others, so there is none
		c.Autoscaler, c.Until = t.Writer.Autoscaler, time.Time{}
	case c.Autoscaler != "": // not known whether it is still there
	case !now.Before(c.Until):
		c.Left, c.Until = false, time.Time{}
	}
	return &c
}

// pause is how long a target is left alone that was overruled so often.
func pause(times int32) time.Duration {
	d := FirstPause
	for range times - Patience - 1 {
		if d *= 2; d >= LongestPause {
			return LongestPause
		}
	}
	return d
}

// String is the writer for people.
func (w Writer) String() string {
	switch {
	case w.Autoscaler != "" && w.Name != "":
		return fmt.Sprintf("%s, and HorizontalPodAutoscaler %s refers to it", w.Name, w.Autoscaler)
	case w.Autoscaler != "":
		return "HorizontalPodAutoscaler " + w.Autoscaler
	case w.Name != "":
		return w.Name
	}
	return "somebody else (who it is cannot be read)"
}

// Sentence tells people of the contest over a target.
func (c Contest) Sentence(target string) string {
	who := fmt.Sprintf("target %s was scaled from %d to %d by %s", target, c.From, c.To, c.By)
	const remedy = "Only one may scale it: take it out of the Balancer, or stop the other; an autoscaler can refer to the Balancer itself"
	switch {
	case !c.Left:
		return fmt.Sprintf("%s, %s, and set back; after %d times it is left alone. %s", who, inARow(c.Times), Patience, remedy)
	case c.Autoscaler != "":
		return fmt.Sprintf("%s, %s. It is left alone for as long as HorizontalPodAutoscaler %s refers to it. %s", who, inARow(c.Times), c.Autoscaler, remedy)
	default:
		return fmt.Sprintf("%s, %s. It is left alone until %s. %s", who, inARow(c.Times), c.Until.UTC().Format(time.RFC3339), remedy)
	}
}

func inARow(times int32) string {
	if times == 1 {
		return "for the first time"
	}
	return fmt.Sprintf("%d times in a row", times)
}

// contest remembers who else scales each target, and takes those that are left alone out of the step: their goal is
// what they have, so that limits are reckoned with what is there.
func (p *Plan) contest(in Input, goal []int32, wanted int64) ([]int32, int64) {
	step := make([]int32, len(goal))
	copy(step, goal)
	for i, t := range in.Targets {
		set, c := t.remember(in.Now, goal[i])
		p.News = p.News || changed(t.Set, set) || changed(t.Contest, c)
		p.Targets[i].Set, p.Targets[i].Contest = set, c
		if c != nil && c.Left {
			wanted += int64(t.Replicas) - int64(goal[i])
			step[i] = t.Replicas
		}
	}
	return step, wanted
}

func changed[T comparable](before, after *T) bool {
	if before == nil || after == nil {
		return before != after
	}
	return *before != *after
}

// Written notes that a change was made: from now on the number is the Balancer's.
func (p *Plan) Written(c balancing.Change, object string, now time.Time) {
	p.Targets[c.Target].Set = &Setting{Replicas: c.To, Object: object, At: now}
}
