package layout

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of a period. Licenses have periods, therefore periods have no table.
const (
	periodYears  protowire.Number = 1
	periodMonths protowire.Number = 2
	periodDays   protowire.Number = 3
	periodClock  protowire.Number = 4 // nanoseconds
)

// appendPeriod writes a period. The zero period is not written.
func appendPeriod(b []byte, num protowire.Number, p licensing.Period) []byte {
	if p.IsZero() {
		return b
	}
	m := appendUint(nil, periodYears, uint64(p.Years))
	m = appendUint(m, periodMonths, uint64(p.Months))
	m = appendUint(m, periodDays, uint64(p.Days))
	return appendBytes(b, num, appendUint(m, periodClock, uint64(p.Clock)))
}

func (f Field) period() (p licensing.Period, err error) {
	err = decodeMessage(f.Bytes, func(f Field) error {
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

// appendSelfService writes both members in one number. The lowest bit says whether self-service is allowed. The default
// takes no byte.
func appendSelfService(b []byte, num protowire.Number, s licensing.SelfService) []byte {
	return appendUint(b, num, uint64(s.RemovalsPerMonth)<<1|protowire.EncodeBool(s.Allowed))
}

func (f Field) selfService() (licensing.SelfService, error) {
	return licensing.SelfService{Allowed: f.varint&1 != 0, RemovalsPerMonth: int(f.varint >> 1)}, nil
}

// termsTable lists the fields of terms. Reading the limit of devices sets limited.
func termsTable(t *licensing.Terms, limited *bool) fieldTable {
	readLimit := func(f Field) (int, error) {
		*limited = f.Bytes == nil
		return f.int(), nil
	}
	return fieldTable{
		textField(1, &t.KeyPrefix),
		customField(2, &t.MaxDevices, appendCount, readLimit),
		customField(3, &t.Validity, appendPeriod, Field.period),
		boolField(4, &t.FromActivation),
		customField(5, &t.SelfService, appendSelfService, Field.selfService),
	}
}

// termsField refuses terms without a limit of devices: a missing limit must not be read as no limit.
func termsField(num protowire.Number, at *licensing.Terms) tableField {
	var limited bool
	encode := func(b []byte, num protowire.Number, t licensing.Terms) []byte {
		return appendBytes(b, num, termsTable(&t, &limited).appendTo(nil))
	}
	return customField(num, at, encode, func(f Field) (t licensing.Terms, err error) {
		limited = false
		if err = decodeMessage(f.Bytes, termsTable(&t, &limited).read); err == nil && !limited {
			err = ErrMalformed
		}
		return t, err
	})
}
