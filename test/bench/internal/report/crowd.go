package report

import (
	"fmt"
	"io"
	"strings"
)

// Crowd is one run of N Clusters in one Network.
type Crowd struct {
	N int `json:"n"`
	// Create is from the first apply of a Cluster until the last is Ready.
	Create Phase `json:"create"`
}

// PrintCrowds writes a line for each run.
func PrintCrowds(w io.Writer, crowds []Crowd) error {
	var out strings.Builder
	for _, c := range crowds {
		cpu := c.Create.CPUOf(Processes[:3]...)
		fmt.Fprintf(&out, "%d Clusters in one Network: %s s, CPU per Cluster %.1f ms, workflow tasks %.1f, requests to Temporal %.1f, to the API server %.1f\n",
			c.N, seconds(c.Create.Wall), float64(cpu.Milliseconds())/float64(c.N), float64(c.Create.WorkflowTasks())/float64(c.N),
			float64(c.Create.TemporalRequests())/float64(c.N), float64(c.Create.APIRequests())/float64(c.N))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
