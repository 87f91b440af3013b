package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

// Progress is the value of an endpoint's progress.
type Progress struct {
	Progress store.DeliveryProgress
	Owner    licensing.Owner // of the endpoint
	// Number counts the transactions that have written the value. A holder recognizes its own transaction by it.
	Number uint64
	// Begun says that Progress is valid. It is false while the very first checkpoint is under way in several
	// transactions.
	Begun   bool
	Log     DeliveryLog
	unknown []byte // fields of a newer format, to be kept
}

func (s *Progress) table() fieldTable {
	p := &s.Progress
	return fieldTable{
		ownerField(1, &s.Owner),
		numberField(2, &s.Number),
		textField(3, &p.Place),
		customField(4, &p.Pending, appendInt, Field.count),
		customField(5, &p.Dead, appendInt, Field.count),
		timeField(6, &p.SeenAt),
		customField(7, &p.Failures, appendNatural, Field.count),
		timeField(8, &p.FailingSince),
		timeField(9, &p.NextProbe),
		timeField(10, &p.LastSuccess),
		timeField(11, &p.SkippedAt),
		boolField(12, &p.Behind),
		boolField(13, &s.Begun),
		numberField(14, &s.Log.First),
		customField(15, &s.Log.Counts, appendCounts, Field.counts),
		boolField(16, &p.SinceInDoubt),
		unknownFields(&s.unknown),
	}
}

// Encode returns the progress's value.
func (s *Progress) Encode() []byte { return s.table().value() }

// DecodeProgress decodes the progress of an endpoint.
func DecodeProgress(value []byte) (*Progress, error) {
	s := &Progress{}
	err := DecodeValue(value, s.table().read)
	return s, owned(s.Owner, err)
}

// count reads a number of things. It refuses a negative number.
func (f Field) count() (int, error) {
	if f.Bytes != nil || f.int() < 0 {
		return 0, ErrMalformed
	}
	return f.int(), nil
}

func appendCounts(b []byte, num protowire.Number, counts []int) []byte {
	if len(counts) == 0 {
		return b
	}
	var packed []byte
	for _, n := range counts {
		packed = protowire.AppendVarint(packed, uint64(n))
	}
	return appendBytes(b, num, packed)
}

// counts reads how many deliveries each page has.
func (f Field) counts() (all []int, err error) {
	for b := f.Bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 || v == 0 || v > maxLogged*2 {
			return nil, ErrMalformed
		}
		all, b = append(all, int(v)), b[n:]
	}
	return all, nil
}
