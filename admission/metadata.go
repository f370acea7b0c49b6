package admission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// ourLabels are set by the webhooks.
var ourLabels = []string{v1.LabelProviderType, v1.LabelProvider, v1.LabelNetwork, v1.LabelCluster}

var identityFormat = regexp.MustCompile(`^[0-9a-f]{16}$`)

// reasonIdentityChanged is the reason of condition Ready with which an object
// workflow refuses to act on an object whose identity is not the one it knows.
const reasonIdentityChanged = "IdentityChanged"

// Metadata holds the rules about annotations and labels, the same for all kinds. old is nil
// for a new object. holder names the living object that has the identity of o
// already, "" when there is none or the identity does not change.
func Metadata(old, o v1.Object, holder string) []plan.Problem {
	before := map[string]string{}
	if old != nil {
		before = old.GetAnnotations()
	}
	return slices.Concat(
		checkIdentity(old, o, before[v1.AnnotationID], holder),
		checkUserAnnotations(before, o),
		checkLabels(old, o),
	)
}

// checkLabels refuses our labels when they come to contradict spec, or change:
// people and tools select by them. Kinds whose labels their operation judges
// are left to it. One that is dropped is put back; see ForAll.
func checkLabels(old, o v1.Object) []plan.Problem {
	own := labelsOfSpec(o)
	if own == nil {
		return nil
	}
	var before map[string]string
	if old != nil {
		before = old.GetLabels()
	}
	var out []plan.Problem
	for _, key := range ourLabels {
		is, was := o.GetLabels()[key], before[key]
		switch {
		case is == "" || is == was:
		case own[key].value != "":
			out = append(out, plan.Label(o, key, own[key].value, own[key].source)...)
		case was != "":
			out = append(out, plan.NewProblem("metadata.labels["+key+"]", is, "is immutable; put %q back", was))
		}
	}
	return out
}

// inherited refuses labels of a new object that are not those of the object it
// refers to, from.
func inherited(o, from v1.Object, source string, keys ...string) []plan.Problem {
	var out []plan.Problem
	for _, key := range keys {
		if want := from.GetLabels()[key]; want != "" {
			out = append(out, plan.Label(o, key, want, source+" "+from.GetName())...)
		}
	}
	return out
}

// ofNetwork are inherited labels of an object in a Network; n may be nil.
func ofNetwork(o v1.Object, n *v1.Network) []plan.Problem {
	if n == nil {
		return nil
	}
	return inherited(o, n, "as of Network", v1.LabelProvider, v1.LabelProviderType)
}

// ofCluster are inherited labels of an object of a Cluster; c may be nil.
func ofCluster(o v1.Object, c *v1.Cluster) []plan.Problem {
	if c == nil {
		return nil
	}
	return inherited(o, c, "as of Cluster", v1.LabelNetwork, v1.LabelProvider, v1.LabelProviderType)
}

type derivedLabel struct{ value, source string }

// labelsOfSpec are the labels of an object that its own spec determines, of the
// kinds whose labels no operation judges; nil for others.
func labelsOfSpec(o v1.Object) map[string]derivedLabel {
	switch o := o.(type) {
	case *v1.NetworkPeer:
		return map[string]derivedLabel{v1.LabelNetwork: {string(o.Spec.Source), "as spec.source"}}
	case *v1.TiCDC:
		return map[string]derivedLabel{v1.LabelNetwork: {string(o.Spec.Network), "as spec.network"}}
	case *v1.Backup:
		return map[string]derivedLabel{v1.LabelCluster: {string(o.Spec.ClusterName), "as spec.clusterName"}}
	case *v1.Restore:
		return map[string]derivedLabel{v1.LabelCluster: {string(o.Spec.ClusterName), "as spec.clusterName"}}
	case *v1.Import:
		return map[string]derivedLabel{v1.LabelCluster: {string(o.Spec.ClusterName), "as spec.clusterName"}}
	}
	return nil
}

// IdentityComes reports whether an object gets an identity that it had not, so
// that somebody must look whether another one has it.
func IdentityComes(old, o v1.Object) bool {
	id := o.GetAnnotations()[v1.AnnotationID]
	return id != "" && (old == nil || old.GetAnnotations()[v1.AnnotationID] != id)
}

