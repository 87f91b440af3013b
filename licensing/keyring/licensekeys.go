package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"licet/licensing"
)

const (
	keyCharacters = 25
	keyGroup      = 5
	checkAt       = keyCharacters - checkLength // the check characters follow the slot and 19 random ones
	keyBodyLength = keyCharacters + keyCharacters/keyGroup - 1

	// LicenseKeyEntropy is the number of random bytes for [LicenseKeys.Mint]: 19 characters of 5 bits, in whole bytes.
	LicenseKeyEntropy = 12
)

// LicenseKeys makes, reads and writes license keys. The canonical text of a key is
// PREFIX-GGGGG-GGGGG-GGGGG-GGGGG-GGGGG. The 25 characters are Crockford base32: 2 are the [licensing.Slot] of the
// license's owner, 19 are random (95 bits), 4 are check characters over the 21 before them. The prefix is not covered:
// a key with another prefix than its license's names no license.
//
// The block in a license's id is the 105 bits of the 21 characters and 23 zero bits, encrypted with AES-128 under the
// id key. The key can't be derived from the id without the id key, and one in 2^23 blocks is an id: the service
// rejects invented ids without a request to the store. LicenseKeys is safe for concurrent use.
//
// The check characters of reissued keys are over one more character, so that the text of a key alone says whether an
// alias leads to its license.
type LicenseKeys struct {
	KeyCheck
	cipher  cipher.Block
	grants  []byte      // the key of the HMAC that derives the random characters of granted keys
	aliases []byte      // the key of the HMAC that makes aliases of external keys
	trials  []byte      // the key of the HMACs that stand for the devices and addresses of trials
	nonces  []byte      // the key of the HMAC that makes nonces for seal
	seal    cipher.AEAD // of external keys
}

// keyBody is a license key without its prefix and check characters.
type keyBody [checkAt]byte

// NewLicenseKeys returns the LicenseKeys of a store with the check key and the id key.
func NewLicenseKeys(check KeyCheck, id IDKey) LicenseKeys {
	block, err := aes.NewCipher(id.key[:])
	if err != nil {
		panic(err) // the id key has the size of an AES key
	}
	derived := func(label string) []byte {
		mac := hmac.New(sha256.New, id.key[:])
		mac.Write([]byte(label))
		return mac.Sum(nil)
	}
	seal, err := newGCM(derived("licet external keys"))
	if err != nil {
		panic(err) // SHA-256 has the size of an AES key
	}
	return LicenseKeys{
		KeyCheck: check, cipher: block, grants: derived("licet granted keys"), aliases: derived("licet aliases"),
		trials: derived("licet trials"),
		nonces: derived("licet external key nonces"), seal: seal,
	}
}

// Mint returns the key of an owner's new license for the random bytes. prefix must be valid.
func (k LicenseKeys) Mint(prefix string, owner licensing.Owner, entropy [LicenseKeyEntropy]byte) licensing.LicenseKey {
	slot := licensing.SlotOf(owner)
	var body keyBody
	copy(body[:], slot.String())
	var bits, have uint
	next := 0
	for i := licensing.SlotLength; i < len(body); i++ {
		if have < 5 {
			bits = bits<<8 | uint(entropy[next])
			next++
			have += 8
		}
		have -= 5
		body[i] = licensing.Crockford[bits>>have&31]
	}
	mac := k.macs.Get().(*keyMAC)
	defer k.macs.Put(mac)
	return k.encrypt(mac, body).Key(prefix)
}

// MintReissued returns another key for a license of an owner, as an alias.
func (k LicenseKeys) MintReissued(
	prefix string, owner licensing.Owner, entropy [LicenseKeyEntropy]byte,
) licensing.LicenseKey {
	return k.Mint(prefix, owner, entropy).Reissued()
}

// IsKeyForm reports whether a text is in the form of a license key, of this or of another store. It can't know whether
// the check characters are right.
func IsKeyForm(text string) bool {
	_, _, ok := readKey(text)
	return ok
}

// readKey reads the prefix and the characters of a key as people type it.
func readKey(input string) (prefix string, typed [keyCharacters]byte, ok bool) {
	input = strings.TrimSpace(input)
	dash := len(input) - keyBodyLength - 1
	if dash < licensing.MinKeyPrefix || dash > licensing.MaxKeyPrefix || input[dash] != '-' {
		return "", typed, false
	}
	if prefix = upperASCII(input[:dash]); !licensing.ValidKeyPrefix(prefix) {
		return "", typed, false
	}
	n := 0
	for i, c := range []byte(input[dash+1:]) {
		if i%(keyGroup+1) == keyGroup {
			if c != '-' {
				return "", typed, false
			}
			continue
		}
		value := crockfordValue(c)
		if value < 0 {
			return "", typed, false
		}
		typed[n] = licensing.Crockford[value]
		n++
	}
	return prefix, typed, true
}

