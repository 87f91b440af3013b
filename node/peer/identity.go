package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// identity is the TLS key that a node shows to other nodes. It lives as long as the process.
type identity struct {
	certificate tls.Certificate
	publicKey   [32]byte // SHA-256
}

func newIdentity() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	// Clients check only the key of the certificate.
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-24 * time.Hour),
		NotAfter: now.AddDate(100, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate that was just made: %w", err)
	}
	return &identity{
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: certificate},
		publicKey:   sha256.Sum256(certificate.RawSubjectPublicKeyInfo),
	}, nil
}

func (i *identity) serverConfig() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{i.certificate}, MinVersion: tls.VersionTLS13}
}

var errOtherKey = errors.New("the node at this address is another one: its key is not the registered key")

// clientConfig returns a configuration that accepts only the key with this hash. That replaces names,
// authorities and dates: crypto/tls itself verifies that the other side has the private key.
func clientConfig(publicKey [32]byte) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection checks the key
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 ||
				sha256.Sum256(state.PeerCertificates[0].RawSubjectPublicKeyInfo) != publicKey {
				return errOtherKey
			}
			return nil
		},
	}
}
