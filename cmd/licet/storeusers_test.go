package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"licet/internal/etcdtest"
	"licet/kv"
	"licet/kv/users"
)

// TestStoreUsers secures the etcd of a running node. The node, whose certificate is of the user licet, goes on, and so
// do the commands that read and write keys. Its certificate makes no backup; the certificate of the user root does. The
// backup becomes a data directory, whose clients have no certificates.
func TestStoreUsers(t *testing.T) {
	t.Parallel()
	ca := etcdtest.NewCA(t)
	cluster := etcdtest.StartTLS(t, ca.Issue(t, "etcd", 2))
	node, maintenance := ca.Issue(t, users.Service, 3), ca.Issue(t, users.Maintenance, 4)
	as := func(files etcdtest.Files, command ...string) []string {
		return append(command, "--etcd-endpoints", cluster.Endpoints()[0],
			"--etcd-ca", files.CA, "--etcd-cert", files.Cert, "--etcd-key", files.Key)
	}
	f := func(code int, want string, args []string) {
		t.Helper()
		if got := runLicet(t, args...); got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("licet %v: want exit code %d and %q, got %+v", args, code, want, got)
		}
	}
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints(),
		TLS: kv.TLS{CAFile: node.CA, CertFile: node.Cert, KeyFile: node.Key}})
	p := startServe(t, as(node)...)
	p.key = key
	p.activated(t)

	f(exitFailed, `has the CommonName "licet"`, as(node, "store", "users"))
	f(exitOK, "turn authentication on\nauthentication is on\n", as(maintenance, "store", "users"))
	f(exitOK, "authentication is on\n", as(maintenance, "store", "users"))
	p.activated(t)
	second := startServe(t, as(node)...)
	second.key = key
	second.activated(t)

	f(exitOK, "no violations", as(node, "store", "verify"))
	f(exitOK, "key_", as(node, "store", "keys", "create", "--account", "acct_acme", "--mode", "test", "--name",
		"shop", "--scopes", "*", "--master-key-file", ringFile(t)))
	file := filepath.Join(t.TempDir(), "store.db")
	f(exitFailed, "permission denied: use the certificate of the user root", as(node, "store", "backup", file))
	if _, err := os.Stat(file); err == nil {
		t.Error("the user licet has made a backup")
	}
	f(exitOK, "every change up to revision", as(maintenance, "store", "backup", file))
	f(exitOK, cluster.Endpoints()[0], as(maintenance, "store", "defragment"))

	dir := filepath.Join(t.TempDir(), "restored")
	f(exitOK, "", []string{"store", "restore", file, "--data-dir", dir})
	f(exitOK, "no violations", []string{"store", "verify", "--data-dir", dir})
}
