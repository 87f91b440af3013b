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

// appendMatch writes both members in one number. The zero DeviceMatch takes no byte.
func appendMatch(b []byte, num protowire.Number, m licensing.DeviceMatch) []byte {
	return appendUint(b, num, uint64(m.ChangesPerMonth)<<4|uint64(m.AtLeast))
}

func (f Field) match() licensing.DeviceMatch {
	return licensing.DeviceMatch{AtLeast: int(f.varint & 15), ChangesPerMonth: int(f.varint >> 4)}
}

// appendReceipts writes all members in one number: a bit, and two times of 23 bits. The zero ReceiptTerms take no byte.
func appendReceipts(b []byte, num protowire.Number, t licensing.ReceiptTerms) []byte {
	return appendUint(b, num, uint64(t.RevocationAgeSeconds)<<(1+receiptBits)|uint64(t.ValiditySeconds)<<1|
		protowire.EncodeBool(t.Always))
}

// receiptBits contain the seconds of licensing.MaxReceiptValidity.
const receiptBits = 23

func (f Field) receipts() licensing.ReceiptTerms {
	return licensing.ReceiptTerms{Always: f.varint&1 != 0, ValiditySeconds: uint32(f.varint>>1) & (1<<receiptBits - 1),
		RevocationAgeSeconds: uint32(f.varint>>(1+receiptBits)) & (1<<receiptBits - 1)}
}

// termsMaxDevices is the number of the limit of devices in terms.
const termsMaxDevices protowire.Number = 2

// termsTable lists the fields of terms.
func termsTable(t *licensing.Terms) fieldTable {
	return fieldTable{
		textField(1, &t.KeyPrefix),
		{termsMaxDevices, limitVar{&t.MaxDevices}},
		{3, periodVar{&t.Validity}},
		boolField(4, &t.FromActivation),
		{5, selfServiceVar{&t.SelfService}},
		numberField(6, &t.Version),
		{7, secondsVar{&t.Lease.Length}},
		{8, secondsVar{&t.Lease.Longest}},
		{14, periodVar{&t.InactiveAfter}},
		{15, matchVar{&t.Match}},
		{16, periodVar{&t.Grace}},
		{26, receiptsVar{&t.Receipts}},
	}
}

// EncodeTerms returns the value of a version of terms.
func EncodeTerms(t licensing.VersionedTerms) []byte { return versionedTable(&t).value() }

// DecodeTerms decodes the value of a version of terms.
func DecodeTerms(value []byte) (t licensing.VersionedTerms, err error) {
	return t, DecodeValue(value, versionedTable(&t).read)
}

func versionedTable(t *licensing.VersionedTerms) fieldTable {
	return fieldTable{textField(1, &t.Entitlements)}
}

type limitVar struct{ at *int }

func (v limitVar) write(b []byte, num protowire.Number) []byte { return appendCount(b, num, *v.at) }
func (v limitVar) read(f Field) error                          { *v.at = f.int(); return nil }

type periodVar struct{ at *licensing.Period }

func (v periodVar) write(b []byte, num protowire.Number) []byte { return appendPeriod(b, num, *v.at) }
func (v periodVar) read(f Field) (err error)                    { *v.at, err = f.period(); return err }

type secondsVar struct{ at *time.Duration }

func (v secondsVar) write(b []byte, num protowire.Number) []byte {
	return appendUint(b, num, uint64(*v.at/time.Second))
}
func (v secondsVar) read(f Field) error { *v.at = f.seconds(); return nil }

func (f Field) seconds() time.Duration { return time.Duration(f.int()) * time.Second }

type selfServiceVar struct{ at *licensing.SelfService }

func (v selfServiceVar) write(b []byte, num protowire.Number) []byte {
	return appendSelfService(b, num, *v.at)
}
func (v selfServiceVar) read(f Field) (err error) { *v.at, err = f.selfService(); return err }

type matchVar struct{ at *licensing.DeviceMatch }

func (v matchVar) write(b []byte, num protowire.Number) []byte { return appendMatch(b, num, *v.at) }
func (v matchVar) read(f Field) error                          { *v.at = f.match(); return nil }

type receiptsVar struct{ at *licensing.ReceiptTerms }

func (v receiptsVar) write(b []byte, num protowire.Number) []byte {
	return appendReceipts(b, num, *v.at)
}
func (v receiptsVar) read(f Field) error { *v.at = f.receipts(); return nil }

// termsVar refuses terms without a limit of devices: a missing limit must not be read as no limit.
type termsVar struct{ at *licensing.Terms }

func termsField(num protowire.Number, at *licensing.Terms) tableField {
	return tableField{num, termsVar{at}}
}

func (v termsVar) write(b []byte, num protowire.Number) []byte {
	return appendMessage(b, num, termsTable(v.at))
}

// termsOrNone are terms that are not written if they are zero.
type termsOrNone struct{ termsVar }

func (v termsOrNone) write(b []byte, num protowire.Number) []byte {
	if *v.at == (licensing.Terms{}) {
		return b
	}
	return v.termsVar.write(b, num)
}

func (v termsVar) read(f Field) error {
	*v.at = licensing.Terms{}
	limited, table := false, termsTable(v.at)
	err := decodeMessage(f.Bytes, func(f Field) error {
		if f.Num == termsMaxDevices {
			limited = f.Bytes == nil
		}
		return table.read(f)
	})
	if err == nil && !limited {
		err = ErrMalformed
	}
	return err
}
