package webhook_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"licet/delivery/webhook"
)

const inNamespace = "LICET_TEST_IN_NAMESPACE"

// TestNoPacketLeaves runs TestInNamespace in a network namespace in which every address is this machine's. So each
// packet arrives and is counted.
func TestNoPacketLeaves(t *testing.T) {
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("it takes iproute2 to set up a network")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	setUp := strings.ReplaceAll(`IP link set lo up &&
IP route add local 0.0.0.0/0 dev lo && IP -6 route add local ::/0 dev lo && exec "$0" "$@"`, "IP", ip)
	command := exec.Command("sh", "-c", setUp, self, "-test.run=^TestInNamespace$", "-test.v", "-test.count=1")
	command.Env = append(os.Environ(), inNamespace+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Skipf("this system gives no network namespaces: %v", err)
	}
	if err != nil && !bytes.Contains(out, []byte("TestInNamespace")) {
		t.Skipf("the network could not be set up: %s", out)
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestInNamespace")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInNamespace is a no-op unless TestNoPacketLeaves runs it.
func TestInNamespace(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		t.Skip("TestNoPacketLeaves runs it")
	}
	reachable := []string{"8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "198.20.0.1", "2606:4700::1111",
		"2a00::1"}
	server, pool := everywhere(t, reachable)
	zone := map[string][]string{"all.example.": denied()}
	for i, address := range denied() {
		zone[fmt.Sprintf("d%d.example.", i)] = []string{address}
	}
	for i, address := range reachable {
		zone[fmt.Sprintf("r%d.example.", i)] = []string{address}
	}
	s := newSender(t, nil, under(webhook.Policy{}), func(cfg *webhook.Config) {
		cfg.RootCAs = pool
		cfg.Resolver = piped(zone)
	})
	before := packets(t)
	for i, address := range denied() {
		f := func(url string, want webhook.Failure) {
			if got := send(t, s, url); got.Outcome != webhook.Retry || got.Failure != want {
				t.Errorf("%s, %s: got %+v", address, url, got)
			}
		}
		f(fmt.Sprintf("https://d%d.example/", i), webhook.FailureAddress)
		f("https://"+bracketed(address)+"/", webhook.FailureURL)
	}
	if got := send(t, s, "https://all.example/"); got.Failure != webhook.FailureAddress {
		t.Errorf("all of them: got %+v", got)
	}
	if after := packets(t); after != before || server.Load() != 0 {
		t.Errorf("packets: first %s, then %s; %d requests came", before, after, server.Load())
	}
	// Attempts to public addresses arrive, so attempts to other addresses would have arrived too.
	for i, address := range reachable {
		for _, host := range []string{bracketed(address), fmt.Sprintf("r%d.example", i)} {
			if got := send(t, s, "https://"+host+"/"); got.Outcome != webhook.Delivered {
				t.Errorf("%s: got %+v", host, got)
			}
		}
	}
	if got, want := server.Load(), int64(2*len(reachable)); got != want || packets(t) == before {
		t.Errorf("%d requests came, want %d", got, want)
	}
	// A policy allows some of the other addresses.
	s = newSender(t, nil, under(webhook.Policy{Networks: networks("10.0.0.0/8", "fd00::/8", "64:ff9b::/96")}),
		func(cfg *webhook.Config) {
			cfg.RootCAs = pool
			cfg.Resolver = piped(zone)
		})
	allowed := 0
	for i, address := range denied() {
		want := webhook.FailureAddress
		if a := netip.MustParseAddr(address).Unmap(); strings.HasPrefix(a.String(), "10.") ||
			strings.HasPrefix(a.String(), "fd00:") || strings.HasPrefix(a.String(), "64:ff9b::") {
			want = webhook.FailureTLS // the attempt arrives, and the certificate lacks this name
			allowed++
		}
		if got := send(t, s, fmt.Sprintf("https://d%d.example/", i)); got.Failure != want {
			t.Errorf("%s: got %+v, want %s", address, got, want)
		}
	}
	if allowed < 4 {
		t.Errorf("only %d were allowed", allowed)
	}
}

// everywhere is a server at port 443 of all addresses that counts requests.
func everywhere(t *testing.T, addresses []string) (*atomic.Int64, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true}
	for i, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
		template.DNSNames = append(template.DNSNames, fmt.Sprintf("r%d.example", i))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	listener, err := tls.Listen("tcp", ":443",
		&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	count := new(atomic.Int64)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { count.Add(1) })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return count, pool
}

// packets returns the number of packets that the only interface has sent and received.
func packets(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, counts, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "lo" {
			fields := strings.Fields(counts)
			return fields[1] + " received, " + fields[9] + " sent"
		}
	}
	t.Fatalf("no interface lo in %s", text)
	return ""
}
