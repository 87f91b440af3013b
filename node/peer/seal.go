package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// sealHeader is the header field that seals a hop. It comes before the commands,
// so that nothing of a stranger's is read. It is, in base64,
//
//	version | length of the key's id | key's id | to | over | size | digest | HMAC-SHA256
//
// where to is an incarnation of 8 bytes, over the age in nanoseconds at which
// the receiver must not begin anything any more, size the length of the commands,
// as 8 bytes each, digest their SHA-256, and the HMAC is over all that stands
// before it, under a key that is derived from the master key of that id.
const sealHeader = "Licet-Seal"

const (
	// sealVersion goes up with every change of requests and replies too: a node of
	// another version refuses them then, and runs nothing of which the reply could not
	// be read.
	sealVersion = 2
	overSize    = 8
	sizeSize    = 8
	digestSize  = sha256.Size
	macSize     = sha256.Size
)

// seal is what a hop says of itself.
type seal struct {
	to     store.Incarnation
	over   time.Duration // the receiver's age
	size   uint64        // of the commands
	digest [digestSize]byte
}

var (
	errSeal      = errors.New("the seal is broken")
	errNoKey     = errors.New("it is sealed with a master key that this node does not have")
	errNotForUs  = errors.New("it is meant for another node")
	errTooLong   = errors.New("the commands are too long to be sent together")
	errMalformed = errors.New("the message is malformed")
)

// sealer makes and opens seals.
type sealer struct {
	current string // the id of the key that new ones are made with
	keys    map[string][32]byte
}

func newSealer(ring licensing.MasterRing) (sealer, error) {
	keys, err := ring.HopKeys()
	return sealer{current: ring.Current().ID, keys: keys}, err
}

// seal seals commands for a node, that must not be begun after an age of it.
func (s sealer) seal(to store.Incarnation, over time.Duration, body []byte) string {
	b := append([]byte{sealVersion, byte(len(s.current))}, s.current...)
	b = append(b, to[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(over))
	b = binary.BigEndian.AppendUint64(b, uint64(len(body)))
	digest := sha256.Sum256(body)
	b = append(b, digest[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, sum(s.keys[s.current], b)...))
}

func sum(key [32]byte, b []byte) []byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(b)
	return mac.Sum(nil)
}

// open checks who has made a seal, and for whom, and gives what it says.
func (s sealer) open(text []byte, self store.Incarnation) (seal, error) {
	b, err := base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(b) < 2 {
		return seal{}, errMalformed
	}
	if b[0] != sealVersion {
		return seal{}, fmt.Errorf("%w: version %d; this build knows %d", errMalformed, b[0], sealVersion)
	}
	var said seal
	at := 2 + int(b[1]) // behind the key's id
	end := at + len(said.to) + overSize + sizeSize + digestSize
	if len(b) != end+macSize {
		return seal{}, errMalformed
	}
	key, found := s.keys[string(b[2:at])]
	if !found {
		return seal{}, errNoKey
	}
	if !hmac.Equal(b[end:], sum(key, b[:end])) {
		return seal{}, errSeal
	}
	rest := b[at+copy(said.to[:], b[at:]):]
	said.over = time.Duration(binary.BigEndian.Uint64(rest))
	said.size = binary.BigEndian.Uint64(rest[overSize:])
	copy(said.digest[:], rest[overSize+sizeSize:])
	if said.to != self {
		return seal{}, errNotForUs
	}
	return said, nil
}

// holds reports whether these are the commands that were sealed.
func (s seal) holds(body []byte) bool {
	return uint64(len(body)) == s.size && sha256.Sum256(body) == s.digest
}
