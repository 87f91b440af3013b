package kv

import (
	"cmp"
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// swap is a change as one etcd transaction.
type swap struct {
	compares   []*etcdserverpb.Compare
	then       []*etcdserverpb.RequestOp
	reads      [][]byte // of queries
	bytes      int      // exact for the puts, and about for the rest
	queries    []query
	fresh      []fresh // the licenses as they will be
	gone       []licensing.LicenseID
	touches    []touch
	before     []layout.Writer // the writers of the first record when it was read
	removes    bool            // the swap removes the first record
	creates    bool            // the swap creates a record
	brokenRule string          // the first rule that the written license violates; empty if none

	listens func(licensing.Owner) bool // whether an owner listens, as far as is known
	pends   bool                       // it requests that an owner listens, or stops listening

	eventWrites []eventWrite // see batchItem
	assumed     []layout.Listening

	owner  licensing.Owner // of the records
	growth licensing.Size  // how much more the owner stores afterwards
}

// fresh is a license after a swap. The license existed before the swap.
type fresh struct {
	id      licensing.LicenseID
	slot    *slot
	from    int64 // the revision that the swap replaces
	value   []byte
	spilled bool
	moved   bool            // the devices get keys of their own: written has all of them
	written []writtenDevice // with keys of their own
	guesses int             // devices assumed absent, which the swap compares
	devices int             // how many the license will have
}

// writtenDevice is a device with a key of its own that a swap writes.
type writtenDevice struct {
	id    string
	value []byte // nil: the device is removed
}

// touch is a device with a key of its own, of which a swap stores only last_seen.
type touch struct {
	id     licensing.LicenseID
	device writtenDevice
	from   int64 // the revision of the device's key that is replaced
}

// newSwap builds the transaction of a change. Every written record carries the number of the swap, and the first record
// shows later whether the swap has landed. If the first record is removed, its absence shows this.
func (s *Store) newSwap(change store.Change, me layout.Writer) (*swap, error) {
	sw := &swap{listens: s.fences.listens}
	for i, write := range change.Writes {
		token, _ := write.Token.(*stored)
		if token == nil {
			token = &stored{}
		}
		if i == 0 {
			sw.before, sw.removes = token.writers, removes(&write)
		}
		if err := sw.add(write, token, layout.WithWriter(token.writers, me)); err != nil {
			return nil, err
		}
	}
	if sw.brokenRule != "" {
		s.countBrokenRule(sw.brokenRule, "write")
	}
	return sw, nil
}

func (sw *swap) add(write store.Write, token *stored, writers []layout.Writer) error {
	key := []byte(keyspace.RecordKey(write.Ref))
	if sw.owner = write.Ref.Owner; write.Ref.Kind == licensing.KindLicense {
		sw.owner = write.Record.License.Owner
	}
	// If all devices are known, no other store writes the license, and a loss is not expected. Then the swap does not
	// read the devices along.
	record := &write.Record
	q := query{Want: store.Want{Ref: write.Ref, Metadata: record.Metadata != nil},
		devices: token.spilled && !token.complete}
	if write.Ref.Kind != licensing.KindLicense || token.revision == 0 {
		sw.compare(key, token.revision)
	}
	sw.creates = sw.creates || token.revision == 0
	var err error
	switch write.Ref.Kind {
	case licensing.KindProduct:
		sw.putProduct(key, &write, token, writers)
	case licensing.KindWebhooks:
		err = sw.putWebhooks(key, &write, token, writers)
	case licensing.KindUsage:
		sw.putUsage(key, &write, token, writers)
	case licensing.KindClaim:
		sw.putRecord(key, layout.EncodeClaim(record.Claim, writers), token)
		place := keyspace.ClaimAgeKey(record.Claim.CreatedAt, write.Ref.Owner, write.Ref.ID)
		if place == token.listed {
			sw.put([]byte(place), nil)
		} else {
			sw.create([]byte(place), nil)
		}
	case licensing.KindSettings:
		settings := layout.Settings{Settings: *record.Settings, Writers: writers, Unknown: token.unknown}
		sw.putRecord(key, settings.Encode(), token)
	case licensing.KindReceiptKeys:
		sw.putReceiptKeys(key, record.ReceiptKeys, token, writers)
	case licensing.KindOrder:
		err = sw.putOrder(key, write, token, writers)
	case licensing.KindTrial:
		err = sw.putTrial(key, &write, token, writers)
	case licensing.KindPayment:
		payment := layout.Payment{Payment: *record.Payment, Writers: writers, Unknown: token.unknown}
		sw.putRecord(key, payment.Encode(), token)
		sw.moveSale(token.sale, layout.SaleEntry(write.Ref, record.Payment))
		if token.revision == 0 {
			sw.list(keyspace.PaymentListingKey(write.Ref, record.Payment))
		}
	case licensing.KindSandbox:
		played := layout.Sandbox{Sandbox: *record.Sandbox, Writers: writers, Unknown: token.unknown}
		sw.putRecord(key, played.Encode(), token)
	case licensing.KindLicense:
		if record.Removed {
			sw.removeLicense(key, record, token)
			break
		}
		for id := range record.Devices {
			q.Devices = append(q.Devices, id)
		}
		if token.revision == 0 {
			err = sw.putNewLicense(record.License, nil, eventsOf(record, record.License), writers)
		} else {
			err = sw.putLicense(key, record, token, writers)
		}
		sw.putMetadata(record.License, record.Metadata, token)
		sw.putAliases(record)
		sw.putRevocations(record)
	}
	sw.queries = append(sw.queries, q)
	sw.reads = appendKeys(sw.reads, &q, key)
	return err
}

// compare demands that a key has a revision; 0 demands that the key does not exist.
func (sw *swap) compare(key []byte, revision int64) {
	sw.compares = append(sw.compares, etcd.Unchanged(key, revision))
	sw.bytes += 2*len(key) + operationBytes // the same key is read in Else
}

// operationBytes is about the size of an operation besides its key and value.
const operationBytes = 24

// put puts a key that is not part of what its owner stores, such as events; see licensing.Usage.
func (sw *swap) put(key, value []byte) {
	sw.then = append(sw.then, etcd.Put(key, value))
	sw.bytes += len(key) + len(value) + operationBytes
}

// create puts a key that does not exist.
func (sw *swap) create(key, value []byte) {
	sw.put(key, value)
	sw.growth = sw.growth.Plus(layout.SizeOf(len(key), len(value)))
}

// replace puts a key whose value has had so many bytes.
func (sw *swap) replace(key, value []byte, before int) {
	sw.put(key, value)
	sw.growth.Bytes += int64(len(value) - before)
}

// putRecord puts the key of a record.
func (sw *swap) putRecord(key, value []byte, token *stored) {
	if token.revision == 0 {
		sw.create(key, value)
	} else {
		sw.replace(key, value, token.size)
	}
}

// remove removes a key whose value has so many bytes.
func (sw *swap) remove(key []byte, before int) {
	sw.drop(key)
	sw.growth = sw.growth.Minus(layout.SizeOf(len(key), before))
}

// drop removes a key that most likely does not exist.
func (sw *swap) drop(key []byte) {
	sw.then = append(sw.then, etcd.Delete(key))
	sw.bytes += len(key) + operationBytes
}

// putProduct writes or removes a product, along with its entries in the listing and in the index of due work.
func (sw *swap) putProduct(key []byte, write *store.Write, token *stored, writers []layout.Writer) {
	var due licensing.Due
	if removes(write) {
		sw.remove(key, token.size)
	} else {
		due = write.Record.Product.Due()
		product := layout.Product{Product: *write.Record.Product, Writers: writers, Unknown: token.unknown}
		sw.putRecord(key, product.Encode(), token)
	}
	for _, terms := range write.Record.NewTerms {
		// The key may exist, with the same value: then the growth counts twice until the next recount.
		ref := licensing.TermsRef(write.Ref.Owner, terms.Entitlements.Version())
		sw.create([]byte(keyspace.TermsKey(ref)), layout.EncodeTerms(terms))
	}
	sw.reschedule(string(key), token.due, keyspace.DueOf(due))
	sw.relist(token.listed, keyspace.CatalogKey(write.Ref, write.Record.Product))
}

// putUsage writes an owner's usage, unless another recount has begun since the usage was read.
func (sw *swap) putUsage(key []byte, write *store.Write, token *stored, writers []layout.Writer) {
	usage := write.Record.Usage
	record := layout.Usage{Usage: *usage, Writers: writers, LastEvent: token.lastEvent, Unknown: token.unknown}
	value := record.Encode()
	if events := write.Record.Events; len(events) > 0 {
		sw.writeEvents(value, layout.EncodeEvents(events, token.lastEvent), usage.Owner,
			keyspace.UsageInEvents(usage.Owner), usage.Sequence)
	}
	sw.put(key, value)
	sw.compare([]byte(keyspace.RecountKey), token.recountAt)
}

func (sw *swap) putOrder(key []byte, write store.Write, token *stored, writers []layout.Writer) error {
	order := write.Record.Order
	value := (&layout.Order{Order: *order, Writers: writers, LastEvent: token.lastEvent,
		Unknown: token.unknown}).Encode()
	if events := eventsOf(&write.Record, order); len(events) > 0 {
		if err := sw.writeOrderEvents(value, events, token.lastEvent); err != nil {
			return err
		}
	}
	sw.putRecord(key, value, token)
	sw.reschedule(string(key), token.due, keyspace.DueOf(order.Due()))
	if token.revision == 0 {
		if !licensing.SlotOf(order.Owner).In(order.OrderNo) {
			return errOtherSlot
		}
		sw.create([]byte(keyspace.OrderOwnerKey(order.OrderNo)), layout.EncodeOwner(order.Owner))
		sw.listAbove(string(key))
	}
	sw.relist(token.listed, keyspace.BuyerListingKey(order))
	return sw.putIssued(&write.Record, writers)
}

// putIssued puts the licenses that a change of another record issues.
func (sw *swap) putIssued(record *licensing.Record, writers []layout.Writer) error {
	for _, l := range record.Issued {
		sw.compare([]byte(keyspace.LicenseKey(l.Key.ID())), 0)
		if err := sw.putNewLicense(l, record.IssuedDevices, eventsOfIssued(record, l), writers[:1]); err != nil {
			return err
		}
	}
	return nil
}

func (sw *swap) putNewLicense(
	l *licensing.License, devices licensing.Devices, events []licensing.Event, writers []layout.Writer,
) error {
	id := l.Key.ID()
	if id.Slot() != licensing.SlotOf(l.Owner) {
		return errOtherSlot
	}
	fresh := layout.License{License: *l, Writers: writers,
		Devices: layout.MergeInline(nil, changedEntries(devices), l.CreatedAt)}
	sw.brokenRule = cmp.Or(sw.brokenRule, fresh.BrokenRule())
	key := keyspace.LicenseKey(id)
	value := fresh.Encode()
	sw.create([]byte(key), value)
	if len(events) > 0 {
		sw.writeLicenseEvents(value, events, keyspace.Location{})
	}
	sw.reschedule(key, 0, keyspace.DueOf(l.Due()))
	sw.list(keyspace.ListingKey(l.Owner, l.CreatedAt, id))
	return nil
}

// errOtherSlot refuses a record that no request would find: an id leads to its record by the slot alone, once slots are
// in several cells.
var errOtherSlot = errors.New("the id of a new record does not contain the slot of its owner")

// putMetadata writes a license's metadata if the metadata has changed, and moves the license in the listings of its
// customer. The license's revision guards the metadata, so the swap also writes the license.
func (sw *swap) putMetadata(l *licensing.License, m *licensing.Metadata, token *stored) {
	if m == nil || !m.Changed {
		return
	}
	key := []byte(keyspace.MetadataKey(l.Key.ID()))
	switch value := layout.EncodeMetadata(*m, token.newer); {
	case token.metadata == 0 && value != nil:
		sw.create(key, value)
	case value != nil:
		sw.replace(key, value, token.metadata)
	case token.metadata > 0:
		sw.remove(key, token.metadata)
	default:
		sw.drop(key)
	}
	from := keyspace.CustomerKeys(l, token.customer)
	for i, to := range keyspace.CustomerKeys(l, m.Customer) {
		sw.relist(from[i], to)
	}
}

// putAliases creates the new aliases of a license.
func (sw *swap) putAliases(record *licensing.Record) {
	for _, name := range record.NewAliases {
		key := []byte(keyspace.AliasKey(name))
		sw.compare(key, 0)
		sw.create(key, layout.EncodeAlias(licensing.Alias{
			License: record.License.Key.ID(), Owner: record.License.Owner,
		}))
	}
}

// removes reports whether a write removes its record.
func removes(write *store.Write) bool {
	switch write.Ref.Kind {
	case licensing.KindProduct:
		return write.Record.Product == nil
	case licensing.KindTrial:
		return write.Record.Trial == nil
	}
	return write.Record.Removed
}

// list puts an entry into its listing.
func (sw *swap) list(entry string) {
	sw.create([]byte(entry), nil)
	sw.listAbove(entry)
}

// listAbove puts an entry whose own key contains a record into the upper levels.
func (sw *swap) listAbove(entry string) {
	for _, key := range keyspace.SkipKeys(entry) {
		sw.create([]byte(key), nil)
	}
}

// relist removes an entry from its listing and puts another entry. Either may be empty: no entry.
func (sw *swap) relist(from, to string) {
	if from == to {
		return
	}
	if from != "" {
		sw.remove([]byte(from), 0)
		for _, key := range keyspace.SkipKeys(from) {
			sw.remove([]byte(key), 0)
		}
	}
	if to != "" {
		sw.list(to)
	}
}

// reschedule moves a record's entry in the index of due work from its stored time to its new time. Most changes move
// nothing.
func (sw *swap) reschedule(record string, from, to keyspace.Due) {
	if from == to {
		return
	}
	if from != 0 {
		sw.remove([]byte(from.Key(record)), 0)
	}
	if to != 0 {
		sw.create([]byte(to.Key(record)), nil)
	}
}
