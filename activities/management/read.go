package management

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// notTheOperations are the conditions that others than the operation own.
var notTheOperations = []string{v1.ConditionReady, v1.ConditionDeletionBlocked, v1.ConditionInUse, v1.ConditionWorkflowFailing}

// ReadObject reads a custom resource; one that does not exist is no error.
func (a *Activities) ReadObject(ctx context.Context, in contract.ReadObjectInput) (contract.ObjectState, error) {
	o, err := newObject(in.Ref.Kind)
	if err != nil {
		return contract.ObjectState{}, err
	}
	reader := client.Reader(a.Client)
	if in.Live {
		reader = a.Live
	}
	if _, err := get(ctx, reader, in.Ref.Namespace, in.Ref.Name, o); err != nil {
		return contract.ObjectState{}, faults.IgnoreGone(err)
	}
	s, err := stateOf(o)
	if err != nil {
		return contract.ObjectState{}, err
	}
	if in.Brief {
		s = brief(s)
	}
	a.addFacts(ctx, o, &s)
	s.Vanished, err = a.vanished(ctx, in.Ref.Namespace, in.Holders)
	return s, err
}

// brief keeps what decisions look at.
func brief(s contract.ObjectState) contract.ObjectState {
	s.Resources, s.Details = nil, nil
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool {
		return c.Type != v1.ConditionProgressing && c.Type != v1.ConditionStalled
	})
	if s.Operation != nil {
		op := *s.Operation
		op.Steps = slices.DeleteFunc(slices.Clone(op.Steps), func(s v1.StepStatus) bool { return s.State != v1.StepStalled })
		s.Operation = &op
	}
	return s
}

// vanished lists the holders that are no more: their object is gone or another
// one has its name, or the operation that held has ended. The cache is asked
// first; what it does not know is looked for past it.
func (a *Activities) vanished(ctx context.Context, namespace string, holders []contract.Holder) (at []int, err error) {
	for i, h := range holders {
		alive := false
		for _, reader := range []client.Reader{a.Client, a.Live} {
			o, err := newObject(h.Object.Kind)
			if err != nil { // a newer worker knows it
				alive = true
				break
			}
			if _, err := get(ctx, reader, namespace, h.Object.Name, o); faults.IgnoreGone(err) != nil {
				return nil, err
			}
			if alive = holds(o, h); alive {
				break
			}
		}
		if !alive {
			at = append(at, i)
		}
	}
	return at, nil
}

// holds says whether the object is the holder's, and the operation that holds,
// if one does, has not ended. An object runs one operation at a time, so a
// later one means that the holder has ended, whatever became of it; an earlier
// one that the holder has told nothing of itself yet.
func holds(o v1.Object, h contract.Holder) bool {
	if string(o.GetUID()) != h.UID {
		return false
	}
	op := o.Common().Operation
	switch {
	case h.Operation == "", op == nil:
		return true
	case op.ID == h.Operation:
		return op.Active()
	}
	return !temporal.LaterOperation(op.ID, h.Operation)
}

func stateOf(o v1.Object) (contract.ObjectState, error) {
	annotations, status := o.GetAnnotations(), o.Common()
	s := contract.ObjectState{
		Exists:             true,
		UID:                string(o.GetUID()),
		ID:                 annotations[v1.AnnotationID],
		Generation:         o.GetGeneration(),
		Deleting:           o.GetDeletionTimestamp() != nil,
		Held:               o.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(o, v1.Finalizer(wake.KindOf(o))),
		Paused:             annotations[v1.AnnotationPaused] == "true",
		Migrated:           annotations[v1.AnnotationMigrated] == "true",
		Minted:             annotations[v1.AnnotationIDMintedFor] == string(o.GetUID()),
		ForceDelete:        annotations[v1.AnnotationForceDelete] == string(o.GetUID()),
		Verb:               annotations[v1.AnnotationOperation],
		DeletionPolicy:     o.GetDeletionPolicy(),
		ObservedGeneration: status.ObservedGeneration,
		Phase:              status.Phase,
		Ready:              meta.FindStatusCondition(status.Conditions, v1.ConditionReady),
		Operation:          status.Operation,
		Resources:          status.Resources,
		LastManager:        lastManager(o.GetManagedFields()),
		VerbManager:        verbManager(o.GetManagedFields()),
	}
	for _, c := range status.Conditions {
		if !slices.Contains(notTheOperations, c.Type) {
			s.Conditions = append(s.Conditions, c)
		}
	}
	var err error
	s.Details, err = detailsOf(o)
	return s, err
}

// detailsOf is the kind's own part of the status: what CommonStatus has not.
func detailsOf(o v1.Object) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var whole struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	for _, common := range []string{"observedGeneration", "phase", "conditions", "operation", "lastError", "resources", "clusters", "leases"} {
		delete(whole.Status, common)
	}
	if len(whole.Status) == 0 {
		return nil, nil
	}
	return whole.Status, nil
}

// addFacts fills what summaries and search attributes show, as far as the
// cache knows it. What is missing is left empty: it is for display only.
func (a *Activities) addFacts(ctx context.Context, o v1.Object, s *contract.ObjectState) {
	ns := o.GetNamespace()
	switch o := o.(type) {
	case *v1.Cluster:
		s.Network = string(o.Spec.Network)
		if n, err := get(ctx, a.Client, ns, s.Network, &v1.Network{}); err == nil {
			a.networkFacts(ctx, n, s)
		}
	case *v1.Network:
		a.networkFacts(ctx, o, s)
		s.Leases, s.Clusters = o.Status.Leases, o.Status.Clusters
		ref := contract.ObjectRef{Kind: v1.KindNetwork, Namespace: ns, Name: o.Name}
		if clusters, err := listUsers(ctx, a.Client, ref, []string{v1.KindCluster}, byReference(ref)...); err == nil {
			s.Users = int32(len(clusters))
		}
	case *v1.Provider:
		s.Provider = o.Name
		a.providerFacts(ctx, o, s)
	case *v1.ProviderType:
		s.Cloud = string(o.Spec.Cloud)
	}
}

func (a *Activities) networkFacts(ctx context.Context, n *v1.Network, s *contract.ObjectState) {
	s.Provider, s.Region = string(n.Spec.Provider), string(n.Spec.Region)
	if p, err := get(ctx, a.Client, n.Namespace, s.Provider, &v1.Provider{}); err == nil {
		a.providerFacts(ctx, p, s)
	}
}

func (a *Activities) providerFacts(ctx context.Context, p *v1.Provider, s *contract.ObjectState) {
	s.Account = string(p.Spec.Account)
	if pt, err := get(ctx, a.Client, p.Namespace, string(p.Spec.Type), &v1.ProviderType{}); err == nil {
		s.Cloud = string(pt.Spec.Cloud)
	}
}

// ready reports whether the condition Ready is True.
func ready(o v1.Object) bool {
	return meta.IsStatusConditionPresentAndEqual(o.Common().Conditions, v1.ConditionReady, metav1.ConditionTrue)
}
