package management

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

func TestVersions(t *testing.T) {
	var v versions
	require.Equal(t, "7", v.newest("a", "7"), "nothing is remembered")
	v.wrote("a", "9")
	v.wrote("a", "8") // an answer that arrived late
	require.Equal(t, "9", v.newest("a", "7"))
	require.Equal(t, "10", v.newest("a", "10"), "somebody wrote after us")
	require.Equal(t, "7", v.newest("b", "7"))
	v.wrote("a", "not a number")
	require.Equal(t, "opaque", v.newest("a", "opaque"))
	for i := range mostVersions {
		v.wrote(strconv.Itoa(i), "1")
	}
	require.LessOrEqual(t, len(v.of), mostVersions)
}

// Two reports in a row cost one write each, although the cache has not seen
// the first when the second is sent.
func TestReportsInARowMakeNoConflict(t *testing.T) {
	stale := network()
	stale.ResourceVersion = "100"
	version, conflicts, live := 100, 0, 0
	a, _ := activities(t, interceptor.Funcs{
		SubResourceApply: func(_ context.Context, _ client.Client, _ string, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
			u := o.(interface{ GetResourceVersion() string })
			if u.GetResourceVersion() != strconv.Itoa(version) {
				conflicts++
				return apierrors.NewConflict(schema.GroupResource{Resource: "networks"}, "n1", nil)
			}
			version++
			o.(interface{ SetResourceVersion(string) }).SetResourceVersion(strconv.Itoa(version))
			return nil
		},
	}, stale)
	a.Live = interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			live++
			err := c.Get(ctx, key, o, opts...)
			o.SetResourceVersion(strconv.Itoa(version))
			return err
		},
	})
	a.Client = cacheAt(a.Client.(client.WithWatch), "100")
	for range 3 {
		_, err := a.ApplyObjectStatus(context.Background(), contract.ObjectStatus{Ref: networkRef, UID: "uid-1", Phase: v1.PhaseCreating})
		require.NoError(t, err)
	}
	require.Zero(t, conflicts)
	require.Zero(t, live)

	version = 200 // somebody else wrote: one conflict, and then it is known
	for range 2 {
		_, err := a.ApplyObjectStatus(context.Background(), contract.ObjectStatus{Ref: networkRef, UID: "uid-1", Phase: v1.PhaseNormal})
		require.NoError(t, err)
	}
	require.Equal(t, 1, conflicts)
	require.Equal(t, 1, live)
}

// cacheAt is a client whose cache stays at a version.
func cacheAt(c client.WithWatch, version string) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if _, other := o.(*unstructured.Unstructured); !other {
				o.SetResourceVersion(version)
			}
			return err
		},
	})
}
