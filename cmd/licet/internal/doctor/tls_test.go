package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"licet/cmd/licet/internal/cli"
)

// certificate returns a certificate for 127.0.0.1, which is valid for an hour until a time, and its key.
func certificate(t *testing.T, end time.Time) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// served returns the address of a service that is ready, with a certificate for 127.0.0.1 that ends at a time, and
// further certificates after it. The zero time: with the certificate of package httptest, for 127.0.0.1 and
// example.com.
func served(t *testing.T, end time.Time, further ...[]byte) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if !end.IsZero() {
		der, key := certificate(t, end)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{
			{Certificate: append([][]byte{der}, further...), PrivateKey: key}}}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// TestUntrustedService checks running services whose certificates this machine does not accept.
func TestUntrustedService(t *testing.T) {
	now := time.Now()
	reportOf := func(url string) *Report {
		var r Report
		r.Service(t.Context(), cli.Located{URL: url, URLFrom: "--url"}, now)
		return &r
	}
	end := now.Add(-time.Hour)
	wantOne(t, reportOf(served(t, end)), Problem, "expired at "+end.UTC().Format("2006-01-02 15:04Z"))
	wantOne(t, reportOf(served(t, now.Add(3*time.Hour))), Problem, "starts to be valid at ")
	wantOne(t, reportOf(served(t, now.Add(time.Minute))), Problem, "does not know the authority that has signed the "+
		"certificate of https://127.0.0.1:")
	early, _ := certificate(t, now.Add(3*time.Hour)) // the service's own certificate is valid
	wantOne(t, reportOf(served(t, now.Add(time.Minute), early)), Problem, "certificate of https://127.0.0.1:")
	url := served(t, time.Time{})
	wantOne(t, reportOf(url), Problem, "does not know the authority that has signed the certificate of "+url)
	wantOne(t, reportOf(strings.Replace(url, "127.0.0.1", "localhost", 1)), Problem,
		"is for example.com, *.example.com, 127.0.0.1, ::1, and not for localhost")
}
