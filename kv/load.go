package kv

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// stored is the token of an existing record: the facts that a swap needs besides the record itself.
type stored struct {
	revision  int64              // of the record's key
	size      int                // of its value
	metadata  int                // of a license: the size of its metadata, if that was read
	customer  licensing.Customer // of a license: the customer that this metadata names
	newer     []byte             // of that metadata: fields that only a newer format knows
	writers   []layout.Writer
	unknown   []byte            // fields that only a newer format knows
	lastEvent keyspace.Location // of the latest event
	listens   bool              // of a license: its owner listened, as far as was known
	due       keyspace.Due      // of a license, an order or a product: what was due, and so its place in the index
	// Of an order or a product: its key in a listing that may change, see
	// keyspace.BuyerListingKey and keyspace.CatalogKey. Of a claim: its place by age.
	listed string
	sale   layout.Entry // of a payment: its entry among the sales of its owner
	// Of an owner's endpoints of webhooks: as they were read, and the revision of the
	// owner's request to listen; 0: there is none.
	webhooks    *layout.Webhooks
	request     int64
	sealedUnder string // of an owner's receipt keys: the master key that seals the root secret
	// Of an owner's usage: the revision of keyspace.RecountKey; 0: there is no such key.
	recountAt int64
	// Of a license:
	inline   []layout.InlineDevice // the devices in its record, in the order they were bound
	spilled  bool                  // the devices have keys of their own
	complete bool                  // all devices are known, so an absent device is certainly not bound
	slot     *slot                 // where it is remembered
	// Devices that were assumed absent without a read: a swap must compare that they are absent.
	assumed map[string]struct{}
	// The devices with keys of their own, as far as they were read or are cached.
	entries  map[string]knownDevice
	searched bool // entries has the lapsed leases that a search has found
}

// Version returns the revision of the record's key, and the record's writers.
func (t *stored) Version() (revision int64, writers []layout.Writer) { return t.revision, t.writers }

// query is a want, and the reads of etcd that it takes.
type query struct {
	store.Want
	// Devices: also read the devices' own keys. Most licenses have no such keys, so the query reads them only if the
	// license is known to have them.
	devices bool
}

// metadata reports whether the query also reads the key of the license's metadata.
func (q *query) metadata() bool { return q.Metadata && q.Ref.Kind == licensing.KindLicense }

// incomplete reports whether the license has devices with keys of their own that the query did not read.
func (q *query) incomplete(s store.Snapshot) bool {
	token, exists := s.Token.(*stored)
	return exists && token.spilled && !q.devices && len(q.Devices) > 0
}

// Load reads records in one transaction, which is linearizable because its Gets are. Reads of other callers may share
// the transaction.
func (s *Store) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	queries := make([]query, len(wants))
	for i, want := range wants {
		queries[i] = query{Want: want, devices: s.memory.spilled(want.Ref)}
	}
	snapshots, err := s.load(ctx, queries)
	again := false
	for i := range snapshots {
		if queries[i].incomplete(snapshots[i]) {
			queries[i].devices, again = true, true
		}
	}
	if again && err == nil {
		return s.load(ctx, queries)
	}
	return snapshots, err
}

func (s *Store) load(ctx context.Context, queries []query) ([]store.Snapshot, error) {
	var reads [][]byte
	for i := range queries {
		reads = appendKeys(reads, &queries[i], []byte(keyspace.RecordKey(queries[i].Ref)))
	}
	r := s.read(ctx, "load", &batchItem{reads: reads})
	if r.err != nil {
		return nil, etcd.Unavailable(r.err)
	}
	snapshots, err := s.readSnapshots(queries, r.responses, false)
	if err != nil {
		return nil, layout.Internal(err)
	}
	s.checkSnapshots(snapshots)
	if err := s.awaitMoves(ctx, snapshots); err != nil {
		return nil, etcd.Unavailable(err)
	}
	for i := range queries {
		if err := s.findLapsed(ctx, &queries[i], &snapshots[i], r.revision); err != nil {
			return nil, err
		}
	}
	return snapshots, nil
}

