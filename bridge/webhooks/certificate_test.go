package webhooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// trusts reports whether an API server with a bundle accepts a certificate.
func trusts(t *testing.T, bundle, certificate []byte, host string, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(bundle))
	pair := certificateOf(t, certificate)
	_, err := pair.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

func certificateOf(t *testing.T, certificate []byte) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode(certificate)
	require.NotNil(t, block)
	require.Empty(t, rest)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

// Over a year, looked at every five minutes around the changes, no API server
// that is up to settleTime behind meets a certificate that it does not know, of
// no bridge that is up to checkEvery behind.
func TestRotationIsNeverNoticed(t *testing.T) {
	hosts := serviceHosts("infra")
	type state struct{ served, bundle []byte }
	now := noon
	var data map[string][]byte
	var history []state // one for each checkEvery
	served := map[string]bool{}
	for now.Before(noon.Add(366 * 24 * time.Hour)) {
		var err error
		data, _, err = rotate(data, now, func() ([]byte, []byte, error) { return mint(hosts, now) })
		require.NoError(t, err)
		history = append(history, state{data[keyCertificate], authorities(data)})
		served[string(data[keyCertificate])] = true

		last := history[len(history)-1]
		for back := range min(len(history), int(settleTime/checkEvery)) {
			older := history[len(history)-1-back]
			require.NoError(t, trusts(t, older.bundle, last.served, hosts[0], now), "an API server that is %s behind, at %s", time.Duration(back)*checkEvery, now)
			require.NoError(t, trusts(t, last.bundle, older.served, hosts[0], now), "a bridge that is %s behind, at %s", time.Duration(back)*checkEvery, now)
		}
		step := checkEvery
		if len(data) == 2 && certificateOf(t, data[keyCertificate]).NotAfter.Sub(now) > renewBefore+24*time.Hour {
			step, history = 12*time.Hour, nil // nothing happens for weeks
		}
		now = now.Add(step)
	}
	require.GreaterOrEqual(t, len(served), 5, "it was renewed every two months")
}

func TestRotateMakesAnew(t *testing.T) {
	fresh := func(at time.Time) map[string][]byte {
		cert, key, err := mint(serviceHosts("infra"), at)
		require.NoError(t, err)
		return map[string][]byte{keyCertificate: cert, keyPrivate: key}
	}
	for name, data := range map[string]map[string][]byte{
		"nothing": nil, "rubbish": {keyCertificate: []byte("x"), keyPrivate: []byte("y")}, "an expired one": fresh(noon.Add(-certificateLifetime)),
	} {
		t.Run(name, func(t *testing.T) {
			got, changed, err := rotate(data, noon, func() ([]byte, []byte, error) { return mint(serviceHosts("infra"), noon) })
			require.NoError(t, err)
			require.True(t, changed)
			require.NoError(t, trusts(t, authorities(got), got[keyCertificate], ServiceName+".infra.svc", noon))
		})
	}
	young := fresh(noon)
	got, changed, err := rotate(young, noon.Add(time.Hour), nil)
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, young, got)
}

func secretsScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(s))
	return s
}

// A bridge outside of the cluster: it makes the configurations, and an API
// server that believes these reaches it.
func TestSelfSignedWithURL(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(secretsScheme(t)).Build()
	s := &SelfSigned{Client: c, Namespace: "infra", URL: "https://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)}
	_, err := s.GetCertificate(nil)
	require.ErrorContains(t, err, "not made yet")
	require.False(t, s.Registered())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: s.GetCertificate})
	require.NoError(t, err)
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	s.URL = "https://" + listener.Addr().String()

	require.NoError(t, s.keep(context.Background()))
	require.True(t, s.Registered())
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	name := types.NamespacedName{Name: ConfigurationName}
	require.NoError(t, c.Get(context.Background(), name, mutating))
	require.NoError(t, c.Get(context.Background(), name, validating))
	require.Len(t, mutating.Webhooks, 10)
	require.Len(t, validating.Webhooks, 16)

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(validating.Webhooks[0].ClientConfig.CABundle))
	believer := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	resp, err := believer.Get(*validating.Webhooks[0].ClientConfig.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	// Again, and after a restart on another port, nothing is in the way.
	require.NoError(t, s.keep(context.Background()))
	s.URL = "https://127.0.0.1:2"
	require.NoError(t, s.keep(context.Background()))
	require.NoError(t, c.Get(context.Background(), name, mutating))
	require.Equal(t, "https://127.0.0.1:2/mutate-cloud-pingcap-com-v1-account", *mutating.Webhooks[0].ClientConfig.URL)
	secrets := &corev1.SecretList{}
	require.NoError(t, c.List(context.Background(), secrets))
	require.Empty(t, secrets.Items, "nobody shares its certificate")
}

func secretOf(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	require.NoError(t, c.Get(context.Background(), types.NamespacedName{Namespace: "infra", Name: SecretName}, secret))
	return secret
}

// Bridges inside of the cluster: one makes the certificate, all serve it, and
// the configurations that were applied trust it.
func TestSelfSignedBehindService(t *testing.T) {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithScheme(secretsScheme(t)).
		WithObjects(Mutating(Target{Namespace: "infra"}), Validating(Target{Namespace: "infra"})).Build()
	fresh := func() *SelfSigned {
		return &SelfSigned{Client: c, Namespace: "infra", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return noon }}
	}
	one, two := fresh(), fresh()
	require.NoError(t, one.keep(ctx))
	require.NoError(t, two.keep(ctx))
	a, err := one.GetCertificate(nil)
	require.NoError(t, err)
	b, err := two.GetCertificate(nil)
	require.NoError(t, err)
	require.Equal(t, a.Certificate, b.Certificate)
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	require.NoError(t, c.Get(ctx, types.NamespacedName{Name: ConfigurationName}, validating))
	for _, hook := range validating.Webhooks {
		require.Equal(t, authorities(secretOf(t, c).Data), hook.ClientConfig.CABundle)
		require.Equal(t, ServiceName, hook.ClientConfig.Service.Name)
	}
}

// What is missing is told, and mended when it comes.
func TestSelfSignedFailures(t *testing.T) {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithScheme(secretsScheme(t)).Build()
	s := &SelfSigned{Client: c, Namespace: "infra", Log: slog.New(slog.DiscardHandler)}
	require.ErrorContains(t, s.keep(ctx), "webhook configuration infra-orchestrator")
	require.False(t, s.Registered())

	forbidden := fake.NewClientBuilder().WithScheme(secretsScheme(t)).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(corev1.Resource("secrets"), SecretName, nil)
		},
	}).Build()
	s = &SelfSigned{Client: forbidden, Namespace: "infra", Log: slog.New(slog.DiscardHandler)}
	require.ErrorContains(t, s.keep(ctx), "read secret infra-bridge-webhooks")
	s = &SelfSigned{Client: c, Namespace: "infra", URL: "http://x", Log: slog.New(slog.DiscardHandler)}
	require.ErrorContains(t, s.keep(ctx), `"http://x" is no https:// address`)
}
