package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/log"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"

	"github.com/tidbcloud/infra-orchestrator/admission"
)

// errNotSynced is told while the process has not read every object once.
var errNotSynced = errors.New("the bridge is starting and has not read all objects yet; try again in a moment")

// handler answers for one kind.
type handler[T v1.Object] struct {
	rules   rules[T]
	caches  *Caches
	options *Options
}

// present is o, or a true nil when it is a nil pointer of some kind.
func present(o v1.Object) v1.Object {
	if o == nil || reflect.ValueOf(o).IsNil() {
		return nil
	}
	return o
}

// mutate fills in what was left out. Types are not checked yet when it is
// called: what cannot be read is left to the schema, which says it better.
func (h *handler[T]) mutate(ctx context.Context, req webhook.Request) webhook.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return webhook.Allowed("")
	}
	old, o, err := h.decode(req)
	if err != nil {
		return webhook.Allowed("")
	}
	d := admission.ForAll(present(old), o, h.options.finalizer(h.rules.kind))
	if h.rules.defaults != nil && o.GetDeletionTimestamp() == nil {
		if !h.caches.Synced() {
			return webhook.Errored(http.StatusServiceUnavailable, errNotSynced)
		}
		if err := h.rules.defaults(ctx, h.caches, h.options, old, o, &d); err != nil {
			return lookupFailed(ctx, err)
		}
	}
	return patched(o, req.Object.Raw, d)
}

// validate refuses what breaks a rule, and names every rule that is broken.
func (h *handler[T]) validate(ctx context.Context, req webhook.Request) webhook.Response {
	switch req.Operation {
	case admissionv1.Create, admissionv1.Update:
	case admissionv1.Delete:
		return h.deletion(req)
	default:
		return webhook.Allowed("")
	}
	old, o, err := h.decode(req)
	if err != nil {
		return webhook.Errored(http.StatusUnprocessableEntity, fmt.Errorf("the object is not a %s: %w", h.rules.kind, err))
	}
	if !h.caches.Synced() {
		return webhook.Errored(http.StatusServiceUnavailable, errNotSynced)
	}
	verdict, err := h.judge(ctx, old, o)
	if err != nil {
		return lookupFailed(ctx, err)
	}
	if len(verdict.Problems) > 0 {
		log.FromContext(ctx).V(1).Info("refused", "problems", len(verdict.Problems), "first", verdict.Problems[0].Path)
	}
	return answer(h.rules.kind, o.GetName(), verdict)
}

func (h *handler[T]) judge(ctx context.Context, old, o T) (admission.Verdict, error) {
	before := present(old)
	holder := ""
	if admission.IdentityComes(before, o) {
		holder = h.caches.holder(o.GetAnnotations()[v1.AnnotationID], o, h.rules.kind)
	}
	v := admission.Verdict{Problems: admission.Metadata(before, o, holder)}
	settled := before != nil && admission.SameLabels(before, o) &&
		equality.Semantic.DeepEqual(h.rules.spec(old), h.rules.spec(o))
	// A spec that is to go is not judged: it must be possible to remove what is
	// wrong.
	if h.rules.judge == nil || settled || o.GetDeletionTimestamp() != nil {
		return v, nil
	}
	special, err := h.rules.judge(ctx, h.caches, h.options, old, o)
	special = admission.Restored(before, o, special)
	v.Problems, v.Warnings = append(v.Problems, special.Problems...), special.Warnings
	return v, err
}

// deletion warns, and refuses nothing: a deletion waits until it can be done.
func (h *handler[T]) deletion(req webhook.Request) webhook.Response {
	o := h.rules.fresh()
	if h.rules.warn == nil || json.Unmarshal(req.OldObject.Raw, o) != nil || !h.caches.Synced() {
		return webhook.Allowed("")
	}
	return webhook.Allowed("").WithWarnings(h.rules.warn(h.caches, o)...)
}

// decode reads the object and, in an update, what it was before. Of that a field
// whose type has changed since it was stored is left out: it must not keep
// anybody from correcting it.
func (h *handler[T]) decode(req webhook.Request) (old, o T, err error) {
	o = h.rules.fresh()
	if err := json.Unmarshal(req.Object.Raw, o); err != nil {
		return old, o, err
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(req.Namespace)
	}
	if req.Operation != admissionv1.Update {
		return old, o, nil
	}
	before := h.rules.fresh()
	var mistyped *json.UnmarshalTypeError
	if err := json.Unmarshal(req.OldObject.Raw, before); err != nil && !errors.As(err, &mistyped) {
		return old, o, fmt.Errorf("before the change: %w", err)
	}
	return before, o, nil
}

// lookupFailed asks to try again: nothing is wrong with the object.
func lookupFailed(ctx context.Context, err error) webhook.Response {
	log.FromContext(ctx).Error(err, "cannot look up what the object refers to")
	return webhook.Errored(http.StatusServiceUnavailable, fmt.Errorf("what the object refers to cannot be looked up at the moment, try again: %w", err))
}
