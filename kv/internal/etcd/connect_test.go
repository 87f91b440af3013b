package etcd

import (
	"context"
	"crypto/tls"
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/etcdtest"
	"licet/kv/internal/kvtest"
)

// TestCertificatesAreReadAgain: new certificates need no restart of etcd or its clients. etcd accepts a refused client
// once the client's file has a valid certificate, and shows its own new certificate on the next connection.
func TestCertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	ca, stranger := etcdtest.NewCA(t), etcdtest.NewCA(t)
	cluster := etcdtest.StartTLS(t, ca.Issue(t, "etcd", 10))
	endpoint := cluster.Endpoints()[0]
	good, foreign := ca.Issue(t, "node", 20), stranger.Issue(t, "node", 21)
	files := TLS{CAFile: ca.File, CertFile: foreign.Cert, KeyFile: foreign.Key}
	client := kvtest.Must(Connect([]string{endpoint}, files))(t)
	t.Cleanup(func() { _ = client.Close() })

	if serial, err := ask(t, client, files, endpoint); err == nil {
		t.Fatalf("etcd took the certificate of another authority, and showed its own with the serial %d", serial)
	}
	replace(t, foreign.Cert, good.Cert)
	replace(t, foreign.Key, good.Key)
	if serial, err := ask(t, client, files, endpoint); err != nil || serial != 10 {
		t.Fatalf("with the client's certificate replaced: %v; etcd shows the serial %d", err, serial)
	}
	ca.Issue(t, "etcd", 11)
	if serial, err := ask(t, client, files, endpoint); err != nil || serial != 11 {
		t.Fatalf("with etcd's certificate replaced: %v; etcd shows the serial %d", err, serial)
	}
}

// ask asks etcd by a new connection of the client, and tells which certificate it shows.
func ask(t *testing.T, client *clientv3.Client, files TLS, endpoint string) (serial int64, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), CallTimeout)
	defer cancel()
	if _, err := client.Status(ctx, endpoint); err != nil { // it makes a connection of its own
		return 0, err
	}
	config := kvtest.Must(files.ClientConfig())(t)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(endpoint, "https://"), config)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// replace replaces the content of a file by that of another file.
func replace(t *testing.T, path, by string) {
	t.Helper()
	if err := os.WriteFile(path, kvtest.Must(os.ReadFile(by))(t), 0o600); err != nil {
		t.Fatal(err)
	}
}
