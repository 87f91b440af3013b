package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"licet/licensing/keyring"
	"licet/node/store"
)

// sealHeader is the header field that seals a hop. The header comes before the commands, so a node
// reads no body from a client that is not a node. The field is, in base64,
//
//	version | length of the key's id | key's id | to | over | size | digest | HMAC-SHA256
//
// to is an incarnation of 8 bytes. over is the receiver's age in nanoseconds after which it must not
// start a command. size is the length of the commands. over and size have 8 bytes each. digest is the
// SHA-256 of the commands. The HMAC covers all bytes before it, under a key derived from the master
// key with that id.
const sealHeader = "Licet-Seal"

const (
	// sealVersion increases with every change of the seal, of requests or of replies: a node of another version
	// then refuses the request, and runs no command whose reply the sender could not read.
	sealVersion = 4
	overSize    = 8
	sizeSize    = 8
	digestSize  = sha256.Size
	macSize     = sha256.Size
)

// seal holds the fields of a seal.
type seal struct {
	to     store.Incarnation
	over   time.Duration // the receiver's age
	size   uint64        // of the commands
	digest [digestSize]byte
}

var (
	errSeal      = errors.New("the seal is invalid")
	errNoKey     = errors.New("the seal uses a master key that this node does not have")
	errNotForUs  = errors.New("the seal names another node")
	errTooMany   = errors.New("too many nodes are connected, or the connection was closed as a stranger's")
	errTooLong   = errors.New("the commands are too long to be sent together")
	errMalformed = errors.New("the message is malformed")
)

// sealer creates and opens seals.
type sealer struct {
	current string // the id of the key for new seals
	keys    map[string][32]byte
}

func newSealer(ring keyring.MasterRing) (sealer, error) {
	keys, err := ring.HopKeys()
	return sealer{current: ring.Current().ID, keys: keys}, err
}

// seal returns the seal of commands for a node, which must not start them after the age over.
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

// open checks the author and the receiver of a seal, and returns its fields.
func (s sealer) open(text []byte, self store.Incarnation) (seal, error) {
	b, err := base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(b) < 2 {
		return seal{}, errMalformed
	}
	if b[0] != sealVersion {
		return seal{}, fmt.Errorf("%w: version %d; this build knows %d", errMalformed, b[0], sealVersion)
	}
	var said seal
	at := 2 + int(b[1]) // after the key's id
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

// covers reports whether the seal was made for body.
func (s seal) covers(body []byte) bool {
	return uint64(len(body)) == s.size && sha256.Sum256(body) == s.digest
}
