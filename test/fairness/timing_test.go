package fairness

import (
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// timing is where the time of one Network's creation went.
type timing struct {
	total time.Duration // from the user's request to Ready
	start time.Duration // till the operation began: bridge, object workflow
	// Of the operation: tasks that waited for a worker, and what workers did.
	flowWait, flowRun time.Duration // workflow tasks; with local activities
	actWait, actRun   time.Duration // activities; those side by side count both
	// worst is the longest wait of one task for a worker.
	worst time.Duration
}

const header = "                total     start  flow wait  flow run  act wait   act run  worst wait\n"

func row(name string, m timing) string {
	s := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	return fmt.Sprintf("%-12s %8s  %8s   %8s  %8s  %8s  %8s    %8s\n",
		name, s(m.total), s(m.start), s(m.flowWait), s(m.flowRun), s(m.actWait), s(m.actRun), s(m.worst))
}

// timingOf reads an operation's history. Of an activity it has the last attempt
// only; earlier ones and the pauses between them count as waiting.
func timingOf(h *historypb.History, began time.Time, total time.Duration) timing {
	m := timing{total: total}
	at := map[int64]time.Time{} // by event id
	waited := func(into *time.Duration, scheduled int64, e *historypb.HistoryEvent) {
		w := e.GetEventTime().AsTime().Sub(at[scheduled])
		*into += w
		m.worst = max(m.worst, w)
	}
	for _, e := range h.GetEvents() {
		now := e.GetEventTime().AsTime()
		at[e.GetEventId()] = now
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			m.start = now.Sub(began)
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			waited(&m.flowWait, e.GetWorkflowTaskStartedEventAttributes().GetScheduledEventId(), e)
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			m.flowRun += now.Sub(at[e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()])
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			waited(&m.actWait, e.GetActivityTaskStartedEventAttributes().GetScheduledEventId(), e)
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			m.actRun += now.Sub(at[e.GetActivityTaskCompletedEventAttributes().GetStartedEventId()])
		default:
		}
	}
	return m
}

// medianOf is the median of each figure.
func medianOf(all []timing) (m timing) {
	pick := func(of func(timing) time.Duration) time.Duration {
		sorted := make([]time.Duration, 0, len(all))
		for _, one := range all {
			sorted = append(sorted, of(one))
		}
		slices.Sort(sorted)
		n := len(sorted)
		return (sorted[(n-1)/2] + sorted[n/2]) / 2
	}
	m.total = pick(func(t timing) time.Duration { return t.total })
	m.start = pick(func(t timing) time.Duration { return t.start })
	m.flowWait = pick(func(t timing) time.Duration { return t.flowWait })
	m.flowRun = pick(func(t timing) time.Duration { return t.flowRun })
	m.actWait = pick(func(t timing) time.Duration { return t.actWait })
	m.actRun = pick(func(t timing) time.Duration { return t.actRun })
	m.worst = pick(func(t timing) time.Duration { return t.worst })
	return m
}
