package awsproxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// ClientConfig is an SDK configuration for a stand-in that calls the emulator
// under a name of its own (see ClientHeader).
func ClientConfig(endpoint, region, accessKeyID, secretAccessKey, name string) aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: aws.String(endpoint), RetryMaxAttempts: 5,
		Credentials: credentials.NewStaticCredentialsProvider(accessKeyID, secretAccessKey, ""),
		HTTPClient:  namedClient{name: name, client: &http.Client{Timeout: time.Minute}},
	}
}

// namedClient adds the name, and hands bodies over as a whole: against a local
// server the SDK closes a body while net/http still writes it, which fails some
// calls in a thousand after they have taken effect.
type namedClient struct {
	name   string
	client *http.Client
}

// Do implements aws.HTTPClient.
func (c namedClient) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read the request body: %w", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.Header.Set(ClientHeader, c.name)
	return c.client.Do(r)
}
