package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

const (
	// authorityLifetime is long, since an authority can't be replaced without a restart
	// of all members and nodes.
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// authorityReserve is how long before an authority's end etcdcerts asks to replace the authority. It is also the
	// longest lifetime of a certificate.
	authorityReserve = 2 * 365 * 24 * time.Hour
	// early is how much earlier than its creation a certificate becomes valid, for clocks that are late.
	early = 5 * time.Minute
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	certPEM     []byte
	keyPEM      []byte
}

// newAuthority creates an authority.
func newAuthority(name string, now time.Time) (*authority, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-early), NotAfter: now.Add(authorityLifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certPEM, keyPEM, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return readAuthority(certPEM, keyPEM)
}

// readAuthority decodes an existing authority.
func readAuthority(certPEM, keyPEM []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("not an authority of etcdcerts")
	}
	return &authority{certificate: pair.Leaf, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// identity is the holder of a certificate.
type identity struct {
	name  string
	hosts []string // names at which others reach the holder; none: a client only
}

// issue creates a certificate and its key.
func (a *authority) issue(who identity, now time.Time, lifetime time.Duration) (certPEM, keyPEM []byte, err error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: who.name},
		NotBefore: now.Add(-early), NotAfter: now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: who.usages(),
		DNSNames:    who.hosts,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return sign(template, a.certificate, key, a.key)
}

// usages returns what the certificate is for. A member's certificate is for both sides: members are each other's
// clients.
func (who identity) usages() []x509.ExtKeyUsage {
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(who.hosts) > 0 {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	return usages
}

// good reports whether a certificate equals what issue would create, and has a third of its lifetime left.
func (a *authority) good(who identity, certPEM, keyPEM []byte, now time.Time) bool {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return false
	}
	leaf := pair.Leaf
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return false
	}
	return leaf.Subject.CommonName == who.name && slices.Equal(leaf.DNSNames, who.hosts) &&
		slices.Equal(leaf.ExtKeyUsage, who.usages()) && leaf.NotAfter.Sub(now) > leaf.NotAfter.Sub(leaf.NotBefore)/3
}

// sign creates a certificate in PEM, and its key.
func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (certPEM, keyPEM []byte, err error) {
	limit := new(big.Int).Lsh(big.NewInt(1), 120)
	if template.SerialNumber, err = rand.Int(rand.Reader, limit); err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", private), nil
}

func encode(kind string, der []byte) []byte {
	return bytes.Clone(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// ending returns an error if the operator must replace the authority soon.
func (a *authority) ending(now time.Time) error {
	if left := a.certificate.NotAfter.Sub(now); left < authorityReserve {
		return fmt.Errorf("the authority %q ends on %s: replace it by hand, as docs/guides/kubernetes.md says",
			a.certificate.Subject.CommonName, a.certificate.NotAfter.Format(time.DateOnly))
	}
	return nil
}
