package wake

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestHub(t *testing.T) {
	var h Hub
	woken, stop := h.Subscribe(func(o client.Object) bool { return o.GetName() == "mine" })
	ready := func() bool {
		select {
		case <-woken:
			return true
		default:
			return false
		}
	}
	event := func(name string) { h.notify(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}) }

	event("other")
	require.False(t, ready())
	event("mine")
	event("mine")
	require.True(t, ready())
	require.False(t, ready(), "two events before it was read count as one")
	h.notify("not an object")
	stop()
	event("mine")
	require.False(t, ready())

	none, stop := (*Hub)(nil).Subscribe(nil)
	require.Nil(t, none)
	stop()
}
