package v1alpha1_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/api/v1/crdtest"
)

const crdFile = "../../../config/crd/balancer.x-k8s.io_balancers.yaml"

// crd returns the paths of the scale subresource and the printed columns.
func crd(t *testing.T) (scale [3]string, columns []string) {
	t.Helper()
	raw, err := os.ReadFile(crdFile)
	require.NoError(t, err)
	parsed, err := crdtest.Parse(raw)
	require.NoError(t, err)
	require.Equal(t, "balancers", parsed.Spec.Names.Plural)
	require.Len(t, parsed.Spec.Versions, 1)
	sub, all := parsed.Spec.Subresources, parsed.Spec.AdditionalPrinterColumns
	if v := parsed.Spec.Versions[0]; v.Subresources != nil {
		sub, all = v.Subresources, v.AdditionalPrinterColumns
	}
	require.NotNil(t, sub.Status)
	for _, c := range all {
		columns = append(columns, c.Name)
	}
	return [3]string{sub.Scale.SpecReplicasPath, sub.Scale.StatusReplicasPath, *sub.Scale.LabelSelectorPath}, columns
}

func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(s))
	for _, o := range []client.Object{&v1alpha1.Balancer{}} {
		gvks, _, err := s.ObjectKinds(o)
		require.NoError(t, err)
		require.Equal(t, v1alpha1.GroupVersion.WithKind(v1alpha1.KindBalancer), gvks[0])
	}
}

// The sample is admitted, without a field that the API server would drop.
func TestSample(t *testing.T) {
	raw, err := os.ReadFile("../../../deploy/samples/balancing/20-balancer.yaml")
	require.NoError(t, err)
	o, err := crdtest.Decode(raw)
	require.NoError(t, err)
	kind := load(t)
	require.Empty(t, kind.Create(o))
	require.Empty(t, kind.Unknown(o))
}
