package management

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// AnswerVerb writes what became of a verb onto its object. It is idempotent: an
// annotation that is gone, or holds another verb by now, is left alone.
func (a *Activities) AnswerVerb(ctx context.Context, in contract.VerbAnswer) (contract.None, error) {
	const attempts = 5
	for range attempts {
		again, err := a.answer(ctx, in)
		if err != nil {
			return contract.None{}, err
		}
		if !again {
			return contract.None{}, a.report(ctx, in.Ref, in.UID, in.Events)
		}
	}
	return contract.None{}, faults.New(faults.Throttled, "Conflict", in.Ref.String(), "its annotations keep changing")
}

// answer tries once; again is true when the object changed meanwhile.
func (a *Activities) answer(ctx context.Context, in contract.VerbAnswer) (again bool, err error) {
	o, err := newObject(in.Ref.Kind)
	if err != nil {
		return false, err
	}
	if _, err := get(ctx, a.Live, in.Ref.Namespace, in.Ref.Name, o); err != nil {
		return false, faults.IgnoreGone(err)
	}
	if string(o.GetUID()) != in.UID {
		return false, nil
	}
	annotations := annotationPatch(o.GetAnnotations(), in)
	if len(annotations) == 0 {
		return false, nil
	}
	// The version makes sure that no newer verb is taken away unread.
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion(), "annotations": annotations}})
	if err != nil {
		return false, err
	}
	err = a.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, raw), client.FieldOwner("infra-provider-verbs"))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err): // it has another version by now
		return true, nil
	}
	return false, faults.FromKubernetes(err, in.Ref.String())
}

// annotationPatch is what must change for the answer; nil takes away.
func annotationPatch(have map[string]string, in contract.VerbAnswer) map[string]any {
	patch := map[string]any{}
	if in.Consume != "" && have[v1.AnnotationOperation] == in.Consume {
		patch[v1.AnnotationOperation] = nil
	}
	if in.Pause == nil {
		return patch
	}
	_, is := have[v1.AnnotationPaused]
	switch {
	case *in.Pause && have[v1.AnnotationPaused] != "true":
		patch[v1.AnnotationPaused] = "true"
	case !*in.Pause && is:
		patch[v1.AnnotationPaused] = nil
	}
	return patch
}
