package keyring

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
)

// TestIDKeySealIsFrozen checks that the seal never changes: a store whose id key does not open can show no license key.
// The sealed text was computed apart from this code, with Python's cryptography.
func TestIDKeySealIsFrozen(t *testing.T) {
	master, id := sealingMaster(t), NewIDKey([IDKeySize]byte{1, 2, 3})
	sealed, err := master.SealIDKey(id, [IDKeyNonceSize]byte{9})
	if err != nil {
		t.Fatal(err)
	}
	const want = "090000000000000000000000ac2b003996e3993d5d48ac35c7faed2ff16aea1b76031ab7c403b4788856b2ba"
	if got := hex.EncodeToString(sealed); got != want {
		t.Errorf("sealed as %s, want %s", got, want)
	}
	if opened, err := master.OpenIDKey(sealed); err != nil || opened != id {
		t.Errorf("opened %v, %v", opened, err)
	}
}

// TestIDKeySealIsChecked changes each byte, and the master key.
func TestIDKeySealIsChecked(t *testing.T) {
	master := sealingMaster(t)
	sealed, err := master.SealIDKey(NewIDKey([IDKeySize]byte{1}), [IDKeyNonceSize]byte{})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, by MasterKey, sealed []byte) {
		t.Helper()
		if _, err := by.OpenIDKey(sealed); !errors.Is(err, ErrIDKeySeal) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range sealed {
		changed := append([]byte(nil), sealed...)
		changed[i] ^= 1
		refused(fmt.Sprintf("another byte %d", i), master, changed)
	}
	refused("a byte less", master, sealed[:len(sealed)-1])
	refused("nothing", master, nil)
	other, err := NewMasterKey(master.ID, [MasterKeySize]byte{8})
	if err != nil {
		t.Fatal(err)
	}
	refused("another master key of the same id", other, sealed)
	renamed, err := NewMasterKey("other", master.key)
	if err != nil {
		t.Fatal(err)
	}
	refused("the same master key under another id", renamed, sealed)
}

func TestIDKeyPrintsItsName(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, NewIDKey([IDKeySize]byte{1})); got != "id key" {
			t.Errorf("%s prints %q", verb, got)
		}
	}
}

func sealingMaster(t *testing.T) MasterKey {
	t.Helper()
	master, err := NewMasterKey("m", [MasterKeySize]byte{7})
	if err != nil {
		t.Fatal(err)
	}
	return master
}
