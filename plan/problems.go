package plan

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// MaxProblems keeps a message below one page: what is beyond is counted only.
const MaxProblems = 15

// Problem is a value that breaks a rule. The webhooks tell it as a cause of a
// refused request, the operations in the fault of their first step.
type Problem struct {
	// Path of the field, such as spec.cidr.vpc.
	Path string
	// Value of the field; "" for one that is missing.
	Value any
	// Rule that it breaks, and the way out.
	Rule string
	// Missing: the field refers to an object that does not exist, which may come.
	Missing bool
}

// String is the problem in one sentence.
func (p Problem) String() string { return fmt.Sprintf("%s %s: %s", p.Path, quote(p.Value), p.Rule) }

// NewProblem formats the rule.
func NewProblem(path string, value any, rule string, args ...any) Problem {
	return Problem{Path: path, Value: value, Rule: fmt.Sprintf(rule, args...)}
}

// Missing is the problem of a reference to an object that does not exist.
func Missing(path, kind string, name any) Problem {
	p := NewProblem(path, name, "there is no such %s in this namespace; create it first, or correct the name", kind)
	p.Missing = true
	return p
}

// IdentityTaken is what is wrong with an object whose identity another one,
// the holder, has.
func IdentityTaken(holder, id string) string {
	return fmt.Sprintf("%s holds the identity %s already; this one looks like a copy of its manifest", holder, id)
}

// Refusal is all problems of an object as one fault of class Invalid, or nil.
// An object that is being deleted is not judged.
func Refusal(kind string, o v1.Object, list []Problem) error {
	p := problems{list: list}
	return p.fault(kind, o)
}

// problems collects what is wrong with an object.
type problems struct {
	list []Problem
	// waits are reasons to wait instead of changing the spec.
	waits []string
}

// add reports a value that breaks a rule. The rule ends with the way out.
func (p *problems) add(path string, value any, rule string, args ...any) {
	p.list = append(p.list, NewProblem(path, value, rule, args...))
}

// wait reports that something else must come first.
func (p *problems) wait(format string, args ...any) {
	p.waits = append(p.waits, fmt.Sprintf(format, args...))
}

func (p *problems) merge(o *problems) {
	p.list, p.waits = append(p.list, o.list...), append(p.waits, o.waits...)
}

// label reports a label that contradicts the spec.
func (p *problems) label(o client.Object, key, want, source string) {
	p.list = append(p.list, Label(o, key, want, source)...)
}

// Label is the problem of a label of o that is there and is not what it must
// be, by what the source names.
func Label(o client.Object, key, want, source string) []Problem {
	got, ok := o.GetLabels()[key]
	if !ok || got == want {
		return nil
	}
	return []Problem{NewProblem(fmt.Sprintf("metadata.labels[%s]", key), got, "must be %q, %s; correct or remove the label", want, source)}
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
		return faults.New(faults.Invalid, "InvalidSpec", resource, "%s", join(texts(p.list))).
			WithHint(faults.OwnerUser, "change the spec as said; the operation then goes on by itself")
	case len(p.waits) > 0:
		return faults.New(faults.Dependency, "NotReady", resource, "%s", join(p.waits))
	}
	return nil
}

func texts(list []Problem) []string {
	out := make([]string, 0, len(list))
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}

// join is one problem as it is, or a numbered list in one line.
func join(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems", len(list))
	for i, s := range list[:min(len(list), MaxProblems)] {
		fmt.Fprintf(&b, "; (%d) %s", i+1, s)
	}
	if more := len(list) - MaxProblems; more > 0 {
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

// mostChoices keeps a list of choices to a few lines.
const mostChoices = 10

// choices lists names for a message, in their order, the first mostChoices of
// them.
func choices[T ~string](names []T) string {
	if len(names) == 0 {
		return "none"
	}
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, string(n))
	}
	out = slices.Compact(out)
	if more := len(out) - mostChoices; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(out[:mostChoices], ", "), more)
	}
	return strings.Join(out, ", ")
}
