package keyring

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/licensing"
)

// The keys 00…1f and ff…ff, as a ring file writes them.
const (
	countingKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	onesKey     = "//////////////////////////////////////////8="
)

func TestParseMasterRing(t *testing.T) {
	for name, text := range map[string]string{
		"one key":           "a:" + countingKey,
		"line break at end": "a:" + countingKey + "\n",
		"two keys":          "a:" + countingKey + "\nb.2_c-D:" + onesKey + "\n",
		"empty lines":       "\n\n  a:" + countingKey + "  \n\n",
		"line ends of DOS":  "a:" + countingKey + "\r\nb:" + onesKey + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			ring, err := ParseMasterRing(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := ring.Current().Line(); got != "a:"+countingKey {
				t.Errorf("the current key is %q", got)
			}
		})
	}
}

func TestParseMasterRingRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, problem string }{
		"nothing":           {"", "empty"},
		"empty lines":       {"\n \n", "empty"},
		"no colon":          {countingKey, "line 1"},
		"no id":             {":" + countingKey, "line 1"},
		"bad id":            {"a b:" + countingKey, "line 1"},
		"long id":           {strings.Repeat("a", 65) + ":" + countingKey, "line 1"},
		"short key":         {"a:" + countingKey + "\nb:AAEC\n", "line 2"},
		"long key":          {"a:" + countingKey[:43] + "AAAA=\n", "line 1"},
		"URL alphabet":      {"a:" + strings.ReplaceAll(onesKey, "/", "_"), "line 1"},
		"no padding":        {"a:" + strings.TrimSuffix(onesKey, "="), "line 1"},
		"loose last bits":   {"a:" + strings.Replace(onesKey, "8=", "9=", 1), "line 1"},
		"id twice":          {"a:" + countingKey + "\n\na:" + onesKey, "line 3"},
		"something behind":  {"a:" + countingKey + " # mine", "line 1"},
		"a comment":         {"# mine\na:" + countingKey, "line 1"},
		"two on a line":     {"a:" + countingKey + ";b:" + onesKey, "line 1"},
		"key before the id": {countingKey + ":a", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseMasterRing(c.text)
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Fatalf("got error %v, want one about %q", err, c.problem)
			}
			for _, secret := range []string{countingKey[:20], onesKey[:20], "mine"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows what is in the file: %v", err)
				}
			}
		})
	}
}

func TestMasterRingLookup(t *testing.T) {
	ring, err := ParseMasterRing("new:" + onesKey + "\nold:" + countingKey + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := ring.Current().ID; got != "new" {
		t.Errorf("the current key is %q, want the first", got)
	}
	if key, found := ring.Lookup("old"); !found || key.Line() != "old:"+countingKey {
		t.Errorf("old: found %v, line %q", found, key.Line())
	}
	if _, found := ring.Lookup("older"); found {
		t.Error("found a key that is not there")
	}
}

func TestMasterKeyPrintsAsItsID(t *testing.T) {
	ring, err := ParseMasterRing("a:" + onesKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, ring.Current()); got != "master key a" {
			t.Errorf("%s prints %q", verb, got)
		}
		if got := fmt.Sprintf(verb, ring); got != "master key ring [a]" {
			t.Errorf("%s of a ring prints %q", verb, got)
		}
	}
}

