package management

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Credentials reads the credentials of Providers, through the worker's cache.
// They are for clients in this process only.
type Credentials struct {
	Activities *Activities
}

// AWS returns the AWS access key of a Provider. version changes whenever the
// Secret does. A missing or incomplete Secret is an Auth fault.
func (c Credentials) AWS(ctx context.Context, namespace, provider string) (accessKeyID, secretAccessKey, version string, err error) {
	secret, err := surely(c.Activities, func(refs client.Reader) (*corev1.Secret, error) {
		p, err := get(ctx, refs, namespace, provider, &v1.Provider{})
		if err != nil {
			return nil, err
		}
		return secretOf(ctx, refs, p)
	})
	if err != nil {
		return "", "", "", err
	}
	id, key := secret.Data[builders.KeyAccessKeyID], secret.Data[builders.KeySecretAccessKey]
	return string(id), string(key), string(secret.UID) + "/" + secret.ResourceVersion, nil
}

func secretOf(ctx context.Context, refs client.Reader, p *v1.Provider) (*corev1.Secret, error) {
	ref := p.Spec.Credentials.SecretRef
	if ref == nil {
		return nil, faults.New(faults.Invalid, "NoCredentials", describe(p, p.Namespace, p.Name), "it names no Secret with credentials").
			WithHint(faults.OwnerUser, "set spec.credentials.secretRef")
	}
	secret, err := get(ctx, refs, p.Namespace, ref.Name, &corev1.Secret{})
	if faults.Is(err, faults.Gone) {
		return nil, noCredentials(p, ref.Name, "does not exist")
	}
	if err != nil {
		return nil, err
	}
	for _, key := range []string{builders.KeyAccessKeyID, builders.KeySecretAccessKey} {
		if len(secret.Data[key]) == 0 {
			return nil, noCredentials(p, ref.Name, "has no "+key)
		}
	}
	return secret, nil
}

func noCredentials(p *v1.Provider, secret, what string) error {
	return faults.New(faults.Auth, "CredentialsMissing", describe(p, p.Namespace, p.Name), "its Secret %s/%s %s", p.Namespace, secret, what).
		WithHint(faults.OwnerUser, "create the Secret with the keys accessKeyID and secretAccessKey; the operation goes on by itself")
}

// credentialsHash is the SHA-256 over all keys and values of the Secret, in
// order, each with its length, so that no two contents look the same.
func credentialsHash(ctx context.Context, refs client.Reader, p *v1.Provider) (string, error) {
	secret, err := secretOf(ctx, refs, p)
	if err != nil {
		return "", err
	}
	keys := make([]string, 0, len(secret.Data))
	for k := range secret.Data {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	h := sha256.New()
	for _, k := range keys {
		fmt.Fprintf(h, "%d %s %d ", len(k), k, len(secret.Data[k]))
		h.Write(secret.Data[k])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
