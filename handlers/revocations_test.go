package handlers_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/receipt"
)

const revocationsPath = "/v1/accounts/acct_acme/test/revocations"

// revoked fetches the list of revocations, and reports for which reason a program then refuses a receipt; empty: it
// does not. seen is what the program has seen before.
func (s *fixture) revoked(document, device string, seen *receipt.Seen) receipt.Reason {
	s.t.Helper()
	return s.revokedAt(s.clock.Now(), document, device, seen)
}

// revokedAt is revoked for a program whose clock shows now.
func (s *fixture) revokedAt(now time.Time, document, device string, seen *receipt.Seen) receipt.Reason {
	s.t.Helper()
	root, err := receipt.ParseRoot(s.receiptKeys().text("root"))
	if err != nil {
		s.t.Fatal(err)
	}
	var set struct{ Signed string }
	if err := json.Unmarshal([]byte(s.send("GET", keySetPath, "", "").body), &set); err != nil {
		s.t.Fatal(err)
	}
	v := receipt.Verifier{Root: root, AccountID: "acct_acme", Mode: "test", ProductID: "editor", DeviceID: device}
	list := s.send("GET", revocationsPath, "", "")
	_, after, err := v.Verify(receipt.Documents{Keys: set.Signed, Receipt: document, Revocations: []string{list.body}},
		*seen, now)
	var refused *receipt.Error
	switch {
	case err == nil:
		*seen = after
		return ""
	case errors.As(err, &refused):
		return refused.Reason
	}
	s.t.Fatal(err)
	return ""
}

// TestRevocations: each change that voids receipts enters the list with the change, and newer receipts are good.
func TestRevocations(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"max_devices":3,"self_service_deactivation":true,"revocation_max_age":"PT1H"`).must(t, 0)
	get := func(key, device string) string {
		return s.activateFor(key, device, `,"receipt":true`).text("receipt")
	}
	post := func(path, body string) { s.send("POST", path, keyAll, body).must(t, 0) }
	for name, c := range map[string]struct {
		do, undo   func(key string)
		voidsOther bool // also the receipt of a device that keeps its slot
	}{
		"suspended": {
			func(key string) { post("/v1/licenses/"+key+"/suspend", "") },
			func(key string) { post("/v1/licenses/"+key+"/reinstate", "") }, true,
		},
		"fewer devices": {
			func(key string) { s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"max_devices":2}`).must(t, 0) },
			func(string) {}, true,
		},
		"an earlier end": {
			func(key string) {
				end := s.clock.Now().Add(time.Hour).Format(time.RFC3339)
				post("/v1/licenses/"+key+"/renew", `{"expires_at":"`+end+`"}`)
			}, func(string) {}, true,
		},
		"removed by the shop": {
			func(key string) { s.send("DELETE", "/v1/licenses/"+key+"/devices/pc", keyAll, "").must(t, 0) },
			func(string) {}, false,
		},
		"removed by the user": {
			func(key string) { s.sendWire(deactivation(key, `"device_id":"pc"`)).must(t, 0) }, func(string) {}, false,
		},
	} {
		key := s.license()
		pc, mac := get(key, "pc"), get(key, "mac")
		var onPC, onMac receipt.Seen
		if why := s.revoked(pc, "pc", &onPC); why != "" {
			t.Errorf("before a license is %s: %s", name, why)
		}
		s.clock.advance(6 * time.Second) // a node answers the same list for five
		c.do(key)
		if why := s.revoked(pc, "pc", &onPC); why != receipt.Voided {
			t.Errorf("%s: the receipt of the device is refused as %q", name, why)
		}
		if why := s.revoked(mac, "mac", &onMac); (why == receipt.Voided) != c.voidsOther {
			t.Errorf("%s: the receipt of another device is refused as %q", name, why)
		}
		c.undo(key)
		if why := s.revoked(get(key, "pc"), "pc", &onPC); why != "" {
			t.Errorf("%s, and then good again: refused as %q", name, why)
		}
		s.clock.advance(6 * time.Second)
	}
}

