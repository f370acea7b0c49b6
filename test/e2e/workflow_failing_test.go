package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// TestMissingSearchAttribute takes a search attribute away while an object
// rests: kubectl and infractl say why its next change is not taken up, and what
// to do; and nothing is left of that when it is done.
func TestMissingSearchAttribute(t *testing.T) {
	ctx := within(t, 6*time.Minute)
	samples, err := stack.MarkedSamples(marker)
	require.NoError(t, err)
	for _, o := range samples {
		if o.GetKind() == v1.KindProviderType {
			require.NoError(t, world.Apply(ctx, o))
		}
	}
	pt := providerType()
	look := func() error { return world.Kube.Get(ctx, client.ObjectKeyFromObject(pt), pt) }
	settles := func() {
		eventually(t, 2*time.Minute, "it is Ready, and its workflow works", func() error {
			if err := look(); err != nil {
				return err
			}
			if told := meta.FindStatusCondition(pt.Status.Conditions, v1.ConditionWorkflowFailing); told != nil || !isReady(pt) {
				return fmt.Errorf("%s, %+v", describe(pt), told)
			}
			return nil
		})
	}
	settles()

	attribute := temporal.AttrPhase.GetName()
	_, err = world.Temporal.OperatorService().RemoveSearchAttributes(ctx, &operatorservice.RemoveSearchAttributesRequest{
		Namespace: world.State.TemporalNamespace, SearchAttributes: []string{attribute}})
	require.NoError(t, err)
	require.NoError(t, world.Kube.Patch(ctx, pt, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"timeouts":{"shootCreate":"61m"}}}`))))
	eventually(t, 3*time.Minute, "the object says that its workflow fails", func() error {
		if err := look(); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(pt.Status.Conditions, v1.ConditionWorkflowFailing) {
			return fmt.Errorf("%+v", pt.Status.Conditions)
		}
		return nil
	})
	says := meta.FindStatusCondition(pt.Status.Conditions, v1.ConditionWorkflowFailing).Message
	require.Contains(t, says, attribute)
	require.Contains(t, says, "For the operator: run deploy/temporal/setup.sh")
	out, err := infractl("describe", "providertype", pt.Name)
	require.NoError(t, err)
	require.Contains(t, out, "of a workflow task: workers fail to go on with workflow providertype/infra/"+pt.Name)
	require.Contains(t, out, "Warning  WorkflowTaskFailed")

	_, err = world.Temporal.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: world.State.TemporalNamespace, SearchAttributes: map[string]enumspb.IndexedValueType{attribute: enumspb.INDEXED_VALUE_TYPE_KEYWORD}})
	require.NoError(t, err)
	settles()
	remove(ctx, t, pt)
}
