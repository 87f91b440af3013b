package layout

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// Field numbers of a stored license. A number is never used for another field. A number up to 15 takes a byte less than
// a higher one. All times but the first count from created_at, which never changes.
const (
	licensePrefix         protowire.Number = 1
	licenseOwner          protowire.Number = 2
	licenseDevice         protowire.Number = 3 // repeated; only where not spilled
	licenseProduct        protowire.Number = 4
	licensePackedOrder    protowire.Number = 5
	licenseMaxDevices     protowire.Number = 6
	licenseCurrentDevices protowire.Number = 7
	licenseSpilled        protowire.Number = 8
	licenseValidity       protowire.Number = 9
	licenseCreatedAt      protowire.Number = 10
	licenseActivatedAt    protowire.Number = 11
	licenseExpiresAt      protowire.Number = 12
	licenseSuspendedAt    protowire.Number = 13
	licenseRevokedAt      protowire.Number = 14
	LicenseWriter         protowire.Number = 15 // repeated
	licenseAllowedOver    protowire.Number = 16
	licenseOrder          protowire.Number = 17 // instead of 5, for a number that can't be packed
	licenseSelfService    protowire.Number = 18
	licenseRemovalsMonth  protowire.Number = 19
	licenseRemovals       protowire.Number = 20
	licenseStateReason    protowire.Number = 21
	licenseEndRecorded    protowire.Number = 26
	licenseEvents         protowire.Number = 27 // the first field: see locationAt
	licenseLimitReported  protowire.Number = 28
	licenseReissues       protowire.Number = 29
	licenseTerms          protowire.Number = 30
	licenseEntitlements   protowire.Number = 31
	licenseLease          protowire.Number = 32 // seconds
	licenseLongestLease   protowire.Number = 33 // seconds; only where it is not as 32
	licenseStamp          protowire.Number = 34
	licenseLeasesUntil    protowire.Number = 35
	licenseTrial          protowire.Number = 36
	licenseUpgradedAt     protowire.Number = 37
	licenseInactiveAfter  protowire.Number = 40
	licenseSeenFrom       protowire.Number = 41
	licenseInactiveStamp  protowire.Number = 42 // instead of 34, without leases
	licenseMatch          protowire.Number = 43
	licenseChangesMonth   protowire.Number = 44
	licenseChanges        protowire.Number = 45
	licenseGrace          protowire.Number = 46
	licenseGraceRecorded  protowire.Number = 47
	licenseNoticeEnd      protowire.Number = 48
	licenseNoticeDay      protowire.Number = 49
	licenseReceipts       protowire.Number = 54
	licenseReceiptsUntil  protowire.Number = 55
	licenseRevision       protowire.Number = 56
	licenseRevocations    protowire.Number = 57
	licenseSetEnd         protowire.Number = 58
)

// License is a license as one key contains it.
type License struct {
	License   licensing.License
	Writers   []Writer
	Devices   []InlineDevice // in the order they were bound; nil where spilled
	Spilled   bool
	LastEvent keyspace.Location // of its latest event
	Unknown   []byte            // fields of a newer format, to be kept
}

// Encode returns the value of the license's key. The slice has no spare capacity, since a store remembers it.
func (s *License) Encode() []byte {
	var buffer [160]byte
	facts := s.appendFacts(append(buffer[:0], formatVersion))
	size := len(facts) + len(s.Unknown)
	for _, d := range s.Devices {
		size += protowire.SizeTag(licenseDevice) + protowire.SizeBytes(len(d))
	}
	b := append(make([]byte, 0, size), facts...)
	for _, d := range s.Devices {
		b = appendBytes(b, licenseDevice, d)
	}
	return append(b, s.Unknown...)
}

