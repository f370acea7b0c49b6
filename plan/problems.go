package plan

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// maxProblems keeps a message below one page.
const maxProblems = 15

// problems collects what is wrong with an object.
type problems struct {
	list []string
	// waits are reasons to wait instead of changing the spec.
	waits []string
}

// add reports a value that breaks a rule. The rule ends with the way out.
func (p *problems) add(path string, value any, rule string, args ...any) {
	p.list = append(p.list, fmt.Sprintf("%s %s: %s", path, quote(value), fmt.Sprintf(rule, args...)))
}

// wait reports that something else must come first.
func (p *problems) wait(format string, args ...any) {
	p.waits = append(p.waits, fmt.Sprintf(format, args...))
}

func (p *problems) merge(o *problems) {
	p.list, p.waits = append(p.list, o.list...), append(p.waits, o.waits...)
}

// label reports the label of the ProviderType when it contradicts the spec.
func (p *problems) label(o client.Object, key, want, source string) {
	if got, ok := o.GetLabels()[key]; ok && got != want {
		p.add(fmt.Sprintf("metadata.labels[%s]", key), got, "must be %q, %s; correct or remove the label", want, source)
	}
}

// fault is all problems as one error, or nil. Objects that are being deleted
// are not judged.
func (p *problems) fault(kind string, o v1.Object) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	resource := kind + "/" + o.GetNamespace() + "/" + o.GetName()
	switch {
	case len(p.list) > 0:
		return faults.New(faults.Invalid, "InvalidSpec", resource, "%s", join(p.list)).
			WithHint(faults.OwnerUser, "change the spec as said; the operation then goes on by itself")
	case len(p.waits) > 0:
		return faults.New(faults.Dependency, "NotReady", resource, "%s", join(p.waits))
	}
	return nil
}

// join is one problem as it is, or a numbered list in one line.
func join(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems", len(list))
	for i, s := range list[:min(len(list), maxProblems)] {
		fmt.Fprintf(&b, "; (%d) %s", i+1, s)
	}
	if more := len(list) - maxProblems; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// quote is a value as a manifest would show it.
func quote(value any) string {
	switch v := value.(type) {
	case int, int32, int64, bool:
		return fmt.Sprint(v)
	default:
		return fmt.Sprintf("%q", fmt.Sprint(v))
	}
}

// choices lists names for a message, in their order.
func choices[T ~string](names []T) string {
	if len(names) == 0 {
		return "none"
	}
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, string(n))
	}
	return strings.Join(slices.Compact(out), ", ")
}
