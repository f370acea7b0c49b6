package awsproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// The tests of integration_test.go run against the real moto, which they share: python3 is
// a prerequisite of the devstack.
var shared struct {
	once   sync.Once
	stack  *Stack
	faults *control.Registry
	err    error
	dir    string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stack != nil {
		shared.stack.Stop()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// emulator starts moto and the proxy once.
func emulator(t *testing.T) *Stack {
	t.Helper()
	shared.once.Do(func() {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		if shared.dir, shared.err = os.MkdirTemp("", "awsproxy"); shared.err != nil {
			return
		}
		shared.faults = control.NewRegistry()
		shared.stack, shared.err = Start(context.Background(), StackOptions{
			Options:  Options{Speed: 4, Faults: shared.faults, Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
			CacheDir: filepath.Join(cache, "infra-orchestrator"), LogDir: shared.dir, Progress: func(s string) { t.Log(s) },
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() { shared.faults.Clear("") })
	return shared.stack
}

func clientConfig(s *Stack, accessKey string) aws.Config {
	return aws.Config{
		Region: "us-west-2", BaseEndpoint: aws.String(s.URL), RetryMaxAttempts: 1,
		HTTPClient:  &http.Client{Timeout: 20 * time.Second},
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, "secret", ""),
	}
}

// wantCode fails the test unless err is an AWS error with the code.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// eventually polls until f is true; the proxy's delays are real time.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("%s: not within 10 s", what)
}