// TestRevocationsOfARefund: the refund of a whole order voids the receipts of its license, and that of a part does not.
func TestRevocationsOfARefund(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made := s.order("5")
	key := s.pay(made).text("license_key")
	pc := s.activateFor(key, "pc", `,"receipt":true`).text("receipt")
	var seen receipt.Seen
	for _, c := range []struct {
		body string
		want receipt.Reason
	}{{`{"amount":2}`, ""}, {"", receipt.Voided}} {
		s.changeOrder(made, "refund", c.body).must(t, 0)
		s.clock.advance(6 * time.Second) // a node answers the same list for five
		if why := s.revoked(pc, "pc", &seen); why != c.want {
			t.Errorf("after the refund %s, the receipt is refused as %q, want %q", c.body, why, c.want)
		}
	}
}

// TestRevocationsAfter: an increment has what came later, and a list says for how long caches may keep it.
func TestRevocationsAfter(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"revocation_max_age":"PT1M"`).must(t, 0)
	s.send("GET", revocationsPath, "", "").must(t, 40400) // no receipt keys yet
	const made = 100
	s.listOf(made)
	var epochs []int64
	for i := range 3 {
		key := s.license()
		s.activateFor(key, "pc", `,"receipt":true`)
		s.send("POST", "/v1/licenses/"+key+"/revoke", keyAll, "").must(t, 0)
		s.clock.advance(6 * time.Second)
		got := s.send("GET", revocationsPath, "", "")
		if cache := got.header.Get("Cache-Control"); cache != "public, max-age=20" {
			t.Errorf("Cache-Control is %q", cache)
		}
		list := s.peekList(got.body)
		if list.After != 0 || len(list.Entries) != 24*(made+i+1) || list.AsOf != s.clock.Now().Unix() {
			t.Errorf("list %d is %+v", i, list)
		}
		epochs = append(epochs, list.Epoch)
	}
	for _, c := range []struct{ position, entries int64 }{{epochs[2], 0}, {epochs[1], 1}, {epochs[0], 2}} {
		list := s.peekList(s.send("GET", fmt.Sprintf("%s?after=%d", revocationsPath, c.position), "", "").body)
		if list.After != c.position || list.Epoch != epochs[2] || int64(len(list.Entries)) != 24*c.entries {
			t.Errorf("after %d of %v: %d bytes after %d", c.position, epochs, len(list.Entries), list.After)
		}
	}
	future := s.peekList(s.send("GET", fmt.Sprintf("%s?after=%d", revocationsPath, epochs[2]+1000), "", "").body)
	if future.After != 0 || len(future.Entries) != (made+3)*24 {
		t.Errorf("after a list that never was: %+v", future)
	}
	for _, bad := range []string{"", "x", "-1", "1.5", "9007199254740993", "99999999999999999999"} {
		s.send("GET", revocationsPath+"?after="+bad, "", "").must(t, 42200)
	}
}

// peekList returns the content of a list, unverified.
func (s *fixture) peekList(document string) (list receipt.Revocations) {
	s.t.Helper()
	if err := json.Unmarshal(decodePart(s.t, document), &list); err != nil {
		s.t.Fatalf("%v: %s", err, document)
	}
	return list
}

func decodePart(t *testing.T, document string) []byte {
	t.Helper()
	parts := strings.Split(document, ".")
	if len(parts) != 3 {
		t.Fatalf("%s is no signed document", document)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// listOf gives the shop a list of so many made-up entries.
func (s *fixture) listOf(n int) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.revocations = s.store.revocations[:0]
	for i := range n {
		s.store.revision++
		s.store.revocations = append(s.store.revocations, memRevocation{store.Revocation{
			Revocation: licensing.Revocation{Name: sha256Name(i), Revision: uint64(i) + 1, Until: 60_000},
			At:         s.store.revision,
		}, licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}})
	}
}

func sha256Name(i int) licensing.RevocationName {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
	return licensing.RevocationName(sum[:])
}

// TestSizeOfRevocations: a list has the size that the reference states, programs take the longest list, and there is no
// longer one.
func TestSizeOfRevocations(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	s := newService(t)
	s.product("editor", `"revocation_max_age":"PT1M"`).must(t, 0)
	text := s.activateFor(s.license(), "pc", `,"receipt":true`).text("receipt")
	for _, c := range []struct {
		entries int
		size    string
	}{{0, "0.0"}, {100_000, "4.3"}, {service.MaxRevocations, "16.6"}} { // in this order: nodes remember entries
		n, want := c.entries, c.size
		s.listOf(n)
		s.clock.advance(15 * time.Second)
		body := s.send("GET", revocationsPath, "", "").body
		if size := fmt.Sprintf("%.1f", float64(len(body))/1e6); size != want {
			t.Errorf("a list of %d entries has %s MB, want %s", n, size, want)
		}
		var seen receipt.Seen
		if why := s.revoked(text, "pc", &seen); why != "" {
			t.Errorf("with a list of %d entries, a receipt is refused: %s", n, why)
		}
	}
	s.listOf(service.MaxRevocations + 1)
	s.clock.advance(15 * time.Second)
	reads := s.store.listReads
	for range 10 { // a node does not read it again for each request
		s.send("GET", revocationsPath, "", "").must(t, 50300)
	}
	if more := s.store.listReads - reads; more != 1 {
		t.Errorf("%d readings of a list that is too long", more)
	}
	s.listOf(3)
	s.clock.advance(time.Hour)
	if list := s.peekList(s.send("GET", revocationsPath, "", "").body); len(list.Entries) != 3*24 {
		t.Errorf("once the list is short again: %d bytes", len(list.Entries))
	}
}

// TestCostOfRevocations: whatever strangers ask for, a node reads a list once in five seconds and signs few documents.
func TestCostOfRevocations(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	s := newService(t)
	s.receiptKeys()
	const entries = 10_000
	s.listOf(entries)
	epoch := s.peekList(s.send("GET", revocationsPath, "", "").body).Epoch
	afters := map[int64]bool{}
	for range 2 {
		for i := range int64(100) {
			list := s.peekList(s.send("GET", fmt.Sprintf("%s?after=%d", revocationsPath, epoch-100*i), "", "").body)
			afters[list.After] = true
		}
	}
	if len(afters) != 1+1+7 { // the whole list, and increments of 0, then 128, 256, 512 and so on to 8,192 entries
		t.Errorf("there are increments after %v", slices.Sorted(maps.Keys(afters)))
	}
	if reads := s.store.listReads; reads != 1 {
		t.Errorf("%d readings", reads)
	}
	owner := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	list, err := s.node.Revocations(t.Context(), owner, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	for after := range afters {
		_, err := list.Signed.Of(after, func() (none service.SignedDocument, err error) {
			return none, errors.New("signed again")
		})
		if err != nil {
			t.Errorf("after %d: %v", after, err)
		}
	}
	s.clock.advance(4 * time.Second)
	s.send("GET", revocationsPath, "", "")
	if reads := s.store.listReads; reads != 1 {
		t.Errorf("%d readings in four seconds", reads)
	}
	s.clock.advance(2 * time.Second)
	s.send("GET", revocationsPath, "", "")
	if reads := s.store.listReads; reads != 2 {
		t.Errorf("%d readings in six seconds", reads)
	}
}

// TestLongIncrements: programs whose lists lack many entries share few increments. Where an increment would be as long,
// the answer is the whole list.
func TestLongIncrements(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	s := newService(t)
	s.receiptKeys()
	const entries = 40_000
	s.listOf(entries)
	epoch := s.peekList(s.send("GET", revocationsPath, "", "").body).Epoch
	made := map[string]bool{}
	for _, c := range []struct{ later, sent int64 }{
		{1, 1}, {2, 2}, {3, 4}, {4096, 4096}, {4097, 8192}, {8192, 8192}, {20_000, 32_768}, {32_768, 32_768},
		{32_769, entries}, {entries - 1, entries},
	} {
		got := s.send("GET", fmt.Sprintf("%s?after=%d", revocationsPath, epoch-c.later), "", "")
		list := s.peekList(got.body)
		after := epoch - c.sent
		if c.sent == entries {
			after = 0
		}
		if list.After != after || list.Epoch != epoch || int64(len(list.Entries)) != 24*c.sent {
			t.Errorf("%d entries later: %d bytes after %d of %d", c.later, len(list.Entries), list.After, epoch)
		}
		made[got.header.Get("ETag")] = true
	}
	if len(made) != 7 {
		t.Errorf("%d documents, want 6", len(made))
	}
}

// TestIncrementsOfMonths: a program whose list is a day, a month or longer old gets an increment, which completes the
// list.
func TestIncrementsOfMonths(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"receipt_validity":"P90D"`).must(t, 0)
	var lists []receipt.Revocations // at the end of each day
	for range 80 {
		for range 3 {
			key := s.license()
			s.activateFor(key, "pc", `,"receipt":true`)
			s.send("POST", "/v1/licenses/"+key+"/revoke", keyAll, "").must(t, 0)
		}
		s.clock.advance(24 * time.Hour)
		lists = append(lists, s.peekList(s.send("GET", revocationsPath, "", "").body))
	}
	names := func(lists ...receipt.Revocations) map[string]bool {
		all := map[string]bool{}
		for _, list := range lists {
			for entry := range slices.Chunk(list.Entries, 24) {
				all[string(entry)] = true
			}
		}
		return all
	}
	whole := lists[len(lists)-1]
	for days, entries := range map[int]int{0: 0, 1: 4, 29: 128, 31: 128, 42: 128} {
		before := lists[len(lists)-1-days]
		list := s.peekList(s.send("GET", fmt.Sprintf("%s?after=%d", revocationsPath, before.Epoch), "", "").body)
		if list.After == 0 || list.After > before.Epoch || len(list.Entries) != 24*entries ||
			!maps.Equal(names(before, list), names(whole)) {
			t.Errorf("a list that is %d days old, at %d: %d bytes after %d", days, before.Epoch, len(list.Entries),
				list.After)
		}
	}
}

