package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"licet/kv/internal/layout"
	"licet/licensing"
)

// shownHash is how many bytes of a hash stand for a secret: enough to tell two
// apart.
const shownHash = 8

// Names names records in violations. ShowKeys lets license keys appear; see [Config].
type Names struct{ ShowKeys bool }

// License names a license by the hash of its id, since the key alone opens the license. With ShowKeys, the name is the
// key without its prefix.
func (n Names) License(id licensing.LicenseID) string {
	if n.ShowKeys {
		return "*" + strings.TrimPrefix(string(id.Key("XX")), "XX")
	}
	return "#" + shortHash(string(id[:]))
}

// Device names the key of a device, given below its prefix. The key must be well formed.
func (n Names) Device(rest string) string {
	id := licensing.LicenseID([]byte(rest[:layout.LicenseIDSize]))
	return "d/" + n.License(id) + "/" + hex.EncodeToString([]byte(rest[layout.LicenseIDSize:]))
}

// Opaque names the part of a key that may hold anything.
func (n Names) Opaque(text string) string {
	if n.ShowKeys {
		return strconv.Quote(text)
	}
	return "#" + shortHash(text)
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:shownHash])
}

// keyOrNone returns how violations name the license that a record refers to.
func (v *reading) keyOrNone(key licensing.LicenseKey) string {
	if key == "" {
		return "no license"
	}
	if id, ok := idOfKey(key); ok {
		return "license " + v.names.License(id)
	}
	return "something that is no license key"
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

// idOfKey packs a license key from a stored value, and reports whether the key is in canonical form.
func idOfKey(key licensing.LicenseKey) (licensing.LicenseID, bool) {
	const groups, group = 5, 5
	prefix, body, found := strings.Cut(string(key), "-")
	if !found || !licensing.ValidKeyPrefix(prefix) || len(body) != groups*group+groups-1 {
		return licensing.LicenseID{}, false
	}
	for i := range len(body) {
		if (i%(group+1) == group) != (body[i] == '-') {
			return licensing.LicenseID{}, false
		}
	}
	id := key.ID()
	return id, id.Key(prefix) == key
}
