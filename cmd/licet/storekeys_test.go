package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"licet/kv/embedded/embeddedtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
)

// testStore starts an etcd and returns the flags that name it, on its unix
// socket, and a ring of its own.
func testStore(t *testing.T) (flags []string, ring string) {
	t.Helper()
	etcd := embeddedtest.Start(t, t.TempDir())
	ring = filepath.Join(t.TempDir(), "master.keys")
	if got := runLicet(t, "store", "master-key", "add", "--master-key-file", ring); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	return []string{"--etcd-endpoints", strings.Join(etcd.Endpoints(), ","), "--master-key-file", ring}, ring
}

// runBinary runs the real binary.
func runBinary(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := licetCommand(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// createdKey is the output of licet store keys create.
type createdKey struct {
	APIKey    string   `json:"api_key"`
	APISecret string   `json:"api_secret"`
	ID        string   `json:"id"`
	Account   string   `json:"account_id"`
	Mode      string   `json:"mode"`
	Scopes    []string `json:"scopes"`
}

func createKey(t *testing.T, flags []string, more ...string) createdKey {
	t.Helper()
	args := append([]string{"store", "keys", "create", "--account", "acct_acme", "--mode", "test", "--name", "shop",
		"--scopes", "*", "--output", "json"}, flags...)
	got := runLicet(t, append(args, more...)...)
	if got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	return decode[createdKey](t, got.stdout)
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

var acme = []string{"--account", "acct_acme", "--mode", "test"}

// TestKeysOfAService is the way of a shop's keys, with the real binary: from an
// empty store to a master key that took another's place.
func TestKeysOfAService(t *testing.T) {
	t.Parallel()
	flags, ring := testStore(t)
	on := func(args ...string) []string { return slices.Concat(args, acme, flags) }

	got := runBinary(t,
		on("store", "keys", "create", "--name", "shop", "--scopes", "orders,licenses:read", "--output", "json")...)
	shape := `^\{"api_key":"lk_test_[0-9A-Z]{38}","api_secret":"lks_test_[0-9A-Z]{52}","id":"key_[0-9a-z]{28}",` +
		`"account_id":"acct_acme","mode":"test","scopes":\["orders","licenses:read"\]\}\n$`
	if got.code != exitOK || !regexp.MustCompile(shape).MatchString(got.stdout) || strings.Contains(got.stderr, "lk") {
		t.Fatalf("%+v", got)
	}
	key := decode[createdKey](t, got.stdout)

	const order = `{"product_id":"editor","amount":1,"currency":"USD"}`
	nodes := []*process{startServe(t, flags...), startServe(t, flags...)}
	for _, n := range nodes {
		n.key = key.APIKey
		n.want(t, 201, "POST", "/v1/orders", order)
		n.want(t, 403, "POST", "/v1/licenses", `{"product_id":"editor","quantity":1}`)
	}

	// Revoked on the store, it is dead on all nodes within two seconds: a
	// request that begins later must not be taken.
	if got := runBinary(t, on("store", "keys", "revoke", key.ID)...); got.code != exitOK ||
		!strings.Contains(got.stdout, "REVOKED") {
		t.Fatalf("%+v", got)
	}
	revoked := time.Now()
	for i, n := range nodes {
		waitFor(t, func() bool {
			asked := time.Now()
			r, err := n.send(t.Context(), "POST", "/v1/orders", order)
			if err != nil || r.status != 401 && r.status != 201 {
				t.Fatalf("%v %s", err, r.body)
			}
			if r.status == 201 && asked.Sub(revoked) > 2*time.Second {
				t.Errorf("node %d took the key %v after it was revoked", i, asked.Sub(revoked))
			}
			return r.status == 401
		})
		n.want(t, 401, "POST", "/v1/orders", order)
	}

	// A fresh key works at once, on any node.
	key = createKey(t, flags)
	for _, n := range nodes {
		n.key = key.APIKey
		n.want(t, 201, "POST", "/v1/orders", order)
	}

	// The master key is replaced: added last, moved to the top, and the secret
	// is derived anew.
	first := strings.TrimSpace(readText(t, ring))
	if got := runBinary(t, "store", "master-key", "add", "--last", "--master-key-file", ring); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	lines := strings.Fields(readText(t, ring))
	if len(lines) != 2 || lines[0] != first {
		t.Fatalf("the ring has %d lines, and another first one: %v", len(lines), lines[0] != first)
	}
	writeText(t, ring, lines[1]+"\n"+lines[0]+"\n")
	got = runBinary(t, on("store", "keys", "rotate", key.ID, "--overlap", "1h", "--output", "json")...)
	rotated := decode[struct {
		APISecret string    `json:"api_secret"`
		ID        string    `json:"id"`
		Account   string    `json:"account_id"`
		Mode      string    `json:"mode"`
		Until     time.Time `json:"previous_secret_until"`
	}](t, got.stdout)
	if rotated.ID != key.ID || rotated.APISecret == key.APISecret || time.Until(rotated.Until) > time.Hour ||
		time.Until(rotated.Until) < 50*time.Minute {
		t.Errorf("rotated: %+v", rotated)
	}
	for _, n := range nodes { // the key itself is as it was
		n.want(t, 201, "POST", "/v1/orders", order)
	}
	got = runLicet(t, on("store", "keys", "list")...)
	next, _, _ := strings.Cut(lines[1], ":")
	if rows := strings.Split(strings.TrimSpace(got.stdout), "\n"); len(rows) != 3 ||
		!strings.HasPrefix(rows[0], "ID ") ||
		!strings.HasPrefix(rows[1], key.ID) || !strings.Contains(rows[1], "active") ||
		!strings.Contains(rows[2], "revoked") {
		t.Errorf("listed:\n%s", got.stdout)
	}
	got = runLicet(t, on("store", "keys", "list", "--output", "json")...)
	if !strings.Contains(got.stdout, `"master_key_id":"`+next+`"`) {
		t.Errorf("listed:\n%s", got.stdout)
	}

	// From now on the store uses both master keys. Nodes and commands with another ring get an error that names the
	// key.
	f := func(ring, problem string) {
		t.Helper()
		other := filepath.Join(t.TempDir(), "other.keys")
		writeText(t, other, ring)
		wantOneLine(t, licetCommand(slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, flags,
			[]string{"--master-key-file", other})...), problem, other)
		got := runLicet(t,
			append(on("store", "keys", "create", "--name", "x", "--scopes", "*"), "--master-key-file", other)...)
		if got.code != exitFailed || !strings.Contains(got.stderr, problem) || got.stdout != "" {
			t.Errorf("licet store keys create: %+v", got)
		}
	}
	f(first, `the store uses the master key "`+next+`", and the master key ring lacks it`)
	stranger := strings.TrimSpace(runLicet(t, "store", "master-key", "new").stdout)
	_, secret, _ := strings.Cut(stranger, ":")
	f(first+"\n"+next+":"+secret, `the store uses another master key "`+next+`"`)

	for _, n := range nodes {
		for _, word := range []string{key.APIKey, key.APISecret, rotated.APISecret, secret} {
			if strings.Contains(n.log.String(), word) {
				t.Error("a secret is in a node's log")
			}
		}
	}
	if got := runLicet(t, append([]string{"store", "verify"}, flags[:2]...)...); got.code != exitOK {
		t.Errorf("%+v", got)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeysOutput(t *testing.T) {
	t.Parallel()
	flags, _ := testStore(t)
	on := func(args ...string) []string { return slices.Concat(args, acme, flags) }
	if got := runLicet(t, on("store", "keys", "list", "-o", "json")...); got.stdout != `{"keys":[],"next_cursor":null}`+"\n" {
		t.Errorf("no keys: %+v", got)
	}
	got := runLicet(t, on("store", "keys", "create", "--name", "my shop", "--scopes", "keys,events:read",
		"--expires-at", "2100-01-31T01:00:00+01:00", "--require-signature")...)
	created := map[string]string{}
	for line := range strings.Lines(got.stdout) {
		title, value, _ := strings.Cut(strings.TrimSpace(line), "  ")
		created[title] = strings.TrimSpace(value)
	}
	if got.code != exitOK || created["SCOPES"] != "keys,events:read" ||
		!strings.HasPrefix(created["API KEY"], "lk_test_") ||
		!strings.HasPrefix(created["API SECRET"], "lks_test_") || strings.Contains(got.stderr, created["API KEY"]) {
		t.Errorf("%+v", got)
	}
	id := created["ID"]
	for range 2 {
		if got := runLicet(t, on("store", "keys", "revoke", id, "-o", "json")...); got.code != exitOK ||
			!strings.HasPrefix(got.stdout, `{"id":"`+id+`","account_id":"acct_acme","mode":"test","revoked_at":"20`) {
			t.Errorf("%+v", got)
		}
	}
	type listed struct {
		ID       string   `json:"id"`
		Account  string   `json:"account_id"`
		Mode     string   `json:"mode"`
		Name     string   `json:"name"`
		Status   string   `json:"status"`
		Scopes   []string `json:"scopes"`
		Signed   bool     `json:"require_signature"`
		Created  string   `json:"created_at"`
		Expires  string   `json:"expires_at"`
		Revoked  *string  `json:"revoked_at"`
		Used     *string  `json:"last_used_at"`
		Master   string   `json:"master_key_id"`
		Previous *string  `json:"previous_secret_until"`
	}
	got = runLicet(t, on("store", "keys", "list", "-o", "json")...)
	keys := decode[struct {
		Keys []listed
		Next *string `json:"next_cursor"`
	}](t, got.stdout).Keys
	if len(keys) != 1 || keys[0].Name != "my shop" || !keys[0].Signed || keys[0].Status != "revoked" ||
		keys[0].Expires != "2100-01-31T00:00:00.000Z" || keys[0].Revoked == nil || keys[0].Previous != nil {
		t.Errorf("%+v", keys)
	}
	none := append([]string{"store", "keys", "revoke", id, "--account", "acct_other", "--mode", "test"}, flags...)
	if got := runLicet(t, none...); got.code != exitFailed ||
		got.stderr != "licet: "+id+" of acct_other in test mode: no such API key\n" {
		t.Errorf("%+v", got)
	}
	if got := runLicet(t, on("store", "keys", "rotate", id)...); got.code != exitFailed ||
		!strings.Contains(got.stderr, "revoked or expired") {
		t.Errorf("%+v", got)
	}
}

// TestKeysOfADataDirectory works on a licet dev: stopped, by its directory, and
// running, by its socket.
func TestKeysOfADataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir)
	if got := runLicet(t, slices.Concat([]string{"store", "keys", "list", "--data-dir", dir},
		acme)...); got.code != exitFailed || !strings.Contains(got.stderr, "in use") {
		t.Errorf("%+v", got)
	}
	key := createKey(t, []string{"--etcd-endpoints", p.socket(), "--master-key-file", filepath.Join(dir, masterFile)})
	other := api{url: p.url, key: key.APIKey, client: newClient()}
	other.grant(t, 1)
	if code := p.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	second := createKey(t, []string{"--data-dir", dir})

	// The key pair of licet dev itself can be rotated, and revoked.
	var own devKey
	if err := json.Unmarshal([]byte(readText(t, filepath.Join(dir, keyFile))), &own); err != nil {
		t.Fatal(err)
	}
	of := []string{own.KeyID, "--account", own.AccountID, "--mode", "test", "--data-dir", dir, "-o", "json"}
	got := runLicet(t, append([]string{"store", "keys", "rotate"}, of...)...)
	secret := decode[map[string]any](t, got.stdout)["api_secret"]
	p = startProcess(t, dir)
	if p.secret != secret || p.key != own.APIKey {
		t.Error("dev.env lacks the new secret")
	}
	other = api{url: p.url, key: second.APIKey, client: newClient()}
	other.grant(t, 1)
	p.grant(t, 1)
	p.terminate(t)
	if got := runLicet(t, append([]string{"store", "keys", "revoke"}, of...)...); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	p = startProcess(t, dir)
	p.want(t, 401, "POST", "/v1/licenses", `{"product_id":"editor","quantity":1}`)
	if !strings.Contains(p.log.String(), "the key pair was revoked") {
		t.Errorf("nothing tells so: %s", p.log)
	}
}

func TestKeysUsageErrors(t *testing.T) {
	f := func(problem string, args ...string) {
		t.Helper()
		if got := runLicet(t, args...); got.code != exitUsage || !strings.Contains(got.stderr, problem) ||
			got.stdout != "" {
			t.Errorf("%v: want exit code 2 and %q, got %+v", args, problem, got)
		}
	}
	etcd := []string{"--etcd-endpoints", "127.0.0.1:1"}
	create := slices.Concat([]string{"store", "keys", "create"}, acme, etcd)
	named := append(slices.Clone(create), "--name", "shop")
	f("unknown command", "store", "keys", "make")
	f("no store: set --etcd-endpoints", "store", "keys", "list", "--account", "acct_acme", "--mode", "test")
	list := append([]string{"store", "keys", "list"}, etcd...)
	f(`--account is ""`, list...)
	f(`--account is "acme"`, append(list, "--account", "acme")...)
	f(`--mode is ""`, append(list, "--account", "acct_acme")...)
	f(`--mode is "prod"`, append(list, "--account", "acct_acme", "--mode", "prod")...)
	f("no store: set --etcd-endpoints", append([]string{"store", "keys", "list"}, acme...)...)
	f("two stores", slices.Concat([]string{"store", "keys", "list", "--data-dir", "x"}, acme, etcd)...)
	f(`--output is "yaml"`, slices.Concat([]string{"store", "keys", "list", "-o", "yaml"}, acme, etcd)...)
	f("--name must be", create...)
	f("--scopes must be some of orders, licenses, products, webhooks, events, keys", named...)
	f("--scopes must be", append(named, "--scopes", "orders,everything")...)
	f(`--expires-at is "tomorrow"`, append(named, "--scopes", "*", "--expires-at", "tomorrow")...)
	f("--expires-at must be in the future", append(named, "--scopes", "*", "--expires-at", "2020-01-01T00:00:00Z")...)
	f("--expires-at must be in the future", append(named, "--scopes", "*", "--expires-at", "0001-01-01T00:00:00Z")...)
	f("--master-key-file must name", append(named, "--scopes", "*")...)
	f("licet store keys revoke needs KEY_ID", append([]string{"store", "keys", "revoke"}, acme...)...)
	f("licet store keys rotate takes only KEY_ID; arguments received: 2",
		slices.Concat([]string{"store", "keys", "rotate", "key_1", "key_2"}, acme, etcd)...)
	f("--overlap is -1s",
		slices.Concat([]string{"store", "keys", "rotate", "key_1", "--overlap", "-1s"}, acme, etcd)...)
	f("--overlap is 721h0m0s",
		slices.Concat([]string{"store", "keys", "rotate", "key_1", "--overlap", "721h"}, acme, etcd)...)
	f("--master-key-file must name", "store", "master-key", "add")
	f("unknown command", "store", "master-key", "remove")

	for _, command := range []string{"keys", "store", "store keys", "store master-key"} {
		if got := runLicet(t, strings.Fields(command)...); got.code != exitOK ||
			!strings.Contains(got.stdout, "Examples:") {
			t.Errorf("licet %s: %+v", command, got)
		}
	}
}

func TestRevokeAsks(t *testing.T) {
	t.Parallel()
	flags, _ := testStore(t)
	key := createKey(t, flags)
	cfg := storeKeysConfig{Account: "acct_acme", Mode: "test"}
	cfg.Etcd.Endpoints = []string{flags[1]}
	f := func(in io.Reader, id string, want error, asked bool) {
		t.Helper()
		var stderr bytes.Buffer
		err := cfg.onStore(t.Context(), &stderr, false, func(_ context.Context, maker service.Keymaker) error {
			cmd := new(cobra.Command)
			cmd.SetContext(t.Context())
			cmd.SetIn(in)
			return cfg.confirm(cmd, maker.Store, id, &stderr)
		})
		if (err == nil) != (want == nil) || want != nil && !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("got %v, want %v", err, want)
		}
		if strings.Contains(stderr.String(),
			"Revoke "+id+" (shop) of acct_acme in test mode, for good? [y/N]") != asked {
			t.Errorf("it said %q", stderr.String())
		}
	}
	for _, yes := range []string{"y\n", "Yes\n", " y \n"} {
		f(strings.NewReader(yes), key.ID, nil, true)
	}
	for _, no := range []string{"", "\n", "n\n", "yep\n"} {
		f(strings.NewReader(no), key.ID, errors.New("not revoked"), true)
	}
	f(strings.NewReader("y\n"), "key_none", licensing.ErrAPIKeyNotFound, false)
}

func TestMasterKeyNew(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		got := runLicet(t, "store", "master-key", "new")
		ring, err := keyring.ParseMasterRing(got.stdout)
		if err != nil || got.code != exitOK || got.stderr != "" || strings.Count(got.stdout, "\n") != 1 {
			t.Fatalf("%v: %+v", err, got)
		}
		seen[ring.Current().ID], seen[got.stdout] = true, true
	}
	if len(seen) != 6 {
		t.Error("ids or keys repeat")
	}
}

