package management

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// ApplyObjectStatus writes what the object workflow owns: observedGeneration,
// phase and the condition Ready; of a Network also clusters and leases.
func (a *Activities) ApplyObjectStatus(ctx context.Context, in contract.ObjectStatus) (contract.None, error) {
	status := map[string]any{"phase": in.Phase, "conditions": []metav1.Condition{in.Ready}}
	if in.ObservedGeneration > 0 {
		status["observedGeneration"] = in.ObservedGeneration
	}
	if in.Clusters != nil {
		status["clusters"] = in.Clusters
	}
	if len(in.Leases) > 0 {
		status["leases"] = in.Leases
	}
	if err := a.applyStatus(ctx, in.Ref, in.UID, ownerObject, status, nil); err != nil {
		return contract.None{}, err
	}
	return contract.None{}, a.report(ctx, in.Ref, in.UID, in.Events)
}

// deletion is the type of operations that end after their object.
const deletion = "Delete"

// ApplyOperationStatus writes what the operation workflow owns: operation
// (waitingFor only while it is stalled), lastError, resources, the kind's own fields, and its
// conditions. An operation that a later one has followed, or whose object has
// gone, gets a Gone fault of the object: it was reset in Temporal, and must end.
func (a *Activities) ApplyOperationStatus(ctx context.Context, in contract.OperationReport) (contract.None, error) {
	status := map[string]any{}
	for k, v := range in.Details {
		status[k] = v
	}
	in.Operation.WaitingFor = "" // the wait's own
	if e := in.LastError; e != nil {
		in.Operation.WaitingFor = cut(e.Class+": "+e.Message, mostSentence) // nothing waits but the operation itself
	}
	status["operation"] = in.Operation
	if in.LastError != nil {
		status["lastError"] = in.LastError
	}
	if len(in.Resources) > 0 {
		status["resources"] = in.Resources
	}
	if conditions := operationConditions(in.Conditions); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	latest := func(o v1.Object) error {
		switch {
		case o != nil:
			return outdated(in.Ref, in.Operation, o.Common().Operation)
		case in.Operation.Type == deletion: // its last reports come when the object is gone
			return nil
		}
		return faults.New(faults.Gone, "NotFound", in.Ref.String(), "it does not exist any more, so operation %s has nothing to make", in.Operation.ID)
	}
	if err := a.applyStatus(ctx, in.Ref, in.UID, ownerOperation, status, latest); err != nil {
		return contract.None{}, err
	}
	return contract.None{}, a.report(ctx, in.Ref, in.UID, in.Events)
}

// outdated refuses the report of an operation that a later one has followed. A
// status that was restored with its object may name one with a higher number,
// which is a former object's, and older all the same.
func outdated(ref contract.ObjectRef, reports v1.OperationStatus, told *v1.OperationStatus) error {
	if told == nil || told.UID != reports.UID || !temporal.LaterOperation(told.ID, reports.ID) || told.StartedAt == nil || reports.StartedAt == nil ||
		!told.StartedAt.After(reports.StartedAt.Time) {
		return nil
	}
	return faults.New(faults.Gone, "Outdated", ref.String(), "operation %s has been followed by %s", reports.ID, told.ID)
}

func operationConditions(in []metav1.Condition) (out []metav1.Condition) {
	for _, c := range in {
		if !slices.Contains(notTheOperations, c.Type) {
			out = append(out, c)
		}
	}
	return out
}

