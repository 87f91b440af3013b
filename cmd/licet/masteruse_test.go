package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/node/service"
)

// TestMasterKeyIsReplaced goes the documented way from one master key to the
// next, on two nodes that serve all the time, until the ring has only the new
// one.
func TestMasterKeyIsReplaced(t *testing.T) {
	t.Parallel()
	flags, ring := testStore(t)
	store := flags[:2]
	oldLine := strings.TrimSpace(readText(t, ring))
	oldID, _, _ := strings.Cut(oldLine, ":")
	shop := createKey(t, flags)
	nodes := []*process{startServe(t, flags...), startServe(t, flags...)}
	a := api{url: nodes[0].url, key: shop.APIKey, client: nodes[0].client}
	serves := func() {
		t.Helper()
		for _, n := range nodes {
			n.key = shop.APIKey
			n.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":1,"currency":"USD"}`)
		}
	}
	restart := func() {
		t.Helper()
		for i := range nodes {
			if code := nodes[i].terminate(t); code != exitOK {
				t.Errorf("a node ended with %d", code)
			}
			others := slices.Delete(slices.Clone(nodes), i, i+1)
			others[0].want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":1,"currency":"USD"}`)
			nodes[i] = startServe(t, flags...)
			nodes[i].key = shop.APIKey
		}
		a.url = nodes[0].url
		serves()
	}
	good := func(id string, secrets ...string) {
		t.Helper()
		if got := goodSecrets(t, flags, ring, id); !slices.Equal(got, secrets) {
			t.Errorf("%s has the secrets %v, want %v", id, got, secrets)
		}
	}
	status := func() map[string]masterRow {
		t.Helper()
		got := runLicet(t, slices.Concat([]string{"store", "master-key", "status", "--output", "json"}, flags)...)
		if got.code != exitOK {
			t.Fatalf("%+v", got)
		}
		rows := map[string]masterRow{}
		for _, row := range decode[struct {
			Keys       []masterRow `json:"master_keys"`
			Unreadable int         `json:"unreadable"`
		}](t, got.stdout).Keys {
			rows[row.ID] = row
		}
		return rows
	}
	retire := func(id string, args ...string) outcome {
		return runLicet(t, slices.Concat([]string{"store", "master-key", "retire", id}, store, args)...)
	}
	serves()
	root := a.want(t, 200, "PUT", "/v1/receipt_keys", "").Data.text("root")
	child := a.want(t, 201, "POST", "/v1/keys", `{"name":"child","scopes":["orders"]}`).Data
	good(shop.ID, shop.APISecret)
	good(child.text("id"), child.text("api_secret"))
	if got := retire(oldID); got.code != exitFailed || !strings.Contains(got.stderr, "the secrets of 2 API keys") ||
		!strings.Contains(got.stderr, shop.ID) {
		t.Errorf("retired while it is in use: %+v", got)
	}

	// Every node knows the new key before any derives from it.
	newID := strings.TrimSpace(runLicet(t, "store", "master-key", "add", "--last", "--master-key-file", ring).stdout)
	restart()
	lines := strings.Fields(readText(t, ring))
	writeText(t, ring, lines[1]+"\n"+lines[0]+"\n")
	if rows := status(); rows[oldID].Status != "in use" || rows[oldID].Ring != "known" || !rows[oldID].IDKey ||
		rows[newID].Status != "not used yet" || rows[newID].Ring != "first" {
		t.Errorf("the status is %+v", rows)
	}
	restart()
	good(shop.ID, shop.APISecret)

	// New secrets derive from it, and old ones stay good for the overlap.
	rotate := func(id, overlap string) string {
		t.Helper()
		return a.want(t, 200, "POST", "/v1/keys/"+id+"/rotate", `{"overlap":"`+overlap+`"}`).Data.text("api_secret")
	}
	good(shop.ID, rotate(shop.ID, "PT24H"), shop.APISecret)
	if row := status()[oldID]; row.Keys != 1 || row.Previous != 1 || row.Until == nil {
		t.Errorf("the old one: %+v", row)
	}
	good(child.text("id"), rotate(child.text("id"), "PT0S"))
	if got := retire(oldID); got.code != exitFailed || !strings.Contains(got.stderr, "the previous secrets of 1") {
		t.Errorf("retired while a secret before is good: %+v", got)
	}
	good(shop.ID, rotate(shop.ID, "PT0S"))
	waitFor(t, func() bool { return status()[newID].Roots == 1 })
	if rows := status(); rows[oldID].Status != "unused" || rows[newID].Keys != 2 || !rows[newID].IDKey {
		t.Errorf("the status is %+v", rows)
	}

	// Before it is retired no node does without it, and afterwards none needs it.
	writeText(t, ring, lines[1]+"\n")
	wantOneLine(t, licetCommand(slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, flags)...),
		`the store uses the master key "`+oldID+`", and the master key ring lacks it`, ring)
	for range 2 {
		if got := retire(oldID); got.code != exitOK || !strings.Contains(got.stdout, oldID+" is retired") {
			t.Fatalf("%+v", got)
		}
	}
	restart()
	if got := a.want(t, 200, "PUT", "/v1/receipt_keys", "").Data.text("root"); got != root {
		t.Errorf("the root key for receipts is %s, and was %s", got, root)
	}
	before := goodSecrets(t, flags, ring, shop.ID)[0]
	good(shop.ID, rotate(shop.ID, "PT1H"), before)
	if rows := status(); len(rows) != 2 || rows[oldID].Status != "retired" || rows[oldID].Ring != "missing" {
		t.Errorf("the status is %+v", rows)
	}

	// No command uses the key again.
	stale := filepath.Join(t.TempDir(), "stale.keys")
	writeText(t, stale, oldLine+"\n"+lines[1]+"\n")
	wantOneLine(t, licetCommand(slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, flags,
		[]string{"--master-key-file", stale})...),
		`the master key "`+oldID+`" was retired`, stale)
	if got := retire(newID, "--master-key-file", ring); got.code != exitFailed ||
		!strings.Contains(got.stderr, "is first in the ring") {
		t.Errorf("%+v", got)
	}
	if got := retire("mk_none"); got.code != exitFailed ||
		!strings.Contains(got.stderr, `has never used a master key "mk_none"`) {
		t.Errorf("%+v", got)
	}
	if got := retire(lines[1]); got.code != exitUsage || strings.Contains(got.stderr, lines[1]) {
		t.Errorf("%+v", got)
	}
	if got := runLicet(t, append([]string{"store", "verify"}, store...)...); got.code != exitOK {
		t.Errorf("%+v", got)
	}
}

