package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const (
	// ReasonWorkflowFailing is the reason of condition and Event on an object
	// whose workflow workers fail to go on with.
	ReasonWorkflowFailing = "WorkflowTaskFailed"
	// ownerFailing is the field manager of the condition WorkflowFailing.
	ownerFailing = client.FieldOwner("infra-bridge-failing")

	// lookEvery is how often Temporal is asked: one call, however many objects
	// there are.
	lookEvery = time.Minute
	// mostFailing bounds what one look tells. When everything fails, which is
	// how a bad deploy looks, the first of them say so.
	mostFailing = 200
)

// Lister is what Failing asks of Temporal.
type Lister interface {
	temporal.Histories
	ListWorkflowExecutions(ctx context.Context, in *workflowservice.ListWorkflowExecutionsRequest, opts ...grpc.CallOption) (*workflowservice.ListWorkflowExecutionsResponse, error)
}

// Failing tells on objects that workers fail to go on with their workflows, or
// with their operations', as when a search attribute is missing in the Temporal
// namespace. A workflow whose tasks fail can tell nothing itself, and its object
// reads as it did before.
type Failing struct {
	// Temporal, and the namespace of the workflows in it.
	Temporal          Lister
	TemporalNamespace string
	// Namespace of the objects.
	Namespace string
	// Reader reads objects past the cache, which has their metadata only; Client
	// writes their status.
	Reader client.Reader
	Client client.Client
	Events events.EventRecorder
	Log    *slog.Logger
	// Every is the time between two looks; a minute when 0.
	Every time.Duration

	told map[objectKey]bool // nil until the first look at the objects
}

// Start looks until ctx ends; it is a manager.Runnable, of the leader only.
func (f *Failing) Start(ctx context.Context) error {
	every := f.Every
	if every == 0 {
		every = lookEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := f.look(ctx); err != nil && ctx.Err() == nil {
			f.Log.Warn("cannot tell which workflows fail; looked again in "+every.String(), "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks Temporal what fails, and brings the conditions of the objects up to
// date.
func (f *Failing) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if f.told == nil { // the bridge before this one may have told of some
		told, err := f.tellsSo(ctx)
		if err != nil {
			return err
		}
		f.told = told
	}
	failing, all, err := f.failing(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for key, run := range failing {
		errs = append(errs, f.tell(ctx, key, run))
	}
	for key := range f.told {
		if _, still := failing[key]; all && !still {
			errs = append(errs, f.mended(ctx, key))
		}
	}
	return errors.Join(errs...)
}

// failing are the workflows that fail, by their object. Of an object's own
// workflow and its operation's the former counts: without it nothing starts. all
// is false when there are more.
func (f *Failing) failing(ctx context.Context) (found map[objectKey]*workflowpb.WorkflowExecutionInfo, all bool, err error) {
	resp, err := f.Temporal.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: f.TemporalNamespace, PageSize: mostFailing, Query: temporal.QueryFailing,
	})
	if err != nil {
		return nil, false, fmt.Errorf("list of workflows that fail: %w", err)
	}
	found = map[objectKey]*workflowpb.WorkflowExecutionInfo{}
	for _, run := range resp.GetExecutions() {
		id := run.GetExecution().GetWorkflowId()
		kind, namespace, name, ok := temporal.OwnerOf(id)
		if !ok || namespace != f.Namespace {
			continue
		}
		for _, gvk := range Kinds() {
			key := objectKey{gvk.Kind, types.NamespacedName{Namespace: namespace, Name: name}}
			if strings.ToLower(gvk.Kind) != kind || found[key] != nil && strings.Count(id, "/") > 2 {
				continue
			}
			found[key] = run
		}
	}
	return found, len(resp.GetNextPageToken()) == 0, nil
}

// tellsSo are the objects that have the condition.
func (f *Failing) tellsSo(ctx context.Context) (map[objectKey]bool, error) {
	told := map[objectKey]bool{}
	for _, gvk := range Kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := f.Reader.List(ctx, list, client.InNamespace(f.Namespace)); err != nil {
			return nil, fmt.Errorf("list of %s: %w", gvk.Kind, err)
		}
		for _, u := range list.Items {
			if meta.FindStatusCondition(conditionsOf(&u), v1.ConditionWorkflowFailing) != nil {
				told[objectKey{gvk.Kind, client.ObjectKeyFromObject(&u)}] = true
			}
		}
	}
	return told, nil
}

// tell writes condition and Event, unless they say so already.
func (f *Failing) tell(ctx context.Context, key objectKey, run *workflowpb.WorkflowExecutionInfo) error {
	u := f.object(key)
	if err := f.Reader.Get(ctx, key.name, u); err != nil {
		return client.IgnoreNotFound(err)
	}
	id := run.GetExecution().GetWorkflowId()
	was := meta.FindStatusCondition(conditionsOf(u), v1.ConditionWorkflowFailing)
	if was != nil && was.Status == metav1.ConditionTrue && strings.Contains(was.Message, "workflow "+id+" ") {
		f.told[key] = true
		return nil
	}
	why, err := temporal.LatestFailure(ctx, f.Temporal, f.TemporalNamespace, id, run.GetExecution().GetRunId())
	if err != nil {
		return fmt.Errorf("history of %s: %w", id, err)
	}
	sentence := why.Sentence(id)
	f.Log.Error(sentence, "object", key.name.String(), "kind", key.kind)
	c := metav1.Condition{Type: v1.ConditionWorkflowFailing, Status: metav1.ConditionTrue, Reason: ReasonWorkflowFailing,
		Message: cut(sentence, 1000), ObservedGeneration: u.GetGeneration(), LastTransitionTime: metav1.Now()}
	if was != nil && was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	if err := f.apply(ctx, key, c); err != nil {
		return err
	}
	f.told[key] = true
	f.Events.Eventf(u, nil, corev1.EventTypeWarning, ReasonWorkflowFailing, "Work", "%s", c.Message)
	return nil
}

// mended takes the condition away.
func (f *Failing) mended(ctx context.Context, key objectKey) error {
	if err := f.apply(ctx, key); err != nil {
		return err
	}
	delete(f.told, key)
	f.Log.Info("workers go on with its workflow again", "object", key.name.String(), "kind", key.kind)
	return nil
}

// apply applies the whole of what ownerFailing has in the status of an object
// that exists.
func (f *Failing) apply(ctx context.Context, key objectKey, conditions ...metav1.Condition) error {
	status := map[string]any{}
	if len(conditions) > 0 {
		var list []any
		for _, c := range conditions {
			m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
			if err != nil {
				return err
			}
			list = append(list, m)
		}
		status["conditions"] = list
	}
	u := f.object(key)
	u.Object["status"] = status
	u.SetNamespace(key.name.Namespace)
	u.SetName(key.name.Name)
	return client.IgnoreNotFound(f.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), ownerFailing, client.ForceOwnership))
}

func (f *Failing) object(key objectKey) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1.GroupVersion.WithKind(key.kind))
	return u
}

func conditionsOf(u *unstructured.Unstructured) []metav1.Condition {
	var status v1.CommonStatus
	if m, ok := u.Object["status"].(map[string]any); ok {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(m, &status) // what is not ours is no condition of ours
	}
	return status.Conditions
}

// cut bounds a text to a number of bytes, between characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " …"
}
