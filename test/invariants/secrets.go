package invariants

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// SearchHistories looks for the marker in every history of the stack's Temporal
// namespace. known is a text that some history must hold: a search in payloads
// that cannot be read would prove nothing.
func (c *Checker) SearchHistories(ctx context.Context, s *stack.Stack, known string) error {
	all, err := s.Workflows(ctx, "")
	if err != nil {
		return err
	}
	found := false
	for _, w := range all {
		h, err := s.History(ctx, w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId())
		if err != nil {
			return err
		}
		raw, err := readable(h)
		if err != nil {
			return err
		}
		c.NoSecret("the history of "+w.GetExecution().GetWorkflowId(), raw)
		found = found || bytes.Contains(raw, []byte(known))
	}
	if !found {
		return fmt.Errorf("none of %d histories holds %q: they cannot be searched", len(all), known)
	}
	return nil
}

// readable is a history as JSON with payloads that can be searched.
func readable(h *historypb.History) ([]byte, error) {
	return temporalproto.CustomJSONMarshalOptions{
		Metadata: map[string]any{commonpb.EnablePayloadShorthandMetadataKey: true},
	}.Marshal(h)
}

// SearchEvents looks for the marker in every Kubernetes Event.
func (c *Checker) SearchEvents(ctx context.Context) error {
	var list corev1.EventList
	if err := c.opts.Stack.Kube.List(ctx, &list); err != nil {
		return err
	}
	c.noSecretIn("an Event", list)
	return nil
}

// SearchLogs looks for the marker in all files of a folder.
func (c *Checker) SearchLogs(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s holds no logs", folder)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		c.NoSecret(f, raw)
	}
	return nil
}

func objectsOf(list client.ObjectList) (out []v1.Object) {
	_ = apimeta.EachListItem(list, func(o runtime.Object) error {
		out = append(out, o.(v1.Object))
		return nil
	})
	return out
}
