package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"

	"licet/licensing"
)

// checkLength is the number of check characters in a key.
const checkLength = 4

// KeyCheck computes the check characters of license keys and of the texts of API keys. It has the store's check key:
// the four check characters are the first 20 bits of an HMAC-SHA256 of the characters before them, under the check
// key. So the service rejects mistyped and guessed keys without a request to the store. KeyCheck is safe for
// concurrent use.
type KeyCheck struct{ macs *sync.Pool } // of *keyMAC

// keyMAC is a reusable HMAC, since creating one costs more than using it. input, sum and block are buffers: arguments
// of a hash.Hash and of a cipher.Block escape to the heap.
type keyMAC struct {
	hash.Hash
	input []byte
	sum   []byte
	block [licensing.LicenseBlockSize]byte
}

// NewKeyCheck returns a KeyCheck for the store's check key, 32 bytes that never change.
func NewKeyCheck(key []byte) KeyCheck {
	return KeyCheck{&sync.Pool{New: func() any {
		return &keyMAC{
			Hash:  hmac.New(sha256.New, key),
			input: make([]byte, 0, apiKeyCheckAt),
			sum:   make([]byte, 0, sha256.Size),
		}
	}}}
}

// characters returns the check characters of a text.
func (kc KeyCheck) characters(text []byte) [checkLength]byte {
	mac := kc.macs.Get().(*keyMAC)
	defer kc.macs.Put(mac)
	return mac.characters(text)
}

func (mac *keyMAC) characters(text []byte) (check [checkLength]byte) {
	mac.input = append(mac.input[:0], text...)
	mac.Reset()
	mac.Write(mac.input)
	sum := mac.Sum(mac.sum[:0])
	bits := uint(sum[0])<<16 | uint(sum[1])<<8 | uint(sum[2])
	for i := range check {
		check[i] = licensing.Crockford[bits>>(19-5*i)&31]
	}
	return check
}
