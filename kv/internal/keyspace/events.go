package keyspace

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"licet/licensing"
)

const (
	// EventsFamily begins the keys of all events.
	EventsFamily = "e/"
	// SequenceSize is the length of a sequence number in a key of events.
	SequenceSize = 5
	// EventOfLicense, EventOfOrder and EventOfWebhooks begin the name of a record in keys of events.
	EventOfLicense = 'l'
	EventOfOrder   = 'o'
	// EventOfWebhooks begins the name of an owner's webhook endpoints.
	EventOfWebhooks = 'w'
	// EventOfUsage begins the name of an owner's usage in keys of events.
	EventOfUsage  = 'a'
	eventsOfBlock = 'b' // of several records
)

// OrderPrefix begins the number of each order. Keys of events leave it out.
const OrderPrefix = "ord_"

// EventsKeyOf returns the key with the events of a record up to a sequence number: a key of the record, or, if the
// location is in a block, the block's.
func EventsKeyOf(owner licensing.Owner, at Location, record string, last uint64) string {
	b := append(make([]byte, 0, 96), EventsOf(owner)...)
	b = AppendEpoch(b, at.Epoch)
	if at.Block != 0 {
		return string(binary.BigEndian.AppendUint32(append(b, eventsOfBlock), uint32(at.Block)))
	}
	b = append(b, record...)
	return string(appendSequence(b, last))
}

// EpochIn returns the bytes of an owner's key of events that contain the epoch.
func EpochIn(owner licensing.Owner, key []byte) []byte { return key[len(EventsOf(owner)):][:EpochSize] }

// BlockKey returns the key of a block of events.
func BlockKey(owner licensing.Owner, at Location) string { return EventsKeyOf(owner, at, "", 0) }

// EventsOf begins the keys of all events of an owner.
func EventsOf(owner licensing.Owner) string { return OfOwner(owner, EventsFamily) }

func appendSequence(b []byte, n uint64) []byte {
	var eight [8]byte
	binary.BigEndian.PutUint64(eight[:], n)
	return append(b, eight[8-SequenceSize:]...)
}

// LicenseInEvents returns how keys of events name a license.
func LicenseInEvents(id licensing.LicenseID) string { return string(EventOfLicense) + BlockOf(id) }

// OrderInEvents returns how keys of events name an order.
func OrderInEvents(orderNo string) string { return string(EventOfOrder) + orderNo[len(OrderPrefix):] }

// WebhooksInEvents returns how keys of events name an owner's endpoints. The ids of events are made of this name, so no
// two owners share one.
func WebhooksInEvents(owner licensing.Owner) string {
	sum := sha256.Sum256([]byte(OwnerPath(owner)))
	return string(EventOfWebhooks) + string(sum[:LicenseIDSize])
}

// UsageInEvents returns how keys of events name an owner's usage.
func UsageInEvents(owner licensing.Owner) string {
	return string(EventOfUsage) + WebhooksInEvents(owner)[1:]
}

// EventsKey is a decoded key of events: of one record, or of a block.
type EventsKey struct {
	Location
	Revision int64
	Record   string     // empty for a block
	Last     uint64     // sequence of the last event; 0 for a block
	Hash     RecordHash // of the record; zero for a block
}

// Key returns the etcd key.
func (d *EventsKey) Key(owner licensing.Owner) string {
	return EventsKeyOf(owner, d.Location, d.Record, d.Last)
}

// CompareEvents orders all events: by revision, and at one revision first events of orders, then of licenses, then all
// others. So an order is paid before its license is issued. If an owner has blocks at a revision, they contain all its
// events of that revision, and sort by their numbers.
func CompareEvents(a, b EventsKey) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Revision, b.Revision),
		cmp.Compare(a.Block, b.Block), CompareRecords(a.Record, b.Record))
}

// CompareRecords orders the records whose events one request writes.
func CompareRecords(a, b string) int {
	return cmp.Or(cmp.Compare(rankOfKind(a), rankOfKind(b)), cmp.Compare(a, b))
}

func rankOfKind(record string) byte {
	if record == "" {
		return 0 // a block
	}
	switch record[0] {
	case EventOfOrder:
		return '0'
	case EventOfLicense:
		return '1'
	default:
		return '2'
	}
}

// FeedRank returns the same order within a revision for callers that have events instead of entries.
func FeedRank(record string) string { return string(rankOfKind(record)) + record }

// ReadEventsKey reads what follows the owner in a key of events.
func ReadEventsKey(rest []byte) (EventsKey, bool) {
	if len(rest) == EpochSize+1+blockSize && rest[EpochSize] == eventsOfBlock {
		at := Location{Epoch(binary.BigEndian.Uint64(rest)), Block(binary.BigEndian.Uint32(rest[EpochSize+1:]))}
		return EventsKey{Location: at}, at.Block.valid()
	}
	if len(rest) <= EpochSize+1+SequenceSize {
		return EventsKey{}, false
	}
	var eight [8]byte
	copy(eight[8-SequenceSize:], rest[len(rest)-SequenceSize:])
	record := bytes.Clone(rest[EpochSize : len(rest)-SequenceSize])
	return EventsKey{
		Location: Location{Epoch: Epoch(binary.BigEndian.Uint64(rest))}, Record: string(record),
		Last: binary.BigEndian.Uint64(eight[:]),
	}, true
}

// NameOfEvents names a key of events as licet store verify does.
func NameOfEvents(owner licensing.Owner, e *EventsKey) string {
	if e.Block != 0 {
		return fmt.Sprintf("e/%s%d/%08x", OwnerPath(owner), e.Epoch, uint32(e.Block))
	}
	return "e/" + EventID(owner, e.Location, e.Record, e.Last)
}

// LedgersFamily begins the keys of ledgers. A ledger says how many bytes of events an
// owner has, and up to which epoch the owner gave up events because the store was over its
// budget. An owner without a ledger has no measured events, and gave up none.
//
// A ledger is not part of the owner's h/ key: older builds write that key anew, empty.
const LedgersFamily = "r/"

// LedgerKey returns the key of an owner's ledger of events.
func LedgerKey(owner licensing.Owner) string { return OfOwner(owner, LedgersFamily) }

// MarksPrefix begins the keys of retention marks. A mark says how old events are, so that a sweep need not read them.
// Now and then a node that sweeps makes a mark for a closed epoch. Before that, it measures the events of all owners up
// to that epoch: see [retention.measureEvents].
const MarksPrefix = CellPrefix + "t/"

// MarkKey returns the key of a retention mark.
func MarkKey(e Epoch) string { return MarksPrefix + string(AppendEpoch(nil, e)) }
