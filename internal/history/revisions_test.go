package history

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// What etcd contains is read here without kv's help, from the documented layout:
// a reader that shared kv's mistakes would not see them.

// licenseAt is a license as one revision left it.
type licenseAt struct {
	revision int64
	before   int64 // the revision of its state before; 0: none

	order                             string
	max, current, allowedOver         int
	activated, expires                int64
	suspended, revoked                int64
	endRecorded                       int64
	grace, graceRecorded              int64
	spilled                           bool
	writers                           []writer
	devices                           map[string]int64 // id → bound_at
	leased                            bool
	lease, longest                    int64 // lengths of its leases
	leaseClock, leasesUntil           int64
	ends                              map[string]int64 // id → the end of its lease
	seen                              map[string]int64 // id → when it was last seen
	inactiveAfter, seenFrom           int64            // 0: it loses no inactive devices
	matched                           bool             // its devices may change
	recordWritten, strayDeviceWritten bool
	noteWritten                       bool // its metadata
	terms, own                        licensing.TermsVersion
	entitlements                      licensing.Entitlements // its own
	listed, belongs                   []string               // the listings of customers that it is in, and belongs in
	reissues                          string
	product                           string
	trial                             string // the name of its trial
	upgraded                          int64
	gone                              bool // deleted
	created                           int64
	latest                            latestAt
}

// orderAt is an order as one revision left it.
type orderAt struct {
	revision                 int64
	paid, canceled, refunded int64
	description, email       string
	metadata                 string
	noted                    string // the metadata of its license
	key                      licensing.LicenseKey
	payment                  string
	provider                 licensing.PaymentProvider // where the order was paid, or is to be paid; empty: open
	attempt                  int                       // of the latest checkout
	checkout                 string
	quantity, issued         int
	othersFrom               int // the first license besides the first one that must still change; 0: none must
	seed                     licensing.KeySeed
	refundDue                bool
	fee                      int64 // the sum of the known fees
	sums                     refundSums
	disputes                 string // the ids of the open disputes
	disputed                 bool   // the state of a dispute has changed
	billed                   billed
	returns                  map[string]int64 // what is to go back of second payments, by payment
	open                     int              // how many refunds of further payments are open
	further                  bool             // the record of a refund of a further payment was written with it
	second                   bool             // the record of a second payment was created with it
	writers                  []writer
	licensesMade             []licensing.LicenseID // in the same revision, for this order
	upgrades                 []licensing.LicenseID // trials that became this order's license in the same revision
	upgradeOf                licensing.LicenseKey
	expired                  int64
	latest                   latestAt
}

type writer struct {
	by   string
	swap uint64
}

// timeline is every state that etcd ever had of a run's records.
type timeline struct {
	account  string
	licenses map[licensing.LicenseID][]*licenseAt
	orders   map[string][]*orderAt
	notes    map[licensing.LicenseID]string   // the metadata of licenses, as it is at last
	listed   listings                         // the same of their entries in the listings of customers
	keysOf   map[string][]*eventsOf           // of events, by record
	changed  []string                         // keys of events that were changed
	epochs   []int64                          // the revisions at which epochs have begun
	usages   []*usageAt                       // of the account
	aliases  map[string][]aliasAt             // of licenses of the account
	trials   map[string][]trialAt             // of the account, by name
	payments map[string][]paymentAt           // of the account, by name
	played   map[string][]playedAt            // in the sandbox, by order
	refunds  map[string][]refundAt            // the same
	invoices map[string][]invoiceAt           // the same
	seconds  map[string][]secondAt            // the same
	disputes map[string][]disputeAt           // the same
	returned map[string][]returnedAt          // the same
	products []productAt                      // of the account
	rollouts []rolledAt                       // of the product that has some
	terms    map[licensing.TermsVersion]int64 // the revisions that stored versions of terms first
	voided   map[string][]voidedAt            // the account's list of revocations, by name
}

// readHistory watches all that was written.
func (r *run) readHistory() ([]*clientv3.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	end, err := r.etcd.client.Put(ctx, "history/end", "")
	if err != nil {
		return nil, err
	}
	var events []*clientv3.Event
	for response := range r.etcd.client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := response.Err(); err != nil {
			return nil, err
		}
		for _, event := range response.Events {
			if event.Kv.ModRevision == end.Header.Revision {
				return events, nil
			}
			events = append(events, event)
		}
	}
	return nil, errors.New("the watch ended early")
}