// TestAPISecretIsFrozen checks that the derivation never changes. If it fails, put back what
// was changed: a new derivation needs a version of its own beside this one. The
// secrets were computed apart from this code, by RFC 5869 written out in Python.
func TestAPISecretIsFrozen(t *testing.T) {
	ring, err := ParseMasterRing("a:" + countingKey + "\nb:" + onesKey)
	if err != nil {
		t.Fatal(err)
	}
	f := func(mode licensing.Mode, id, masterID string, version int, want string) {
		t.Helper()
		key := licensing.APIKey{
			ID: id, Owner: licensing.Owner{AccountID: "acct_1", Mode: mode}, MasterID: masterID, SecretVersion: version,
		}
		got, err := ring.APISecret(&key)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("secret of %s %s by %s, version %d: got %s, want %s", mode, id, masterID, version, got, want)
		}
	}
	f(licensing.Test, "key_1", "a", 1, "lks_test_9WK2MBQ43GGQA9E5NVXVG34A6XE284Y2C4QVBX322VH4E422EZVG")
	f(licensing.Test, "key_1", "a", 2, "lks_test_N8KA4009BW97ESS32RAWS2E148MYYMCV3EX3PAAT5D1179N6PWX0")
	f(licensing.Live, "key_1", "a", 1, "lks_live_KBG4BYXCEGT88HYMT8K5F87QB1GF3WGYCW6WZTPZKJWV5TCJGP5G")
	f(licensing.Test, "key_2", "a", 1, "lks_test_97JJTYT04THT6WD6KQVJ57959JC242QPC3JSGGKHW6VCANT3HRAG")
	f(licensing.Test, "key_1", "b", 1, "lks_test_EGWRCJ8GGNDE079FPQVRN90J8XWJBWAW6BDM1P5V8BH70A0H8G90")

	_, err = ring.APISecret(&licensing.APIKey{
		ID: "key_1", Owner: licensing.Owner{Mode: licensing.Test}, MasterID: "c", SecretVersion: 1,
	})
	if err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("a master key that the ring lacks: got error %v", err)
	}
}

// TestPayTokenIsFrozen checks that the derivation never changes, as TestAPISecretIsFrozen does: pay links are in
// buyers' hands.
func TestPayTokenIsFrozen(t *testing.T) {
	ring, err := ParseMasterRing("a:" + countingKey + "\nb:" + onesKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		orderNo, masterID string
		salt              byte
		token             string
	}{
		{"ord_1", "a", 1, "9f9d8c47368b5876341a2130bc4ce8e8"},
		{"ord_2", "a", 1, "2a03f7d5f1b1c2781cbd1f8f92aedb90"},
		{"ord_1", "b", 1, "a231cb2e67a131c55bb6bb9a9307b4f1"},
		{"ord_1", "a", 2, "e145262de01be14cd8c5004f0df83dbd"},
	} {
		order := licensing.Order{OrderNo: c.orderNo, PayHash: HashPayToken(c.token),
			PaySeed: licensing.PaySeed{MasterID: c.masterID, Salt: [16]byte{c.salt}}}
		if got, err := ring.PayToken(&order); err != nil || got != c.token {
			t.Errorf("the pay token of %+v is %s, %v", c, got, err)
		}
	}
}

// TestForeignPayToken: a ring that lacks the master key of an order, or has another one under the same id, returns an
// error instead of a token that does not open the order's pay page.
func TestForeignPayToken(t *testing.T) {
	var order licensing.Order
	for i, ring := range []string{"a:" + countingKey, "b:" + countingKey, "a:" + onesKey} {
		ring, err := ParseMasterRing(ring)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := ring.NewPayToken(&order, [16]byte{1}); err != nil {
				t.Fatal(err)
			}
			token, err := ring.PayToken(&order)
			if err != nil || HashPayToken(token) != order.PayHash {
				t.Errorf("the ring that made the token: got %q, %v", token, err)
			}
			continue
		}
		if _, err := ring.PayToken(&order); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("ring %d: got error %v", i, err)
		}
	}
}

func TestAPISecretsDuringRotation(t *testing.T) {
	ring, err := ParseMasterRing("b:" + onesKey + "\na:" + countingKey)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	key := licensing.APIKey{ID: "key_1", Owner: licensing.Owner{Mode: licensing.Test}, MasterID: "a", SecretVersion: 1}
	first, err := ring.APISecret(&key)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Rotate("b", now, time.Hour); err != nil {
		t.Fatal(err)
	}
	second, err := ring.APISecret(&key)
	if err != nil || second == first {
		t.Fatalf("after the rotation the secret is %s (%v), and it was %s", second, err, first)
	}
	f := func(at time.Time, want ...string) {
		t.Helper()
		if got, err := ring.APISecrets(&key, at); err != nil || !slices.Equal(got, want) {
			t.Errorf("at %v the secrets are %v (%v), want %v", at, got, err, want)
		}
	}
	f(now, second, first)
	f(now.Add(time.Hour-time.Millisecond), second, first)
	f(now.Add(time.Hour), second)

	// The master key of the secret that was replaced may leave the ring once
	// the overlap is over, and not before.
	ring, err = ParseMasterRing("b:" + onesKey)
	if err != nil {
		t.Fatal(err)
	}
	f(now.Add(time.Hour), second)
	if _, err := ring.APISecrets(&key, now); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a master key that the ring lacks: got error %v", err)
	}
}

