package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of everything in the cluster. It is valid for a day.
type authority struct {
	dir         string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &authority{dir: dir}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "k8s-e2e"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a.key = key
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return a, a.write("ca", der, key)
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.crt and name.key, for clients and servers alike.
func (a *authority) issue(name, user, group string, hosts ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if group != "" {
		template.Subject.Organization = []string{group}
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	return a.write(name, der, key)
}

func (a *authority) write(name string, der []byte, key *ecdsa.PrivateKey) error {
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	put := func(ending, kind string, bytes []byte) error {
		return os.WriteFile(a.path(name+ending), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600)
	}
	return errors.Join(put(".crt", "CERTIFICATE", der), put(".key", "EC PRIVATE KEY", private),
		put(".pub", "PUBLIC KEY", public))
}

// bundle returns the authority's certificate in base64, as manifests need it.
func (a *authority) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: a.certificate.Raw}))
}

// kubeconfig writes name.kubeconfig for the owner of the certificate of that name.
func (a *authority) kubeconfig(name string) (string, error) {
	path := a.path(name + ".kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
  - name: e2e
    cluster: {server: "https://%s:6443", certificate-authority: %s}
users:
  - name: %s
    user: {client-certificate: %s, client-key: %s}
contexts:
  - name: e2e
    context: {cluster: e2e, user: %s}
current-context: e2e
`, controlIP, a.path("ca.crt"), name, a.path(name+".crt"), a.path(name+".key"), name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}
