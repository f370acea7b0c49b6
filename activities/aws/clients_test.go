package aws

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// rotating is a Provider's Secret.
type rotating struct{ id, secret, version string }

func (r *rotating) AWS(context.Context, string, string) (string, string, string, error) {
	return r.id, r.secret, r.version, nil
}

// stsServer answers GetCallerIdentity for an account, and anything else with a
// server error; it counts both.
func stsServer(t *testing.T, account string) (url string, identities, others *atomic.Int32) {
	t.Helper()
	identities, others = &atomic.Int32{}, &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if r.Form.Get("Action") != "GetCallerIdentity" {
			others.Add(1)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"__type":"KMSInternalException","message":"ill"}`)
			return
		}
		identities.Add(1)
		_, _ = fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
			<Arn>arn:aws:iam::%[1]s:user/u</Arn><UserId>U</UserId><Account>%[1]s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, account)
	}))
	t.Cleanup(s.Close)
	return s.URL, identities, others
}

func TestClientsFollowTheSecret(t *testing.T) {
	url, identities, _ := stsServer(t, "123456789012")
	key := &rotating{"AKIA1", "s", "1"}
	f := newFactory(Options{Credentials: key, Endpoint: url}.withDefaults())
	first, err := f.get(t.Context(), fakeAccount)
	require.NoError(t, err)
	same, err := f.get(t.Context(), fakeAccount)
	require.NoError(t, err)
	require.Same(t, first, same)
	require.EqualValues(t, 1, identities.Load(), "STS is asked once for each access key")

	key.version = "2"
	rotated, err := f.get(t.Context(), fakeAccount)
	require.NoError(t, err)
	require.NotSame(t, first, rotated)
	require.EqualValues(t, 2, identities.Load())
	require.Equal(t, 1, f.sets.Len(), "clients of an old key are dropped")

	key.secret = ""
	_, err = f.get(t.Context(), fakeAccount)
	require.True(t, faults.Is(err, faults.Auth), err)
}

func TestClientsRefuseAnotherAccount(t *testing.T) {
	url, _, _ := stsServer(t, "999999999999")
	a := New(Options{Credentials: &rotating{"AKIA1", "s", "1"}, Endpoint: url})
	for range 2 { // the refusal is no cached success
		_, err := a.EnsureKey(t.Context(), fakeInput("alias/ic-1a2b3c4d-data"))
		f := faults.As(err)
		require.NotNil(t, f, err)
		require.Equal(t, faults.Auth, f.Class)
		require.Equal(t, "WrongAccount", f.Code)
		require.Contains(t, f.Human(), "999999999999")
	}
	who, err := a.VerifyAWSCredentials(t.Context(), contract.CloudAccount{Region: "us-west-2"})
	require.NoError(t, err, "an account that is not named yet")
	require.Equal(t, "999999999999", who.AccountID)
}

func TestSDKRepeatsNothing(t *testing.T) {
	url, _, others := stsServer(t, "123456789012")
	f := newFactory(Options{Credentials: &rotating{"AKIA1", "s", "1"}, Endpoint: url}.withDefaults())
	c, err := f.get(t.Context(), fakeAccount)
	require.NoError(t, err)
	_, err = c.kms.CreateKey(t.Context(), &kms.CreateKeyInput{Description: awssdk.String("d")})
	require.Error(t, err)
	require.True(t, faults.Is(faults.FromAWS(err, "k"), faults.Transient))
	require.EqualValues(t, 1, others.Load(), "a create that is sent twice may make two")
}

// gone is a Provider that is deleted.
type gone struct{}

func (*gone) AWS(context.Context, string, string) (string, string, string, error) {
	return "", "", "", faults.New(faults.Gone, "NotFound", "provider infra/core-aws", "it does not exist")
}

// However many ask at once, in whatever region, STS is asked once.
func TestSTSIsAskedOnceForAll(t *testing.T) {
	url, identities, _ := stsServer(t, "123456789012")
	hold := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-hold
		res, err := http.Post(url, r.Header.Get("Content-Type"), r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer func() { _ = res.Body.Close() }()
		_, _ = io.Copy(w, res.Body)
	}))
	t.Cleanup(slow.Close)
	f := newFactory(Options{Credentials: &rotating{"AKIA1", "s", "1"}, Endpoint: slow.URL}.withDefaults())
	var all sync.WaitGroup
	for i := range 40 {
		account := fakeAccount
		account.Region = []string{"us-west-2", "eu-central-1"}[i%2]
		all.Go(func() {
			_, err := f.get(t.Context(), account)
			require.NoError(t, err)
		})
	}
	time.Sleep(200 * time.Millisecond) // they all have asked
	close(hold)
	all.Wait()
	require.EqualValues(t, 1, identities.Load())

	f.options.Credentials = &gone{}
	_, err := f.get(t.Context(), fakeAccount)
	require.True(t, faults.Is(err, faults.Gone), err)
	require.Zero(t, f.sets.Len(), "keys of a Provider that is deleted leave memory, in all regions")
}