// applyStatus applies the whole of what one field manager owns. The object
// that is meant is named by its uid: if another one has the name by now, or
// none, there is nothing to tell and that is no error.
//
// The API server drops metadata.uid from what is applied to the status of a
// custom resource, so the uid alone guards nothing: the uid is compared with
// what was read, and the resource version makes sure that it was that object.
// The first look is at the cache, and at what this process wrote last; a stale
// one costs a second look.
//
// accept, unless nil, may refuse to write, going by the object as it is; nil if
// that is not there.
func (a *Activities) applyStatus(ctx context.Context, ref contract.ObjectRef, uid string, owner client.FieldOwner, status map[string]any,
	accept func(v1.Object) error) error {
	u, err := statusObject(ref, uid, status)
	if err != nil {
		return err
	}
	for look, reader := range []client.Reader{a.Client, a.Live, a.Live, a.Live, a.Live} {
		o, err := newObject(ref.Kind)
		if err != nil {
			return err
		}
		if _, err := get(ctx, reader, ref.Namespace, ref.Name, o); faults.IgnoreGone(err) != nil {
			return err
		}
		if string(o.GetUID()) != uid { // another object, or none
			switch live := look > 0; {
			case !live:
				continue
			case accept != nil:
				return accept(nil)
			}
			return nil
		}
		if accept != nil {
			if err := accept(o); err != nil {
				return err
			}
		}
		u.SetResourceVersion(o.GetResourceVersion())
		if look == 0 {
			u.SetResourceVersion(a.versions.newest(uid, o.GetResourceVersion()))
		}
		written := u.DeepCopy()
		err = a.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(written), owner, client.ForceOwnership)
		if err == nil {
			a.versions.wrote(uid, written.GetResourceVersion())
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return faults.FromKubernetes(err, "status of "+ref.String())
		}
	}
	return faults.New(faults.Throttled, "Conflict", "status of "+ref.String(), "others keep writing it")
}

func statusObject(ref contract.ObjectRef, uid string, status map[string]any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(v1.GroupVersion.WithKind(ref.Kind))
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	u.SetUID(types.UID(uid))
	return u, nil
}

// report makes the Events. Their names derive from the object and their key,
// so one that is there already is the same one, told before.
func (a *Activities) report(ctx context.Context, ref contract.ObjectRef, uid string, events []contract.Event) error {
	for _, e := range events {
		err := a.Client.Create(ctx, eventOf(ref, uid, e))
		if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			continue
		}
		if errors.Is(err, context.Canceled) || faults.As(faults.FromKubernetes(err, "event")).Class.Retryable() {
			return faults.FromKubernetes(err, "event "+e.Reason+" of "+ref.String())
		}
		// A status is worth more than its story: a namespace that takes no
		// Events any more must not hold the operation up. What it would have said,
		// such as what a forced deletion leaves behind, is in the log then.
		slog.WarnContext(ctx, "event not written", "object", ref.String(), "reason", e.Reason, "message", e.Message, "error", err)
	}
	return nil
}

func eventOf(ref contract.ObjectRef, uid string, e contract.Event) *corev1.Event {
	sum := sha256.Sum256([]byte(uid + "\x00" + e.Key))
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	now := metav1.NewTime(time.Now())
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name + "." + hex.EncodeToString(sum[:])[:16]},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1.GroupVersion.String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(uid),
		},
		Type: kind, Reason: e.Reason, Message: cut(e.Message, 1000),
		Source:              corev1.EventSource{Component: "infra-provider"},
		ReportingController: "infra.cloud.pingcap.com/infra-provider",
		FirstTimestamp:      now, LastTimestamp: now, Count: 1,
	}
}

// cut bounds a text: Events hold 1,024 bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && s[end]&0xC0 == 0x80 { // not inside a character
		end--
	}
	return s[:end] + " …"
}

// mostSentence is the longest waitingFor, in bytes.
const mostSentence = 500

// Teller writes what waits say to status.operation.waitingFor. Best effort: a
// sentence that is lost is only not shown.
type Teller struct {
	Activities *Activities
}

// Tell writes the sentence; an empty one removes it.
func (t Teller) Tell(ctx context.Context, object contract.ObjectRef, sentence string) {
	if err := t.tell(ctx, object, sentence); err != nil && !errors.Is(err, context.Canceled) {
		slog.DebugContext(ctx, "waitingFor not told", "object", object.String(), "error", err)
	}
}

func (t Teller) tell(ctx context.Context, object contract.ObjectRef, sentence string) error {
	o, err := newObject(object.Kind)
	if err != nil {
		return err
	}
	if _, err := get(ctx, t.Activities.Client, object.Namespace, object.Name, o); err != nil {
		return err
	}
	// Without status.operation a sentence alone would be no valid status; and
	// an object of another identity is not the one that waits.
	if o.Common().Operation == nil || (object.ID != "" && o.GetAnnotations()[v1.AnnotationID] != object.ID) {
		return nil
	}
	status := map[string]any{}
	if sentence != "" {
		status["operation"] = map[string]any{"waitingFor": cut(sentence, mostSentence)}
	}
	return t.Activities.applyStatus(ctx, object, string(o.GetUID()), ownerWait, status, nil)
}
