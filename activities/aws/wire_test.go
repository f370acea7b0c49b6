package aws

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// wire is an HTTP transport that records the operations it carries, and loses
// the answer to one that it is told: the call takes effect, the caller sees a
// reset connection.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	toLose string
	did    bool
	calls  []string
}

func newWire() *wire { return &wire{next: http.DefaultTransport} }

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	operation := awsmiddleware.GetOperationName(r.Context())
	response, err := w.next.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, operation)
	if err != nil || w.toLose == "" || operation != w.toLose {
		return response, err
	}
	_ = response.Body.Close()
	w.toLose, w.did = "", true
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("the emulator refused %s with %s", operation, response.Status)
	}
	return nil, fmt.Errorf("read tcp 127.0.0.1: %w", syscall.ECONNRESET)
}

// lose loses the answer to the next call of an operation.
func (w *wire) lose(operation string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.toLose, w.did = operation, false
}

// lost reports whether the answer was lost.
func (w *wire) lost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.did
}

// reset forgets the recorded operations.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = nil
}

// changes returns the recorded operations that are no reads.
func (w *wire) changes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.calls), func(o string) bool {
		return strings.HasPrefix(o, "Get") || strings.HasPrefix(o, "List") || strings.HasPrefix(o, "Describe") || strings.HasPrefix(o, "Head")
	})
}

func requireConflict(t *testing.T, err error) {
	t.Helper()
	require.Truef(t, faults.Is(err, faults.Conflict), "want a Conflict, got %v", err)
}
