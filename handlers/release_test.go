package handlers_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"licet/receipt"
)

func quoted(text string) string {
	q, _ := json.Marshal(text) // a string does not fail
	return string(q)
}

// labKey is the key of a device without network.
func labKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
}

// release binds a device with a receipt that names labKey, and returns the device's release.
func (s *fixture) release(key, device string) string {
	s.t.Helper()
	public := base64.RawURLEncoding.EncodeToString(labKey().Public().(ed25519.PublicKey))
	bound := s.activateFor(key, device, `,"receipt":true,"nonce":"n","device_key":"`+public+`"`)
	text, err := (&receipt.Release{Receipt: bound.text("receipt"), IssuedAt: 1}).Sign(labKey())
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func (s *fixture) carry(release string) answer {
	s.t.Helper()
	return s.send("POST", "/v1/receipts/release", "", `{"release":`+quoted(release)+`}`)
}

// TestRelease: a release frees the device slot once, under the rules of deactivations, and never a device that was
// bound later.
func TestRelease(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"self_service_deactivation":true,"removals_per_month":1`).must(t, 0)
	key := s.license()
	release := s.release(key, "lab-7")
	if got := s.carry("Dear shop,\n"+release).must(t, 0); got.data["removed"] != true ||
		got.text("device_id") != "lab-7" || got.text("license_id") != s.get(key).text("id") ||
		strings.Contains(got.body, key) {
		t.Errorf("a release: %s", got.body)
	}
	if got := s.carry(release).must(t, 0); got.data["removed"] != false {
		t.Errorf("the same release again: %s", got.body)
	}
	s.clock.advance(time.Second)
	later := s.release(key, "lab-7")
	if got := s.carry(release).must(t, 0); got.data["removed"] != false {
		t.Errorf("a release from before the device was bound: %s", got.body)
	}
	s.carry(later).must(t, 40305) // used up
	s.clock.advance(40 * 24 * time.Hour)
	if got := s.carry(later).must(t, 0); got.data["removed"] != true {
		t.Errorf("a release whose receipt has ended: %s", got.body)
	}
}

// TestReleaseByTwoClocks: a receipt of a node whose clock is behind that of the node which bound the device proves the
// right to remove the device. A receipt from before the device was bound again does not.
func TestReleaseByTwoClocks(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"self_service_deactivation":true`).must(t, 0)
	key := s.license()
	for range 2 {
		s.release(key, "lab-7")
		s.clock.advance(-3 * time.Minute)
		release := s.release(key, "lab-7") // the device is bound already
		if got := s.carry(release).must(t, 0); got.data["removed"] != true {
			t.Errorf("a release by an earlier clock: %s", got.body)
		}
		s.clock.advance(3 * time.Minute)
		s.release(key, "lab-7")
		if got := s.carry(release).must(t, 0); got.data["removed"] != false {
			t.Errorf("a release from before the device was bound again: %s", got.body)
		}
	}
}

// TestLongReleases: the longest release that a device makes fits into a request, and a longer body is refused
// as such.
func TestLongReleases(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var longest string
	for n := 0; ; n += 100 {
		text, err := (&receipt.Release{Receipt: strings.Repeat("r", n)}).Sign(labKey())
		if errors.Is(err, receipt.ErrLongRelease) {
			break
		}
		longest = text
	}
	s.carry(longest).must(t, 42200)
	s.carry(longest+strings.Repeat("\n", 400)).must(t, 41300)
}

// TestReleaseAfterReissue: who had the key that was replaced removes no device of the new holder.
func TestReleaseAfterReissue(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"self_service_deactivation":true`).must(t, 0)
	key := s.license()
	earlier := s.release(key, "lab-7")
	s.clock.advance(time.Second)
	renewed := s.change(key, "reissue", `{}`).must(t, 0).text("license_key")
	s.carry(earlier).must(t, 40306)
	if n := s.get(renewed).data["current_devices"]; n != float64(1) {
		t.Errorf("%v devices after a release from before the reissue, want 1", n)
	}
	s.clock.advance(time.Second)
	if got := s.carry(s.release(renewed, "lab-7")).must(t, 0); got.data["removed"] != true {
		t.Errorf("a release with a receipt for the new key: %s", got.body)
	}
}

// TestForgedReleases: a release frees no device slot unless the device's own key has signed it.
func TestForgedReleases(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"self_service_deactivation":true`).must(t, 0)
	key := s.license()
	good := s.release(key, "lab-7")
	plain := s.activateFor(key, "lab-7", `,"receipt":true`).text("receipt")
	sign := func(r string, by string) string {
		text, err := (&receipt.Release{Receipt: r, IssuedAt: 1}).
			Sign(ed25519.NewKeyFromSeed([]byte(strings.Repeat(by, ed25519.SeedSize))))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	public := base64.RawURLEncoding.EncodeToString(labKey().Public().(ed25519.PublicKey))
	named := s.activateFor(key, "lab-7", `,"receipt":true,"nonce":"n","device_key":"`+public+`"`).text("receipt")
	for name, text := range map[string]string{
		"none": "x", "cut": good[:len(good)/2], "by another key": sign(named, "x"), "of no receipt": sign("a.b.c", "k"),
		"of a receipt without a key": sign(plain, "k"), "of an altered receipt": sign(named[:len(named)-4]+"AAAA", "k"),
	} {
		got := s.carry(text)
		if got.must(t, 42200); !strings.Contains(got.body, `"field":"release"`) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	other := newService(t) // another store
	other.product("editor", `"self_service_deactivation":true`).must(t, 0)
	other.receiptKeys()
	other.carry(good).must(t, 42200)
	if n := s.get(key).data["current_devices"]; n != float64(1) {
		t.Errorf("%v devices after forged releases, want 1", n)
	}
	// An API key of another account is no right to see the license.
	s.send("POST", "/v1/receipts/release", keyOther, `{"release":`+quoted(good)+`}`).must(t, 40401)
}
