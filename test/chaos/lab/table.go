package lab

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

func toMap(o v1.Object) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// Run is one run of an operation with something going wrong in it.
type Run struct {
	Part      string // of the tests: kill, lost, outage, verbs
	Operation string // CreateNetwork
	What      string // went wrong, for messages
	Converged bool
	// Twice and Left are what exists twice, and what is left after a deletion.
	Twice, Left []string
	// Problem is why it did not converge.
	Problem string
	Took    time.Duration
}

// Table collects runs from all lanes.
type Table struct {
	mu   sync.Mutex
	runs []Run
}

// Add adds a run, and prints a line about it.
func (t *Table) Add(r Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs = append(t.runs, r)
	if r.Problem != "" {
		fmt.Printf("%s PROBLEM %s\n", time.Now().Format(time.TimeOnly), r.Problem)
		return
	}
	fmt.Printf("%s %s %s, %s: %s\n", time.Now().Format(time.TimeOnly), r.Part, r.Operation, r.What, r.Took.Round(100*time.Millisecond))
}

// Runs are all runs.
func (t *Table) Runs() []Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.runs)
}

// Print prints a line for each part and operation, and the sum.
func (t *Table) Print(out io.Writer) {
	type row struct{ runs, converged, twice, left int }
	rows := map[string]*row{}
	var keys []string
	var took = map[string][]time.Duration{}
	for _, r := range t.Runs() {
		for _, k := range []string{r.Part + "\t" + r.Operation, r.Part + "\t= all"} {
			if rows[k] == nil {
				rows[k] = &row{}
				keys = append(keys, k)
			}
			x := rows[k]
			x.runs++
			x.twice += len(r.Twice)
			x.left += len(r.Left)
			if r.Converged {
				x.converged++
			}
			took[k] = append(took[k], r.Took)
		}
	}
	slices.SortStableFunc(keys, strings.Compare)
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\npart\toperation\truns\tconverged\tduplicated\tleaked\tmedian")
	for _, k := range keys {
		slices.Sort(took[k])
		x := rows[k]
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", k, x.runs, x.converged, x.twice, x.left, took[k][len(took[k])/2].Round(100*time.Millisecond))
	}
	_ = w.Flush()
}
