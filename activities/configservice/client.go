package configservice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const (
	// requestTimeout of one HTTP call.
	requestTimeout = 15 * time.Second
	// maxDocument bounds a document; the CRDs of TiDB Operator take about 2 MB.
	maxDocument = 16 << 20
	// maxCached bounds the number of documents kept; a fleet uses a handful.
	maxCached = 64
)

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Client talks to one config-service. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client

	mu        sync.Mutex
	documents map[string][]byte // by hash
}

// New returns a client of the service at baseURL, such as
// http://config-service.infra:8080.
func New(baseURL string) *Client {
	return &Client{
		base:      strings.TrimRight(baseURL, "/"),
		http:      &http.Client{Timeout: requestTimeout},
		documents: map[string][]byte{},
	}
}

// NetworkConfig returns the document of that hash.
func (c *Client) NetworkConfig(ctx context.Context, hash string) (*NetworkConfig, error) {
	var n NetworkConfig
	if err := c.document(ctx, hash, "NetworkConfig", &n); err != nil {
		return nil, err
	}
	return &n, nil
}

// ClusterConfig returns the document of that hash.
func (c *Client) ClusterConfig(ctx context.Context, hash string) (*ClusterConfig, error) {
	var cc ClusterConfig
	if err := c.document(ctx, hash, "ClusterConfig", &cc); err != nil {
		return nil, err
	}
	return &cc, nil
}

// which asks path for the hash of the document that fits the query.
func (c *Client) which(ctx context.Context, path string, query url.Values) (contract.ConfigRef, error) {
	body, err := c.get(ctx, path+"?"+query.Encode(), "config-service "+strings.TrimPrefix(path, "/v1/"))
	if err != nil {
		return contract.ConfigRef{}, err
	}
	var ref contract.ConfigRef
	if err := json.Unmarshal(body, &ref); err != nil || !hashPattern.MatchString(ref.Hash) {
		return contract.ConfigRef{}, broken("config-service "+path, "the answer holds no SHA-256 hash")
	}
	return ref, nil
}

// document fetches, verifies and decodes a document. Each call decodes afresh,
// so that callers may change what they get.
func (c *Client) document(ctx context.Context, hash, kind string, into any) error {
	resource := "config-service document " + hash
	if !hashPattern.MatchString(hash) {
		return faults.New(faults.Invalid, "BadHash", resource, "that is no SHA-256 hash")
	}
	body, err := c.bytes(ctx, hash, resource)
	if err != nil {
		return err
	}
	var meta struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(body, &meta); err != nil {
		return broken(resource, "it is no YAML: "+err.Error())
	}
	if meta.Kind != kind {
		return broken(resource, fmt.Sprintf("its kind is %q, not %s", meta.Kind, kind))
	}
	if err := yaml.Unmarshal(body, into); err != nil {
		return broken(resource, "it does not decode: "+err.Error())
	}
	return nil
}

func (c *Client) bytes(ctx context.Context, hash, resource string) ([]byte, error) {
	c.mu.Lock()
	body, ok := c.documents[hash]
	c.mu.Unlock()
	if ok {
		return body, nil
	}
	body, err := c.get(ctx, "/v1/configs/"+hash, resource)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return nil, broken(resource, "its bytes have another hash")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.documents) >= maxCached {
		clear(c.documents)
	}
	c.documents[hash] = body
	return body, nil
}

func (c *Client) get(ctx context.Context, path, resource string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, faults.New(faults.Invalid, "BadURL", resource, "%s", err).
			WithHint(faults.OwnerOperator, "correct CONFIG_SERVICE_URL of the worker")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		return nil, unreachable(resource, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, unreachable(resource, err)
	}
	if len(body) > maxDocument {
		return nil, broken(resource, fmt.Sprintf("it is larger than %d bytes", maxDocument))
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fromStatus(resp, body, resource)
	}
	return body, nil
}

// fromStatus classifies an answer that is no success.
func fromStatus(resp *http.Response, body []byte, resource string) error {
	var said struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		said.Message = "the config-service answered " + resp.Status
	}
	f := faults.New(faults.Transient, strconv.Itoa(resp.StatusCode), resource, "%s", said.Message)
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		f.Class = faults.Invalid
		return f.WithHint(faults.OwnerUser, "choose a version, region and operator that the config-service knows, or have this one added there")
	case code == http.StatusTooManyRequests:
		f.Class = faults.Throttled
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			f.RetryAt = time.Duration(seconds) * time.Second
		}
		return f
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		f.Class = faults.Auth
		return f.WithHint(faults.OwnerOperator, "let the worker read from the config-service")
	case code >= 400 && code < 500 && code != http.StatusRequestTimeout:
		f.Class = faults.Invalid
		return f.WithHint(faults.OwnerOperator, "compare the versions of the worker and the config-service")
	}
	return f.WithHint(faults.OwnerOperator, "see to the config-service; the call is repeated")
}

func unreachable(resource string, err error) error {
	f := faults.New(faults.Transient, "Unreachable", resource, "the config-service does not answer: %s", err)
	f.Cause = err
	return f.WithHint(faults.OwnerOperator, "see to the config-service; the call is repeated")
}

func broken(resource, what string) error {
	return faults.New(faults.Invalid, "BrokenDocument", resource, "%s", what).
		WithHint(faults.OwnerOperator, "correct the document in the config-service, then retry")
}
