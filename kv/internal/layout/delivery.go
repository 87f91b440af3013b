package layout

import (
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

// Field numbers of a message that is pending or was given up. Which event it is of,
// and which of the two, is in its key.
const (
	deliveryType    protowire.Number = 1
	deliveryAttempt protowire.Number = 2 // repeated
	deliveryAnswer  protowire.Number = 3
	deliveryNext    protowire.Number = 4
)

// Field numbers of an attempt.
const (
	attemptAt       protowire.Number = 1
	attemptDuration protowire.Number = 2 // milliseconds
	attemptStatus   protowire.Number = 3
	attemptFailure  protowire.Number = 4
)

const (
	// maxAnswer is how many bytes are kept of what a receiver has answered.
	maxAnswer = 1 << 10
	// maxAttempts is how many attempts at a message are kept, the latest: who has one
	// sent again and again has more of them than the schedule.
	maxAttempts = 40
)

// EncodeDelivery writes a message that is pending or was given up.
func EncodeDelivery(d *store.Delivery) []byte {
	b := appendString([]byte{formatVersion}, deliveryType, string(d.Type))
	b = appendAttempts(b, deliveryAttempt, d.Attempts)
	b = appendString(b, deliveryAnswer, cutText(d.Answer, maxAnswer))
	return appendTime(b, deliveryNext, d.Next)
}

// DecodeDelivery decodes the value of a pending or dead message.
func DecodeDelivery(event string, status store.DeliveryStatus, value []byte) (store.Delivery, error) {
	d := store.Delivery{EventID: event, Status: status}
	err := DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case deliveryType:
			d.Type = licensing.EventType(f.string())
		case deliveryAttempt:
			d.Attempts, err = decodeAttempt(d.Attempts, f.Bytes)
		case deliveryAnswer:
			d.Answer = f.string()
		case deliveryNext:
			d.Next = f.time()
		}
		return err
	})
	return d, err
}

func appendAttempts(b []byte, num protowire.Number, attempts []store.DeliveryAttempt) []byte {
	for i := range attempts[max(0, len(attempts)-maxAttempts):] {
		a := &attempts[max(0, len(attempts)-maxAttempts)+i]
		m := appendTime(nil, attemptAt, a.At)
		m = appendUint(m, attemptDuration, uint64(max(0, a.Duration.Milliseconds())))
		m = appendUint(m, attemptStatus, uint64(max(0, a.Status)))
		b = appendBytes(b, num, appendString(m, attemptFailure, a.Failure))
	}
	return b
}

func decodeAttempt(attempts []store.DeliveryAttempt, message []byte) ([]store.DeliveryAttempt, error) {
	var a store.DeliveryAttempt
	err := decodeMessage(message, func(f Field) error {
		switch f.Num {
		case attemptAt:
			a.At = f.time()
		case attemptDuration:
			if f.varint > uint64(maxDuration/time.Millisecond) {
				return ErrMalformed
			}
			a.Duration = time.Duration(f.varint) * time.Millisecond
		case attemptStatus:
			a.Status = f.int()
		case attemptFailure:
			a.Failure = f.string()
		}
		return nil
	})
	return append(attempts, a), err
}

const maxDuration = time.Duration(1<<63 - 1)

// cutText cuts a text to so many bytes, between two characters.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Field numbers of a replay. Its id is in its key.
const (
	replayOwner protowire.Number = 1
	replayEvent protowire.Number = 2
	replayAfter protowire.Number = 3
	replayUntil protowire.Number = 4
	replayDead  protowire.Number = 5
	replayPlace protowire.Number = 6
)

// EncodeReplay writes a replay, and whose endpoint it is for.
func EncodeReplay(owner licensing.Owner, r *store.Replay) []byte {
	b := appendOwner([]byte{formatVersion}, replayOwner, owner)
	b = appendString(b, replayEvent, r.EventID)
	b = appendString(b, replayAfter, r.After)
	b = appendString(b, replayUntil, r.Until)
	b = appendBool(b, replayDead, r.Dead)
	return appendString(b, replayPlace, r.Place)
}

// DecodeReplay decodes a replay, and returns the owner of its endpoint and the replay.
func DecodeReplay(id string, value []byte) (owner licensing.Owner, r store.Replay, err error) {
	r.ID = id
	err = DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case replayOwner:
			owner, err = f.owner()
		case replayEvent:
			r.EventID = f.string()
		case replayAfter:
			r.After = f.string()
		case replayUntil:
			r.Until = f.string()
		case replayDead:
			r.Dead = f.bool()
		case replayPlace:
			r.Place = f.string()
		}
		return err
	})
	return owner, r, owned(owner, err)
}
