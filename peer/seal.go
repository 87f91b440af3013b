package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"licet"
	"licet/node"
)

// A sealed hop is
//
//	version | length of the key's id | key's id | to | over | HMAC-SHA256 | body
//
// where to is an incarnation of 8 bytes, over the age in nanoseconds at which
// the receiver must not begin anything any more, as 8 bytes, and the HMAC is over
// all the rest, under a key that is derived from the master key of that id.
const sealVersion = 1

const (
	overSize = 8
	macSize  = sha256.Size
	// maxHead is the most that stands before a body.
	maxHead = 2 + 255 + len(node.Incarnation{}) + overSize + macSize
)

// seal is what stands before a body.
type seal struct {
	to   node.Incarnation
	over time.Duration // the receiver's age
}

var (
	errSeal      = errors.New("the seal is broken")
	errNoKey     = errors.New("it is sealed with a master key that this node does not have")
	errNotForUs  = errors.New("it is meant for another node")
	errTooLong   = errors.New("the commands are too long to be sent together")
	errMalformed = errors.New("the message is malformed")
)

// appendSealed adds a body under its seal to b.
func appendSealed(b []byte, master licet.MasterKey, s seal, body []byte) ([]byte, error) {
	key, err := master.HopKey()
	if err != nil {
		return nil, err
	}
	start := len(b)
	b = append(b, sealVersion, byte(len(master.ID)))
	b = append(b, master.ID...)
	b = append(b, s.to[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(s.over))
	mac := sum(key, b[start:], body)
	b = append(b, mac...)
	return append(b, body...), nil
}

func sum(key [32]byte, head, body []byte) []byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(head)
	mac.Write(body)
	return mac.Sum(nil)
}

// openSealed checks a seal, and gives what it says and the body, which is part of
// message.
func openSealed(message []byte, ring licet.MasterRing, self node.Incarnation) (seal, []byte, error) {
	if len(message) < 2 {
		return seal{}, nil, errMalformed
	}
	if message[0] != sealVersion {
		return seal{}, nil, fmt.Errorf("%w: version %d; this build knows %d", errMalformed, message[0], sealVersion)
	}
	var s seal
	at := 2 + int(message[1]) // behind the key's id
	head := at + len(s.to) + overSize
	if len(message) < head+macSize {
		return seal{}, nil, errMalformed
	}
	master, found := ring.Lookup(string(message[2:at]))
	if !found {
		return seal{}, nil, errNoKey
	}
	key, err := master.HopKey()
	if err != nil {
		return seal{}, nil, err
	}
	body := message[head+macSize:]
	if !hmac.Equal(message[head:head+macSize], sum(key, message[:head], body)) {
		return seal{}, nil, errSeal
	}
	copy(s.to[:], message[at:])
	s.over = time.Duration(binary.BigEndian.Uint64(message[at+len(s.to):]))
	if s.to != self {
		return seal{}, nil, errNotForUs
	}
	return s, body, nil
}
