package webhooks

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A self-managed certificate is its own authority. It lives in a Secret that
// all bridges share, as up to three: the one that is served, the next one, and
// the one before. The API server is told to trust all of them, so that it never
// meets one that it does not know: a new one is made known first, served when
// everybody has had time to hear of it, and stays known for as long afterwards.
const (
	// certificateLifetime is short enough that rotation is part of daily life.
	certificateLifetime = 90 * 24 * time.Hour
	// renewBefore is how much of its life a certificate has left when the next
	// one is made.
	renewBefore = certificateLifetime / 3
	// settleTime is how long everybody has to hear of a new certificate.
	settleTime = 15 * time.Minute
)

// Keys of the Secret. The served pair has the names of type kubernetes.io/tls.
const (
	keyCertificate     = corev1.TLSCertKey
	keyPrivate         = corev1.TLSPrivateKeyKey
	keyNextCertificate = "next.crt"
	keyNextPrivate     = "next.key"
	keyPrevious        = "previous.crt"
)

// rotate decides what the Secret must hold at a time. It returns the data, and
// whether it differs from what was given. mint makes a new pair.
func rotate(data map[string][]byte, now time.Time, mint func() (certificate, key []byte, err error)) (map[string][]byte, bool, error) {
	current, err := parsePair(data[keyCertificate], data[keyPrivate])
	if err != nil || !now.Before(current.NotAfter) {
		// None, a broken one, or one that no API server accepts any more: there is
		// nothing to keep working.
		cert, key, err := mint()
		if err != nil {
			return nil, false, err
		}
		return map[string][]byte{keyCertificate: cert, keyPrivate: key}, true, nil
	}
	next, err := parsePair(data[keyNextCertificate], data[keyNextPrivate])
	switch {
	case err == nil && now.Sub(next.NotBefore) >= settleTime+backdated:
		return map[string][]byte{
			keyCertificate: data[keyNextCertificate], keyPrivate: data[keyNextPrivate], keyPrevious: data[keyCertificate],
		}, true, nil
	case err == nil:
		return data, false, nil
	case current.NotAfter.Sub(now) > renewBefore:
		if data[keyPrevious] == nil || now.Sub(current.NotBefore) < 2*settleTime+backdated {
			return data, false, nil
		}
		// Everybody serves the new one by now.
		return map[string][]byte{keyCertificate: data[keyCertificate], keyPrivate: data[keyPrivate]}, true, nil
	}
	cert, key, err := mint()
	if err != nil {
		return nil, false, err
	}
	return map[string][]byte{
		keyCertificate: data[keyCertificate], keyPrivate: data[keyPrivate], keyNextCertificate: cert, keyNextPrivate: key,
	}, true, nil
}

// authorities are all certificates of the Secret, for the API server to trust.
func authorities(data map[string][]byte) []byte {
	return bytes.Join([][]byte{data[keyCertificate], data[keyNextCertificate], data[keyPrevious]}, nil)
}

func parsePair(certificate, key []byte) (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(pair.Certificate[0])
}

// backdated is how far a certificate begins in the past, for clocks that differ.
const backdated = 5 * time.Minute

// mint makes a certificate for hosts that is its own authority.
func mint(hosts []string, now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: hosts[0]},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(certificateLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// serviceHosts are the names by which API servers call a Service.
func serviceHosts(namespace string) []string {
	return []string{
		fmt.Sprintf("%s.%s.svc", ServiceName, namespace),
		fmt.Sprintf("%s.%s.svc.cluster.local", ServiceName, namespace),
	}
}
