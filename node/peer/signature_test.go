package peer

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"licet/licensing/keyring"
	"licet/node/store"
)

func newRing(t *testing.T, ids ...string) keyring.MasterRing {
	t.Helper()
	var text string
	for _, id := range ids {
		var key [keyring.MasterKeySize]byte
		_, _ = rand.Read(key[:])
		master, err := keyring.NewMasterKey(id, key)
		if err != nil {
			t.Fatal(err)
		}
		text += master.Line() + "\n"
	}
	ring, err := keyring.ParseMasterRing(text)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

var testNode = store.Incarnation{1, 2, 3}

const testOver = 7 * time.Hour

func ringSigner(t *testing.T, ring keyring.MasterRing) signer {
	t.Helper()
	s, err := newSigner(ring)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSignature(t *testing.T) {
	ring := newRing(t, "m2", "m1")
	s := ringSigner(t, ring)
	for _, body := range []string{"", "a body"} {
		said, err := s.verify([]byte(s.sign(testNode, testOver, []byte(body))), testNode)
		if err != nil || said.to != testNode || said.over != testOver || !said.covers([]byte(body)) {
			t.Errorf("%+v, %v", said, err)
		}
		for _, other := range []string{"b body", "a body ", "a bod"} {
			if said.covers([]byte(other)) {
				t.Errorf("%q passes with the signature of %q", other, body)
			}
		}
	}
	// A node for which the key is an old key accepts the signature, too.
	old, err := keyring.ParseMasterRing(newRing(t, "m3").Current().Line() + "\n" + ring.Current().Line())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ringSigner(t, old).verify([]byte(s.sign(testNode, testOver, nil)), testNode); err != nil {
		t.Error(err)
	}
}

// TestBrokenSignature: a node refuses a signature with any changed bit, missing end or addition, or with another key.
func TestBrokenSignature(t *testing.T) {
	s := ringSigner(t, newRing(t, "m1"))
	text := s.sign(testNode, testOver, []byte("a body"))
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	opens := func(b []byte) bool {
		_, err := s.verify([]byte(base64.RawURLEncoding.EncodeToString(b)), testNode)
		return err == nil
	}
	if !opens(b) {
		t.Fatal("it does not open as it is")
	}
	for i := range 8 * len(b) {
		changed := bytes.Clone(b)
		changed[i/8] ^= 1 << (i % 8)
		if opens(changed) {
			t.Errorf("bit %d was changed", i)
		}
	}
	for size := range b {
		if opens(b[:size]) {
			t.Errorf("%d bytes are left", size)
		}
	}
	if opens(append(bytes.Clone(b), 0)) {
		t.Error("a byte was added")
	}
	for _, other := range []string{"", "=", text + "=", text + "A", " " + text, "*" + text[1:]} {
		if _, err := s.verify([]byte(other), testNode); !errors.Is(err, errMalformed) {
			t.Errorf("%q: %v", other, err)
		}
	}
	if _, err := ringSigner(t, newRing(t, "m1")).verify([]byte(text), testNode); !errors.Is(err, errSignature) {
		t.Errorf("another key of the same id: %v", err)
	}
	if _, err := ringSigner(t, newRing(t, "m2")).verify([]byte(text), testNode); !errors.Is(err, errNoKey) {
		t.Errorf("another id: %v", err)
	}
	if _, err := s.verify([]byte(text), store.Incarnation{9}); !errors.Is(err, errNotForUs) {
		t.Errorf("another node: %v", err)
	}
}

// The key of hops is not that of anything else, and not the master key's alone.
func TestHopKeys(t *testing.T) {
	ring := newRing(t, "m1", "m2")
	keys, err := ring.HopKeys()
	if err != nil || len(keys) != 2 || keys["m1"] == keys["m2"] {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	print, err := ring.Current().Fingerprint()
	if err != nil || print == keys["m1"] {
		t.Errorf("the fingerprint is the key of hops: %v", err)
	}
}

// TestAgeOfAnotherNode: the client keeps the highest known age of another node, for a while.
func TestAgeOfAnotherNode(t *testing.T) {
	var l link
	if _, known := l.ageAt(time.Now()); known {
		t.Error("the age is known before the other node has sent it")
	}
	l.learn(time.Hour)
	l.learn(time.Hour - time.Second) // an answer that took a second longer
	at := time.Now()
	if age, known := l.ageAt(at); !known || age < time.Hour {
		t.Errorf("%v, %v", age, known)
	}
	l.learn(2 * time.Hour)
	if age, known := l.ageAt(time.Now()); !known || age < 2*time.Hour {
		t.Errorf("%v, %v", age, known)
	}
	l.learned = l.learned.Add(-ageKept/2 - time.Second)
	l.learn(time.Hour)
	if age, known := l.ageAt(time.Now()); !known || age > time.Hour+time.Minute {
		t.Errorf("what was long ago: %v, %v", age, known)
	}
	l.learned = l.learned.Add(-ageKept)
	if _, known := l.ageAt(time.Now()); known {
		t.Error("known for ever")
	}
}
