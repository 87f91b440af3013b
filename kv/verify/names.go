package verify

import (
	"crypto/sha256"
	"encoding/hex"

	"licet/licensing"
)

// shownHash is how many bytes of a hash stand for a secret: enough to tell two
// apart.
const shownHash = 8

// deviceName returns how violations name the key of a license's device.
func deviceName(id licensing.LicenseID, position string) string {
	return "d/" + id.String() + "/" + hex.EncodeToString([]byte(position))
}

// Opaque returns how violations name a part of a key that may contain anything, a secret too: as a hash.
func Opaque(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "#" + hex.EncodeToString(sum[:shownHash])
}

// keyOrNone returns how violations name the license that a record refers to.
func keyOrNone(key licensing.LicenseKey) string {
	if key.IsZero() {
		return "no license"
	}
	return "license " + key.String()
}

func orderOrNone(orderNo string) string {
	switch {
	case orderNo == "":
		return "no order"
	case licensing.ValidOrderNo(orderNo):
		return "order " + orderNo
	default:
		return "something that is no order number"
	}
}