// appendFacts writes all fields but the devices and the fields of a newer format.
func (s *License) appendFacts(b []byte) []byte {
	l := &s.License
	b = appendLastEvent(b, licenseEvents, s.LastEvent, l.Sequence)
	b = appendString(b, licensePrefix, l.Key.Prefix())
	b = appendOwner(b, licenseOwner, l.Owner)
	b = appendString(b, licenseProduct, l.ProductID)
	b = appendOrderNo(b, licensePackedOrder, licenseOrder, l.OrderNo)
	b = appendCount(b, licenseMaxDevices, l.MaxDevices)
	b = appendUint(b, licenseCurrentDevices, uint64(l.CurrentDevices))
	b = appendUint(b, licenseAllowedOver, uint64(l.AllowedOver))
	b = appendPeriod(b, licenseValidity, l.Validity)
	b = appendTime(b, licenseCreatedAt, l.CreatedAt)
	b = appendTimeAfter(b, licenseActivatedAt, l.ActivatedAt, l.CreatedAt)
	b = appendTimeAfter(b, licenseExpiresAt, l.ExpiresAt, l.CreatedAt)
	b = appendTimeAfter(b, licenseSuspendedAt, l.SuspendedAt, l.CreatedAt)
	b = appendTimeAfter(b, licenseRevokedAt, l.RevokedAt, l.CreatedAt)
	b = appendString(b, licenseStateReason, l.StateReason)
	b = appendSelfService(b, licenseSelfService, l.SelfService)
	b = appendUint(b, licenseRemovalsMonth, uint64(l.Removals.Month))
	b = appendUint(b, licenseRemovals, uint64(l.Removals.Count))
	b = appendTimeAfter(b, licenseEndRecorded, l.EndRecorded, l.CreatedAt)
	b = appendTimeAfter(b, licenseLimitReported, l.LimitReportedAt, l.CreatedAt)
	b = appendString(b, licenseReissues, string(l.Reissues))
	b = appendUint(b, licenseTerms, uint64(l.Terms))
	b = appendUint(b, licenseEntitlements, uint64(l.OwnEntitlements))
	if l.Lease.Leased() {
		b = appendLease(b, l)
	} else {
		b = appendTimeAfter(b, licenseInactiveStamp, l.LeaseClock, l.CreatedAt)
	}
	if !l.Trial.IsZero() {
		b = appendBytes(b, licenseTrial, l.Trial[:])
	}
	b = appendTimeAfter(b, licenseUpgradedAt, l.UpgradedAt, l.CreatedAt)
	b = appendTimeAfter(b, licenseSetEnd, l.SetEnd, l.CreatedAt)
	b = appendPeriod(b, licenseInactiveAfter, l.InactiveAfter)
	b = appendTimeAfter(b, licenseSeenFrom, l.SeenFrom, l.CreatedAt)
	b = appendMatch(b, licenseMatch, l.Match)
	b = appendUint(b, licenseChangesMonth, uint64(l.Changes.Month))
	b = appendUint(b, licenseChanges, uint64(l.Changes.Count))
	b = appendPeriod(b, licenseGrace, l.Grace)
	b = appendTimeAfter(b, licenseGraceRecorded, l.GraceRecorded, l.CreatedAt)
	b = appendTimeAfter(b, licenseNoticeEnd, l.Notice.End, l.CreatedAt)
	b = appendUint(b, licenseNoticeDay, uint64(l.Notice.Day))
	b = appendReceipts(b, licenseReceipts, l.Receipts)
	b = appendUint(b, licenseReceiptsUntil, uint64(l.ReceiptsUntil))
	b = appendUint(b, licenseRevision, l.Revision)
	b = appendRevocations(b, licenseRevocations, l.Revocations)
	b = appendWriters(b, LicenseWriter, s.Writers)
	return appendBool(b, licenseSpilled, s.Spilled)
}

