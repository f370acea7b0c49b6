package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SecretName holds the self-managed certificate.
const SecretName = "infra-bridge-webhooks"

const (
	// checkEvery is how often a bridge looks at the Secret: it serves a new
	// certificate well within settleTime.
	checkEvery = 5 * time.Minute
	// retryEvery is the pause after a failure.
	retryEvery = 2 * time.Second
)

// SelfSigned keeps a certificate, serves it, and has the API server trust it.
// Bridges behind a Service share it in a Secret: every one of them looks after
// it, the leader or not, and the Secret's resourceVersion keeps two of them from
// making two certificates. A bridge with a URL of its own keeps it in memory.
type SelfSigned struct {
	// Client reads live and writes.
	Client client.Client
	// Namespace of our objects, and of the Secret if there is one.
	Namespace string
	// URL, when set, is where the API server finds this bridge outside of the
	// cluster: the webhook configurations are then created with it. Otherwise
	// they exist, with a Service, and only their CA bundle is kept.
	URL string
	// WhenReady, when set, is waited for before the configurations are written.
	WhenReady func(context.Context) error
	Log       *slog.Logger
	// Now is time.Now when nil.
	Now func() time.Time

	memory     map[string][]byte // instead of the Secret
	served     atomic.Pointer[tls.Certificate]
	registered atomic.Bool
}

// GetCertificate is for tls.Config.
func (s *SelfSigned) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.served.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("the certificate of the webhooks is not made yet")
}

// Registered reports whether the API server has been told of the certificate.
func (s *SelfSigned) Registered() bool { return s.registered.Load() }

// NeedLeaderElection tells the manager to start it on the standby, too.
func (s *SelfSigned) NeedLeaderElection() bool { return false }

// Start keeps the certificate until ctx ends; it is a manager.Runnable. A
// failure is tried again, and told when it is new.
func (s *SelfSigned) Start(ctx context.Context) error {
	told := ""
	for {
		pause := checkEvery
		if err := s.keep(ctx); err != nil && ctx.Err() == nil {
			pause = retryEvery
			if err.Error() != told {
				s.Log.Warn("the certificate of the webhooks cannot be kept; trying again", "error", err)
			}
			told = err.Error()
		} else {
			told = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (s *SelfSigned) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// keep does one round: the Secret, what is served, what the API server trusts.
func (s *SelfSigned) keep(ctx context.Context) error {
	data, err := s.certificates(ctx)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil {
		return err
	}
	s.served.Store(&pair)
	if s.WhenReady != nil && !s.registered.Load() {
		if err := s.WhenReady(ctx); err != nil {
			return err
		}
	}
	if err := s.register(ctx, authorities(data)); err != nil {
		return err
	}
	s.registered.Store(true)
	return nil
}

// certificates returns what rotate makes of what there was.
func (s *SelfSigned) certificates(ctx context.Context) (map[string][]byte, error) {
	if s.URL == "" {
		return s.secret(ctx)
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is no https:// address", s.URL)
	}
	data, _, err := rotate(s.memory, s.now(), s.minter(u.Hostname()))
	if err != nil {
		return nil, err
	}
	s.memory = data
	return data, nil
}

func (s *SelfSigned) minter(hosts ...string) func() ([]byte, []byte, error) {
	return func() ([]byte, []byte, error) { return mint(hosts, s.now()) }
}

// secret returns the Secret's data, after it was rotated if that was due.
func (s *SelfSigned) secret(ctx context.Context) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: SecretName}, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read secret %s: %w", SecretName, err)
	}
	data, changed, err := rotate(secret.Data, s.now(), s.minter(serviceHosts(s.Namespace)...))
	if err != nil || !changed {
		return data, err
	}
	secret.Data = data
	if missing {
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: SecretName}
		secret.Type = corev1.SecretTypeTLS
		err = s.Client.Create(ctx, secret)
	} else {
		err = s.Client.Update(ctx, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("write secret %s: %w", SecretName, err) // another bridge was first: the next round reads its work
	}
	s.Log.Info("the certificate of the webhooks was renewed", "secret", s.Namespace+"/"+SecretName)
	return data, nil
}

// register has the API server trust the certificates.
func (s *SelfSigned) register(ctx context.Context, authorities []byte) error {
	if s.URL != "" {
		t := Target{Namespace: s.Namespace, URL: s.URL, CABundle: authorities}
		// The mutating ones first: what they fill in, the others judge.
		return errors.Join(s.put(ctx, Mutating(t)), s.put(ctx, Validating(t)))
	}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	return errors.Join(
		s.trust(ctx, mutating, func() (changed bool) {
			for i := range mutating.Webhooks {
				changed = setBundle(&mutating.Webhooks[i].ClientConfig, authorities) || changed
			}
			return changed
		}),
		s.trust(ctx, validating, func() (changed bool) {
			for i := range validating.Webhooks {
				changed = setBundle(&validating.Webhooks[i].ClientConfig, authorities) || changed
			}
			return changed
		}),
	)
}

func setBundle(c *admissionregistrationv1.WebhookClientConfig, bundle []byte) bool {
	if bytes.Equal(c.CABundle, bundle) {
		return false
	}
	c.CABundle = bundle
	return true
}

// trust changes a configuration that exists.
func (s *SelfSigned) trust(ctx context.Context, c client.Object, change func() bool) error {
	if err := s.Client.Get(ctx, types.NamespacedName{Name: ConfigurationName}, c); err != nil {
		return fmt.Errorf("webhook configuration %s: %w", ConfigurationName, err)
	}
	if !change() {
		return nil
	}
	return s.Client.Update(ctx, c)
}

// put creates a configuration, or makes it what it should be.
func (s *SelfSigned) put(ctx context.Context, c client.Object) error {
	err := s.Client.Create(ctx, c)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, ok := c.DeepCopyObject().(client.Object)
	if !ok {
		return err
	}
	if err := s.Client.Get(ctx, types.NamespacedName{Name: ConfigurationName}, live); err != nil {
		return err
	}
	c.SetResourceVersion(live.GetResourceVersion())
	return s.Client.Update(ctx, c)
}
