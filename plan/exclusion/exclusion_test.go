package exclusion

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// matrix is what may run beside what, a row for each line and a cell
// for each column. Cells with a condition are two words: without and with it.
const table = `
                Import       Backup  Restore       TiCDC          Scale       Upgrade     Pausing  Paused        PITR
Import          Queue        Queue   Reject        Allow/Reject   Queue       Queue       Reject   Reject        Allow/Reject
Backup          Reject       Queue   Reject        Allow          Reject      Queue       Reject   Reject        Allow
AutoBackup      Delay        Delay   Skip          Allow          Delay       Delay       Skip     Skip          Allow
Restore         Reject       Reject  Reject        Reject         Queue       Queue       Reject   Reject        Reject
TiCDC           Allow/Reject Allow   Reject        Allow/Reject   Queue       Queue       Reject   Reject        Allow/Reject
Scale           Queue        Queue   Queue         Allow          Queue       Queue       Reject   Reject        Allow
Upgrade         Queue        Queue   Queue         Allow          Queue       Queue       Reject   Reject        Allow
Pause           Reject       Reject  Reject        Reject         Queue       Queue       NoOp     NoOp          Reject
Delete          Cancel       Cancel  Cancel/Block  Block          StepBorder  StepBorder  Allow    Allow         StopLog
Hibernate       Reject       Reject  Reject        Reject         Reject      Reject      Reject   Allow/Reject  Reject
`

// conditions turn the first word of such a cell into the second.
var conditions = map[string]func(*Request, *Running){
	"Import/TiCDC":     func(r *Request, _ *Running) { r.Physical = true },
	"Import/PITR":      func(r *Request, _ *Running) { r.Physical = true },
	"TiCDC/Import":     func(_ *Request, w *Running) { w.Physical = true },
	"TiCDC/TiCDC":      func(_ *Request, w *Running) { w.Count = 100 },
	"TiCDC/PITR":       func(r *Request, _ *Running) { r.Target = true },
	"Delete/Restore":   func(_ *Request, w *Running) { w.Source = true },
	"Hibernate/Paused": func(_ *Request, w *Running) { w.Others = true },
}

func TestMatrix(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	columns := strings.Fields(lines[0])
	require.Len(t, columns, len(Activities()))
	require.Len(t, lines[1:], len(Wants()))
	cells := 0
	for i, line := range lines[1:] {
		words := strings.Fields(line)
		require.Equal(t, string(Wants()[i]), words[0])
		require.Len(t, words, len(columns)+1)
		for j, cell := range words[1:] {
			require.Equal(t, string(Activities()[j]), columns[j])
			request, running := Request{Want: Wants()[i]}, Running{Activity: Activities()[j], Name: "x1"}
			without, with, conditional := strings.Cut(cell, "/")
			check(t, request, running, Decision(without))
			cells++
			key := words[0] + "/" + columns[j]
			change, known := conditions[key]
			require.Equal(t, conditional, known, key)
			if conditional {
				change(&request, &running)
				check(t, request, running, Decision(with))
				cells++
			}
		}
	}
	require.Equal(t, len(Wants())*len(Activities())+len(conditions), cells)
}

func check(t *testing.T, r Request, running Running, want Decision) {
	t.Helper()
	t.Run(fmt.Sprintf("%s while %s is %s", r.Want, running.Activity, want), func(t *testing.T) {
		o := Decide(r, running)
		require.Equal(t, want, o.Decision)
		require.Equal(t, running, o.Running)
		if want == Allow {
			require.Empty(t, o.Reason+o.Message)
			return
		}
		require.Regexp(t, `^[A-Z][A-Za-z]+$`, o.Reason)
		require.NotEmpty(t, o.Message)
		if want == Reject || want == Block {
			require.Regexp(t, `^.+, .+; .+$`, o.Message, "what runs, what is refused, the way out")
		}
	})
}

func TestMessages(t *testing.T) {
	for want, o := range map[string]Outcome{
		"Restore r1 writes to the Cluster, an Import cannot start; wait until it has ended, or set its spec.cancel": Decide(Request{Want: WantImport}, Running{Activity: Restore, Name: "r1"}),
		"the Cluster is paused, a Backup cannot start; set its spec.paused to false and wait until it is Available": Decide(Request{Want: WantBackup}, Running{Activity: Paused}),
		"the Cluster has 100 TiCDCs, the largest number, a TiCDC cannot start; delete one of them first":            Decide(Request{Want: WantTiCDC}, Running{Activity: TiCDC, Count: 100}),
		"Import i1 runs on the Cluster; it starts by itself when that has ended":                                    Decide(Request{Want: WantScale}, Running{Activity: Import, Name: "i1"}),
		"Import i1 runs on the Cluster; it is cancelled first":                                                      Decide(Request{Want: WantDelete}, Running{Activity: Import, Name: "i1"}),
	} {
		require.Equal(t, want, o.Message)
	}
	require.Equal(t, "PauseNotAllowed", Decide(Request{Want: WantPause}, Running{Activity: PITR}).Reason)
	require.Equal(t, "WaitingForImport", Decide(Request{Want: WantImport}, Running{Activity: Import}).Reason)
}

func TestDecideAllTakesTheWorst(t *testing.T) {
	all := []Running{{Activity: PITR}, {Activity: Upgrade}, {Activity: Import, Name: "i1"}, {Activity: Restore, Name: "r1"}}
	require.Equal(t, Allow, DecideAll(Request{Want: WantBackup}).Decision, "nothing runs")
	require.Equal(t, "i1", DecideAll(Request{Want: WantBackup}, all...).Running.Name, "of equal ones the first")
	slices.Reverse(all)
	require.Equal(t, "r1", DecideAll(Request{Want: WantBackup}, all...).Running.Name)
	require.Equal(t, Queue, DecideAll(Request{Want: WantBackup}, Running{Activity: PITR}, Running{Activity: Upgrade}).Decision)
	require.Len(t, Rejections(Request{Want: WantBackup}, all...), 2)
}

// A kind of request or activity that nobody has thought of is refused.
func TestUnknownIsRefused(t *testing.T) {
	require.Equal(t, Reject, Decide(Request{Want: "Dance"}, Running{Activity: Import}).Decision)
	require.Equal(t, Reject, Decide(Request{Want: WantImport}, Running{Activity: "Dance"}).Decision)
}