func TestMasterKeyAdd(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.keys"), filepath.Join(dir, "link.keys")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	add := func(args ...string) string {
		t.Helper()
		got := runLicet(t, append([]string{"store", "master-key", "add", "--master-key-file", link}, args...)...)
		if got.code != exitOK || !strings.HasPrefix(got.stdout, "mk_") {
			t.Fatalf("%+v", got)
		}
		return strings.TrimSpace(got.stdout)
	}
	want := func(ids ...string) {
		t.Helper()
		ring, err := readMasterRing(real)
		if err != nil || ring.String() != "master key ring ["+strings.Join(ids, " ")+"]" {
			t.Errorf("%v, %v; want %v", ring, err, ids)
		}
	}
	writeText(t, real, strings.TrimSpace(runLicet(t, "store", "master-key", "new").stdout)) // no line break at its end
	zero, _, _ := strings.Cut(readText(t, real), ":")
	one := add()
	want(one, zero)
	two := add("--last")
	want(one, zero, two)
	if err := os.Chmod(real, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(real+".new", nil, 0o644); err != nil { // a foreign file, where the new ring is written
		t.Fatal(err)
	}
	three := add()
	want(three, one, zero, two)
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != privateFile {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}

	// Concurrent commands: no key is lost, except the keys of refused commands.
	ids := make(chan string, 8)
	atOnce(cap(ids), func(int) {
		got := runLicet(t, "store", "master-key", "add", "--last", "--master-key-file", real)
		if got.code == exitOK {
			ids <- strings.TrimSpace(got.stdout)
		} else if !strings.Contains(got.stderr, "another process is adding a key") {
			t.Errorf("%+v", got)
		}
	})
	close(ids)
	ring, err := readMasterRing(real)
	if err != nil {
		t.Fatal(err)
	}
	for id := range ids {
		if _, found := ring.Lookup(id); !found {
			t.Errorf("%s is lost", id)
		}
	}

	writeText(t, real, "m1:c2hvcnQ=\n")
	if got := runLicet(t, "store", "master-key", "add", "--master-key-file", real); got.code != exitFailed ||
		strings.Contains(got.stderr, "c2hvcnQ") || readText(t, real) != "m1:c2hvcnQ=\n" {
		t.Errorf("a damaged ring: %+v", got)
	}
	fresh := filepath.Join(dir, "fresh.keys")
	if got := runLicet(t, "store", "master-key", "add", "--last", "--master-key-file", fresh); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
