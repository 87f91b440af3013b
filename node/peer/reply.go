package peer

import (
	"errors"
	"fmt"
	"time"

	"licet/licensing"
	"licet/node"
)

// reply is the answer of the other node, if it has accepted the commands. Most results of one hop have
// the same license except for its number of devices, so each license is sent once.
type reply struct {
	_        struct{} `cbor:",toarray"`
	YieldsTo []byte   // an incarnation, or empty
	Busy     bool
	Licenses []license
	Answers  []answer
}

type answer struct {
	_              struct{} `cbor:",toarray"`
	License        int      // its index in Licenses, from 1; 0: none
	CurrentDevices int
	Name           string // of the device, whose id is the command's
	Named          bool
	BoundAt        millis
	LastSeenAt     millis
	LeaseEnd       millis
	LeaseLeft      time.Duration
	Bound, Removed bool
	IssuedAt       millis // of the receipt
	ExpiresAt      millis
	RevocationAge  uint32
	Revision       uint64
	Error          *licensing.Error
}

// license omits what the hop has already (the id), what the answer has already (the number of devices and the revision
// for receipts), and what callers don't need: the counters of events, the notices, the times of leases, the terms of
// receipts, and the terms that say which devices lose their device slots.
type license struct {
	_                                 struct{} `cbor:",toarray"`
	KeyPrefix                         string
	Owner                             owner
	ProductID, OrderNo                string
	MaxDevices, AllowedOver           int
	Years, Months, Days               int
	Clock                             time.Duration
	CreatedAt, ActivatedAt            millis
	ExpiresAt, SuspendedAt, RevokedAt millis
	EndRecorded                       millis
	StateReason                       string
	SelfService                       bool
	RemovalsPerMonth                  int
	RemovalsMonth, Removals           int
	Reissues                          []byte
	Terms, OwnEntitlements            licensing.TermsVersion
	Lease, LongestLease               time.Duration
	Trial                             licensing.TrialName
	UpgradedAt                        millis
	GraceYears, GraceMonths           int
	GraceDays                         int
	GraceClock                        time.Duration
	GraceRecorded                     millis
}

// millis is a time in milliseconds since 1970, as records keep it; 0 is the zero
// time.
type millis int64

func toMillis(t time.Time) millis {
	if t.IsZero() {
		return 0
	}
	return millis(t.UnixMilli())
}

func (m millis) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

func fromLicense(l *licensing.License) license {
	return license{
		KeyPrefix: l.Key.Prefix(), Owner: fromOwner(l.Owner), ProductID: l.ProductID, OrderNo: l.OrderNo,
		MaxDevices: l.MaxDevices, AllowedOver: l.AllowedOver,
		Years: l.Validity.Years, Months: l.Validity.Months, Days: l.Validity.Days, Clock: l.Validity.Clock,
		CreatedAt: toMillis(l.CreatedAt), ActivatedAt: toMillis(l.ActivatedAt),
		ExpiresAt: toMillis(l.ExpiresAt), SuspendedAt: toMillis(l.SuspendedAt), RevokedAt: toMillis(l.RevokedAt),
		EndRecorded: toMillis(l.EndRecorded),
		StateReason: l.StateReason, SelfService: l.SelfService.Allowed,
		RemovalsPerMonth: l.SelfService.RemovalsPerMonth,
		RemovalsMonth:    l.Removals.Month, Removals: l.Removals.Count,
		Reissues: []byte(l.Reissues), Terms: l.Terms, OwnEntitlements: l.OwnEntitlements,
		Lease: l.Lease.Length, LongestLease: l.Lease.Longest, Trial: l.Trial, UpgradedAt: toMillis(l.UpgradedAt),
		GraceYears: l.Grace.Years, GraceMonths: l.Grace.Months, GraceDays: l.Grace.Days, GraceClock: l.Grace.Clock,
		GraceRecorded: toMillis(l.GraceRecorded),
	}
}

func (l *license) license(id licensing.LicenseID) licensing.License {
	return licensing.License{
		Key: id.Key(l.KeyPrefix), Owner: l.Owner.owner(), ProductID: l.ProductID, OrderNo: l.OrderNo,
		MaxDevices: l.MaxDevices, AllowedOver: l.AllowedOver,
		Validity:  licensing.Period{Years: l.Years, Months: l.Months, Days: l.Days, Clock: l.Clock},
		CreatedAt: l.CreatedAt.time(), ActivatedAt: l.ActivatedAt.time(),
		ExpiresAt: l.ExpiresAt.time(), SuspendedAt: l.SuspendedAt.time(), RevokedAt: l.RevokedAt.time(),
		EndRecorded: l.EndRecorded.time(),
		StateReason: l.StateReason,
		SelfService: licensing.SelfService{Allowed: l.SelfService, RemovalsPerMonth: l.RemovalsPerMonth},
		Removals:    licensing.Removals{Month: l.RemovalsMonth, Count: l.Removals},
		Reissues:    licensing.Reissues(l.Reissues),
		Terms:       l.Terms, OwnEntitlements: l.OwnEntitlements,
		Lease: licensing.LeaseTerms{Length: l.Lease, Longest: l.LongestLease}, Trial: l.Trial,
		UpgradedAt: l.UpgradedAt.time(),
		Grace: licensing.Period{Years: l.GraceYears, Months: l.GraceMonths, Days: l.GraceDays,
			Clock: l.GraceClock},
		GraceRecorded: l.GraceRecorded.time(),
	}
}

