package layout

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/node/store"
)

// SizeOf returns the size of a key with a value, given their lengths.
func SizeOf(key, value int) licensing.Size { return licensing.Size{Bytes: int64(key + value), Keys: 1} }

// UsageWriter is the number of the repeated field with the writers of a usage record.
const UsageWriter protowire.Number = 15

// Usage is the value of a usage record. The owner's account and mode are in the key.
type Usage struct {
	Usage     licensing.Usage
	Writers   []Writer
	LastEvent keyspace.Location
	Unknown   []byte // fields of a newer format, to be kept
}

func (s *Usage) table() fieldTable {
	u := &s.Usage
	return fieldTable{
		lastEventField(16, &s.LastEvent, &u.Sequence),
		numberField(1, &u.Bytes),
		numberField(2, &u.Keys),
		numberField(3, &u.CountedAt),
		numberField(4, &u.RecountAt),
		numberField(5, &u.Since.Bytes),
		numberField(6, &u.Since.Keys),
		timeField(7, &u.WarnedAt),
		boolField(8, &u.Warned),
		numberField(9, &u.Trials),
		numberField(10, &u.Since.Trials),
		writersField(UsageWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

// Recount is the value of both marks of a recount of all usage.
type Recount struct {
	Begun    time.Time
	By       store.Incarnation // the node that counts
	Revision int64             // that the recount counts at; 0 in the mark whose own revision it is
}

func (r *Recount) table() fieldTable {
	return fieldTable{timeField(1, &r.Begun), arrayField(2, r.By[:]), numberField(3, &r.Revision)}
}

// Encode returns the value of a mark.
func (r *Recount) Encode() []byte { return r.table().value() }

// DecodeRecount decodes the value of a mark.
func DecodeRecount(value []byte) (*Recount, error) {
	r := &Recount{}
	return r, DecodeValue(value, r.table().read)
}

// Encode returns the value of a usage record.
func (s *Usage) Encode() []byte { return s.table().value() }

// DecodeUsage decodes the value of an owner's usage record.
func DecodeUsage(owner licensing.Owner, value []byte) (*Usage, error) {
	s := &Usage{Usage: licensing.Usage{Owner: owner}}
	return s, DecodeValue(value, s.table().read)
}