// TestPayURLWithOtherMasterKeys runs two nodes that start with different master keys under one id, before the store
// knows this id. The first order decides which of the two is right. The other node creates no order, shows no pay_url,
// says so once in its log, and serves the pay page of the order.
func TestPayURLWithOtherMasterKeys(t *testing.T) {
	t.Parallel()
	flags, ring := testStore(t)
	key := createKey(t, flags).APIKey
	known := readText(t, ring)
	var nodes []*process
	// The other node starts first, with its m9 in second place: nothing is derived from any m9 yet.
	for _, lines := range []string{
		known + "m9:" + strings.Repeat("B", 42) + "A=", "m9:" + strings.Repeat("A", 42) + "A=\n" + known,
	} {
		own := filepath.Join(t.TempDir(), "master.keys")
		writeText(t, own, lines)
		p := startServe(t, append(slices.Clone(flags), "--master-key-file", own)...)
		p.key = key
		nodes = append(nodes, p)
	}
	other, right := nodes[0], nodes[1]
	const order = `{"product_id":"editor","amount":4900,"currency":"USD"}`
	orders := []object{
		right.want(t, 201, "POST", "/v1/orders", order).Data, right.want(t, 201, "POST", "/v1/orders", order).Data,
	}
	if refused := other.want(t, 503, "POST", "/v1/orders", order); refused.Code != 50300 {
		t.Errorf("the node with the other master key answers %s", refused.body)
	}
	for _, made := range orders {
		path, payURL := "/v1/orders/"+made.text("order_no"), made.text("pay_url")
		if got := right.want(t, 200, "GET", path, "").Data; payURL == "" || got.text("pay_url") != payURL {
			t.Errorf("created with the pay_url %q, looked up with %q", payURL, got.text("pay_url"))
		}
		if got := other.want(t, 200, "GET", path, "").Data; got["pay_url"] != nil || got.text("status") != "unpaid" {
			t.Errorf("the node with the other master key shows %v", got)
		}
	}
	other.want(t, 200, "GET", "/v1/orders", "")
	other.want(t, 200, "GET", "/v1/events", "")
	if lines := strings.Count(other.log.String(), "lack pay_url"); lines != 1 {
		t.Errorf("the node with the other master key logged %d lines, want 1", lines)
	}
	for _, expected := range []string{"lack pay_url", "can't derive new secrets"} {
		other.log.forgive(expected)
	}
	if strings.Contains(right.log.String(), "lack pay_url") {
		t.Error("the node with the right master key lacks pay_url")
	}
	page := strings.TrimPrefix(orders[0].text("pay_url"), right.url)
	if r, err := other.press(t.Context(), other.url+page, "pay"); err != nil || r.status != 303 {
		t.Errorf("pay at the node with the other master key: %s (%v)", r.body, err)
	}
	first := "/v1/orders/" + orders[0].text("order_no")
	if got := right.want(t, 200, "GET", first, "").Data; got.text("status") != "paid" {
		t.Errorf("paid, and the order is %v", got)
	}
}

