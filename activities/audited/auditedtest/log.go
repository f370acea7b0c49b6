// Package auditedtest has a recorder for tests of activities.
package auditedtest

import v1 "github.com/tidbcloud/infra-orchestrator/api/v1"

// Log is an audited.Recorder that notes "<type> <id> <state>" of what has been
// changed, in order.
type Log []string

// Change implements audited.Recorder.
func (l *Log) Change(do func() error, resources []v1.Resource) error {
	err := do()
	for _, r := range resources {
		state := string(r.State)
		if err != nil {
			state = "failed"
		}
		*l = append(*l, r.Type+" "+r.ID+" "+state)
	}
	return err
}