// DecodeLicense reads the value under a license's key. The id comes from the key, since the value contains only the
// prefix. The result aliases the value, which must not change any more.
func DecodeLicense(id licensing.LicenseID, value []byte) (*License, error) {
	s := &License{}
	l := &s.License
	var prefix string
	limited := false
	var activated, expires, suspended, revoked, recorded, limitReported, upgraded, setEnd Field
	var stamp, leasesUntil, seenFrom, inactiveStamp, grace, notice Field
	err := DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case licensePrefix:
			prefix = f.string()
		case licenseOwner:
			l.Owner, err = f.owner()
		case licenseProduct:
			l.ProductID = f.string()
		case licensePackedOrder:
			l.OrderNo, err = f.orderNo()
		case licenseOrder:
			l.OrderNo = f.string()
		case licenseMaxDevices:
			l.MaxDevices, limited = f.int(), f.Bytes == nil
		case licenseCurrentDevices:
			l.CurrentDevices = f.int()
		case licenseAllowedOver:
			l.AllowedOver = f.int()
		case licenseValidity:
			l.Validity, err = f.period()
		case licenseCreatedAt:
			l.CreatedAt = f.time()
		case licenseActivatedAt:
			activated = f
		case licenseExpiresAt:
			expires = f
		case licenseReissues:
			l.Reissues = licensing.Reissues(f.string())
		case licenseTerms:
			l.Terms = licensing.TermsVersion(f.varint)
		case licenseEntitlements:
			l.OwnEntitlements = licensing.TermsVersion(f.varint)
		case licenseLease:
			l.Lease.Length = f.seconds()
		case licenseLongestLease:
			l.Lease.Longest = f.seconds()
		case licenseStamp:
			stamp = f
		case licenseLeasesUntil:
			leasesUntil = f
		case licenseTrial:
			err = f.fill(l.Trial[:])
		case licenseUpgradedAt:
			upgraded = f
		case licenseSetEnd:
			setEnd = f
		case licenseInactiveAfter:
			l.InactiveAfter, err = f.period()
		case licenseSeenFrom:
			seenFrom = f
		case licenseInactiveStamp:
			inactiveStamp = f
		case licenseMatch:
			l.Match = f.match()
		case licenseChangesMonth:
			l.Changes.Month = f.int()
		case licenseChanges:
			l.Changes.Count = f.int()
		case licenseGrace:
			l.Grace, err = f.period()
		case licenseGraceRecorded:
			grace = f
		case licenseNoticeEnd:
			notice = f
		case licenseNoticeDay:
			l.Notice.Day = f.int()
		case licenseReceipts:
			l.Receipts = f.receipts()
		case licenseReceiptsUntil:
			l.ReceiptsUntil = licensing.ReceiptDay(f.varint)
		case licenseRevision:
			l.Revision = f.varint
		case licenseRevocations:
			l.Revocations = f.revocations()
		case licenseSuspendedAt:
			suspended = f
		case licenseRevokedAt:
			revoked = f
		case licenseStateReason:
			l.StateReason = f.string()
		case licenseSelfService:
			l.SelfService, err = f.selfService()
		case licenseRemovalsMonth:
			l.Removals.Month = f.int()
		case licenseRemovals:
			l.Removals.Count = f.int()
		case licenseEndRecorded:
			recorded = f
		case licenseEvents:
			s.LastEvent, l.Sequence, err = f.lastEvent()
		case licenseLimitReported:
			limitReported = f
		case LicenseWriter:
			s.Writers, err = decodeWriter(s.Writers, f.Bytes)
		case licenseSpilled:
			s.Spilled = f.bool()
		case licenseDevice:
			if s.Devices == nil {
				s.Devices = make([]InlineDevice, 0, 4)
			}
			s.Devices = append(s.Devices, f.Bytes)
		default:
			s.Unknown = append(s.Unknown, f.raw...)
		}
		return err
	})
	if err = owned(l.Owner, err); err != nil {
		return nil, err
	}
	if !licensing.ValidKeyPrefix(prefix) || !limited || !l.Reissues.Valid() {
		return nil, ErrMalformed
	}
	l.Key = id.Key(prefix)
	l.ActivatedAt, l.ExpiresAt = activated.timeAfter(l.CreatedAt), expires.timeAfter(l.CreatedAt)
	l.SuspendedAt, l.RevokedAt = suspended.timeAfter(l.CreatedAt), revoked.timeAfter(l.CreatedAt)
	l.EndRecorded, l.LimitReportedAt = recorded.timeAfter(l.CreatedAt), limitReported.timeAfter(l.CreatedAt)
	l.UpgradedAt, l.SetEnd = upgraded.timeAfter(l.CreatedAt), setEnd.timeAfter(l.CreatedAt)
	l.GraceRecorded, l.Notice.End = grace.timeAfter(l.CreatedAt), notice.timeAfter(l.CreatedAt)
	if l.Lease.Leased() {
		l.Lease.Longest = cmp.Or(l.Lease.Longest, l.Lease.Length)
		l.LeaseClock, l.LeasesUntil = stamp.timeAfter(l.CreatedAt), leasesUntil.timeAfter(l.CreatedAt)
	} else {
		l.LeaseClock = inactiveStamp.timeAfter(l.CreatedAt)
	}
	l.SeenFrom = seenFrom.timeAfter(l.CreatedAt)
	return s, nil
}

// appendLease writes what only licenses with leases have.
func appendLease(b []byte, l *licensing.License) []byte {
	b = appendUint(b, licenseLease, uint64(l.Lease.Length/time.Second))
	if l.Lease.Longest != l.Lease.Length {
		b = appendUint(b, licenseLongestLease, uint64(l.Lease.Longest/time.Second))
	}
	b = appendTimeAfter(b, licenseStamp, l.LeaseClock, l.CreatedAt)
	return appendTimeAfter(b, licenseLeasesUntil, l.LeasesUntil, l.CreatedAt)
}