// newTimeline replays events in their order, those of one account.
func newTimeline(account string, events []*clientv3.Event) (*timeline, error) {
	t := &timeline{account: account, keysOf: map[string][]*eventsOf{}, licenses: map[licensing.LicenseID][]*licenseAt{},
		orders: map[string][]*orderAt{}, notes: map[licensing.LicenseID]string{}, aliases: map[string][]aliasAt{},
		trials: map[string][]trialAt{}, payments: map[string][]paymentAt{}, played: map[string][]playedAt{},
		refunds: map[string][]refundAt{}, invoices: map[string][]invoiceAt{}, seconds: map[string][]secondAt{},
		disputes: map[string][]disputeAt{}, returned: map[string][]returnedAt{}, voided: map[string][]voidedAt{},
		terms: map[licensing.TermsVersion]int64{}, listed: listings{}}
	own := map[licensing.LicenseID]map[string]device{} // the devices that have keys of their own
	for len(events) > 0 {
		revision := events[0].Kv.ModRevision
		n := slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Kv.ModRevision != revision })
		if n < 0 {
			n = len(events)
		}
		if err := t.replay(revision, events[:n], own); err != nil {
			return nil, fmt.Errorf("revision %d: %w", revision, err)
		}
		events = events[n:]
	}
	return t, nil
}

type device struct {
	id       string
	boundAt  int64
	leaseEnd int64
	seen     int64
}

// licenseIn returns the id of the license that a key of a slot names.
func licenseIn(slot licensing.Slot, block string) licensing.LicenseID {
	return licensing.NewLicenseID(slot, [licensing.LicenseBlockSize]byte([]byte(block)))
}

// licenseRecord returns how keys of events name a license.
func licenseRecord(id licensing.LicenseID) string {
	block := id.Block()
	return "l" + string(block[:])
}

