package keyring_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"licet/licensing"
	"licet/licensing/keyring"
)

// TestSealedRoot: a root secret opens under the master key that seals it, for its owner only, and the keys that are
// derived from it never change.
func TestSealedRoot(t *testing.T) {
	ring := func(lines ...string) keyring.MasterRing {
		t.Helper()
		ring, err := keyring.ParseMasterRing(strings.Join(lines, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return ring
	}
	first, second := "m1:"+strings.Repeat("A", 43)+"=", "m2:"+strings.Repeat("B", 42)+"A="
	secret := keyring.NewRootSecret([licensing.RootSecretSize]byte(bytes.Repeat([]byte{7}, licensing.RootSecretSize)))
	sealed, err := ring(first, second).SealRoot(keyOwner, secret, [licensing.RootNonceSize]byte{9})
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := ring(second, first).OpenRoot(keyOwner, sealed); err != nil || opened != secret {
		t.Errorf("opened as %v, %v", opened, err)
	}
	other := keyOwner
	other.Mode = licensing.Live
	if _, err := ring(first).OpenRoot(other, sealed); err == nil {
		t.Error("opened for another owner")
	}
	for _, r := range []keyring.MasterRing{ring(second), ring("m1:" + strings.Repeat("B", 42) + "A=")} {
		if _, err := r.OpenRoot(keyOwner, sealed); err == nil {
			t.Errorf("opened with %v", r)
		}
	}
	root, key := secret.RootKey(), secret.ReceiptKey(licensing.ReceiptKey{Number: 1})
	message := []byte("message")
	if bytes.Equal(root, key) || bytes.Equal(key, secret.ReceiptKey(licensing.ReceiptKey{Number: 2})) ||
		!ed25519.Verify(root.Public().(ed25519.PublicKey), message, ed25519.Sign(root, message)) {
		t.Error("the keys are equal, or do not sign")
	}
	if text := secret.String(); text != "root secret" {
		t.Errorf("prints as %s", text)
	}
}
