package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Resource is one thing in the AWS emulator.
type Resource struct {
	Type    string            `json:"type"`
	ID      string            `json:"id"`
	State   string            `json:"state"`
	Tags    map[string]string `json:"tags"`
	Owner   string            `json:"owner"`
	Cluster string            `json:"cluster"`
}

// Fault is a fault as the control API takes it; see GET / there.
type Fault struct {
	ID        string   `json:"id,omitempty"`
	Target    string   `json:"target"`
	Kind      string   `json:"kind"`
	Service   string   `json:"service,omitempty"`
	Operation string   `json:"operation,omitempty"`
	Account   string   `json:"account,omitempty"`
	Rate      float64  `json:"rate,omitempty"` // calls a second that throttle lets through
	Phase     string   `json:"phase,omitempty"`
	Component string   `json:"component,omitempty"`
	Codes     []string `json:"codes,omitempty"`
	Message   string   `json:"message,omitempty"`
	Count     int      `json:"count,omitempty"`
	Delay     string   `json:"delay,omitempty"` // such as 4s
	Looks     int      `json:"looks,omitempty"` // of eventual: calls that find nothing
	Every     int      `json:"every,omitempty"` // of eventual: only every so many-th operation
	Skip      int      `json:"skip,omitempty"`  // of eventual: after so many
	Hits      int      `json:"hits,omitempty"`  // how often it has struck
}

// Inventory lists everything in the AWS emulator that carries an identity or a
// cluster tag.
func (s *Stack) Inventory(ctx context.Context) ([]Resource, error) {
	var list []Resource
	return list, s.control(ctx, http.MethodGet, "/inventory", nil, &list)
}

// Call is a request to the AWS emulator.
type Call struct {
	Account   string `json:"account"`
	Service   string `json:"service"`
	Operation string `json:"operation"`
	Fault     string `json:"fault"` // id of the one that struck
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Lost      bool   `json:"lost"`
}

// Calls lists the calls of one operation, of all when it is empty.
func (s *Stack) Calls(ctx context.Context, operation string) ([]Call, error) {
	var list []Call
	return list, s.control(ctx, http.MethodGet, "/calls?operation="+url.QueryEscape(operation), nil, &list)
}

// AddFault switches a fault on and returns its id.
func (s *Stack) AddFault(ctx context.Context, f Fault) (string, error) {
	var added Fault
	err := s.control(ctx, http.MethodPost, "/faults", f, &added)
	return added.ID, err
}

// Faults lists the faults that are on.
func (s *Stack) Faults(ctx context.Context) (list []Fault, err error) {
	return list, s.control(ctx, http.MethodGet, "/faults", nil, &list)
}

// RemoveFault switches a fault off.
func (s *Stack) RemoveFault(ctx context.Context, id string) error {
	return s.control(ctx, http.MethodDelete, "/faults/"+url.PathEscape(id), nil, nil)
}

// Kill kills a process of the stack with SIGKILL and starts it again.
func (s *Stack) Kill(ctx context.Context, process string) error {
	if err := s.control(ctx, http.MethodPost, "/processes/"+process+"/kill", nil, nil); err != nil {
		return err
	}
	return s.control(ctx, http.MethodPost, "/processes/"+process+"/start", nil, nil)
}

// WipeTemporal has the Temporal server lose all its data. It is empty, at the
// same address, when this returns; namespaces other than the stack's are gone.
func (s *Stack) WipeTemporal(ctx context.Context) error {
	return s.control(ctx, http.MethodPost, "/processes/temporal/wipe", nil, nil)
}

// Outage makes a system unreachable: apiserver, garden, temporal or aws. It
// ends by itself after d.
func (s *Stack) Outage(ctx context.Context, system string, d time.Duration) error {
	return s.control(ctx, http.MethodPost, "/outage/"+system+"?for="+d.String(), nil, nil)
}

// Everything lists all that exists in the AWS emulator, tagged or not.
func (s *Stack) Everything(ctx context.Context) ([]Resource, error) {
	var list []Resource
	return list, s.control(ctx, http.MethodGet, "/inventory?all=true", nil, &list)
}

func (s *Stack) control(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(s.State.Control, "/")+path, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("control API: %s %s: %s: %s", method, path, resp.Status, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}