// replay takes in what one transaction has written.
func (t *timeline) replay(
	revision int64, events []*clientv3.Event, own map[licensing.LicenseID]map[string]device,
) error {
	touched := map[licensing.LicenseID]*licenseAt{}
	touch := func(id licensing.LicenseID) *licenseAt {
		if touched[id] == nil {
			next := &licenseAt{}
			if states := t.licenses[id]; len(states) > 0 {
				*next = *states[len(states)-1]
				next.before = next.revision
			}
			next.revision, next.recordWritten, next.strayDeviceWritten, next.noteWritten = revision, false, false, false
			touched[id] = next
		}
		return touched[id]
	}
	orders := map[string]*orderAt{}
	created := map[string][]licensing.LicenseID{} // by the order they name
	upgraded := map[string][]licensing.LicenseID{}
	further := map[string]bool{} // the orders with a refund of a further payment
	for _, event := range events {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(string(event.Kv.Key), "lc2/"), "/")
		slot, _ := licensing.ParseSlot(kind)
		if kind != "cell" { // but a slot
			kind, rest, _ = strings.Cut(rest, "/")
		}
		switch kind {
		case "l":
			id := licenseIn(slot, rest)
			if event.Type == clientv3.EventTypeDelete {
				if len(t.licenses[id]) > 0 {
					touch(id).gone = true
				}
				continue
			}
			m, err := parse(event.Kv.Value[1:])
			if err != nil {
				return err
			}
			if m.account() != t.account {
				continue
			}
			l := touch(id)
			l.recordWritten = true
			had := l.order
			if err := l.decode(m); err != nil {
				return err
			}
			if !event.IsCreate() && l.order != had {
				upgraded[l.order] = append(upgraded[l.order], id)
			}
			if event.IsCreate() {
				created[l.order] = append(created[l.order], id)
			}
		case "d":
			id, place := licenseIn(slot, rest[:16]), rest[16:]
			if len(t.licenses[id]) == 0 {
				continue
			}
			l := touch(id)
			if own[id] == nil {
				own[id] = map[string]device{}
			}
			var now device
			if event.Type == clientv3.EventTypePut {
				var err error
				if now, err = decodeDevice(event.Kv.Value[1:], 0); err != nil {
					return err
				}
			}
			// A device that was only seen again may be written alone.
			was := own[id][place]
			was.seen = now.seen
			l.strayDeviceWritten = l.strayDeviceWritten || now != was
			if own[id][place] = now; now == (device{}) {
				delete(own[id], place)
			}
		case "m":
			id := licenseIn(slot, rest)
			if t.notes[id] = string(event.Kv.Value); len(t.licenses[id]) > 0 || touched[id] != nil {
				touch(id).noteWritten = true
			}
		case "g":
			if place, ours := strings.CutPrefix(rest, t.account+"/t/"); ours {
				t.listed.note(slot, place, event)
			}
		case "q":
			if rest == t.account+"/t/rolled" {
				rollout, err := readRollout(event)
				if err != nil {
					return err
				}
				t.rollouts = append(t.rollouts, rollout)
			}
			if rest != t.account+"/t/pro" {
				continue
			}
			m, err := parse(event.Kv.Value[1:])
			if err != nil {
				return err
			}
			t.products = append(t.products, productAt{revision, licensing.Entitlements(m.text(5)).Version()})
		case "t":
			if version, ours := strings.CutPrefix(rest, t.account+"/t/"); ours && event.IsCreate() {
				t.terms[licensing.TermsVersion(binary.BigEndian.Uint64([]byte(version)))] = revision
			}
		case "n":
			m, err := parse(event.Kv.Value[1:])
			if err != nil {
				return err
			}
			if m.account() == t.account {
				t.aliases[rest] = append(t.aliases[rest],
					aliasAt{revision, licensing.LicenseID(m.bytes[1][0]), event.IsCreate()})
			}
		case "tr":
			name, ours := strings.CutPrefix(rest, t.account+"/t/")
			if writes := t.trials[name]; ours && event.Type == clientv3.EventTypeDelete {
				last := writes[len(writes)-1]
				t.trials[name] = append(writes, trialAt{revision: revision, license: last.license, deleted: true})
			} else if ours {
				m, err := parse(event.Kv.Value[1:])
				if err != nil {
					return err
				}
				t.trials[name] = append(t.trials[name],
					trialAt{revision, licensing.LicenseID([]byte(m.text(1)[:18])), event.IsCreate(), false})
			}
		case "pa":
			if name, ours := strings.CutPrefix(rest, t.account+"/t/"); ours {
				m, err := parse(event.Kv.Value[1:])
				if err != nil {
					return err
				}
				switch licensing.PaymentKind(m.text(9)) {
				case licensing.KindOfRefund:
					t.refunds[name] = append(t.refunds[name], refundAt{revision, m.text(1), m.text(3), m.text(10),
						int64(m.varints[4]), false})
				case licensing.KindOfInvoice:
					t.invoices[name] = append(t.invoices[name], m.invoice(revision))
				case licensing.KindOfSecond:
					t.seconds[name] = append(t.seconds[name], secondAt{revision, m.text(1), m.text(3),
						int64(m.varints[4]), int64(m.varints[19]), int64(m.varints[11])})
				case licensing.KindOfInvoiceRefund:
					further[m.text(1)] = true
					t.returned[name] = append(t.returned[name], m.returnedAt(revision))
				case licensing.KindOfDispute:
					t.disputes[name] = append(t.disputes[name], m.dispute(revision))
				default:
					t.payments[name] = append(t.payments[name], paymentAt{revision, m.text(1), m.text(3),
						int64(m.varints[11])})
				}
			}
		case "sb":
			if number, ours := strings.CutPrefix(rest, t.account+"/t/"); ours {
				m, err := parse(event.Kv.Value[1:])
				if err != nil {
					return err
				}
				t.played[number] = append(t.played[number], playedAt{revision, m.milli(3), int(m.varints[1]),
					licensing.SandboxOutcome(m.text(2))})
			}
		case "rv":
			if err := t.noteVoided(revision, rest, event); err != nil {
				return err
			}
		case "e":
			if rest, ours := strings.CutPrefix(rest, t.account+"/t/"); ours {
				if err := t.addKey(rest, event); err != nil {
					return err
				}
			}
		case "cell":
			if rest == "epoch" {
				t.epochs = append(t.epochs, revision)
			}
		case "s":
			if rest == t.account+"/t/" {
				usage, err := readUsage(event.Kv)
				if err != nil {
					return err
				}
				t.usages = append(t.usages, usage)
			}
		case "o":
			if !strings.HasPrefix(rest, t.account+"/") {
				continue
			}
			o := &orderAt{revision: revision}
			if err := o.decode(event.Kv.Value); err != nil {
				return err
			}
			number := rest[strings.LastIndexByte(rest, '/')+1:]
			orders[number] = o
			t.orders[number] = append(t.orders[number], o)
		}
	}
	for id, l := range touched {
		var err error
		if l.entitlements, err = entitled(t.notes[id]); err != nil {
			return err
		}
		if l.belongs, err = listingsOf(t.notes[id]); err != nil {
			return err
		}
		if l.listed = t.listed.of(id); l.gone {
			l.devices, l.current = map[string]int64{}, 0
		}
		if l.spilled {
			l.devices, l.ends, l.seen = map[string]int64{}, map[string]int64{}, map[string]int64{}
			for _, d := range own[id] {
				l.add(d)
			}
		}
		t.licenses[id] = append(t.licenses[id], l)
	}
	for _, writes := range t.disputes {
		last := len(writes) - 1
		if o := orders[writes[last].order]; o != nil && writes[last].revision == revision {
			o.disputed = last == 0 || writes[last].state != writes[last-1].state
		}
	}
	for _, writes := range t.seconds {
		if o := orders[writes[0].order]; o != nil && writes[0].revision == revision {
			o.second = true
		}
	}
	for number, o := range orders {
		o.licensesMade, o.upgrades, o.further = created[number], upgraded[number], further[number]
		if !o.key.IsZero() {
			o.noted = t.notes[o.key.ID()]
		}
	}
	return nil
}

