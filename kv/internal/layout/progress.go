package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

// Field numbers of an endpoint's progress.
const (
	progressOwner        protowire.Number = 1
	progressNumber       protowire.Number = 2
	progressPlace        protowire.Number = 3
	progressPending      protowire.Number = 4
	progressDead         protowire.Number = 5
	progressSeenAt       protowire.Number = 6
	progressFailures     protowire.Number = 7
	progressFailingSince protowire.Number = 8
	progressNextProbe    protowire.Number = 9
	progressLastSuccess  protowire.Number = 10
	progressSkippedAt    protowire.Number = 11
	progressBehind       protowire.Number = 12
	progressBegun        protowire.Number = 13
	progressFirstPage    protowire.Number = 14
	progressPages        protowire.Number = 15
)

// Progress is the value of an endpoint's progress.
type Progress struct {
	Progress store.DeliveryProgress
	Owner    licensing.Owner // of the endpoint
	// Number counts the transactions that have written it: by it a holder knows its own.
	Number uint64
	// Begun tells that it says how far the endpoint is. It does not while the first
	// checkpoint of all is under way in several transactions.
	Begun   bool
	Log     DeliveryLog
	unknown []byte // fields of a newer format, to be kept
}

// Encode returns the progress's value.
func (s *Progress) Encode() []byte {
	p := &s.Progress
	b := appendOwner([]byte{formatVersion}, progressOwner, s.Owner)
	b = appendUint(b, progressNumber, s.Number)
	b = appendString(b, progressPlace, string(p.Place))
	b = appendUint(b, progressPending, uint64(p.Pending))
	b = appendUint(b, progressDead, uint64(p.Dead))
	b = appendTime(b, progressSeenAt, p.SeenAt)
	b = appendUint(b, progressFailures, uint64(max(0, p.Failures)))
	b = appendTime(b, progressFailingSince, p.FailingSince)
	b = appendTime(b, progressNextProbe, p.NextProbe)
	b = appendTime(b, progressLastSuccess, p.LastSuccess)
	b = appendTime(b, progressSkippedAt, p.SkippedAt)
	b = appendBool(b, progressBehind, p.Behind)
	b = appendBool(b, progressBegun, s.Begun)
	b = appendUint(b, progressFirstPage, s.Log.First)
	if len(s.Log.Counts) > 0 {
		var counts []byte
		for _, n := range s.Log.Counts {
			counts = protowire.AppendVarint(counts, uint64(n))
		}
		b = appendBytes(b, progressPages, counts)
	}
	return append(b, s.unknown...)
}

// DecodeProgress decodes the progress of an endpoint.
func DecodeProgress(value []byte) (*Progress, error) {
	s := &Progress{}
	p := &s.Progress
	err := DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case progressOwner:
			s.Owner, err = f.owner()
		case progressNumber:
			s.Number = f.varint
		case progressPlace:
			p.Place = store.FeedPosition(f.string())
		case progressPending:
			p.Pending, err = f.tally()
		case progressDead:
			p.Dead, err = f.tally()
		case progressSeenAt:
			p.SeenAt = f.time()
		case progressFailures:
			p.Failures, err = f.tally()
		case progressFailingSince:
			p.FailingSince = f.time()
		case progressNextProbe:
			p.NextProbe = f.time()
		case progressLastSuccess:
			p.LastSuccess = f.time()
		case progressSkippedAt:
			p.SkippedAt = f.time()
		case progressBehind:
			p.Behind = f.bool()
		case progressBegun:
			s.Begun = f.bool()
		case progressFirstPage:
			s.Log.First = f.varint
		case progressPages:
			s.Log.Counts, err = f.tallies()
		default:
			s.unknown = append(s.unknown, f.raw...)
		}
		return err
	})
	return s, owned(s.Owner, err)
}

// tally reads a number of things: it can't be negative.
func (f Field) tally() (int, error) {
	if f.Bytes != nil || f.int() < 0 {
		return 0, ErrMalformed
	}
	return f.int(), nil
}

func (f Field) tallies() (all []int, err error) {
	for b := f.Bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 || v == 0 || v > maxLogged*2 {
			return nil, ErrMalformed
		}
		all, b = append(all, int(v)), b[n:]
	}
	return all, nil
}