// Restored is the verdict on a new object that brings an identity, as one out
// of a backup does: it may come before what it refers to, since tools restore
// kinds in an order of their own. What is missing is a warning then. The first
// step of its operation asks all rules again, with the references, and waits
// for them. Nobody gains by an identity: one that another object has is refused,
// and to adopt what no object has is what a restore is.
func Restored(old, o v1.Object, v Verdict) Verdict {
	if old != nil || o.GetAnnotations()[v1.AnnotationID] == "" {
		return v
	}
	out := Verdict{Warnings: v.Warnings}
	for _, p := range v.Problems {
		if !p.Missing {
			out.Problems = append(out.Problems, p)
			continue
		}
		what, _, _ := strings.Cut(p.Rule, ";")
		out.Warnings = append(out.Warnings, fmt.Sprintf("%s %q: %s. It is admitted as it brings its identity, and waits until what it refers to is there", p.Path, p.Value, what))
	}
	return out
}

func checkIdentity(old, o v1.Object, was, holder string) []plan.Problem {
	path := annotation(v1.AnnotationID)
	id := o.GetAnnotations()[v1.AnnotationID]
	switch {
	case id == was:
		return nil
	case was != "" && !identityLost(old):
		return []plan.Problem{plan.NewProblem(path, id,
			"is immutable: external resources carry the identity %s; put it back", was)}
	case id == "":
		return nil
	case !identityFormat.MatchString(id):
		return []plan.Problem{plan.NewProblem(path, id,
			"must be 16 lower-case hexadecimal digits; remove the annotation, an identity is minted by itself")}
	case holder != "":
		return []plan.Problem{plan.NewProblem(path, id,
			"%s; remove the annotation, an identity is minted by itself", plan.IdentityTaken(holder, id))}
	}
	return nil
}

// identityLost reports whether the object workflow waits for the identity to be
// put back: then, and only then, it can be changed.
func identityLost(o v1.Object) bool {
	ready := meta.FindStatusCondition(o.Common().Conditions, v1.ConditionReady)
	return ready != nil && ready.Reason == reasonIdentityChanged
}

// UserAnnotations holds the rules about the annotations that people write, for
// the first step of an operation. The verb is not among them: the object's
// workflow answers it.
func UserAnnotations(o v1.Object) []plan.Problem {
	return checkUserAnnotations(map[string]string{v1.AnnotationOperation: o.GetAnnotations()[v1.AnnotationOperation]}, o)
}

// checkUserAnnotations refuses values that would be ignored in silence.
func checkUserAnnotations(before map[string]string, o v1.Object) []plan.Problem {
	var out []plan.Problem
	for key, check := range userAnnotations {
		value, ok := o.GetAnnotations()[key]
		if !ok || value == before[key] {
			continue
		}
		if rule := check(value, o); rule != "" {
			out = append(out, plan.NewProblem(annotation(key), value, "%s", rule))
		}
	}
	slices.SortFunc(out, func(a, b plan.Problem) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// userAnnotations are those that people write; each check returns the rule that
// the value breaks.
var userAnnotations = map[string]func(value string, o v1.Object) string{
	v1.AnnotationOperation: func(value string, _ v1.Object) string {
		if slices.Contains(temporal.Verbs(), value) {
			return ""
		}
		return "is no verb; choose one of " + strings.Join(temporal.Verbs(), ", ")
	},
	v1.AnnotationPaused:   trueOrFalse,
	v1.AnnotationMigrated: trueOrFalse,
	v1.AnnotationForceDelete: func(value string, o v1.Object) string {
		if value == string(o.GetUID()) && value != "" {
			return ""
		}
		return fmt.Sprintf("must be the object's metadata.uid, %q, so that it cannot hit another one; correct or remove it", o.GetUID())
	},
}

func trueOrFalse(value string, _ v1.Object) string {
	if value == "true" || value == "false" {
		return ""
	}
	return `must be "true" or "false"; correct or remove it`
}

func annotation(key string) string { return "metadata.annotations[" + key + "]" }

// Migrated reports whether an object was made by another control plane.
func Migrated(o v1.Object) bool { return o.GetAnnotations()[v1.AnnotationMigrated] == "true" }

// SameLabels reports whether our labels are as they were. An update that leaves
// them and the spec alone breaks no rule, and looks nothing up.
func SameLabels(old, o v1.Object) bool {
	a, b := old.GetLabels(), o.GetLabels()
	for _, key := range ourLabels {
		if a[key] != b[key] {
			return false
		}
	}
	return true
}
