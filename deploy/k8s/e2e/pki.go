package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
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

func newAuthority(dir string) *authority {
	stopIf(os.MkdirAll(dir, 0o700))
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "k8s-e2e"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	a := &authority{dir, key, must(x509.ParseCertificate(der))}
	a.write("ca", der, key)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.crt and name.key, for clients and servers alike.
func (a *authority) issue(name, user, group string, hosts ...string) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	serial := must(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100)))
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
	der := must(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))
	a.write(name, der, key)
}

func (a *authority) write(name string, der []byte, key *ecdsa.PrivateKey) {
	private := must(x509.MarshalECPrivateKey(key))
	public := must(x509.MarshalPKIXPublicKey(key.Public()))
	put := func(ending, kind string, bytes []byte) {
		stopIf(os.WriteFile(a.path(name+ending), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
	}
	put(".crt", "CERTIFICATE", der)
	put(".key", "EC PRIVATE KEY", private)
	put(".pub", "PUBLIC KEY", public)
}

// bundle returns the authority's certificate in base64, as manifests need it.
func (a *authority) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: a.certificate.Raw}))
}

// kubeconfig writes name.kubeconfig for the owner of the certificate of that name.
func (a *authority) kubeconfig(name string) string {
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
	stopIf(os.WriteFile(path, []byte(text), 0o600))
	return path
}
