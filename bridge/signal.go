package bridge

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// signalTimeout bounds every call to Temporal, so that a reconcile worker is
// never blocked longer. A signal takes about 15 ms.
const signalTimeout = 5 * time.Second

// ReasonNotAccepted is the reason of the Event on an object whose signal
// Temporal refused.
const ReasonNotAccepted = "SignalNotAccepted"

// ReasonFinalizerPutBack is the reason of the Event on an object that lives and
// whose finalizer somebody took away. Where webhooks are on they put it back,
// and warn in the same words.
const ReasonFinalizerPutBack = "FinalizerPutBack"

// Starter is what the bridge uses of the Temporal client.
type Starter interface {
	SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any,
		options temporalclient.StartWorkflowOptions, workflow any, workflowArgs ...any) (temporalclient.WorkflowRun, error)
}

// Signaller tells object workflows at which generation their objects are, and
// starts the workflows that do not run. It is shared by all reconcilers.
type Signaller struct {
	temporal Starter
	events   events.EventRecorder
	log      *slog.Logger
	backoff  workqueue.TypedRateLimiter[objectKey]
	down     atomic.Bool // Temporal did not answer the last signal
}

type objectKey struct {
	kind string
	name types.NamespacedName
}

// NewSignaller returns a Signaller. An object whose signal fails is tried again
// after 0.5 s, then after twice the time, up to 30 s.
func NewSignaller(temporal Starter, events events.EventRecorder, log *slog.Logger) *Signaller {
	return &Signaller{
		temporal: temporal, events: events, log: log,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[objectKey](500*time.Millisecond, 30*time.Second),
	}
}

// Signal tells the workflow of obj its generation. It returns 0 when Temporal
// took the signal, else the time after which to try again.
func (s *Signaller) Signal(ctx context.Context, kind string, obj *metav1.PartialObjectMetadata) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	key := objectKey{kind, types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}}
	id := temporal.ObjectID(kind, obj.Namespace, obj.Name)

	start := time.Now()
	_, err := s.temporal.SignalWithStartWorkflow(ctx, id, temporal.SignalChanged,
		temporal.Changed{Generation: obj.Generation}, startOptions(kind, obj), kind,
		temporal.Object{Kind: kind, Namespace: obj.Namespace, Name: obj.Name, ID: obj.Annotations[v1.AnnotationID]})
	outcome := outcomeOf(err)
	observe(kind, outcome, time.Since(start))

	if err == nil {
		s.backoff.Forget(key)
		if s.down.CompareAndSwap(true, false) {
			s.log.Info("Temporal answers again; objects that changed meanwhile are being signalled")
		}
		return 0
	}
	s.report(outcome, id, obj, err)
	return s.backoff.When(key)
}

// Gone tells the workflow of an object that exists no more, if there is one. It
// returns 0 when that is done, else the time after which to try again.
func (s *Signaller) Gone(ctx context.Context, kind string, name types.NamespacedName) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	key := objectKey{kind, name}
	err := s.temporal.SignalWorkflow(ctx, temporal.ObjectID(kind, name.Namespace, name.Name), "", temporal.SignalChanged, temporal.Changed{})
	var none *serviceerror.NotFound
	if err == nil || errors.As(err, &none) {
		s.backoff.Forget(key)
		return 0
	}
	return s.backoff.When(key)
}

// report says once that Temporal is away, and for each object that Temporal
// refused it: only the latter is about the object.
func (s *Signaller) report(outcome Outcome, id string, obj *metav1.PartialObjectMetadata, err error) {
	if outcome == Unavailable {
		if s.down.CompareAndSwap(false, true) {
			s.log.Error("Temporal does not answer; signals are repeated until it does", "workflow", id, "err", err)
		}
		return
	}
	s.log.Error("Temporal did not accept a signal; it is repeated", "workflow", id, "outcome", outcome, "err", err)
	if outcome == Refused {
		s.events.Eventf(obj, nil, corev1.EventTypeWarning, ReasonNotAccepted, "Signal",
			"Temporal refused the signal to workflow %s: %v. For the operator: see to the Temporal namespace (search attributes, limits of the workflow); it is repeated by itself",
			id, err)
	}
}

// putBack tells that a finalizer was put back, and what to do instead.
func (s *Signaller) putBack(obj *metav1.PartialObjectMetadata, finalizer string) {
	s.events.Eventf(obj, nil, corev1.EventTypeWarning, ReasonFinalizerPutBack, "Claim",
		"the finalizer %s was taken away and is put back: the object is not being deleted, and a deletion removes everything that it has outside. "+
			"To move it, set spec.deletionPolicy: Retain first; while a tool is at work, the annotation %s=true keeps a deletion waiting",
		finalizer, v1.AnnotationPaused)
}

// startOptions adds what only the bridge knows: whose turn it is.
func startOptions(kind string, obj *metav1.PartialObjectMetadata) temporalclient.StartWorkflowOptions {
	o := temporal.StartObject(kind, obj.Namespace, obj.Name)
	o.Priority.FairnessKey = fairnessKey(obj)
	return o
}

// fairnessKey says in whose turn an object workflow's tasks are dealt out: the
// Provider's, which the webhooks write into a label, else the namespace's. The
// Account is not in the metadata, which is all that the bridge reads.
func fairnessKey(obj *metav1.PartialObjectMetadata) string {
	for _, label := range []string{v1.LabelProvider, v1.LabelNetwork} {
		if name := obj.Labels[label]; name != "" {
			return cutKey(name)
		}
	}
	return cutKey("ns/" + obj.Namespace)
}

// cutKey keeps Temporal's limit of 64 bytes.
func cutKey(key string) string { return key[:min(len(key), 64)] }

// Outcome of a signal; a label of the metric.
type Outcome string

// Outcomes of a signal.
const (
	Accepted Outcome = "accepted"
	// Unavailable: Temporal, or its namespace, did not answer within 5 s.
	Unavailable Outcome = "unavailable"
	// Throttled: Temporal asked to slow down.
	Throttled Outcome = "throttled"
	// Refused: Temporal does not accept the signal as it is.
	Refused Outcome = "refused"
	// Failed: anything else, such as missing permissions.
	Failed Outcome = "failed"
)

func outcomeOf(err error) Outcome {
	var (
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		noNamespace *serviceerror.NamespaceNotFound
		exhausted   *serviceerror.ResourceExhausted
		invalid     *serviceerror.InvalidArgument
	)
	switch {
	case err == nil:
		return Accepted
	case errors.As(err, &unavailable), errors.As(err, &deadline), errors.As(err, &noNamespace),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Unavailable
	case errors.As(err, &exhausted):
		return Throttled
	case errors.As(err, &invalid):
		return Refused
	default:
		return Failed
	}
}