// Parse parses a key as people type it: in any case, with spaces around it, and in the 25 characters with O for 0 and I
// or L for 1. It returns the key and its canonical text, or ErrInvalidLicenseKey if the form or the check characters
// are wrong.
func (k LicenseKeys) Parse(input string) (key licensing.LicenseKey, canonical string, err error) {
	prefix, typed, ok := readKey(input)
	if !ok {
		return licensing.LicenseKey{}, "", licensing.ErrInvalidLicenseKey
	}
	body, check := keyBody(typed[:checkAt]), [checkLength]byte(typed[checkAt:])
	mac := k.macs.Get().(*keyMAC)
	defer k.macs.Put(mac)
	reissued := false
	if want := mac.characters(body[:]); subtle.ConstantTimeCompare(want[:], check[:]) != 1 {
		want = mac.characters(body.reissued())
		if reissued = subtle.ConstantTimeCompare(want[:], check[:]) == 1; !reissued {
			return licensing.LicenseKey{}, "", licensing.ErrInvalidLicenseKey
		}
	}
	// One string contains the key and the text, which begins with the prefix and its dash.
	id := k.encrypt(mac, body)
	buffer := append(make([]byte, 0, len(id)+licensing.MaxKeyPrefix+1+keyBodyLength), id[:]...)
	all := string(appendKey(buffer, prefix, body, check))
	canonical = all[len(id):]
	key = licensing.PackedKey(all[:len(id)+len(prefix)+1])
	if reissued {
		key = key.Reissued()
	}
	return key, canonical, nil
}

// reissued returns what the check characters of a reissued key are over.
func (b *keyBody) reissued() []byte { return append(b[:len(b):len(b)], 'R') }

// Text returns the canonical text of a license's key. The key must be of this store, and have a prefix.
func (k LicenseKeys) Text(key licensing.LicenseKey) string {
	mac := k.macs.Get().(*keyMAC)
	defer k.macs.Put(mac)
	text := make([]byte, 0, licensing.MaxKeyPrefix+1+keyBodyLength)
	if by := key.By(); by != "" {
		body, _ := k.decrypt(mac, [licensing.LicenseBlockSize]byte([]byte(by)))
		return string(appendKey(text, key.Prefix(), body, mac.characters(body.reissued())))
	}
	body, _ := k.decrypt(mac, key.ID().Block())
	return string(appendKey(text, key.Prefix(), body, mac.characters(body[:])))
}

// ParseID returns the id with the text that [licensing.LicenseID.String] returned. Any other text is the id of no
// license of this store: ok is false.
func (k LicenseKeys) ParseID(text string) (id licensing.LicenseID, ok bool) {
	block, ok := licensing.ParseLicenseBlock(text)
	if !ok {
		return licensing.LicenseID{}, false
	}
	slot, ok := k.SlotOf(block)
	return licensing.NewLicenseID(slot, block), ok
}

// Made reports whether an id was made under the id key, and names the slot in its block.
func (k LicenseKeys) Made(id licensing.LicenseID) bool {
	slot, ok := k.SlotOf(id.Block())
	return ok && id == licensing.NewLicenseID(slot, id.Block())
}

// SlotOf returns the slot in the block of an id; ok is false if the block was not made under the id key.
func (k LicenseKeys) SlotOf(block [licensing.LicenseBlockSize]byte) (slot licensing.Slot, ok bool) {
	mac := k.macs.Get().(*keyMAC)
	defer k.macs.Put(mac)
	body, ok := k.decrypt(mac, block)
	slot, _ = licensing.ParseSlot(string(body[:licensing.SlotLength]))
	return slot, ok
}

// encrypt returns the id of the license with a key.
func (k LicenseKeys) encrypt(mac *keyMAC, body keyBody) licensing.LicenseID {
	mac.block = pack(body)
	slot := licensing.LeadingSlot(mac.block[0], mac.block[1])
	k.cipher.Encrypt(mac.block[:], mac.block[:])
	return licensing.NewLicenseID(slot, mac.block)
}

// decrypt is the inverse of encrypt. ok reports whether the block decrypts to the zero bits.
func (k LicenseKeys) decrypt(mac *keyMAC, block [licensing.LicenseBlockSize]byte) (body keyBody, ok bool) {
	mac.block = block
	k.cipher.Decrypt(mac.block[:], mac.block[:])
	body = unpack(mac.block)
	return body, pack(body) == mac.block
}

// pack returns the characters in five bits each, and then zero bits.
func pack(body keyBody) (packed [licensing.LicenseBlockSize]byte) {
	for i, c := range body {
		at := 5 * i
		// The five bits end at bit at+5; they touch at most two bytes.
		shifted := uint(crockfordValues[c]) << (11 - at%8)
		packed[at/8] |= byte(shifted >> 8)
		packed[at/8+1] |= byte(shifted)
	}
	return packed
}

// unpack is the inverse of pack.
func unpack(packed [licensing.LicenseBlockSize]byte) (body keyBody) {
	for i := range body {
		at := 5 * i
		window := uint(packed[at/8])<<8 | uint(packed[at/8+1])
		body[i] = licensing.Crockford[window>>(11-at%8)&31]
	}
	return body
}

// appendKey appends the canonical text of a key.
func appendKey(to []byte, prefix string, body keyBody, check [checkLength]byte) []byte {
	to = append(to, prefix...)
	for i := range keyCharacters {
		if i%keyGroup == 0 {
			to = append(to, '-')
		}
		if i < checkAt {
			to = append(to, body[i])
		} else {
			to = append(to, check[i-checkAt])
		}
	}
	return to
}
