package layout

import (
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

const (
	// maxAnswer is how many bytes of a receiver's answer are kept.
	maxAnswer = 1 << 10
	// maxAttempts is how many attempts at a message are kept, the latest ones. Replays add attempts to those of the
	// schedule.
	maxAttempts = 40
)

const maxDuration = time.Duration(1<<63 - 1)

// deliveryTable lists the fields of a pending or dead message. The event's id and the status are in the key.
func deliveryTable(d *store.Delivery) fieldTable {
	return fieldTable{
		textField(1, &d.Type),
		attemptsField(2, &d.Attempts),
		textField(3, &d.Answer),
		timeField(4, &d.Next),
	}
}

func attemptTable(a *store.DeliveryAttempt) fieldTable {
	return fieldTable{
		timeField(1, &a.At),
		{2, millisecondsVar{&a.Duration}},
		{3, statusVar{&a.Status}},
		textField(4, &a.Failure),
	}
}

// statusVar is an HTTP status.
type statusVar struct{ at *int }

func (v statusVar) write(b []byte, num protowire.Number) []byte { return appendNatural(b, num, *v.at) }
func (v statusVar) read(f Field) error                          { *v.at = f.int(); return nil }

// millisecondsVar is a duration in whole milliseconds. A negative duration is written as zero.
type millisecondsVar struct{ at *time.Duration }

func (v millisecondsVar) write(b []byte, num protowire.Number) []byte {
	return appendUint(b, num, uint64(max(0, v.at.Milliseconds())))
}

func (v millisecondsVar) read(f Field) error {
	if f.varint > uint64(maxDuration/time.Millisecond) {
		return ErrMalformed
	}
	*v.at = time.Duration(f.varint) * time.Millisecond
	return nil
}

// attemptsVar is a repeated field with the latest attempts.
type attemptsVar struct {
	at    *[]store.DeliveryAttempt
	one   store.DeliveryAttempt // the attempt that is being written or read
	table fieldTable            // of one
}

func attemptsField(num protowire.Number, at *[]store.DeliveryAttempt) tableField {
	v := &attemptsVar{at: at}
	v.table = attemptTable(&v.one)
	return tableField{num, v}
}

func (v *attemptsVar) write(b []byte, num protowire.Number) []byte {
	for _, v.one = range (*v.at)[max(0, len(*v.at)-maxAttempts):] {
		b = appendMessage(b, num, v.table)
	}
	return b
}

func (v *attemptsVar) read(f Field) error {
	v.one = store.DeliveryAttempt{}
	err := decodeMessage(f.Bytes, v.table.read)
	*v.at = append(*v.at, v.one)
	return err
}

// EncodeDelivery returns the value of a pending or dead message.
func EncodeDelivery(d *store.Delivery) []byte {
	kept := *d
	kept.Answer = cutText(d.Answer, maxAnswer)
	return deliveryTable(&kept).value()
}

// DecodeDelivery decodes the value of a pending or dead message.
func DecodeDelivery(event string, status store.DeliveryStatus, value []byte) (store.Delivery, error) {
	d := store.Delivery{EventID: event, Status: status}
	err := DecodeValue(value, deliveryTable(&d).read)
	return d, err
}

// cutText returns the beginning of a text: at most so many bytes, and no part of a character.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// replayTable lists the fields of a replay and the owner of its endpoint. The replay's id is in the key.
func replayTable(owner *licensing.Owner, r *store.Replay) fieldTable {
	return fieldTable{
		ownerField(1, owner),
		textField(2, &r.EventID),
		textField(3, &r.After),
		textField(4, &r.Until),
		boolField(5, &r.Dead),
		textField(6, &r.Place),
	}
}

// EncodeReplay returns the value of a replay at an endpoint of this owner.
func EncodeReplay(owner licensing.Owner, r *store.Replay) []byte {
	return replayTable(&owner, r).value()
}

// DecodeReplay decodes a replay, and returns the owner of its endpoint and the replay.
func DecodeReplay(id string, value []byte) (owner licensing.Owner, r store.Replay, err error) {
	r.ID = id
	err = DecodeValue(value, replayTable(&owner, &r).read)
	return owner, r, owned(owner, err)
}
