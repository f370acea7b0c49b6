package aws

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/ratelimit"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

func TestBucketOf(t *testing.T) {
	for name, c := range map[string]struct {
		service, operation string
		key                ratelimit.Key
		rate               float64
	}{
		"a read":             {"EC2", "DescribeVpcs", ratelimit.Key{Account: "1", Service: "EC2", Region: "r"}, 20},
		"a change":           {"EC2", "CreateVpcEndpointServiceConfiguration", ratelimit.Key{Account: "1", Service: "EC2 changes", Region: "r"}, 5},
		"a global service":   {"Route 53", "ListHostedZones", ratelimit.Key{Account: "1", Service: "Route 53"}, 5},
		"a global change":    {"IAM", "CreateRole", ratelimit.Key{Account: "1", Service: "IAM changes"}, 5},
		"a head":             {"S3", "HeadBucket", ratelimit.Key{Account: "1", Service: "S3", Region: "r"}, 20},
		"an unknown service": {"SQS", "CreateQueue", ratelimit.Key{Account: "1", Service: "SQS changes", Region: "r"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			key, limit := bucketOf("1", c.service, "r", c.operation)
			require.Equal(t, c.key, key)
			require.Equal(t, c.rate, limit.Rate)
			require.GreaterOrEqual(t, limit.Burst, 1)
		})
	}
}

// All Providers of an account share its buckets; other accounts have others.
func TestLimitsAreOfTheAccount(t *testing.T) {
	url, identities, _ := stsServer(t, "123456789012")
	tight := ratelimit.NewPool(ratelimit.Options{Share: 1e-4})
	f := newFactory(Options{Credentials: &rotating{"AKIA1", "s", "1"}, Endpoint: url, Limits: tight}.withDefaults())
	_, err := f.get(t.Context(), fakeAccount) // takes the one token
	require.NoError(t, err)

	second := fakeAccount
	second.Provider = "second"
	began := time.Now()
	_, err = f.get(t.Context(), second)
	require.True(t, faults.Is(err, faults.Throttled), err)
	require.Positive(t, faults.As(err).RetryAt, "Temporal is told when to come again")
	require.Less(t, time.Since(began), time.Second, "and has its slot back at once")
	require.EqualValues(t, 1, identities.Load(), "AWS was not asked")

	elsewhere := fakeAccount
	elsewhere.AccountID = "" // not named yet: counted by Provider
	_, err = f.get(t.Context(), elsewhere)
	require.NoError(t, err)
}

// throttling answers "throttled" some times, then as the handler says.
func throttling(t *testing.T, times int32, code string, status int, then http.HandlerFunc) (url string, calls *atomic.Int32) {
	t.Helper()
	calls = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "GetCallerIdentity") {
			_, _ = io.WriteString(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
			return
		}
		if calls.Add(1) <= times {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, code)
			return
		}
		then(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

const (
	iamThrottled = `<ErrorResponse><Error><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`
	kmsThrottled = `{"__type":"ThrottlingException","message":"Rate exceeded"}`
)

func TestThrottledCallsAreRepeatedAndSlowTheAccountDown(t *testing.T) {
	url, calls := throttling(t, 2, kmsThrottled, 400, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"KeyMetadata":{"KeyId":"k"}}`)
	})
	pool := ratelimit.NewPool(ratelimit.Options{})
	f := newFactory(Options{Credentials: &rotating{"AKIA1", "s", "1"}, Endpoint: url, Limits: pool}.withDefaults())
	c, err := f.get(t.Context(), fakeAccount)
	require.NoError(t, err)
	began := time.Now()
	_, err = c.kms.CreateKey(t.Context(), &kms.CreateKeyInput{})
	require.NoError(t, err, "a throttled call has had no effect, so it is sent again")
	require.EqualValues(t, 3, calls.Load())
	require.Greater(t, time.Since(began), 300*time.Millisecond, "at 2.5 and then 1.3 calls a second, not at once")
}

func TestThrottlingThatStaysEndsTheAttempt(t *testing.T) {
	url, calls := throttling(t, 1000, iamThrottled, 400, nil)
	f := newFactory(Options{Credentials: &rotating{"AKIA1", "s", "1"}, Endpoint: url}.withDefaults())
	c, err := f.get(t.Context(), fakeAccount)
	require.NoError(t, err)
	_, err = c.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: new(string)})
	fault := faults.As(faults.FromAWS(err, "IAM role r"))
	require.NotNil(t, fault, err)
	require.Equal(t, faults.Throttled, fault.Class)
	require.True(t, slices.Contains([]string{"Throttling", "RateLimited"}, fault.Code), fault.Code)
	require.LessOrEqual(t, calls.Load(), int32(maxThrottled))
}