// Confirm reports whether a record is still as Recall returned it. Confirm reads only the revision of the record's
// key, and checks that devices assumed absent are absent.
func (s *Store) Confirm(ctx context.Context, ref licensing.Ref, token store.Token) (bool, error) {
	known, ok := token.(*stored)
	if !ok {
		return false, nil
	}
	check := &batchItem{
		compares: make([]*etcdserverpb.Compare, 0, 1+len(known.assumed)),
		reads:    make([][]byte, 0, 1+len(known.assumed)),
	}
	demand := func(key string, revision int64) {
		k := []byte(key)
		check.compares, check.reads = append(check.compares, etcd.Unchanged(k, revision)), append(check.reads, k)
	}
	demand(keyspace.RecordKey(ref), known.revision)
	for device := range known.assumed {
		demand(keyspace.DeviceKey(ref.LicenseID(), device), 0)
	}
	r := s.read(ctx, "check", check)
	if r.err != nil {
		return false, etcd.Unavailable(r.err)
	}
	return r.succeeded, nil
}

// read sends reads or a check with a request that other callers may share.
func (s *requests) read(ctx context.Context, operation string, p *batchItem) reply {
	if err := s.slots.checkHere(p.reads...); err != nil {
		return reply{err: err}
	}
	p.span = s.etcd.StartSpan(ctx, operation)
	r, _ := s.reads.do(ctx, p)
	etcd.NoteReads(ctx, r.responses)
	etcd.EndSpan(p.span, r.err)
	return r
}

// appendKeys adds what is to be read for one want: its record, whose key is
// given, its metadata and its devices, its owner's request to listen, or the mark of
// the latest recount of usage.
func appendKeys(keys [][]byte, q *query, record []byte) [][]byte {
	keys = append(keys, record)
	if q.metadata() {
		keys = append(keys, []byte(keyspace.MetadataKey(q.Ref.LicenseID())))
	}
	switch q.Ref.Kind {
	case licensing.KindWebhooks:
		keys = append(keys, []byte(keyspace.ListenRequestKey(q.Ref.Owner)))
	case licensing.KindUsage:
		keys = append(keys, []byte(keyspace.RecountKey))
	}
	if q.devices && q.Ref.Kind == licensing.KindLicense {
		id := q.Ref.LicenseID()
		for _, device := range q.Devices {
			keys = append(keys, []byte(keyspace.DeviceKey(id, device)))
		}
	}
	return keys
}

// readSnapshots reads the answers to the gets of queries, in their order, and remembers the licenses among them.
// corrects means that a swap lost to these values.
func (s *Store) readSnapshots(
	queries []query, responses []*etcdserverpb.ResponseOp, corrects bool,
) ([]store.Snapshot, error) {
	snapshots := make([]store.Snapshot, len(queries))
	next := func() *mvccpb.KeyValue {
		kvs := responses[0].GetResponseRange().Kvs
		responses = responses[1:]
		if len(kvs) == 0 {
			return nil
		}
		return kvs[0]
	}
	for i := range queries {
		q := &queries[i]
		record := next()
		var metadata *mvccpb.KeyValue
		if q.metadata() {
			metadata = next()
		}
		var request, recount *mvccpb.KeyValue
		switch q.Ref.Kind {
		case licensing.KindWebhooks:
			request = next()
		case licensing.KindUsage:
			recount = next()
			// A swap of usage compares the mark also where there is no record yet.
			snapshots[i] = store.Snapshot{Token: &stored{}}
		}
		var entries []*mvccpb.KeyValue
		if q.devices && q.Ref.Kind == licensing.KindLicense {
			entries = make([]*mvccpb.KeyValue, len(q.Devices))
			for j := range entries {
				entries[j] = next()
			}
		}
		if record != nil {
			var err error
			snapshots[i], err = readSnapshot(q.Want, record, entries)
			if q.Ref.Kind == licensing.KindUsage && s.unreadableUsage(q.Ref.Owner, err) {
				snapshots[i] = store.Snapshot{Token: &stored{revision: record.ModRevision, size: len(record.Value)}}
			} else if err != nil {
				return nil, fmt.Errorf("record of kind %d at revision %d: %w", q.Ref.Kind, record.ModRevision, err)
			}
		}
		if q.Ref.Kind == licensing.KindTrial {
			s.noteTrial(q.Ref.Owner, &snapshots[i])
		}
		if recount != nil {
			snapshots[i].Token.(*stored).recountAt = recount.ModRevision
			snapshots[i].Record.RecountAt = recount.ModRevision
		}
		if record == nil {
			continue
		}
		if request != nil {
			snapshots[i].Token.(*stored).request = request.ModRevision
		}
		if q.metadata() {
			read, newer, err := metadataOf(metadata)
			if err != nil {
				return nil, fmt.Errorf("metadata of a license at revision %d: %w", record.ModRevision, err)
			}
			snapshots[i].Record.Metadata = &read
			token := snapshots[i].Token.(*stored)
			token.metadata, token.newer, token.customer = len(metadata.GetValue()), newer, read.Customer
		}
		if q.Ref.Kind == licensing.KindLicense {
			s.sayWhoListens(&snapshots[i])
			s.remember(q, record, &snapshots[i], corrects)
		}
	}
	return snapshots, nil
}

