package kube

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Files in a cluster's folder.
const (
	fileCACert         = "ca.crt"
	fileCAKey          = "ca.key"
	fileServerCert     = "apiserver.crt"
	fileServerKey      = "apiserver.key"
	fileAdminCert      = "admin.crt"
	fileAdminKey       = "admin.key"
	fileFrontProxyCert = "front-proxy.crt"
	fileFrontProxyKey  = "front-proxy.key"
	fileServiceAccount = "sa.key"
	fileKubeconfig     = "kubeconfig"
	filePort           = "port"
)

// defaultValidity outlives any development cluster.
const defaultValidity = 10 * 365 * 24 * time.Hour

// CA is a cluster's certificate authority. It signs the API server's own
// certificate and client certificates alike.
//
// The key is RSA because Gardener's adminkubeconfig accepts no other for the
// client CA that it signs with.
type CA struct {
	// CertPEM and KeyPEM (PKCS #1) are what InternalSecrets and APIServices carry.
	CertPEM, KeyPEM []byte

	cert *x509.Certificate
	key  *rsa.PrivateKey
}

// CertRequest says which certificate is wanted.
type CertRequest struct {
	// CommonName is the user name, or the server's name.
	CommonName string
	// Organizations are the groups of a client.
	Organizations []string
	// DNSNames and IPs make it a server certificate when either is set.
	DNSNames []string
	IPs      []net.IP
	// Validity defaults to ten years.
	Validity time.Duration
}

// Issue makes a key (ECDSA P-256) and a certificate for it, both PEM.
func (ca *CA) Issue(req CertRequest) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	if req.Validity == 0 {
		req.Validity = defaultValidity
	}
	usage := x509.ExtKeyUsageClientAuth
	if len(req.DNSNames)+len(req.IPs) > 0 {
		usage = x509.ExtKeyUsageServerAuth
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: req.CommonName, Organization: req.Organizations},
		DNSNames:     req.DNSNames,
		IPAddresses:  req.IPs,
		NotBefore:    now.Add(-time.Hour), // clocks of containers and laptops drift
		NotAfter:     now.Add(req.Validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	if certPEM, err = cert.EncodeCertificates(leaf); err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return certPEM, keyPEM, err
}

// ensurePKI makes the certificates and keys of one cluster in dir, or loads
// what an earlier run made. The service account key is written last, so that
// its presence says that the set is whole.
func ensurePKI(dir, name string) (*CA, error) {
	switch _, err := os.Stat(filepath.Join(dir, fileServiceAccount)); {
	case err == nil:
		return loadCA(dir)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	ca, err := newCA(dir, name)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct {
		cert, key string
		req       CertRequest
	}{
		{fileServerCert, fileServerKey, CertRequest{
			CommonName: "kube-apiserver",
			DNSNames:   []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
			IPs:        []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceIP},
		}},
		{fileAdminCert, fileAdminKey, CertRequest{CommonName: "admin", Organizations: []string{"system:masters"}}},
		{fileFrontProxyCert, fileFrontProxyKey, CertRequest{CommonName: "front-proxy"}},
	} {
		certPEM, keyPEM, err := ca.Issue(c.req)
		if err != nil {
			return nil, fmt.Errorf("issue %s: %w", c.cert, err)
		}
		if err := errors.Join(writeFile(dir, c.cert, certPEM), writeFile(dir, c.key, keyPEM)); err != nil {
			return nil, err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return ca, writeKey(dir, fileServiceAccount, key)
}

func newCA(dir, name string) (*CA, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	crt, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name + "-ca"}, key)
	if err != nil {
		return nil, err
	}
	certPEM, err := cert.EncodeCertificates(crt)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(writeFile(dir, fileCACert, certPEM), writeKey(dir, fileCAKey, key)); err != nil {
		return nil, err
	}
	return loadCA(dir)
}

func loadCA(dir string) (*CA, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, fileCACert))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, fileCAKey))
	if err != nil {
		return nil, err
	}
	certs, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", fileCACert, dir, err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", fileCAKey, dir, err)
	}
	rsaKey, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s in %s: want an RSA key, found %T", fileCAKey, dir, key)
	}
	return &CA{CertPEM: certPEM, KeyPEM: keyPEM, cert: certs[0], key: rsaKey}, nil
}

func writeKey(dir, name string, key crypto.Signer) error {
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return writeFile(dir, name, pem)
}

func writeFile(dir, name string, data []byte) error {
	return os.WriteFile(filepath.Join(dir, name), data, 0o600)
}
