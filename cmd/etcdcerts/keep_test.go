package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memory keeps Secrets as the API server does, with a version for each state of one.
type memory struct {
	secrets map[string]secret
	version int
	rivals  int // how many puts another writer wins
}

func (m *memory) get(_ context.Context, name string) (*secret, error) {
	s, ok := m.secrets[name]
	if !ok {
		return nil, errNotFound
	}
	s.Data = maps.Clone(s.Data)
	return &s, nil
}

func (m *memory) put(_ context.Context, s *secret) error {
	have, exists := m.secrets[s.Metadata.Name]
	if m.rivals > 0 {
		m.rivals--
		return errConflict
	}
	if exists != (s.Metadata.ResourceVersion != "") || have.Metadata.ResourceVersion != s.Metadata.ResourceVersion {
		return errConflict
	}
	m.version++
	kept := *s
	kept.Metadata.ResourceVersion = strconv.Itoa(m.version)
	m.secrets[s.Metadata.Name] = kept
	return nil
}

func start() time.Time { return time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC) }

func settings(t *testing.T, args ...string) config {
	t.Helper()
	cfg, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	cfg.namespace = "licet"
	return cfg
}

// at runs keep at a time, and answers what it said.
func (m *memory) at(t *testing.T, now time.Time, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	if err := keep(t.Context(), settings(t, args...), m, now, &said); err != nil {
		t.Fatal(err)
	}
	return said.String()
}

// TestKeep makes what is missing, leaves what is good, and renews what is not.
func TestKeep(t *testing.T) {
	m := &memory{secrets: map[string]secret{}}
	f := func(now time.Time, want string, args ...string) {
		t.Helper()
		if said := m.at(t, now, args...); said != want {
			t.Errorf("at %s: got\n%swant\n%s", now.Format(time.DateOnly), said, want)
		}
	}
	const good = "etcd-server-tls: good\netcd-peer-tls: good\netcd-client-tls: good\netcd-maintenance-tls: good\n"
	f(start(), `etcd-authority: made, good for ten years
etcd-server-tls: made, good until 2027-11-22
etcd-peer-tls: made, good until 2027-11-22
etcd-client-tls: made, good until 2027-11-22
etcd-maintenance-tls: made, good until 2027-11-22
`)
	f(start(), good)
	f(start().AddDate(0, 7, 0), good)
	renewed := strings.ReplaceAll(good, "good", "renewed, good until 2028-07-30")
	f(start().AddDate(0, 8, 9), renewed)
	f(start().AddDate(0, 8, 9), good)

	// More members have more names; clients do not care.
	f(start().AddDate(0, 8, 9), `etcd-server-tls: renewed, good until 2028-07-30
etcd-peer-tls: renewed, good until 2028-07-30
etcd-client-tls: good
etcd-maintenance-tls: good
`, "--members=5")
	// keep issues a damaged certificate again.
	damaged := m.secrets["etcd-client-tls"]
	damaged.Data = map[string][]byte{"tls.crt": []byte("x"), "tls.key": damaged.Data["tls.key"],
		"ca.crt": damaged.Data["ca.crt"]}
	m.secrets["etcd-client-tls"] = damaged
	f(start().AddDate(0, 8, 9),
		"etcd-server-tls: good\netcd-peer-tls: good\netcd-client-tls: renewed, good until 2028-07-30\n"+
			"etcd-maintenance-tls: good\n", "--members=5")
	if kind := m.secrets["etcd-client-tls"].Type; kind != "kubernetes.io/tls" {
		t.Errorf("it is of the type %s now", kind)
	}
}

// TestKeepAmongRivals: the Job and the CronJob may run at the same time.
func TestKeepAmongRivals(t *testing.T) {
	m := &memory{secrets: map[string]secret{}, rivals: 3}
	if said := m.at(t, start()); strings.Count(said, "made") != 5 {
		t.Errorf("got %s", said)
	}
	m.rivals = 100
	var said bytes.Buffer
	if err := keep(t.Context(), settings(t, "--members=5"), m, start(), &said); err == nil ||
		!strings.Contains(err.Error(), "meanwhile") {
		t.Errorf("got error %v", err)
	}
}