// metadataOf decodes a license's metadata; kv is nil if there is none.
func metadataOf(kv *mvccpb.KeyValue) (m licensing.Metadata, newer []byte, err error) {
	if kv == nil {
		return m, nil, nil
	}
	return layout.DecodeMetadata(kv.Value)
}

func readSnapshot(want store.Want, record *mvccpb.KeyValue, entries []*mvccpb.KeyValue) (store.Snapshot, error) {
	token := &stored{revision: record.ModRevision, size: len(record.Value)}
	snapshot := store.Snapshot{Token: token}
	var err error
	switch want.Ref.Kind {
	case licensing.KindOrder:
		var order *layout.Order
		order, err = layout.DecodeOrder(want.Ref, record.Value)
		token.writers, token.unknown, token.due = order.Writers, order.Unknown, keyspace.DueOf(order.Order.Due())
		token.lastEvent = order.LastEvent
		token.listed = keyspace.BuyerListingKey(&order.Order)
		snapshot.Record.Order = &order.Order
	case licensing.KindProduct:
		var product *layout.Product
		product, err = layout.DecodeProduct(want.Ref, record.Value)
		token.writers, token.unknown = product.Writers, product.Unknown
		token.due = keyspace.DueOf(product.Product.Due())
		token.listed = keyspace.CatalogKey(want.Ref, &product.Product)
		snapshot.Record.Product = &product.Product
	case licensing.KindWebhooks:
		var webhooks *layout.Webhooks
		webhooks, err = layout.DecodeWebhooks(want.Ref.Owner, record.Value)
		token.writers, token.lastEvent, token.webhooks = webhooks.Writers, webhooks.LastEvent, webhooks
		snapshot.Record.Webhooks = webhooks.Webhooks.Clone()
	case licensing.KindUsage:
		var usage *layout.Usage
		usage, err = layout.DecodeUsage(want.Ref.Owner, record.Value)
		token.writers, token.unknown, token.lastEvent = usage.Writers, usage.Unknown, usage.LastEvent
		snapshot.Record.Usage = &usage.Usage
	case licensing.KindAlias:
		var alias licensing.Alias
		alias, err = layout.DecodeAlias(record.Value)
		snapshot.Record.Alias = &alias
	case licensing.KindTerms:
		var terms licensing.VersionedTerms
		terms, err = layout.DecodeTerms(record.Value)
		snapshot.Record.Terms = &terms
	case licensing.KindTrial:
		var trial *layout.Trial
		trial, err = layout.DecodeTrial(record.Value)
		token.writers, snapshot.Record.Trial = trial.Writers, &trial.Trial
	case licensing.KindPayment:
		var payment *layout.Payment
		payment, err = layout.DecodePayment(record.Value)
		token.writers, token.unknown, snapshot.Record.Payment = payment.Writers, payment.Unknown, &payment.Payment
		token.sale = layout.SaleEntry(want.Ref, &payment.Payment)
	case licensing.KindSandbox:
		var played *layout.Sandbox
		played, err = layout.DecodeSandbox(record.Value)
		token.writers, token.unknown, snapshot.Record.Sandbox = played.Writers, played.Unknown, &played.Sandbox
	case licensing.KindSettings:
		var settings *layout.Settings
		settings, err = layout.DecodeSettings(want.Ref.Owner, record.Value)
		token.writers, token.unknown = settings.Writers, settings.Unknown
		snapshot.Record.Settings = &settings.Settings
	case licensing.KindReceiptKeys:
		var keys *layout.ReceiptKeys
		keys, err = layout.DecodeReceiptKeys(want.Ref.Owner, record.Value)
		token.writers, token.unknown, token.sealedUnder = keys.Writers, keys.Unknown, keys.ReceiptKeys.Root.MasterID
		snapshot.Record.ReceiptKeys = &keys.ReceiptKeys
	case licensing.KindClaim:
		snapshot.Record.Claim, token.writers, err = layout.DecodeClaim(record.Value)
		token.listed = keyspace.ClaimAgeKey(snapshot.Record.Claim.CreatedAt, want.Ref.Owner, want.Ref.ID)
	case licensing.KindLicense:
		var license *layout.License
		license, err = layout.DecodeLicense(want.Ref.LicenseID(), record.Value)
		if err != nil {
			break
		}
		token.writers, token.unknown = license.Writers, license.Unknown
		token.due = keyspace.DueOf(license.License.Due())
		snapshot.Writer = layout.LastWriter(license.Writers)
		token.inline, token.spilled, token.lastEvent = license.Devices, license.Spilled, license.LastEvent
		snapshot.Record.License = &license.License
		snapshot.Record.Devices, err = deviceEntries(want.Devices, license, entries)
		snapshot.Record.Leases = knownLeases(license)
		token.entries = knownEntries(want.Devices, entries, snapshot.Record.Devices)
	}
	return snapshot, err
}

