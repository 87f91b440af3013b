package layout

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

const (
	periodYears  protowire.Number = 1
	periodMonths protowire.Number = 2
	periodDays   protowire.Number = 3
	periodClock  protowire.Number = 4 // nanoseconds
)

func encodePeriod(p licensing.Period) []byte {
	b := appendUint(nil, periodYears, uint64(p.Years))
	b = appendUint(b, periodMonths, uint64(p.Months))
	b = appendUint(b, periodDays, uint64(p.Days))
	return appendUint(b, periodClock, uint64(p.Clock))
}

func decodePeriod(message []byte) (licensing.Period, error) {
	var p licensing.Period
	err := decodeMessage(message, func(f Field) error {
		switch f.Num {
		case periodYears:
			p.Years = f.int()
		case periodMonths:
			p.Months = f.int()
		case periodDays:
			p.Days = f.int()
		case periodClock:
			p.Clock = time.Duration(int64(f.varint))
		}
		return nil
	})
	return p, err
}

const (
	termsPrefix         protowire.Number = 1
	termsMaxDevices     protowire.Number = 2
	termsValidity       protowire.Number = 3
	termsFromActivation protowire.Number = 4
	termsSelfService    protowire.Number = 5
)

func encodeTerms(t licensing.Terms) []byte {
	b := appendString(nil, termsPrefix, t.KeyPrefix)
	b = appendCount(b, termsMaxDevices, t.MaxDevices)
	if !t.Validity.IsZero() {
		b = appendBytes(b, termsValidity, encodePeriod(t.Validity))
	}
	b = appendBool(b, termsFromActivation, t.FromActivation)
	return appendSelfService(b, termsSelfService, t.SelfService)
}

// appendSelfService writes both in one number: whether it is allowed is the
// lowest bit, so that the default takes nothing.
func appendSelfService(b []byte, num protowire.Number, s licensing.SelfService) []byte {
	return appendUint(b, num, uint64(s.RemovalsPerMonth)<<1|protowire.EncodeBool(s.Allowed))
}

func (f Field) selfService() licensing.SelfService {
	return licensing.SelfService{Allowed: f.varint&1 != 0, RemovalsPerMonth: int(f.varint >> 1)}
}

func decodeTerms(message []byte) (licensing.Terms, error) {
	var t licensing.Terms
	limited := false
	err := decodeMessage(message, func(f Field) (err error) {
		switch f.Num {
		case termsPrefix:
			t.KeyPrefix = f.string()
		case termsMaxDevices:
			t.MaxDevices, limited = f.int(), f.Bytes == nil
		case termsValidity:
			t.Validity, err = decodePeriod(f.Bytes)
		case termsFromActivation:
			t.FromActivation = f.bool()
		case termsSelfService:
			t.SelfService = f.selfService()
		}
		return err
	})
	if err == nil && !limited {
		err = ErrMalformed
	}
	return t, err
}