// TestWebhookSecretIsFrozen pins the derivation of webhook secrets. Receivers keep these secrets for years.
func TestWebhookSecretIsFrozen(t *testing.T) {
	ring, err := ParseMasterRing("a:" + countingKey + "\nb:" + onesKey)
	if err != nil {
		t.Fatal(err)
	}
	f := func(id, masterID string, version int, want string) {
		t.Helper()
		got, err := ring.WebhookSecret(&licensing.Endpoint{ID: id, MasterID: masterID, SecretVersion: version})
		if err != nil || got != want {
			t.Errorf("secret of %s by %s, version %d: got %s, %v; want %s", id, masterID, version, got, err, want)
		}
	}
	f("we_0a", "a", 1, "whsec_tcX9JXYvFgLTK6S8xUWQuMKCsSB5QgNjKU/gqz8YPMc=")
	f("we_0a", "a", 2, "whsec_2Ds0FRtKyt5BnOWhwcEPMV6MgNjLcK1/ciw6gPzXtbg=")
	f("we_0b", "a", 1, "whsec_zufK2q/m5Ep9hxtFisgNfpq+bbuwpWYJe2QyPeMB5FU=")
	f("we_0a", "b", 1, "whsec_LBatgU8iypg8YTiorwY/WPgqhkmidzulCZcWhtd3BxM=")

	now := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	e := &licensing.Endpoint{ID: "we_0a", MasterID: "b", SecretVersion: 2,
		Previous: licensing.PreviousSecret{Version: 1, MasterID: "a", Until: now}}
	live := func(at time.Time, want ...string) {
		t.Helper()
		if got, err := ring.WebhookSecrets(e, at); err != nil || !slices.Equal(got, want) {
			t.Errorf("the secrets are %v, %v", got, err)
		}
	}
	live(now.Add(-time.Millisecond), "whsec_k4clH5BklgLr+0RCvKx1VH/qa4TeFKdv8f8Y772ipU8=",
		"whsec_tcX9JXYvFgLTK6S8xUWQuMKCsSB5QgNjKU/gqz8YPMc=")
	live(now, "whsec_k4clH5BklgLr+0RCvKx1VH/qa4TeFKdv8f8Y772ipU8=")
	for _, lacks := range []*licensing.Endpoint{{ID: "we_0a", MasterID: "c"},
		{ID: "we_0a", MasterID: "a", Previous: licensing.PreviousSecret{MasterID: "c", Until: now}}} {
		if _, err := ring.WebhookSecrets(lacks, now.Add(-time.Hour)); err == nil ||
			!strings.Contains(err.Error(), `"c"`) {
			t.Errorf("a master key that the ring lacks: got error %v", err)
		}
	}
}

// TestFingerprintIsFrozen checks that the derivation never changes: a store keeps the
// fingerprints of its master keys for good. They were computed apart from this
// code, by RFC 5869 written out in Python.
func TestFingerprintIsFrozen(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		ring, err := ParseMasterRing(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ring.Current().Fingerprint()
		if err != nil || hex.EncodeToString(got[:]) != want {
			t.Errorf("fingerprint %x (%v), want %s", got, err, want)
		}
	}
	f("a:"+countingKey, "90845d91f38919af808d792db847641953101e9d676f633a315a6502a1d9933c")
	f("b:"+countingKey, "e9303dca78e7a1f827a3f66755beb4f6039827b9a77367a9d418b7a931feb0f4")
	f("a:"+onesKey, "fd740e6fbccbd94d46c308e2bcd52c8e921d5b9b8f51803f85142daad5b6596d")
}