// TestEndOfRevocations: an entry leaves the list when its day comes, also on a node that remembers it, and a sweep
// removes it; the position of the list stays.
func TestEndOfRevocations(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"receipt_validity":"P2D"`).must(t, 0)
	for range 3 {
		key := s.license()
		s.activateFor(key, "pc", `,"receipt":true`)
		s.send("POST", "/v1/licenses/"+key+"/revoke", keyAll, "").must(t, 0)
	}
	before := s.peekList(s.send("GET", revocationsPath, "", "").body)
	s.clock.advance(48 * time.Hour)
	if list := s.peekList(s.send("GET", revocationsPath, "", "").body); len(list.Entries) != 3*24 {
		t.Errorf("after two days, the list has %d bytes", len(list.Entries))
	}
	s.clock.advance(24 * time.Hour)
	after := s.peekList(s.send("GET", revocationsPath, "", "").body)
	if len(after.Entries) != 0 || after.Epoch != before.Epoch {
		t.Errorf("after three days, the list is %+v", after)
	}
	for range 2 {
		if err := s.node.SweepRevocations(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.store.revocations) != 1 {
		t.Errorf("after a sweep, %d entries are stored", len(s.store.revocations))
	}
	s.clock.advance(6 * time.Second)
	if swept := s.peekList(s.send("GET", revocationsPath, "", "").body); swept.Epoch != before.Epoch {
		t.Errorf("after a sweep, the list is %+v", swept)
	}
}
