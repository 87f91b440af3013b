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

// signatureHeader is the header field with the signature of a hop. The header comes before the commands, so a node
// reads no body from a client that is not a node. The field is, in base64,
//
//	version | length of the key's id | key's id | to | over | size | digest | HMAC-SHA256
//
// to is an incarnation of 8 bytes. over is the receiver's age in nanoseconds after which it must not
// start a command. size is the length of the commands. over and size have 8 bytes each. digest is the
// SHA-256 of the commands. The HMAC covers all bytes before it, under a key derived from the master
// key with that id.
const signatureHeader = "Licet-Seal"

const (
	// signatureVersion increases with every change of the signature, of requests or of replies: a node of another
	// version then refuses the request, and runs no command whose reply the sender could not read.
	signatureVersion = 4
	overSize         = 8
	sizeSize         = 8
	digestSize       = sha256.Size
	macSize          = sha256.Size
)

// signature contains the fields of a signature.
type signature struct {
	to     store.Incarnation
	over   time.Duration // the receiver's age
	size   uint64        // of the commands
	digest [digestSize]byte
}

var (
	errSignature = errors.New("the signature is invalid")
	errNoKey     = errors.New("the signature uses a master key that this node does not have")
	errNotForUs  = errors.New("the signature names another node")
	errTooMany   = errors.New("too many nodes are connected, or the connection was closed as a stranger's")
	errTooLong   = errors.New("the commands are too long to be sent together")
	errMalformed = errors.New("the message is malformed")
)

// signer makes and verifies signatures.
type signer struct {
	current string // the id of the key for new signatures
	keys    map[string][32]byte
}

func newSigner(ring keyring.MasterRing) (signer, error) {
	keys, err := ring.HopKeys()
	return signer{current: ring.Current().ID, keys: keys}, err
}

// sign returns the signature of commands for a node, which must not start them after the age over.
func (s signer) sign(to store.Incarnation, over time.Duration, body []byte) string {
	b := append([]byte{signatureVersion, byte(len(s.current))}, s.current...)
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

// verify checks the author and the receiver of a signature, and returns its fields.
func (s signer) verify(text []byte, self store.Incarnation) (signature, error) {
	b, err := base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(b) < 2 {
		return signature{}, errMalformed
	}
	if b[0] != signatureVersion {
		return signature{}, fmt.Errorf("%w: version %d; this build knows %d", errMalformed, b[0], signatureVersion)
	}
	var said signature
	at := 2 + int(b[1]) // after the key's id
	end := at + len(said.to) + overSize + sizeSize + digestSize
	if len(b) != end+macSize {
		return signature{}, errMalformed
	}
	key, found := s.keys[string(b[2:at])]
	if !found {
		return signature{}, errNoKey
	}
	if !hmac.Equal(b[end:], sum(key, b[:end])) {
		return signature{}, errSignature
	}
	rest := b[at+copy(said.to[:], b[at:]):]
	said.over = time.Duration(binary.BigEndian.Uint64(rest))
	said.size = binary.BigEndian.Uint64(rest[overSize:])
	copy(said.digest[:], rest[overSize+sizeSize:])
	if said.to != self {
		return signature{}, errNotForUs
	}
	return said, nil
}

// covers reports whether the signature was made for body.
func (s signature) covers(body []byte) bool {
	return uint64(len(body)) == s.size && sha256.Sum256(body) == s.digest
}
