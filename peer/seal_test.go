package peer

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"licet"
	"licet/node"
)

func newRing(t *testing.T, ids ...string) licet.MasterRing {
	t.Helper()
	var text string
	for _, id := range ids {
		var key [licet.MasterKeySize]byte
		_, _ = rand.Read(key[:])
		master, err := licet.NewMasterKey(id, key)
		if err != nil {
			t.Fatal(err)
		}
		text += master.Line() + "\n"
	}
	ring, err := licet.ParseMasterRing(text)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

var testSeal = seal{to: node.Incarnation{1, 2, 3}, over: 7 * time.Hour}

func sealed(t *testing.T, ring licet.MasterRing, body string) []byte {
	t.Helper()
	message, err := appendSealed(nil, ring.Current(), testSeal, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func TestSeal(t *testing.T) {
	ring := newRing(t, "m2", "m1")
	for _, want := range []string{"", "a body"} {
		s, body, err := openSealed(sealed(t, ring, want), ring, testSeal.to)
		if err != nil || s != testSeal || string(body) != want {
			t.Errorf("%+v, %q, %v", s, body, err)
		}
	}
	// Whoever has the key as an old one opens it too.
	old, err := licet.ParseMasterRing(newRing(t, "m3").Current().Line() + "\n" + ring.Current().Line())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openSealed(sealed(t, ring, "a body"), old, testSeal.to); err != nil {
		t.Error(err)
	}
}

// TestBrokenSeal: no bit of a message can be changed, nor its end be cut off, and
// nobody else can have sealed it.
func TestBrokenSeal(t *testing.T) {
	ring := newRing(t, "m1")
	message := sealed(t, ring, "a body")
	for i := range 8 * len(message) {
		changed := bytes.Clone(message)
		changed[i/8] ^= 1 << (i % 8)
		if _, _, err := openSealed(changed, ring, testSeal.to); err == nil {
			t.Errorf("bit %d was changed", i)
		}
	}
	for size := range message {
		if _, _, err := openSealed(message[:size], ring, testSeal.to); err == nil {
			t.Errorf("%d bytes are left", size)
		}
	}
	if _, _, err := openSealed(message, newRing(t, "m1"), testSeal.to); !errors.Is(err, errSeal) {
		t.Errorf("another key of the same id: %v", err)
	}
	if _, _, err := openSealed(message, newRing(t, "m2"), testSeal.to); !errors.Is(err, errNoKey) {
		t.Errorf("another id: %v", err)
	}
	if _, _, err := openSealed(message, ring, node.Incarnation{9}); !errors.Is(err, errNotForUs) {
		t.Errorf("another node: %v", err)
	}
}

// The key of hops is not that of anything else, and not the master key's alone.
func TestHopKey(t *testing.T) {
	master := newRing(t, "m1").Current()
	key, err := master.HopKey()
	if err != nil {
		t.Fatal(err)
	}
	print, err := master.Fingerprint()
	if err != nil || print == key {
		t.Errorf("the fingerprint is the key of hops: %v", err)
	}
}
