package webhooks

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"

	"github.com/tidbcloud/infra-orchestrator/admission"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// longestValue keeps a value from filling the page; the longest name that means
// something, an ARN, is shorter.
const longestValue = 160

// answer is the verdict as the API server wants it: a status of reason Invalid
// with a cause for each problem, which kubectl shows a line each.
func answer(kind, name string, v admission.Verdict) webhook.Response {
	if len(v.Problems) == 0 {
		return webhook.Allowed("").WithWarnings(v.Warnings...)
	}
	list := make(field.ErrorList, 0, min(len(v.Problems), plan.MaxProblems)+1)
	for _, p := range v.Problems[:min(len(v.Problems), plan.MaxProblems)] {
		list = append(list, field.Invalid(fieldPath(p.Path), shown(p.Value), p.Rule))
	}
	if more := len(v.Problems) - plan.MaxProblems; more > 0 {
		next := v.Problems[plan.MaxProblems]
		list = append(list, field.Invalid(fieldPath(next.Path), shown(next.Value), fmt.Sprintf("and %d more problems; correct these first", more)))
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: v1.GroupName, Kind: kind}, name, list).ErrStatus
	if len(list) > 1 {
		status.Message = lines(kind, name, len(v.Problems), list)
	}
	r := webhook.Denied("").WithWarnings(v.Warnings...)
	r.Result = &status
	return r
}

// lines is the message of more than one problem, a line each: kubectl apply
// shows the message and not the causes.
func lines(kind, name string, count int, list field.ErrorList) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s %q is invalid, %d problems:", kind, v1.GroupName, name, count)
	for _, e := range list {
		b.WriteString("\n* " + e.Error())
	}
	return b.String()
}

// fieldPath keeps the dots of a path that is one already.
func fieldPath(path string) *field.Path { return field.NewPath(path) }

// shown is a value as a message shows it: short, and quoted unless a number.
func shown(value any) any {
	switch v := value.(type) {
	case nil:
		return ""
	case bool, int, int32, int64:
		return v
	}
	text := fmt.Sprint(value)
	if len(text) > longestValue {
		return strings.ToValidUTF8(text[:longestValue], "") + "…"
	}
	return text
}

// patched is a patch that adds the defaults and touches nothing else: what the
// user wrote is never written anew, so that no zero value gets lost.
func patched(o v1.Object, raw []byte, d admission.Defaults) webhook.Response {
	var patch []jsonpatch.JsonPatchOperation
	set := func(path string, value any) {
		patch = append(patch, jsonpatch.NewOperation("add", path, value))
	}
	metadata, spec := parts(raw)
	if !metadata {
		return webhook.Allowed("").WithWarnings(d.Warnings...) // no API server sends this
	}
	addMap(set, "/metadata/labels", len(o.GetLabels()) == 0, d.Labels)
	addMap(set, "/metadata/annotations", len(o.GetAnnotations()) == 0, d.Annotations)
	switch {
	case d.Finalizer == "":
	case len(o.GetFinalizers()) == 0:
		set("/metadata/finalizers", []string{d.Finalizer})
	default:
		set("/metadata/finalizers/-", d.Finalizer)
	}
	if spec {
		for _, f := range d.Spec {
			set("/spec/"+escape(f.Name), f.Value)
		}
	}
	return webhook.Patched("", patch...).WithWarnings(d.Warnings...)
}

// addMap adds values to a map, or the whole map when there is none.
func addMap(set func(string, any), path string, none bool, values map[string]string) {
	if len(values) == 0 {
		return
	}
	if none {
		set(path, values)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		set(path+"/"+escape(key), values[key])
	}
}

// escape escapes a key for a JSON pointer.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// parts reports which parts of an object there are to add something to.
func parts(raw []byte) (metadata, spec bool) {
	var o struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
		Spec     map[string]json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return false, false
	}
	return o.Metadata != nil, o.Spec != nil
}
