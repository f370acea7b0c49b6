package wake

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func secret(name, refersTo string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name, Annotations: map[string]string{"to": refersTo}}}
}

func secretKey(name string) Key { return Key{Kind: "Secret", Namespace: "infra", Name: name} }

func TestHub(t *testing.T) {
	var h Hub
	woken, stop := h.Subscribe(secretKey("mine"), secretKey("mine too"))
	ready := func() bool {
		select {
		case <-woken:
			return true
		default:
			return false
		}
	}
	event := func(name string) { h.Notify(nil, secret(name, "")) }

	event("other")
	require.False(t, ready())
	event("mine")
	event("mine too")
	require.True(t, ready())
	require.False(t, ready(), "two events before it was read count as one")
	h.Notify(nil, "not an object")
	h.Notify(nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "mine"}})
	require.False(t, ready(), "another kind")
	stop()
	event("mine")
	require.False(t, ready())
	require.Empty(t, h.subs)

	none, stop := (*Hub)(nil).Subscribe(secretKey("mine"))
	require.Nil(t, none)
	stop()
}

// What refers to an object, or has ceased to, wakes who waits for its users.
func TestUsers(t *testing.T) {
	h := Hub{References: func(o client.Object) []Key {
		k := secretKey(o.GetAnnotations()["to"])
		k.Users = true
		return []Key{k}
	}}
	users := secretKey("used")
	users.Users = true
	var events []string
	defer h.On(func(o client.Object, gone bool) { events = append(events, o.GetName()+" "+strconv.FormatBool(gone)) }, users)()
	h.Notify(nil, secret("used", ""))
	require.Empty(t, events, "the object itself")
	h.Notify(nil, secret("user", "used"))
	h.Notify(secret("user", "used"), secret("user", "other"))
	h.Notify(secret("user", "other"), nil)
	h.Notify(secret("user", "used"), nil)
	require.Equal(t, []string{"user false", "user false", "user true"}, events)
}

// An event costs who subscribed to its object, not who subscribed.
func TestAnEventCostsItsOwnSubscribers(t *testing.T) {
	var h Hub
	calls := 0
	for i := range 2000 {
		defer h.On(func(client.Object, bool) { calls++ }, secretKey(strconv.Itoa(i%1000)))()
	}
	for range 300 {
		h.Notify(nil, secret("of nobody", ""))
	}
	require.Zero(t, calls)
	h.Notify(nil, secret("7", ""))
	require.Equal(t, 2, calls)
}