// TestAuthoritiesAreKept: keep never replaces an unreadable authority, since all certificates of that authority would
// become invalid.
func TestAuthoritiesAreKept(t *testing.T) {
	m := &memory{secrets: map[string]secret{}}
	m.at(t, start())
	f := func(want string, now time.Time) {
		t.Helper()
		before := m.version
		err := keep(t.Context(), settings(t), m, now, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
		if strings.Contains(want, "put it back") && m.version != before {
			t.Error("something was replaced")
		}
	}
	// Near its end, keep asks to replace the authority, and still renews certificates.
	f(`the authority "etcd client-ca" ends on 2036-11-19: replace it by hand`, start().AddDate(8, 1, 0))
	if leaf := parsed(t, m.secrets["etcd-peer-tls"]); leaf.NotAfter.Before(start().AddDate(9, 0, 0)) {
		t.Errorf("a certificate is good until %s only", leaf.NotAfter)
	}
	broken := m.secrets["etcd-authority"]
	broken.Data = maps.Clone(broken.Data)
	delete(broken.Data, "peer-ca.key")
	m.secrets["etcd-authority"] = broken
	f("put it back from a copy", start())
	other := m.secrets["etcd-peer-tls"].Data
	broken.Data["peer-ca.key"], broken.Data["peer-ca.crt"] = other["tls.key"], other["tls.crt"]
	f("put it back from a copy", start())
}

func parsed(t *testing.T, s secret) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// TestCertificatesServe: members and clients trust each other by them, each in its part.
func TestCertificatesServe(t *testing.T) {
	m := &memory{secrets: map[string]secret{}}
	m.at(t, time.Now())
	if hosts := parsed(t, m.secrets["etcd-client-tls"]).DNSNames; len(hosts) > 0 {
		t.Errorf("etcd would look whether a client is at %v", hosts)
	}
	for secret, user := range map[string]string{"etcd-client-tls": "licet", "etcd-maintenance-tls": "root"} {
		if name := parsed(t, m.secrets[secret]).Subject.CommonName; name != user {
			t.Errorf("%s is of the user %s of etcd, want %s", secret, name, user)
		}
	}
	want := []string{"etcd-1.etcd", "etcd-1.etcd.licet", "etcd-1.etcd.licet.svc"}
	for _, name := range want {
		if !slices.Contains(parsed(t, m.secrets["etcd-peer-tls"]).DNSNames, name) {
			t.Errorf("members are not %s", name)
		}
	}
	f := func(server, client, host string, ok bool) {
		t.Helper()
		if err := m.shake(t, server, client, host); (err == nil) != ok {
			t.Errorf("%s at %s, asked by %s: %v", server, host, client, err)
		}
	}
	f("etcd-server-tls", "etcd-client-tls", "etcd-0.etcd", true)
	f("etcd-server-tls", "etcd-client-tls", "etcd-2.etcd.licet.svc", true)
	f("etcd-server-tls", "etcd-client-tls", "localhost", true)
	f("etcd-server-tls", "etcd-client-tls", "etcd-3.etcd", false)
	f("etcd-server-tls", "etcd-maintenance-tls", "etcd-0.etcd", true)
	f("etcd-server-tls", "etcd-peer-tls", "etcd-0.etcd", false)
	f("etcd-peer-tls", "etcd-peer-tls", "etcd-1.etcd", true)
	f("etcd-peer-tls", "etcd-client-tls", "etcd-1.etcd", false)
	f("etcd-peer-tls", "etcd-maintenance-tls", "etcd-1.etcd", false)
	f("etcd-client-tls", "etcd-client-tls", "etcd-0.etcd", false)
}

// shake has a client of one Secret ask a server of another.
func (m *memory) shake(t *testing.T, server, client, host string) error {
	t.Helper()
	side := func(name string) *tls.Config {
		s := m.secrets[name]
		pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(s.Data["ca.crt"])
		return &tls.Config{
			Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ServerName: host,
			ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	// The client's verdict of the server, and the server's of the client: in TLS 1.3 the
	// client is done before it knows of the latter.
	verdict := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = tls.Server(conn, side(server)).HandshakeContext(t.Context())
			_ = conn.Close()
		}
		verdict <- err
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = tls.Client(conn, side(client)).HandshakeContext(t.Context())
	_ = conn.(*net.TCPConn).CloseWrite()
	return errors.Join(err, <-verdict)
}

func TestSettings(t *testing.T) {
	f := func(code int, want string, args ...string) {
		t.Helper()
		var said bytes.Buffer
		if got := run(t.Context(), args, &said, &said); got != code || !strings.Contains(said.String(), want) {
			t.Errorf("%v: exit code %d: %s", args, got, &said)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	f(exitFailed, "run this in a pod of Kubernetes")
	f(exitUsage, "--members is 0", "--members=0")
	f(exitUsage, "--lifetime is 1m0s", "--lifetime=1m")
	f(exitUsage, "--service is", "--service=etcd.licet")
	f(exitUsage, "takes only flags", "etcd")
	f(exitUsage, "not defined", "--replicas=3")
	f(0, "-members", "--help")
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	f(exitFailed, "the service account", "--service-account="+t.TempDir())
}