// message is a protobuf message without a schema.
type message struct {
	varints map[protowire.Number]uint64
	bytes   map[protowire.Number][][]byte
}

func parse(b []byte) (message, error) {
	m := message{map[protowire.Number]uint64{}, map[protowire.Number][][]byte{}}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return m, protowire.ParseError(n)
		}
		b = b[n:]
		switch typ {
		case protowire.VarintType:
			m.varints[num], n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			var value []byte
			value, n = protowire.ConsumeBytes(b)
			m.bytes[num] = append(m.bytes[num], value)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return m, protowire.ParseError(n)
		}
		b = b[n:]
	}
	return m, nil
}

func (m message) text(num protowire.Number) string {
	if len(m.bytes[num]) == 0 {
		return ""
	}
	return string(m.bytes[num][0])
}

func (m message) milli(num protowire.Number) int64 { return int64(m.varints[num]) }

// milliAfter is 0 where there is no such time.
func (m message) milliAfter(num protowire.Number, start int64) int64 {
	after, found := m.varints[num]
	if !found {
		return 0
	}
	return start + protowire.DecodeZigZag(after)
}

// account reads the owner of a license: a run's account is none that ends in a
// ULID.
func (m message) account() string {
	owner := m.text(2)
	if owner == "" || owner[0]>>2 != 1 {
		return ""
	}
	return "acct_" + owner[1:]
}

// order reads the number of a license's order: its slot and 16 bytes.
func (m message) order() string {
	packed := m.text(5)
	if len(packed) != licensing.SlotLength+16 {
		return ""
	}
	slot, id := packed[:licensing.SlotLength], packed[licensing.SlotLength:]
	return "ord_" + slot + ulid.ULID([]byte(id)).String()
}

// writersField is where licenses and orders keep their last writers.
const writersField = 15

func (m message) writers() []writer {
	var list []writer
	for _, entry := range m.bytes[writersField] {
		swap, _ := protowire.ConsumeVarint(entry[8:])
		list = append(list, writer{hex.EncodeToString(entry[:8]), swap})
	}
	return list
}