func (c codec) reply(a node.HopAnswer) ([]byte, error) {
	r := reply{Answers: make([]answer, len(a.Answers)), Busy: a.Busy}
	if !a.YieldsTo.IsZero() {
		r.YieldsTo = a.YieldsTo[:]
	}
	var last licensing.License // the last element of Licenses, without its counters
	for i := range a.Answers {
		from, to := &a.Answers[i], &r.Answers[i]
		if from.Err != nil {
			if !errors.As(from.Err, &to.Error) {
				to.Error = licensing.ErrInternal
			}
			continue
		}
		now := from.Result.License
		now.CurrentDevices, now.Sequence, now.LimitReportedAt = 0, 0, time.Time{}
		now.LeaseClock, now.LeasesUntil, now.SeenFrom = time.Time{}, time.Time{}, time.Time{}
		now.Receipts, now.ReceiptsUntil, now.Revision = licensing.ReceiptTerms{}, 0, 0
		now.Revocations = licensing.RevocationCount{}
		now.InactiveAfter, now.Match, now.Changes = licensing.Period{}, licensing.DeviceMatch{}, licensing.Removals{}
		now.Notice = licensing.Notice{}
		if len(r.Licenses) == 0 || now != last {
			r.Licenses = append(r.Licenses, fromLicense(&now))
			last = now
		}
		device := &from.Result.Device
		*to = answer{
			License: len(r.Licenses), CurrentDevices: from.Result.License.CurrentDevices,
			Name: device.Name, Named: device.Named, BoundAt: toMillis(device.BoundAt),
			LastSeenAt: toMillis(device.LastSeenAt),
			IssuedAt:   toMillis(from.Result.Receipt.IssuedAt), ExpiresAt: toMillis(from.Result.Receipt.ExpiresAt),
			Revision: from.Result.License.Revision, RevocationAge: from.Result.Receipt.RevocationAgeSeconds,
			LeaseEnd: toMillis(device.LeaseEnd), LeaseLeft: from.Result.LeaseLeft,
			Bound: from.Result.Bound, Removed: from.Result.Removed,
		}
	}
	return c.encode.Marshal(r)
}

// readReply decodes the results of a hop. It trusts the other node's values, but checks that there is
// one result for each command.
func (c codec) readReply(body []byte, hop node.Hop) (node.HopAnswer, error) {
	var r reply
	if err := c.decode.Unmarshal(body, &r); err != nil {
		return node.HopAnswer{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	var a node.HopAnswer
	if len(r.Answers) != len(hop.Commands) || len(r.YieldsTo) != 0 && len(r.YieldsTo) != len(a.YieldsTo) {
		return node.HopAnswer{}, errMalformed
	}
	copy(a.YieldsTo[:], r.YieldsTo)
	a.Busy = r.Busy
	a.Answers = make([]node.Answer, len(r.Answers))
	for i := range r.Answers {
		from, to := &r.Answers[i], &a.Answers[i]
		if from.Error != nil {
			to.Err = from.Error
			continue
		}
		if from.License < 1 || from.License > len(r.Licenses) {
			return node.HopAnswer{}, errMalformed
		}
		to.Result = licensing.Result{
			License: r.Licenses[from.License-1].license(hop.License),
			Device: licensing.Device{
				ID: hop.Commands[i].DeviceID(), Name: from.Name, Named: from.Named,
				BoundAt: from.BoundAt.time(), LastSeenAt: from.LastSeenAt.time(), LeaseEnd: from.LeaseEnd.time(),
			},
			LeaseLeft: from.LeaseLeft, Bound: from.Bound, Removed: from.Removed,
			Receipt: licensing.ReceiptTimes{IssuedAt: from.IssuedAt.time(), ExpiresAt: from.ExpiresAt.time(),
				RevocationAgeSeconds: from.RevocationAge},
		}
		to.Result.License.CurrentDevices, to.Result.License.Revision = from.CurrentDevices, from.Revision
	}
	return a, nil
}