// deviceEntries returns for each wanted device whether the device is bound: by the device's own key if the license's
// devices have keys, and otherwise by the license's record.
func deviceEntries(wanted []string, license *layout.License, own []*mvccpb.KeyValue) (licensing.Devices, error) {
	devices := make(licensing.Devices, len(wanted))
	for i, id := range wanted {
		entry := &licensing.DeviceEntry{Device: licensing.Device{ID: id}}
		if license.Spilled && own != nil && own[i] != nil {
			device, err := layout.DecodeDeviceOf(id, own[i].Value)
			if err != nil {
				return nil, err
			}
			entry.Device, entry.Bound = device, true
		}
		devices[id] = entry
	}
	switch {
	case len(license.Devices) == 0:
		return devices, nil
	case license.License.NeedsDevices():
		return devices, addInline(devices, license)
	}
	var buffer [80]byte
	for id, entry := range devices {
		front := layout.InlineID(buffer[:0], id)
		for _, device := range license.Devices {
			if !device.Is(id, front) {
				continue
			}
			var err error
			if entry.Device, err = device.Decode(license.License.CreatedAt); err != nil {
				return nil, err
			}
			entry.Bound = true
			break
		}
	}
	return devices, nil
}

// knownEntries returns the devices that have keys of their own, as these keys have them.
func knownEntries(wanted []string, own []*mvccpb.KeyValue, devices licensing.Devices) map[string]knownDevice {
	var known map[string]knownDevice
	for i, kv := range own {
		if kv == nil || devices[wanted[i]] == nil {
			continue
		}
		if known == nil {
			known = make(map[string]knownDevice, len(own))
		}
		known[wanted[i]] = knownDevice{kv.Value, kv.ModRevision}
	}
	return known
}