// goodSecrets derives the secrets of a key that are good now, from the ring
// file as it is.
func goodSecrets(t *testing.T, flags []string, ring, id string) (secrets []string) {
	t.Helper()
	cfg := storeKeysConfig{storeConfig: storeConfig{Etcd: etcdConfig{Endpoints: strings.Split(flags[1], ",")}},
		Account: "acct_acme", Mode: "test", MasterKeyFile: ring}
	err := cfg.onStore(t.Context(), t.Output(), true, func(ctx context.Context, maker service.Keymaker) error {
		key, err := maker.Store.FindAPIKey(ctx, cfg.owner(), id)
		if err != nil {
			return err
		}
		if err := maker.Store.CheckRing(ctx, maker.Ring); err != nil {
			return err
		}
		secrets, err = maker.Ring.APISecrets(key, time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return secrets
}

// TestRevokedOverHTTP revokes a key on one node: within two seconds another one
// that remembers it takes it no more.
func TestRevokedOverHTTP(t *testing.T) {
	t.Parallel()
	flags, _ := testStore(t)
	admin := createKey(t, flags)
	nodes := []*process{startServe(t, flags...), startServe(t, flags...)}
	for _, n := range nodes {
		n.key = admin.APIKey
	}
	made := nodes[0].want(t, 201, "POST", "/v1/keys", `{"name":"child","scopes":["orders:read","keys"]}`).Data
	path := "/v1/keys/" + made.text("id")
	child := api{url: nodes[1].url, key: made.text("api_key"), client: nodes[1].client}
	child.want(t, 404, "GET", "/v1/orders/x", "")
	child.want(t, 200, "GET", path, "")

	// It may revoke itself; the other node has remembered it.
	itself := api{url: nodes[0].url, key: child.key, client: nodes[0].client}
	itself.want(t, 200, "DELETE", path, "")
	revoked := time.Now()
	for _, a := range []api{child, itself} {
		waitFor(t, func() bool {
			asked := time.Now()
			r, err := a.send(t.Context(), "GET", "/v1/orders/x", "")
			if err != nil || r.status != 401 && r.status != 404 {
				t.Fatalf("%v %s", err, r.body)
			}
			if r.status == 404 && asked.Sub(revoked) > 2*time.Second {
				t.Errorf("the key was taken %v after it was revoked", asked.Sub(revoked))
			}
			return r.status == 401
		})
		a.want(t, 401, "GET", path, "")
	}
	if again := nodes[1].want(t, 200, "DELETE", path, "").Data; again.text("status") != "revoked" {
		t.Errorf("again: %v", again)
	}
}

// TestLastUsedIsStored stops a node: what it knows of uses is stored before it
// ends.
func TestLastUsedIsStored(t *testing.T) {
	t.Parallel()
	flags, _ := testStore(t)
	key := createKey(t, flags)
	first := startServe(t, flags...)
	first.key = key.APIKey
	if first.want(t, 200, "GET", "/v1/keys/"+key.ID, "").Data["last_used_at"] != nil {
		t.Error("it was used before it was")
	}
	if code := first.terminate(t); code != exitOK {
		t.Errorf("the node ended with %d", code)
	}
	second := startServe(t, flags...)
	second.key = key.APIKey
	used, err := time.Parse(time.RFC3339, second.want(t, 200, "GET", "/v1/keys/"+key.ID, "").Data.text("last_used_at"))
	if err != nil || time.Since(used) > time.Minute {
		t.Errorf("it was used at %v, %v", used, err)
	}
	if got := runLicet(t, slices.Concat([]string{"store", "keys", "list", "-o", "json"}, acme,
		flags)...); !strings.Contains(got.stdout, used.UTC().Format(`"last_used_at":"2006-01-02T15:04:05.000Z"`)) {
		t.Errorf("%+v", got)
	}
}