func (l *licenseAt) decode(m message) error {
	l.order, l.product = m.order(), m.text(4)
	l.max, l.current, l.allowedOver = int(m.varints[6]), int(m.varints[7]), int(m.varints[16])
	created := m.milli(10)
	l.created = created
	l.activated, l.expires = m.milliAfter(11, created), m.milliAfter(12, created)
	l.suspended, l.revoked = m.milliAfter(13, created), m.milliAfter(14, created)
	l.endRecorded = m.milliAfter(26, created)
	l.graceRecorded = m.milliAfter(47, created)
	var err error
	if l.grace, err = gracePeriod(m.text(46)); err != nil {
		return err
	}
	l.latest = latest(m.text(27))
	l.reissues = m.text(29)
	l.trial, l.upgraded = m.text(36), m.milliAfter(37, created)
	l.spilled = m.varints[8] != 0
	l.terms, l.own = licensing.TermsVersion(m.varints[30]), licensing.TermsVersion(m.varints[31])
	l.writers = m.writers()
	l.leased, l.leaseClock, l.leasesUntil = m.varints[32] != 0, m.milliAfter(34, created), m.milliAfter(35, created)
	l.lease, l.longest = 1000*int64(m.varints[32]), 1000*int64(cmp.Or(m.varints[33], m.varints[32]))
	if l.matched = m.varints[43] != 0; len(m.bytes[40]) > 0 {
		l.inactiveAfter, l.seenFrom = inactiveAfter, cmp.Or(m.milliAfter(41, created), created)
		l.leaseClock = m.milliAfter(42, created)
	}
	l.devices, l.ends, l.seen = map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, entry := range m.bytes[3] {
		d, err := decodeDevice(entry, created)
		if err != nil {
			return err
		}
		l.add(d)
	}
	return nil
}

func (l *licenseAt) add(d device) {
	l.seen[d.id] = d.seen
	if l.devices[d.id] = d.boundAt; d.leaseEnd != 0 {
		l.ends[d.id] = d.leaseEnd
	}
}

// decodeDevice reads a device, whose times count from when its license was
// created, or from 1970 where it has a key of its own.
func decodeDevice(b []byte, created int64) (device, error) {
	m, err := parse(b)
	d := device{id: m.text(1), boundAt: m.milliAfter(4, created)}
	d.seen = d.boundAt + m.milli(5)
	if m.varints[7] != 0 {
		d.leaseEnd = d.boundAt + m.milli(7)
	}
	if d.id == "" {
		d.id = hex.EncodeToString([]byte(m.text(2)))
	}
	return d, err
}

func (o *orderAt) decode(value []byte) error {
	m, err := parse(value[1:])
	o.description, o.email, o.metadata = m.text(4), m.text(5), m.text(6)
	o.paid, o.canceled, o.refunded = m.milli(12), m.milli(13), m.milli(14)
	o.payment, o.provider = m.text(19), licensing.PaymentProvider(m.text(30))
	o.attempt, o.checkout = int(m.varints[31]), m.text(32)
	if key := m.text(17); key != "" {
		o.key = licensing.LicenseID([]byte(key[:18])).Key(key[18:])
	}
	if key := m.text(29); key != "" {
		o.upgradeOf = licensing.LicenseID([]byte(key[:18])).Key(key[18:])
	}
	o.fee = int64(m.varints[59])
	o.refundDue = m.varints[20] != 0 || m.varints[36] != 0
	o.sums = refundSums{
		paid: int64(m.varints[34]), refunded: int64(m.varints[35]), refunding: int64(m.varints[36]),
		number: m.text(46), refunds: int(m.varints[47]), pending: m.varints[48] != 0,
		ends: m.varints[70] != 0,
	}
	o.billed, o.disputes, o.returns, o.open = m.billed(), m.text(54), m.openReturns(), len(m.bytes[56])
	o.quantity, o.issued = int(m.varints[37]), int(m.varints[38])
	copy(o.seed[:], m.text(39))
	o.othersFrom = int(m.varints[69])
	o.expired, o.latest = m.milli(16), latest(m.text(24))
	o.writers = m.writers()
	return err
}

func (l *licenseAt) String() string {
	devices := slices.Sorted(maps.Keys(l.devices))
	text := fmt.Sprintf("revision %d by %v: %d of %d (over %d) %v activated %d expires %d suspended %d revoked %d",
		l.revision, l.writers[0], l.current, l.max, l.allowedOver, devices, l.activated, l.expires, l.suspended,
		l.revoked)
	if l.leased {
		text += fmt.Sprintf(" leases until %v, lease clock %d", l.ends, l.leaseClock)
	}
	return text
}
