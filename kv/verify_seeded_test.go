package kv

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// seed is raw keys to write into a healthy store; nil deletes one.
type seed map[string][]byte

// plant writes a seed, and returns the function that restores the store.
func (l *lab) plant(s seed) (undo func()) {
	l.t.Helper()
	before := seed{}
	s.register()
	for key := range s {
		before[key] = nil
		if kvs := kvtest.Must(l.client.Get(l.ctx(), key))(l.t).Kvs; len(kvs) > 0 {
			before[key] = append([]byte{}, kvs[0].Value...)
		}
	}
	l.write(s)
	return func() { l.write(before) }
}

// register adds the keys of the slots of the written keys.
func (s seed) register() {
	for key, value := range s {
		if slot, _, ok := keyspace.CutSlot(key); ok && value != nil {
			s[keyspace.SlotKey(slot)] = []byte{}
		}
	}
}

func (l *lab) write(s seed) {
	l.t.Helper()
	s.register()
	var ops []clientv3.Op
	for key, value := range s {
		if value == nil {
			ops = append(ops, clientv3.OpDelete(key))
		} else {
			ops = append(ops, clientv3.OpPut(key, string(value)))
		}
	}
	kvtest.Must(l.client.Txn(l.ctx()).Then(ops...).Commit())(l.t)
}

// license returns a seed that changes a license's record.
func (l *lab) license(key licensing.LicenseKey, change func(*layout.License)) seed {
	l.t.Helper()
	record := kvtest.Must(layout.DecodeLicense(key.ID(), l.value(keyspace.LicenseKey(key.ID()))))(l.t)
	owner := record.License.Owner
	change(record)
	changed := seed{keyspace.LicenseKey(key.ID()): record.Encode()}
	if owner == record.License.Owner {
		license := record.License
		l.rewriteEvent(changed, keyspace.EventsKeyOf(owner, record.LastEvent, keyspace.LicenseInEvents(key.ID()),
			license.Sequence), func(e *licensing.Event) { e.License = &license })
	}
	return changed
}

// rewriteEvent makes the latest event of a record agree with a seed, so that the event is no second contradiction.
func (l *lab) rewriteEvent(s seed, key string, change func(*licensing.Event)) {
	l.t.Helper()
	found := kvtest.Must(l.client.Get(l.ctx(), key))(l.t).Kvs
	if len(found) == 0 {
		return
	}
	for key, value := range l.events(key, func(e *layout.Events) { change(&e.Events[len(e.Events)-1]) }) {
		s[key] = value
	}
}

// events returns a seed that changes events.
func (l *lab) events(key string, change func(*layout.Events)) seed {
	l.t.Helper()
	at, _ := keyspace.ReadEventsKey([]byte(key[len(keyspace.EventsOf(labOwner)):]))
	stored := kvtest.Must(layout.DecodeEvents(labOwner, at.Record, at.Last, l.value(key)))(l.t)
	change(stored)
	return seed{key: layout.EncodeEvents(stored.Events, stored.Before)}
}

// orderSeed returns a seed that changes an order's record.
func (l *lab) orderSeed(o licensing.Order, change func(*licensing.Order)) seed {
	l.t.Helper()
	key := keyspace.OrderKey(o.Owner, o.OrderNo)
	record := kvtest.Must(layout.DecodeOrder(licensing.OrderRef(o.Owner, o.OrderNo), l.value(key)))(l.t)
	change(&record.Order)
	order := record.Order
	changed := seed{key: record.Encode()}
	l.rewriteEvent(changed, keyspace.EventsKeyOf(o.Owner, record.LastEvent, keyspace.OrderInEvents(o.OrderNo),
		order.Sequence), func(e *licensing.Event) { e.Order = &order })
	return changed
}

// productValue returns a product's value after a change.
func (l *lab) productValue(id string, change func(*layout.Product)) []byte {
	l.t.Helper()
	record := kvtest.Must(layout.DecodeProduct(licensing.ProductRef(labOwner, id),
		l.value(keyspace.ProductKey(labOwner, id))))(l.t)
	change(record)
	return record.Encode()
}

// hooks returns a seed that changes an owner's endpoints.
func (l *lab) hooks(owner licensing.Owner, change func(*layout.Webhooks)) seed {
	l.t.Helper()
	record := kvtest.Must(layout.DecodeWebhooks(owner, l.value(keyspace.WebhooksKey(owner))))(l.t)
	change(record)
	return seed{keyspace.WebhooksKey(owner): record.Encode()}
}

// both returns two seeds in one.
func both(a, b seed) seed {
	maps.Copy(a, b)
	return a
}

// claim returns a seed that changes a claim.
func (l *lab) claim(key string, change func(*licensing.Claim)) seed {
	l.t.Helper()
	claim, writers, err := layout.DecodeClaim(l.value(key))
	if err != nil {
		l.t.Fatal(err)
	}
	change(claim)
	return seed{key: layout.EncodeClaim(claim, writers)}
}

// labClaims has the keys of the claims of the free order, of the fresh license and of the change of the license own.
// It also contains their names in violations, and the name of the claim of an API key.
type labClaims struct{ orderKey, order, orderAgeKey, orderAge, freshKey, fresh, ownKey, own, key string }

func (l *lab) claims(s specimens) (c labClaims) {
	l.t.Helper()
	for _, kv := range kvtest.Must(l.client.Get(l.ctx(), inLab("y/"), clientv3.WithPrefix()))(l.t).Kvs {
		claim, _, err := layout.DecodeClaim(kv.Value)
		if err != nil {
			l.t.Fatal(err)
		}
		path, hash := keyspace.OwnerPath(labOwner), strings.TrimPrefix(string(kv.Key), keyspace.OfOwner(labOwner, "y/"))
		name := fmt.Sprintf("%s%x", path, hash)
		switch {
		case claim.OrderNo == s.free.OrderNo:
			c.orderKey, c.order = string(kv.Key), "y/"+name
			c.orderAgeKey = keyspace.ClaimAgeKey(claim.CreatedAt, labOwner, hash)
			c.orderAge = "z/" + claim.CreatedAt.Format(time.RFC3339Nano) + "/" + name
		case claim.LicenseKey == s.own:
			c.ownKey, c.own = string(kv.Key), "y/"+name
		case claim.Grant != nil && l.keys.GrantKey(claim.Grant, labOwner, 0) == s.fresh:
			c.freshKey, c.fresh = string(kv.Key), "y/"+name
		case claim.APIKeyID != "":
			c.key = "y/" + name
		}
	}
	if c.orderKey == "" || c.freshKey == "" || c.ownKey == "" {
		l.t.Fatalf("not all claims are there: %+v", c)
	}
	return c
}

// tallLicense returns the entry in the listing of a license that does not exist. The entry is also on an upper level.
func tallLicense() string {
	var id licensing.LicenseID
	for {
		if entry := keyspace.ListingKey(labOwner, kvtest.Time, id); keyspace.SkipHeight(entry) > 0 {
			return entry
		}
		binary.BigEndian.PutUint32(id[:], binary.BigEndian.Uint32(id[:])+1)
	}
}

func bytesOf(text string) []byte { return []byte(text) }

// TestVerifyFindsEachSeededCorruption plants one corruption after the other in a healthy store: verify finds and names
// exactly that corruption. At the usual depth it plants each seventh corruption.
func TestVerifyFindsEachSeededCorruption(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l, s, skips := filledLab(t)
	paidLicense := s.paid.LicenseKey
	created := func(key licensing.LicenseKey) time.Time {
		return kvtest.Must(layout.DecodeLicense(key.ID(), l.value(keyspace.LicenseKey(key.ID()))))(t).License.CreatedAt
	}
	stranger := licensing.Owner{AccountID: "acct_stranger", Mode: licensing.Live}
	lowest, highest := [licensing.LicenseBlockSize]byte{15: 1}, [licensing.LicenseBlockSize]byte{}
	for i := range highest {
		highest[i] = 0xff
	}
	labSlot := licensing.SlotOf(labOwner)
	first, last := licensing.NewLicenseID(labSlot, lowest), licensing.NewLicenseID(labSlot, highest)
	var none licensing.LicenseKey
	block := keyspace.BlockOf(l.keys.Mint("LIC", labOwner, [keyring.LicenseKeyEntropy]byte{2}).ID())
	device := func(id string) []byte {
		return layout.EncodeDevice(&licensing.Device{ID: id, BoundAt: kvtest.Time, LastSeenAt: kvtest.Time})
	}
	inlineDevices := func(record *layout.License, ids ...string) (devices []layout.InlineDevice) {
		for _, id := range ids {
			devices = append(devices, layout.NewInlineDevice(&licensing.Device{ID: id, BoundAt: kvtest.Time,
				LastSeenAt: kvtest.Time}, record.License.CreatedAt))
		}
		return devices
	}
	forged := kvtest.Keys.Mint("LIC", labOwner,
		[keyring.LicenseKeyEntropy]byte{1})
	forgedLicense := layout.License{License: *licensing.DefaultTerms().Issue(forged, labOwner, "pro", "", kvtest.Time)}
	moved := l.keys.Mint("LIC", stranger, [keyring.LicenseKeyEntropy]byte{1})
	movedLicense := layout.License{License: *licensing.DefaultTerms().Issue(moved, labOwner, "pro", "", kvtest.Time)}
	movedOrder := licensing.NewOrderNo(stranger, kvtest.ULID)
	movedName := "o/" + keyspace.OwnerPath(labOwner) + movedOrder
	apiKey := kvtest.Must(l.client.Get(l.ctx(), inLab("k/"), clientv3.WithPrefix()))(t).Kvs[0]

	apiKeyHash := strings.TrimPrefix(string(apiKey.Key), inLab("k/"))
	strangeHash := [32]byte([]byte(apiKeyHash)) // of no API key
	strangeHash[31]++

	elsewhere := func(path string) string { return keyspace.InSlot(licensing.Slots-1, path) }

	keyIndex := "a/" + keyspace.OwnerPath(labOwner) + "key_0elab"

	claims := l.claims(s)
	pro := licensing.ProductRef(labOwner, "pro")
	product := &kvtest.Must(layout.DecodeProduct(pro, l.value(keyspace.ProductKey(labOwner, "pro"))))(t).Product
	later := product.CreatedAt.Add(time.Hour)
	tall := tallLicense()
	trial, trialEnd := keyspace.TrialKey(s.trial.TrialRef()), keyspace.DueOf(licensing.Due{Kind: licensing.DueTrial,
		At: s.trial.CreatedAt})
	trialName := "tr/" + keyspace.OwnerPath(labOwner) + verify.Opaque(string(s.trial.Trial[:]))
	paymentName := keyspace.PaymentsFamily + keyspace.OwnerPath(labOwner) + verify.Opaque(licensing.PaymentRef(labOwner,
		licensing.ProviderOutside, labPayment).ID)
	paymentSeed := func(change func(*licensing.Payment)) seed {
		record := kvtest.Must(layout.DecodePayment(l.value(labPaymentKey())))(t)
		change(&record.Payment)
		return seed{labPaymentKey(): record.Encode()}
	}
	refund := licensing.RefundRef(labOwner, s.refunded.OrderNo)
	refundRecord := kvtest.Must(layout.DecodePayment(l.value(keyspace.PaymentKey(refund))))(t).Payment
	refundSeed := func(change func(*licensing.Payment)) seed {
		record := kvtest.Must(layout.DecodePayment(l.value(keyspace.PaymentKey(refund))))(t)
		change(&record.Payment)
		return seed{keyspace.PaymentKey(refund): record.Encode()}
	}
	dispute := func(of licensing.Order, id string) licensing.Ref {
		return licensing.PaymentRef(labOwner, of.PaidThrough(), id)
	}
	openDispute, lostDispute := dispute(s.disputed, "du_open"), dispute(s.lost, "du_lost")
	disputeSeed := func(ref licensing.Ref) func(func(*licensing.Payment)) seed {
		return func(change func(*licensing.Payment)) seed {
			record := kvtest.Must(layout.DecodePayment(l.value(keyspace.PaymentKey(ref))))(t)
			change(&record.Payment)
			return seed{keyspace.PaymentKey(ref): record.Encode()}
		}
	}
	openSeed, lostSeed := disputeSeed(openDispute), disputeSeed(lostDispute)
	lostAt := kvtest.Must(layout.DecodePayment(l.value(keyspace.PaymentKey(lostDispute))))(t).Payment.PaidAt
	payments := keyspace.PaymentsFamily + keyspace.OwnerPath(labOwner)
	openName, lostName := payments+verify.Opaque(openDispute.ID), payments+verify.Opaque(lostDispute.ID)
	refundName := keyspace.PaymentsFamily + keyspace.OwnerPath(labOwner) + verify.Opaque(refund.ID)
	refundPlaceName := keyspace.PaymentsOf(labOwner, s.refunded.OrderNo) + "/" + verify.Opaque(refund.ID)
	payment := licensing.PaymentRef(labOwner, licensing.ProviderOutside, labPayment)
	saleOf := func(ref licensing.Ref, change func(*licensing.Payment)) layout.Entry {
		record := kvtest.Must(layout.DecodePayment(l.value(labPaymentKey())))(t)
		change(&record.Payment)
		return layout.SaleEntry(ref, &record.Payment)
	}
	sale := saleOf(payment, func(*licensing.Payment) {})
	saleName := func(at time.Time, ref licensing.Ref) string {
		return "pt/" + keyspace.OwnerPath(labOwner) + at.Format(time.RFC3339Nano) + "/" + verify.Opaque(ref.ID)
	}
	laterSale := saleOf(payment, func(p *licensing.Payment) { p.PaidAt = later })
	noPayment := licensing.PaymentRef(labOwner, licensing.ProviderOutside, "INV-9")
	outsidePayment := kvtest.Must(layout.DecodePayment(l.value(labPaymentKey())))(t).Payment
	paymentPlace := keyspace.PaymentListingKey(payment, &outsidePayment)
	listed := outsidePayment
	listed.RecordedAt = listed.RecordedAt.Add(time.Millisecond)
	listedLater := keyspace.PaymentListingKey(payment, &listed)
	paymentPlaceName := keyspace.PaymentsOf(labOwner, s.outside.OrderNo) + "/" + verify.Opaque(payment.ID)
	sandboxName := func(o licensing.Order) string {
		ref := licensing.PaymentRef(labOwner, licensing.ProviderSandbox, o.Payment)
		return keyspace.PaymentsFamily + keyspace.OwnerPath(labOwner) + verify.Opaque(ref.ID)
	}
	sandboxKey := keyspace.SandboxKey(licensing.SandboxRef(labOwner, s.unpaid.OrderNo))
	sandboxOf := func(o licensing.Order) string {
		return "sb/" + keyspace.OwnerPath(labOwner) + verify.Opaque(o.OrderNo)
	}
	noOrder := licensing.SandboxRef(labOwner, licensing.NewOrderNo(labOwner, kvtest.ULID))
	played := func(o licensing.SandboxOrder) seed {
		record := kvtest.Must(layout.DecodeSandbox(l.value(sandboxKey)))(t)
		record.Sandbox = o
		return seed{sandboxKey: record.Encode()}
	}
	trialOf := func(key licensing.LicenseKey) []byte {
		return (&layout.Trial{Trial: licensing.Trial{License: key}}).Encode()
	}

	// The names in violations.
	lic := func(key licensing.LicenseKey) string { return "l/" + key.String() }
	meta := func(key licensing.LicenseKey) string { return "m/" + key.String() }
	alias, otherAlias := l.labAlias(), keyspace.AliasKey(l.keys.AliasOf(labOwner, "OLD-2"))
	aliasName := func(key string) string { return "n/" + verify.Opaque(strings.TrimPrefix(key, inLab("n/"))) }
	dev := func(id licensing.LicenseID, device string) string {
		at := keyspace.DevicePosition(device)
		return "d/" + id.String() + "/" + hex.EncodeToString(at[:])
	}
	list := func(owner licensing.Owner, at time.Time, id licensing.LicenseID) string {
		return "i/" + keyspace.OwnerPath(owner) + at.UTC().Format(time.RFC3339Nano) + "/" + id.String()
	}
	ord := func(o licensing.Order) string { return "o/" + keyspace.OwnerPath(o.Owner) + o.OrderNo }
	orderEnd := func(o licensing.Order, at time.Time) (key, name string) {
		end := keyspace.DueOf(licensing.Due{Kind: licensing.DueOrderEnd, At: at})
		return end.Key(keyspace.OrderKey(o.Owner, o.OrderNo)),
			"order_end %s x/o/" + at.Format(time.RFC3339Nano) + "/" + keyspace.OwnerPath(o.Owner) + o.OrderNo
	}
	unpaidEndKey, unpaidEnd := orderEnd(s.unpaid, s.unpaid.ExpiresAt)
	gone := func(name string) string { return fmt.Sprintf(name, "record_missing") }
	misplaced := func(name string) string { return fmt.Sprintf(name, "misplaced") }
	licenseEnd := func(key licensing.LicenseKey, at time.Time) string {
		return keyspace.DueOf(licensing.Due{Kind: licensing.DueLicenseEnd, At: at}).Key(keyspace.LicenseKey(key.ID()))
	}
	endingAt := "license_end %s x/l/" + labEnd.Format(time.RFC3339Nano) + "/" + s.ending.String()
	noticeKey := keyspace.DueOf(s.notice()).Key(keyspace.LicenseKey(s.lowered.ID()))
	noticeAt := "license_notice %s x/n/" + s.notice().At.Format(time.RFC3339Nano) + "/" + s.lowered.String()
	leasesDue := func(key licensing.LicenseKey) string {
		return keyspace.DueOf(licensing.Due{Kind: licensing.DueLeases, At: labLease.Add(licensing.LeaseGuard)}).
			Key(keyspace.LicenseKey(key.ID()))
	}
	leasesAt := "leases %s x/e/" + labLease.Add(licensing.LeaseGuard).Format(time.RFC3339Nano) + "/" +
		s.floating.String()
	refundKey := keyspace.DueOf(licensing.Due{Kind: licensing.DueRefund}).Key(keyspace.OrderKey(s.owed.Owner,
		s.owed.OrderNo))
	refundAt := "refund %s x/r/1970-01-01T00:00:00Z/" + keyspace.OwnerPath(s.owed.Owner) + s.owed.OrderNo
	manyKey := keyspace.OrderKey(s.many.Owner, s.many.OrderNo)
	issueKey := keyspace.DueOf(licensing.Due{Kind: licensing.DueIssue}).Key(manyKey)
	issueAt := "issue %s x/i/1970-01-01T00:00:00Z/" + keyspace.OwnerPath(s.many.Owner) + s.many.OrderNo
	ofMany := func(i int) licensing.LicenseKey { return l.keys.OrderKey(&s.many, i) }
	rolloutKey := func(at time.Time) string {
		due := keyspace.DueOf(licensing.Due{Kind: licensing.DueRollout, At: at})
		return due.Key(keyspace.ProductKey(labOwner, "pro"))
	}
	rolloutAt := "rollout %s x/g/" + labEnd.Format(time.RFC3339Nano) + "/acct_lab/t/pro"
	ptr := func(o licensing.Order) string { return "p/" + o.OrderNo }
	odd := func(text string) string { return verify.Opaque(text) }
	buyer := func(o licensing.Order) string {
		return fmt.Sprintf("b/%s%x/%s", keyspace.OwnerPath(o.Owner),
			keyspace.BuyerListingKey(&o)[len(keyspace.OfOwner(o.Owner, "b/")):][:keyspace.BuyerSize],
			o.OrderNo)
	}
	among := func(key string) string {
		rest := strings.TrimPrefix(key, inLab("g/acct_lab/t/"))
		customer, rest := rest[:keyspace.CustomerSize], rest[keyspace.CustomerSize:]
		id, _ := keyspace.LicenseIDOf(licensing.SlotOf(labOwner), rest[keyspace.TimeSize:])
		at := time.UnixMilli(int64(binary.BigEndian.Uint64([]byte(rest))))
		return fmt.Sprintf("g/acct_lab/t/%s%x/%s/%s", customer[:1], customer[1:], at.UTC().Format(time.RFC3339Nano), id)
	}
	ofSpilled := kvtest.Must(layout.DecodeLicense(s.spilled.ID(),
		l.value(keyspace.LicenseKey(s.spilled.ID()))))(t).License
	customers := keyspace.CustomerKeys(&ofSpilled, labCustomer)
	others := keyspace.CustomerKeys(&ofSpilled, licensing.Customer{BuyerEmail: "bob@example.com", Reference: "C-2"})
	skipName := func(key string) string {
		_, path, _ := keyspace.CutSlot(key)
		return path[:len("j/1")] + odd(path[len("j/1"):])
	}
	tooHigh := keyspace.SkipKey(2, keyspace.CatalogKey(pro, product))
	tallOrder := licensing.Order{Owner: labOwner, BuyerEmail: labBuyer,
		OrderNo: skips[1][len(inLab("j/1"+keyspace.OrdersOf(labOwner))):]}
	catalog := func(at time.Time) string {
		return "c/" + keyspace.OwnerPath(labOwner) + at.UTC().Format(time.RFC3339Nano) + "/pro"
	}

	own := kvtest.Must(layout.DecodeLicense(s.own.ID(), l.value(keyspace.LicenseKey(s.own.ID()))))(t)
	record := keyspace.LicenseInEvents(s.own.ID())
	ownEvents := func(last uint64) string { return keyspace.EventsKeyOf(labOwner, own.LastEvent, record, last) }
	event := func(last uint64) string { return "e/" + keyspace.EventID(labOwner, own.LastEvent, record, last) }
	paid := kvtest.Must(layout.DecodeOrder(licensing.OrderRef(labOwner, s.paid.OrderNo),
		l.value(keyspace.OrderKey(labOwner, s.paid.OrderNo))))(t)
	lastOf := func(o licensing.Order) string {
		r := kvtest.Must(layout.DecodeOrder(licensing.OrderRef(labOwner, o.OrderNo),
			l.value(keyspace.OrderKey(labOwner, o.OrderNo))))(t)
		return "e/" + keyspace.EventID(labOwner, r.LastEvent, keyspace.OrderInEvents(o.OrderNo), r.Order.Sequence)
	}
	lastOfLicense := func(key licensing.LicenseKey) string {
		r := kvtest.Must(layout.DecodeLicense(key.ID(), l.value(keyspace.LicenseKey(key.ID()))))(t)
		return "e/" + keyspace.EventID(labOwner, r.LastEvent, keyspace.LicenseInEvents(key.ID()), r.License.Sequence)
	}
	orderEvents := keyspace.EventsKeyOf(labOwner, paid.LastEvent, keyspace.OrderInEvents(s.paid.OrderNo),
		paid.Order.Sequence)

	revoked := licensing.RevocationOf(s.spilled.ID(), "device-7")
	signing := keyspace.ReceiptKeysFamily + keyspace.OwnerPath(labOwner)
	receiptKeys := func(change func(*licensing.ReceiptKeys)) seed {
		stored := kvtest.Must(layout.DecodeReceiptKeys(labOwner, l.value(keyspace.ReceiptKeysKey(labOwner))))(l.t)
		change(&stored.ReceiptKeys)
		return seed{keyspace.ReceiptKeysKey(labOwner): stored.Encode()}
	}
	hooks, listener := "w/"+keyspace.OwnerPath(labOwner), "w/"+keyspace.OwnerPath(labListener)
	lastEvent := kvtest.Must(layout.DecodeWebhooks(labOwner, l.value(keyspace.WebhooksKey(labOwner))))(t).LastEvent
	hookEvents := keyspace.EventsKeyOf(labOwner, lastEvent, keyspace.WebhooksInEvents(labOwner), 1)
	endpoint := func(owner licensing.Owner, change func(*licensing.Endpoint)) seed {
		return l.hooks(owner, func(r *layout.Webhooks) { change(&r.Webhooks.Endpoints[0]) })
	}

	for i, c := range []struct {
		name string
		seed seed
		want []string // family, rule and key
	}{
		{"a count that is too high", l.license(s.inline, func(r *layout.License) { r.License.CurrentDevices = 3 }),
			[]string{"license device_count " + lic(s.inline)}},
		{"a count that is too low, of spilled devices",
			l.license(s.spilled, func(r *layout.License) { r.License.CurrentDevices = 18 }),
			[]string{"license device_count " + lic(s.spilled)}},
		{"a spilled device that is gone", seed{keyspace.DeviceKey(s.spilled.ID(), "device-3"): nil},
			[]string{"license device_count " + lic(s.spilled)}},
		{"a spilled device that came back", seed{keyspace.DeviceKey(s.spilled.ID(), "device-7"): device("device-7")},
			[]string{"license device_count " + lic(s.spilled)}},
		{"more devices than allowed", l.license(s.inline, func(r *layout.License) { r.License.MaxDevices = 1 }),
			[]string{"license device_limit " + lic(s.inline)}},
		{"more devices than at the lowering",
			l.license(s.lowered, func(r *layout.License) { r.License.AllowedOver = 3 }),
			[]string{"license allowed_over " + lic(s.lowered), "license device_limit " + lic(s.lowered)}},
		{"an allowance within the limit", l.license(s.inline, func(r *layout.License) { r.License.AllowedOver = 9 }),
			[]string{"license allowed_over " + lic(s.inline)}},
		{"a negative count", l.license(s.fresh, func(r *layout.License) { r.License.CurrentDevices = -1 }),
			[]string{"license negative " + lic(s.fresh)}},
		{"too many devices inline", l.license(s.fresh, func(r *layout.License) {
			r.Devices, r.License.CurrentDevices, r.License.MaxDevices, r.License.ActivatedAt = inlineDevices(r,
				deviceIDs(17)...), 17, 0, kvtest.Time
		}), []string{"license inline_limit " + lic(s.fresh)}},
		{"a device twice inline", l.license(s.fresh, func(r *layout.License) {
			r.Devices, r.License.CurrentDevices, r.License.MaxDevices, r.License.ActivatedAt = inlineDevices(r, "a",
				"b", "a"), 3, 0, kvtest.Time
		}), []string{"license inline_twice " + lic(s.fresh)}},
		{"inline devices of a spilled license",
			l.license(s.spilled, func(r *layout.License) { r.Devices = inlineDevices(r, "a") }),
			[]string{"license spilled " + lic(s.spilled)}},
		{"a device key of an inline license", seed{keyspace.DeviceKey(s.inline.ID(), "x"): device("x")},
			[]string{"license spilled " + lic(s.inline)}},
		{"a device at another's place", seed{
			keyspace.DeviceKey(s.spilled.ID(), "device-3"): nil, keyspace.DeviceKey(s.spilled.ID(),
				"elsewhere"): device("device-3"),
		}, []string{"device position " + dev(s.spilled.ID(), "elsewhere")}},
		{"a device that can't be read", seed{keyspace.DeviceKey(s.spilled.ID(), "device-3"): bytesOf("\x01\x0a")},
			[]string{"device value " + dev(s.spilled.ID(), "device-3")}},
		{"devices of no license", seed{keyspace.DeviceKey(first, "x"): device("x"),
			keyspace.DeviceKey(last, "y"): device("y"), keyspace.DeviceKey(last, "z"): device("z")},
			[]string{"device orphan " + dev(first, "x"), "device orphan " + dev(last, "y"),
				"device orphan " + dev(last, "z")}},
		{"metadata of no license",
			seed{keyspace.MetadataKey(first): bytesOf(`{}`), keyspace.MetadataKey(last): bytesOf(`{}`)},
			[]string{"metadata orphan m/" + first.String(), "metadata orphan m/" + last.String()}},
		{"metadata that is no object",
			seed{keyspace.MetadataKey(s.inline.ID()): layout.EncodeMetadata(licensing.Metadata{Object: `[]`}, nil)},
			[]string{"metadata object " + meta(s.inline)}},
		{"metadata of no form", seed{keyspace.MetadataKey(s.inline.ID()): bytesOf(`{}`)},
			[]string{"metadata value " + meta(s.inline)}},
		{"a license that its buyer's listing lacks", seed{customers[0]: nil},
			[]string{"license customer_missing " + lic(s.spilled)}},
		{"a license that the listing of its reference lacks", seed{customers[1]: nil},
			[]string{"license customer_missing " + lic(s.spilled)}},
		{"a license among those of other customers", seed{others[0]: {}, others[1]: {}},
			[]string{"customer misplaced " + among(others[0]), "customer misplaced " + among(others[1])}},
		{"a license that forgot its customer",
			seed{keyspace.MetadataKey(s.spilled.ID()): layout.EncodeMetadata(licensing.Metadata{Object: `{}`}, nil)},
			[]string{"customer misplaced " + among(customers[0]), "customer misplaced " + among(customers[1])}},
		{"a license's place among a buyer's with a value", seed{customers[0]: bytesOf("x")},
			[]string{"customer value " + among(customers[0])}},
		{"an order's license that names a buyer", seed{
			keyspace.MetadataKey(paidLicense.ID()): layout.EncodeMetadata(
				licensing.Metadata{Customer: licensing.Customer{BuyerEmail: labBuyer}}, nil),
		}, []string{"license customer_buyer " + lic(paidLicense), "license customer_missing " + lic(paidLicense)}},
		{"an external key without its alias", seed{alias: nil}, []string{"license alias_missing " + lic(s.external)}},
		{"an alias of another license",
			seed{alias: layout.EncodeAlias(licensing.Alias{License: s.fresh.ID(), Owner: labOwner})},
			[]string{"license alias_other " + lic(s.external), "alias external_key_missing " + aliasName(alias)}},
		{"an alias of a license that does not exist",
			seed{otherAlias: layout.EncodeAlias(licensing.Alias{License: first, Owner: labOwner})},
			[]string{"alias license_missing " + aliasName(otherAlias),
				"alias external_key_missing " + aliasName(otherAlias)}},
		{"a license without its terms", l.license(s.fresh, func(r *layout.License) { r.License.Terms = 7 }),
			[]string{"license terms_missing " + lic(s.fresh)}},
		{"a license without its own entitlements",
			l.license(s.fresh, func(r *layout.License) { r.License.OwnEntitlements = 7 }),
			[]string{"license entitlements " + lic(s.fresh)}},
		{"entitlements that no license names", seed{keyspace.MetadataKey(s.external.ID()): layout.EncodeMetadata(
			licensing.Metadata{ExternalKey: l.keys.SealExternalKey(s.external.ID(), labExternal),
				Entitlements: `{"a":1}`}, nil)},
			[]string{"license entitlements " + lic(s.external)}},
		{"terms under another version", seed{keyspace.TermsKey(licensing.TermsRef(labOwner, 7)): layout.EncodeTerms(
			licensing.VersionedTerms{Entitlements: `{"a":1}`})},
			[]string{"terms version " + keyspace.TermsFamily + verify.Opaque(keyspace.OwnerPath(labOwner)+
				licensing.TermsRef(labOwner, 7).ID)}},
		{"a second alias of a license",
			seed{otherAlias: layout.EncodeAlias(licensing.Alias{License: s.external.ID(), Owner: labOwner})},
			[]string{"alias external_key_other " + aliasName(otherAlias)}},
		{"a new key without its alias", seed{inLab("n/" + s.reissued): nil},
			[]string{"license reissue_missing " + lic(s.external)}},
		{"a new key that leads to another license",
			seed{inLab("n/" + s.reissued): layout.EncodeAlias(licensing.Alias{License: s.fresh.ID(), Owner: labOwner})},
			[]string{"license reissue_other " + lic(s.external),
				"alias external_key_missing " + aliasName(inLab("n/"+s.reissued))}},
		{"a new key of another id key", l.license(s.external, func(r *layout.License) {
			r.License.Reissues = licensing.Reissues(strings.Repeat("?", 16)) + r.License.Reissues[16:]
		}), []string{"license reissues " + lic(s.external),
			"alias external_key_other " + aliasName(inLab("n/"+s.reissued))}},
		{"an alias of another owner",
			seed{alias: layout.EncodeAlias(licensing.Alias{License: s.external.ID(), Owner: stranger})},
			[]string{"alias slot " + aliasName(alias)}},
		{"an alias that can't be read", seed{alias: bytesOf("?")}, []string{"alias value " + aliasName(alias)}},
		{"an external key of another license", seed{keyspace.MetadataKey(s.external.ID()): layout.EncodeMetadata(
			licensing.Metadata{ExternalKey: l.keys.SealExternalKey(s.fresh.ID(), labExternal)}, nil)},
			[]string{"license external_key " + lic(s.external)}},
		{"a license that lost its external key", seed{keyspace.MetadataKey(s.external.ID()): nil},
			[]string{"alias external_key_missing " + aliasName(alias)}},
		{"settings that may still change", seed{keyspace.SettingsKey(labOwner): (&layout.Settings{}).Encode()},
			[]string{"alias keys_fixed " + aliasName(alias)}},
		{"settings that match other keys", seed{keyspace.SettingsKey(labOwner): (&layout.Settings{
			Settings: licensing.Settings{KeysFixed: true, ExternalKeys: licensing.MatchCompact}}).Encode()},
			[]string{"license alias_missing " + lic(s.external), "alias external_key_other " + aliasName(alias)}},
		{"settings of a newer build", seed{keyspace.SettingsKey(labOwner): (&layout.Settings{
			Settings: licensing.Settings{KeysFixed: true, ExternalKeys: "sound"}}).Encode()},
			[]string{"settings external_keys f/" + keyspace.OwnerPath(labOwner)}},
		{"settings that can't be read", seed{keyspace.SettingsKey(labOwner): bytesOf("?")},
			[]string{"settings value f/" + keyspace.OwnerPath(labOwner), "alias keys_fixed " + aliasName(alias)}},
		{"receipt keys under a master key that is gone", receiptKeys(func(k *licensing.ReceiptKeys) {
			k.Root.MasterID = "m8"
		}), []string{"receipt_keys master_missing " + signing}},
		{"receipt keys out of order", receiptKeys(func(k *licensing.ReceiptKeys) {
			k.Keys = append(k.Keys, licensing.ReceiptKey{Number: 1, CreatedAt: kvtest.Time})
		}), []string{"receipt_keys order " + signing}},
		{"too many receipt keys", receiptKeys(func(k *licensing.ReceiptKeys) {
			for i := range licensing.MaxReceiptKeys {
				k.Keys = append(k.Keys, licensing.ReceiptKey{Number: uint64(i) + 2, CreatedAt: kvtest.Time})
			}
		}), []string{"receipt_keys limit " + signing}},
		{"receipt keys that can't be read", seed{keyspace.ReceiptKeysKey(labOwner): bytesOf("?")},
			[]string{"receipt_keys value " + signing}},
		{"receipt keys of nobody", seed{inLab("rk/x"): {}}, []string{"receipt_keys key rk/" + odd("x")}},
		{"a revocation of no name", seed{keyspace.RevocationsOf(labOwner) + "x": bytesOf("?")},
			[]string{"revocation key rv/" + odd(keyspace.OwnerPath(labOwner)+"x")}},
		{"a revocation that can't be read", seed{keyspace.RevocationKey(labOwner, revoked): bytesOf("?")},
			[]string{"revocation value rv/" + keyspace.OwnerPath(labOwner) + odd(string(revoked[:]))}},
		{"a revocation of no revision", seed{keyspace.RevocationKey(labOwner, revoked): layout.EncodeRevocation(
			licensing.Revocation{Until: 3})},
			[]string{"revocation value rv/" + keyspace.OwnerPath(labOwner) + odd(string(revoked[:]))}},
		{"no mark of receipt keys", seed{keyspace.ReceiptKeysMark: nil},
			[]string{"receipt_keys mark_missing " + signing}},
		{"a mark of receipt keys with a value", seed{keyspace.ReceiptKeysMark: bytesOf("x")},
			[]string{"receipts_mark key cell/receipts" + odd("")}},
		{"a revision for receipts, and no day until which they are valid",
			l.license(s.inline, func(r *layout.License) { r.License.Revision = 3 }),
			[]string{"license receipts " + lic(s.inline)}},
		{"never activated", l.license(s.inline, func(r *layout.License) { r.License.ActivatedAt = time.Time{} }),
			[]string{"license activated_at " + lic(s.inline)}},
		{"a reason for no state", l.license(s.inline, func(r *layout.License) { r.License.StateReason = "fraud" }),
			[]string{"license state_reason " + lic(s.inline)}},
		{"more removals in a month than are allowed",
			l.license(s.own, func(r *layout.License) { r.License.Removals.Count = 2 }),
			[]string{"license removals " + lic(s.own)}},
		{"removals without a bound", l.license(s.inline, func(r *layout.License) { r.License.Removals.Count = 1 }),
			[]string{"license removals " + lic(s.inline)}},
		{"a writer twice", l.license(s.inline, func(r *layout.License) {
			r.Writers = []layout.Writer{{By: store.Incarnation{1}, Swap: 5}, {By: store.Incarnation{2}, Swap: 6},
				{By: store.Incarnation{1}, Swap: 4}}
		}), []string{"license writers " + lic(s.inline)}},
		{"nine writers", l.license(s.inline, func(r *layout.License) {
			r.Writers = nil
			for i := range byte(9) {
				r.Writers = append(r.Writers, layout.Writer{By: store.Incarnation{i}, Swap: 1})
			}
		}), []string{"license writers " + lic(s.inline)}},
		{"a writer that can't be read",
			l.license(s.inline, func(r *layout.License) { r.Unknown = []byte{15<<3 | 2, 1, 0} }),
			[]string{"license value " + lic(s.inline)}},
		{"a license that can't be read", seed{keyspace.LicenseKey(s.spilled.ID()): bytesOf("?")},
			[]string{"license value " + lic(s.spilled)}},
		{"a license of a newer format", seed{keyspace.LicenseKey(paidLicense.ID()): bytesOf("\x02")},
			[]string{"license value " + lic(paidLicense)}},
		{"a license that is gone", seed{keyspace.LicenseKey(s.inline.ID()): nil},
			[]string{"event unlinked e/", "listing license_missing " + list(labOwner, created(s.inline), s.inline.ID()),
				"metadata orphan " + meta(s.inline)}},
		{"an order's license that is gone", seed{keyspace.LicenseKey(paidLicense.ID()): nil},
			[]string{"event unlinked e/", "listing license_missing " +
				list(labOwner, created(paidLicense), paidLicense.ID()), "order license_missing " + ord(s.paid)}},
		{"a key with wrong check characters", seed{
			keyspace.LicenseKey(forged.ID()): forgedLicense.Encode(), keyspace.ListingKey(labOwner, kvtest.Time,
				forged.ID()): {},
		}, []string{"license id " + lic(forged)}},
		{"a license of another owner", l.license(s.inline, func(r *layout.License) { r.License.Owner = stranger }),
			[]string{"event unlinked e/", "license event_missing " + lic(s.inline), "license listing_missing " +
				lic(s.inline), "license slot " + lic(s.inline), "license terms_missing " + lic(s.inline),
				"listing misplaced " + list(labOwner, created(s.inline), s.inline.ID())}},
		{"a license of another slot", seed{
			keyspace.LicenseKey(moved.ID()): movedLicense.Encode(), keyspace.ListingKey(labOwner, kvtest.Time,
				moved.ID()): {},
		}, []string{"license slot " + lic(moved),
			"listing license_missing " + list(labOwner, kvtest.Time, moved.ID())}},
		{"an order of another slot", seed{keyspace.OrderKey(labOwner, movedOrder): l.value(keyspace.OrderKey(labOwner,
			s.canceled.OrderNo))},
			[]string{"order buyer_missing " + movedName, "order event_missing " + movedName,
				"order owner_missing " + movedName, "order slot " + movedName}},
		{"an account that is no key",
			l.license(s.inline, func(r *layout.License) { r.License.Owner.AccountID = "a/t/b" }),
			[]string{"event unlinked e/", "license event_missing " + lic(s.inline),
				"license listing_missing " + lic(s.inline), "license owner " + lic(s.inline),
				"license slot " + lic(s.inline), "license terms_missing " + lic(s.inline),
				"listing misplaced " + list(labOwner, created(s.inline), s.inline.ID())}},
		{"an order's license of another owner",
			l.license(paidLicense, func(r *layout.License) { r.License.Owner = stranger }),
			[]string{"event unlinked e/", "license event_missing " + lic(paidLicense),
				"license listing_missing " + lic(paidLicense), "license order_missing " + lic(paidLicense),
				"license slot " + lic(paidLicense), "license terms_missing " + lic(paidLicense),
				"listing misplaced " + list(labOwner, created(paidLicense), paidLicense.ID()),
				"order license_owner " + ord(s.paid)}},
		{"a license that is not listed", seed{keyspace.ListingKey(labOwner, created(s.fresh), s.fresh.ID()): nil},
			[]string{"license listing_missing " + lic(s.fresh)}},
		{"a license that is listed twice", seed{keyspace.ListingKey(labOwner, kvtest.Time, s.fresh.ID()): {}},
			[]string{"listing misplaced " + list(labOwner, kvtest.Time, s.fresh.ID())}},
		{"a listing with a value", seed{keyspace.ListingKey(labOwner, created(s.fresh), s.fresh.ID()): bytesOf("x")},
			[]string{"listing value " + list(labOwner, created(s.fresh), s.fresh.ID())}},

		{"two licenses of one order",
			l.license(s.fresh, func(r *layout.License) { r.License.OrderNo = s.paid.OrderNo }),
			[]string{"license order_other_license " + lic(s.fresh)}},
		{"a license of no order",
			l.license(s.fresh, func(r *layout.License) { r.License.OrderNo = "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A" }),
			[]string{"license order_missing " + lic(s.fresh)}},
		{"a license of something that is no order",
			l.license(s.fresh, func(r *layout.License) { r.License.OrderNo = "ord_1" }),
			[]string{"license order " + lic(s.fresh)}},
		{"a license that forgot its order", l.license(paidLicense, func(r *layout.License) { r.License.OrderNo = "" }),
			[]string{"order license_other_order " + ord(s.paid)}},
		{"an order that forgot its license and that it was paid",
			l.orderSeed(s.paid, func(o *licensing.Order) { o.LicenseKey, o.PaidAt = none, time.Time{} }),
			[]string{"event kind " + lastOf(s.paid), "license order_other_license " + lic(paidLicense),
				"order due_missing " + ord(s.paid), "payment order_differs " + sandboxName(s.paid)}},
		{"an order that forgot its license", l.orderSeed(s.paid, func(o *licensing.Order) { o.LicenseKey = none }),
			[]string{"event kind " + lastOf(s.paid), "license order_other_license " + lic(paidLicense),
				"order paid_license " + ord(s.paid)}},
		{"a refunded order that forgot its license",
			l.orderSeed(s.refunded, func(o *licensing.Order) { o.LicenseKey = none }),
			[]string{"event contradicts " + lastOf(s.refunded),
				"license order_other_license " + lic(s.refunded.LicenseKey), "order paid_license " + ord(s.refunded)}},
		{"paid without a license", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.PaidAt = kvtest.Time }),
			[]string{"order paid_license " + ord(s.unpaid), misplaced(unpaidEnd)}},
		{"a license without payment", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.LicenseKey = s.fresh }),
			[]string{"order license_other_order " + ord(s.unpaid), "order paid_license " + ord(s.unpaid)}},
		{"two orders with one license",
			l.orderSeed(s.unpaid, func(o *licensing.Order) { o.PaidAt, o.LicenseKey = kvtest.Time, paidLicense }),
			[]string{"order license_other_order " + ord(s.unpaid), misplaced(unpaidEnd)}},
		{"a canceled order with a license",
			l.orderSeed(s.canceled, func(o *licensing.Order) { o.LicenseKey = s.fresh }),
			[]string{"order canceled_license " + ord(s.canceled), "order license_other_order " + ord(s.canceled)}},
		{"a due refund without an index entry", l.orderSeed(s.paid, func(o *licensing.Order) { o.RefundDue = true }),
			[]string{"order due_missing " + ord(s.paid)}},
		{"a refund due of a refunded order", l.orderSeed(s.refunded, func(o *licensing.Order) { o.RefundDue = true }),
			[]string{"order due_missing " + ord(s.refunded), "order refund_due " + ord(s.refunded)}},
		{"a refund due of an order that was never paid",
			l.orderSeed(s.canceled, func(o *licensing.Order) { o.RefundDue = true }),
			[]string{"order due_missing " + ord(s.canceled), "order refund_due " + ord(s.canceled)}},
		{"a refunded order whose license still works",
			l.license(s.refunded.LicenseKey, func(r *layout.License) { r.License.RevokedAt = time.Time{} }),
			[]string{"event kind " + lastOfLicense(s.refunded.LicenseKey),
				"order refunded_license " + ord(s.refunded)}},
		{"a refund's place that is gone", seed{refundKey: nil}, []string{"order due_missing " + ord(s.owed)}},
		{"a refund's place that is left", l.orderSeed(s.owed, func(o *licensing.Order) { o.RefundDue = false }),
			[]string{misplaced(refundAt)}},
		{"a refund that is to be tried at another time",
			l.orderSeed(s.owed, func(o *licensing.Order) { o.RefundRetryAt = kvtest.Time }),
			[]string{"order due_missing " + ord(s.owed), misplaced(refundAt)}},
		{"a license more than its order has",
			l.orderSeed(s.many, func(o *licensing.Order) { o.LicensesIssued = 2 }),
			[]string{"order licenses " + ord(s.many)}},
		{"a license less than its order has",
			l.orderSeed(s.many, func(o *licensing.Order) { o.LicensesIssued = 4 }),
			[]string{"order license_missing " + ord(s.many), "order licenses " + ord(s.many), misplaced(issueAt)}},
		{"more licenses than the order is for",
			l.orderSeed(s.many, func(o *licensing.Order) { o.Quantity = 2 }),
			[]string{"order quantity " + ord(s.many), misplaced(issueAt)}},
		{"an order whose other licenses must change from an index on that it has not",
			l.orderSeed(s.many, func(o *licensing.Order) {
				o.OrderOthers = licensing.OrderOthers{Others: licensing.OthersSuspend, OthersFrom: 9}
			}),
			[]string{"order others " + ord(s.many)}},
		{"an order for many with other keys",
			l.orderSeed(s.many, func(o *licensing.Order) { o.KeySeed[0]++ }),
			[]string{"order license_missing " + ord(s.many), "order license_missing " + ord(s.many),
				"order license_seed " + ord(s.many)}},
		{"a license of an order for many that names another order",
			l.license(ofMany(2), func(r *layout.License) { r.License.OrderNo = s.paid.OrderNo }),
			[]string{"license order_other_license " + lic(ofMany(2)), "order license_other_order " + ord(s.many),
				"order licenses " + ord(s.many)}},
		{"a license that names an order for many",
			l.license(s.fresh, func(r *layout.License) { r.License.OrderNo = s.many.OrderNo }),
			[]string{"order licenses " + ord(s.many)}},
		{"a refunded order for many whose licenses still work",
			l.orderSeed(s.many, func(o *licensing.Order) { o.RefundedAt = kvtest.Time }),
			[]string{"order refunded_license " + ord(s.many), "order refunded_license " + ord(s.many),
				"order refunded_license " + ord(s.many), misplaced(issueAt)}},
		{"a refunded order whose other licenses are still to be revoked, but not its first one",
			l.orderSeed(s.many, func(o *licensing.Order) {
				o.RefundedAt = kvtest.Time
				o.OrderOthers = licensing.OrderOthers{Others: licensing.OthersRevoke, OthersFrom: 1}
			}), []string{"order refunded_license " + ord(s.many)}},
		{"an issue's place that is gone", seed{issueKey: nil}, []string{"order due_missing " + ord(s.many)}},
		{"an order's end that is gone", seed{unpaidEndKey: nil}, []string{"order due_missing " + ord(s.unpaid)}},
		{"an order's end that is left", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.ExpiredAt = kvtest.Time }),
			[]string{misplaced(unpaidEnd)}},
		{"an order without the hash of its pay token",
			l.orderSeed(s.unpaid, func(o *licensing.Order) { o.PayHash = [32]byte{} }),
			[]string{"order pay_hash " + ord(s.unpaid)}},
		{"a license's end that is gone", seed{licenseEnd(s.ending, labEnd): nil},
			[]string{"license due_missing " + lic(s.ending)}},
		{"a license's end that moved",
			l.license(s.ending, func(r *layout.License) { r.License.ExpiresAt = labEnd.Add(time.Hour) }),
			[]string{"license due_missing " + lic(s.ending), misplaced(endingAt)}},
		{"a license's end that was recorded",
			l.license(s.ending, func(r *layout.License) { r.License.EndRecorded = labEnd }),
			[]string{misplaced(endingAt)}},
		{"a record of an end that a license does not have",
			l.license(s.fresh, func(r *layout.License) { r.License.EndRecorded = labEnd }),
			[]string{"license end_recorded " + lic(s.fresh)}},
		{"a trial that is gone", seed{trial: nil}, []string{"license trial_missing " + lic(s.trial.Key)}},
		{"a trial of another license", seed{trial: trialOf(s.fresh)},
			[]string{"license trial_other " + lic(s.trial.Key), "trial license_other " + trialName}},
		{"a trial of no license", seed{
			trial: trialOf(licensing.NewLicenseID(licensing.SlotOf(labOwner), [16]byte{9}).Key("LIC"))},
			[]string{"license trial_other " + lic(s.trial.Key), "trial license_missing " + trialName}},
		{"a trial of no form", seed{trial: bytesOf("x")}, []string{"trial value " + trialName}},
		{"a license that forgot its trial",
			l.license(s.trial.Key, func(r *layout.License) { r.License.Trial = licensing.TrialName{} }),
			[]string{"trial license_other " + trialName}},
		{"an upgraded trial without an order",
			l.license(s.trial.Key, func(r *layout.License) { r.License.UpgradedAt = s.trial.CreatedAt }),
			[]string{"license trial_order " + lic(s.trial.Key)}},
		{"an order in the sandbox that can't be read", seed{sandboxKey: bytesOf("x")},
			[]string{"sandbox value " + sandboxOf(s.unpaid)}},
		{"an attempt in the sandbox that did not begin", played(licensing.SandboxOrder{Attempt: 2,
			Outcome: licensing.SandboxPending}), []string{"sandbox attempt " + sandboxOf(s.unpaid)}},
		{"a payment in the sandbox without a time", played(licensing.SandboxOrder{Attempt: 1,
			Outcome: licensing.SandboxPaid}), []string{"sandbox paid_at " + sandboxOf(s.unpaid)}},
		{"a time in the sandbox without a payment", played(licensing.SandboxOrder{Attempt: 1,
			Outcome: licensing.SandboxFailed, PaidAt: later}), []string{"sandbox paid_at " + sandboxOf(s.unpaid)}},
		{"a refund in the sandbox without an end", played(licensing.SandboxOrder{Attempt: 1,
			Outcome: licensing.SandboxFailed, RefundNo: "ref_1"}), []string{"sandbox refund " + sandboxOf(s.unpaid)}},
		{"a subscription in the sandbox with too many invoices", played(licensing.SandboxOrder{Attempt: 1,
			Outcome: licensing.SandboxFailed, Subscription: licensing.SandboxSubscription{
				Unpaid: licensing.MaxSandboxInvoices + 1}}), []string{"sandbox subscription " + sandboxOf(s.unpaid)}},
		{"the sandbox of no order", seed{keyspace.SandboxKey(noOrder): l.value(sandboxKey)},
			[]string{"sandbox order_missing sb/" + keyspace.OwnerPath(labOwner) + verify.Opaque(noOrder.ID)}},
		{"a payment that is gone", seed{labPaymentKey(): nil}, []string{"order payment_missing " + ord(s.outside),
			"order paid_sum " + ord(s.outside), "payment_listing payment_missing " + paymentPlaceName,
			"sale payment_missing " + saleName(s.outside.PaidAt, payment)}},
		{"a sale that is gone", seed{sale.Key: nil}, []string{"payment sale_missing " + paymentName}},
		{"a sale of another amount",
			seed{sale.Key: bytesOf(saleOf(payment, func(p *licensing.Payment) { p.Amount++ }).Value)},
			[]string{"payment sale_differs " + paymentName}},
		{"a sale of another product",
			seed{sale.Key: bytesOf(saleOf(payment, func(p *licensing.Payment) { p.ProductID = "x" }).Value)},
			[]string{"payment sale_differs " + paymentName}},
		{"a sale at another time", seed{sale.Key: nil, laterSale.Key: bytesOf(sale.Value)},
			[]string{"payment sale_missing " + paymentName, "sale misplaced " + saleName(later, payment)}},
		{"a sale that counts twice", seed{laterSale.Key: bytesOf(sale.Value)},
			[]string{"sale misplaced " + saleName(later, payment)}},
		{"a sale of no payment", seed{saleOf(noPayment, func(*licensing.Payment) {}).Key: bytesOf(sale.Value)},
			[]string{"sale payment_missing " + saleName(s.outside.PaidAt, noPayment)}},
		{"a sale of no form", seed{sale.Key: bytesOf("x")},
			[]string{"payment sale_differs " + paymentName, "sale value " + saleName(s.outside.PaidAt, payment)}},
		{"a payment of an older build, which is in no report", both(seed{sale.Key: nil},
			paymentSeed(func(p *licensing.Payment) { p.ProductID = "" })), nil},
		{"since when the books are complete", seed{keyspace.BooksKey: bytesOf(keyspace.TimeInKey(kvtest.Time))}, nil},
		{"how far the events of payment providers are read", seed{
			keyspace.ProviderEventsKey(labOwner): layout.EncodeProviderEvents(store.ProviderEvents{From: kvtest.Time}),
			keyspace.ProviderEventsKey(licensing.Owner{Mode: licensing.Live}): layout.EncodeProviderEvents(
				store.ProviderEvents{After: "evt_1",
					Again: []store.ProviderEventAgain{{Kind: "refund", ID: "re_1", Since: kvtest.Time}}}),
		}, nil},
		{"events of a payment provider that are read to nowhere", seed{
			keyspace.ProviderEventsKey(labOwner): bytesOf("x"),
			keyspace.ProviderEventsKey(licensing.Owner{Mode: licensing.Test}): layout.EncodeProviderEvents(
				store.ProviderEvents{Again: make([]store.ProviderEventAgain, store.MaxProviderEventsAgain+1)}),
		}, []string{"provider_events value cell/pe//t/",
			"provider_events value cell/pe/" + keyspace.OwnerPath(labOwner)}},
		{"books since no time", seed{keyspace.BooksKey: bytesOf("x")}, []string{"books value cell/books"}},
		{"a payment of another order", paymentSeed(func(p *licensing.Payment) { p.OrderNo = s.unpaid.OrderNo }),
			[]string{"order payment_other " + ord(s.outside), "payment order_other " + paymentName,
				"order paid_sum " + ord(s.outside), "payment_listing misplaced " + paymentPlaceName}},
		{"a payment of no order", paymentSeed(func(p *licensing.Payment) {
			p.OrderNo = licensing.NewOrderNo(labOwner, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
		}),
			[]string{"order payment_other " + ord(s.outside), "payment order_missing " + paymentName,
				"order paid_sum " + ord(s.outside), "payment_listing misplaced " + paymentPlaceName}},
		{"a payment of another amount", paymentSeed(func(p *licensing.Payment) { p.Amount++ }),
			[]string{"payment order_differs " + paymentName, "payment sale_differs " + paymentName,
				"order paid_sum " + ord(s.outside)}},
		{"a subscription of an order that is paid once", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Subscription, o.SubscriptionStatus = "sub_1", licensing.SubscriptionCanceled
		}), []string{"order subscription " + ord(s.paid)}},
		{"a subscription without the end of the paid period", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Interval, o.Subscription = licensing.Period{Months: 1}, "sub_1"
			o.SubscriptionStatus = licensing.SubscriptionCanceled
		}), []string{"order subscription " + ord(s.paid)}},
		{"a change of a subscription that has ended", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Interval, o.Subscription, o.PaidEnd = licensing.Period{Months: 1}, "sub_1", later
			o.SubscriptionStatus = licensing.SubscriptionCanceled
			o.Change = licensing.SubscriptionChange{Kind: licensing.ChangeResume}
		}), []string{"order subscription " + ord(s.paid)}},
		{"a change of a plan without a number", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Interval, o.Subscription, o.PaidEnd = licensing.Period{Months: 1}, "sub_1", later
			o.SubscriptionStatus, o.AskAt = licensing.SubscriptionActive, later
			o.Change = licensing.SubscriptionChange{Kind: licensing.ChangePlan,
				Plan: &licensing.Plan{ProductID: o.ProductID, Amount: 1}}
		}), []string{"order due_missing " + ord(s.paid), "order subscription " + ord(s.paid)}},
		{"a planned change that no invoice brings", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Interval, o.Subscription, o.PaidEnd = licensing.Period{Months: 1}, "sub_1", later
			o.SubscriptionStatus, o.AskAt = licensing.SubscriptionActive, later
			o.Next = &licensing.Plan{ProductID: o.ProductID, Amount: 1}
		}), []string{"order due_missing " + ord(s.paid), "order subscription " + ord(s.paid)}},
		{"a license without what its subscription pays for", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Interval, o.Subscription, o.PaidEnd = licensing.Period{Months: 1}, "sub_1", later
			o.SubscriptionStatus = licensing.SubscriptionCanceled
			o.Plan = &licensing.Plan{ProductID: "another", Amount: 1}
		}), []string{"order license_product " + ord(s.paid)}},
		{"an invoice that is only counted", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Interval, o.Subscription, o.PaidEnd = licensing.Period{Months: 1}, "sub_1", later
			o.SubscriptionStatus, o.Invoices, o.Invoiced = licensing.SubscriptionCanceled, 1, 900
		}), []string{"order invoiced_sum " + ord(s.paid)}},
		{"a refund of an invoice that is only counted", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Returned, o.InvoiceRefunds = 900, 1
		}), []string{"order returned_sum " + ord(s.paid)}},
		{"a second payment that does not go back", both(
			paymentSeed(func(p *licensing.Payment) { p.Kind = licensing.KindOfSecond }),
			l.orderSeed(s.outside, func(o *licensing.Order) { o.Invoices, o.Invoiced = 1, o.Amount })),
			[]string{"order payment_other " + ord(s.outside), "order paid_sum " + ord(s.outside),
				"order returns " + ord(s.outside)}},
		{"a second payment whose lost dispute does not count, and that no sweep counts again", both(
			paymentSeed(func(p *licensing.Payment) { p.Kind, p.Uncounted = licensing.KindOfSecond, 1 }),
			l.orderSeed(s.outside, func(o *licensing.Order) { o.Invoices, o.Invoiced = 1, o.Amount })),
			[]string{"order disputes " + ord(s.outside), "order payment_other " + ord(s.outside),
				"order paid_sum " + ord(s.outside), "order returns " + ord(s.outside),
				"order uncounted " + ord(s.outside)}},
		{"the refund of no second payment", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Returns = &[]licensing.Return{{Number: "ref_pi_2", Of: "pi_2", Amount: 5, Second: true}}
		}), []string{"order due_missing " + ord(s.paid), "order returns " + ord(s.paid)}},
		{"a refund of an invoice that is pending without a record", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Returns = &[]licensing.Return{{Number: "ref_1", Of: "in_1", Amount: 5, Pending: true, RetryAt: later}}
		}), []string{"order due_missing " + ord(s.paid), "order returns " + ord(s.paid)}},
		{"a refund of an invoice without a number", l.orderSeed(s.paid, func(o *licensing.Order) {
			o.Returns = &[]licensing.Return{{Of: "in_1", Amount: 5, RetryAt: later}}
		}), []string{"order due_missing " + ord(s.paid), "order returns " + ord(s.paid)}},
		{"a fee of no payment", l.orderSeed(s.paid, func(o *licensing.Order) { o.Fee = new(int64(172)) }),
			[]string{"order fee_sum " + ord(s.paid)}},
		{"a fee that its order does not count",
			paymentSeed(func(p *licensing.Payment) { p.Fee = new(int64(172)) }),
			[]string{"order fee_sum " + ord(s.outside)}},
		{"a payment of which more has gone back than was paid",
			paymentSeed(func(p *licensing.Payment) { p.Returned = p.Amount + 1 }),
			[]string{"payment state " + paymentName}},
		{"a payment that counts less of lost disputes",
			paymentSeed(func(p *licensing.Payment) { p.Uncounted = 1 }), []string{"payment state " + paymentName}},
		{"an invoice of an order without a subscription",
			paymentSeed(func(p *licensing.Payment) { p.Kind = licensing.KindOfInvoice }),
			[]string{"payment invoice " + paymentName, "order payment_other " + ord(s.outside),
				"order paid_sum " + ord(s.outside),
				"order invoiced_sum " + ord(s.outside)}},
		{"an order that was paid less", l.orderSeed(s.paid, func(o *licensing.Order) { o.Paid-- }),
			[]string{"order paid_sum " + ord(s.paid)}},
		{"a payment that is not listed", seed{paymentPlace: nil},
			[]string{"payment listing_missing " + paymentName, "order paid_sum " + ord(s.outside)}},
		{"a payment that an older build has recorded", both(seed{paymentPlace: nil},
			l.orderSeed(s.outside, func(o *licensing.Order) { o.Paid = 0 })), nil},
		{"a listed payment with a value", seed{paymentPlace: bytesOf("x")},
			[]string{"payment_listing value " + paymentPlaceName}},
		{"a payment that is listed twice", seed{listedLater: {}},
			[]string{"payment_listing misplaced " + paymentPlaceName}},
		{"a listed payment of no form", seed{inLab("pi/x"): {}},
			[]string{"payment_listing order_missing pi/" + verify.Opaque("x")}},
		{"a listed payment of no form of an order", seed{paymentPlace + "x": {}},
			[]string{"payment_listing key pi/" + verify.Opaque(strings.TrimPrefix(paymentPlace, inLab("pi/"))+"x")}},
		{"a payment at another time", paymentSeed(func(p *licensing.Payment) { p.PaidAt = kvtest.Time }),
			[]string{"payment order_differs " + paymentName, "payment sale_missing " + paymentName,
				"sale misplaced " + saleName(s.outside.PaidAt, payment)}},
		{"a payment of another name", paymentSeed(func(p *licensing.Payment) { p.Reference = "INV-2" }),
			[]string{"payment name " + paymentName, "payment order_other " + paymentName}},
		{"a payment of no form", seed{labPaymentKey(): bytesOf("x")}, []string{"payment value " + paymentName}},
		{"a refund that is gone", seed{keyspace.PaymentKey(refund): nil}, []string{
			"order refunded_sum " + ord(s.refunded), "payment_listing payment_missing " + refundPlaceName,
			"sale payment_missing " + saleName(refundRecord.PaidAt, refund)}},
		{"a refund that is not listed", seed{keyspace.PaymentListingKey(refund, &refundRecord): nil},
			[]string{"payment listing_missing " + refundName, "order refunded_sum " + ord(s.refunded)}},
		{"a refund of another amount", refundSeed(func(p *licensing.Payment) { p.Amount++ }),
			[]string{"order refunded_sum " + ord(s.refunded), "payment sale_differs " + refundName}},
		{"a refund in another currency", refundSeed(func(p *licensing.Payment) { p.Currency = "JPY" }),
			[]string{"payment order_differs " + refundName, "payment sale_differs " + refundName}},
		{"a refund that has failed", refundSeed(func(p *licensing.Payment) { p.State = licensing.PaymentFailed }),
			[]string{"order refunded_sum " + ord(s.refunded), "payment state " + refundName,
				"sale misplaced " + saleName(refundRecord.PaidAt, refund)}},
		{"a refund that was made at the provider, under a name of ours",
			refundSeed(func(p *licensing.Payment) { p.Reference, p.ProviderID = "re_1", "re_1" }),
			[]string{"payment name " + refundName}},
		{"a refund in no state", refundSeed(func(p *licensing.Payment) { p.State = "lost" }),
			[]string{"order refunded_sum " + ord(s.refunded), "payment state " + refundName,
				"sale misplaced " + saleName(refundRecord.PaidAt, refund)}},
		{"an open dispute that its order does not name",
			l.orderSeed(s.disputed, func(o *licensing.Order) { o.Disputes = "" }),
			[]string{"order disputes " + ord(s.disputed), "order disputes " + ord(s.disputed)}},
		{"an open dispute about which no sweep asks",
			l.orderSeed(s.disputed, func(o *licensing.Order) { o.DisputeAskAt = time.Time{} }), []string{
				misplaced("checkout %s x/c/" + s.disputed.DisputeAskAt.Format(time.RFC3339Nano) + "/" +
					keyspace.OwnerPath(labOwner) + s.disputed.OrderNo), "order disputes " + ord(s.disputed)}},
		{"a dispute that ended, and its order does not know",
			openSeed(func(p *licensing.Payment) { p.State = licensing.PaymentWon }),
			[]string{"order disputes " + ord(s.disputed)}},
		{"a dispute in no state",
			openSeed(func(p *licensing.Payment) { p.State = licensing.PaymentFailed }),
			[]string{"order disputes " + ord(s.disputed), "payment state " + openName}},
		{"a dispute without an answer",
			openSeed(func(p *licensing.Payment) { p.Answers = 0 }), []string{"payment state " + openName}},
		{"a lost dispute of which another amount counts",
			lostSeed(func(p *licensing.Payment) { p.Counted-- }),
			[]string{"order refunded_sum " + ord(s.lost), "order uncounted " + ord(s.lost),
				"payment sale_differs " + lostName}},
		{"a lost dispute of which more counts than is disputed",
			lostSeed(func(p *licensing.Payment) { p.Amount = 299 }),
			[]string{"order uncounted " + ord(s.lost), "payment state " + lostName}},
		{"a lost dispute without a time",
			lostSeed(func(p *licensing.Payment) { p.PaidAt = time.Time{} }),
			[]string{"payment sale_missing " + lostName,
				"payment state " + lostName, "sale misplaced " + saleName(lostAt, lostDispute)}},
		{"a dispute in another currency",
			lostSeed(func(p *licensing.Payment) { p.Currency = "JPY" }), []string{"payment order_differs " + lostName,
				"payment sale_differs " + lostName}},
		{"a lost dispute that the order does not count",
			l.orderSeed(s.lost, func(o *licensing.Order) { o.Refunds, o.Refunded = 0, 0 }),
			[]string{"order refunded_sum " + ord(s.lost)}},
		{"a part of a lost dispute that does not count, and that no sweep counts again",
			l.orderSeed(s.lost, func(o *licensing.Order) { o.Uncounted = 7 }),
			[]string{"order disputes " + ord(s.lost), "order uncounted " + ord(s.lost)}},
		{"a payment that is pending", paymentSeed(func(p *licensing.Payment) { p.State = licensing.PaymentPending }),
			[]string{"payment state " + paymentName, "sale misplaced " + saleName(s.outside.PaidAt, payment)}},
		{"more refunded than was paid",
			l.orderSeed(s.paid, func(o *licensing.Order) { o.Refunded, o.Refunds = 201, 1 }),
			[]string{"order refunded_sum " + ord(s.paid), "order refunds " + ord(s.paid)}},
		{"more refunded and being refunded than was paid", l.orderSeed(s.owed, func(o *licensing.Order) {
			o.RefundNo, o.Refunding = "ref_1", 601
		}), []string{"order refunds " + ord(s.owed)}},
		{"all refunded, but the order",
			l.orderSeed(s.paid, func(o *licensing.Order) { o.Refunded, o.Refunds = 200, 1 }),
			[]string{"order refunded_sum " + ord(s.paid), "order refunds " + ord(s.paid)}},
		{"a refund that is not counted", l.orderSeed(s.refunded, func(o *licensing.Order) { o.Refunds = 0 }),
			[]string{"order refund_count " + ord(s.refunded)}},
		{"a pending refund without a record", l.orderSeed(s.owed, func(o *licensing.Order) {
			o.RefundNo, o.Refunding, o.RefundPending = "ref_1", 5, true
		}), []string{"order refund_pending " + ord(s.owed)}},
		{"a number of a refund without an amount",
			l.orderSeed(s.paid, func(o *licensing.Order) { o.RefundNo = "ref_1" }),
			[]string{"order refunds " + ord(s.paid)}},
		{"a refund that is to end an order, and is not open",
			l.orderSeed(s.paid, func(o *licensing.Order) { o.RefundEnds = true }),
			[]string{"order refunds " + ord(s.paid)}},
		{"an order that forgot where it was paid",
			l.orderSeed(s.outside, func(o *licensing.Order) { o.Provider = "" }),
			[]string{"payment order_other " + paymentName, "order payment_missing " + ord(s.outside)}},
		{"a trial that is forgotten early", seed{trialEnd.Key(keyspace.LicenseKey(s.trial.Key.ID())): {}},
			[]string{"trial_end misplaced x/t/" + trialEnd.At().Format(time.RFC3339Nano) + "/" + s.trial.Key.String()}},
		{"a notice that is gone", seed{noticeKey: nil}, []string{"license due_missing " + lic(s.lowered)}},
		{"a notice that was given", l.license(s.lowered, func(r *layout.License) { r.License.Notice.Day = 1 }),
			[]string{"license due_missing " + lic(s.lowered), misplaced(noticeAt)}},
		{"a notice of no account", both(seed{noticeKey: nil},
			l.license(s.lowered, func(r *layout.License) { r.License.Notice.Day = 61 })),
			[]string{"license due_missing " + lic(s.lowered), "license notice " + lic(s.lowered)}},
		{"a notice before an end that a license does not have",
			l.license(s.fresh, func(r *layout.License) { r.License.Notice.End = labEnd }),
			[]string{"license grace " + lic(s.fresh)}},
		{"the end of a grace of a license without an end",
			l.license(s.fresh, func(r *layout.License) { r.License.GraceRecorded = labEnd }),
			[]string{"license grace " + lic(s.fresh)}},
		{"leases that are not due", seed{leasesDue(s.floating): nil},
			[]string{"license due_missing " + lic(s.floating)}},
		{"leases that are due later", l.license(s.floating, func(r *layout.License) {
			r.License.LeasesUntil = labLease.Add(-time.Second)
		}), []string{"license due_missing " + lic(s.floating), misplaced(leasesAt)}},
		{"a lease that ends too early", both(seed{leasesDue(s.floating): nil}, l.license(s.floating,
			func(r *layout.License) { r.License.LeasesUntil = time.Time{} })),
			[]string{"license leases " + lic(s.floating)}},
		{"a lease of a license without leases", l.license(s.inline, func(r *layout.License) {
			r.Devices[0] = layout.NewInlineDevice(&licensing.Device{ID: "device-0", BoundAt: kvtest.Time,
				LastSeenAt: kvtest.Time, LeaseEnd: labLease}, r.License.CreatedAt)
		}), []string{"license leases " + lic(s.inline)}},
		{"a device without a lease", l.license(s.floating, func(r *layout.License) {
			r.Devices[0] = layout.NewInlineDevice(&licensing.Device{ID: "one", BoundAt: kvtest.Time,
				LastSeenAt: kvtest.Time}, r.License.CreatedAt)
		}), []string{"license leases " + lic(s.floating)}},
		{"leases of a license without a limit",
			l.license(s.floating, func(r *layout.License) { r.License.MaxDevices = 0 }),
			[]string{"license leases " + lic(s.floating)}},
		{"a device that was seen before any was", l.license(s.inline, func(r *layout.License) {
			r.License.InactiveAfter, r.License.SeenFrom = licensing.Period{Days: 30}, kvtest.Time.AddDate(99, 0, 0)
		}), []string{"license seen_from " + lic(s.inline)}},
		{"leases of devices that become inactive", l.license(s.floating, func(r *layout.License) {
			r.License.InactiveAfter = licensing.Period{Days: 30}
		}), []string{"license device_terms " + lic(s.floating)}},
		{"changes of devices that are never allowed", l.license(s.inline, func(r *layout.License) {
			r.License.Match.AtLeast = 3
		}), []string{"license device_terms " + lic(s.inline)}},
		{"components that no terms compare", l.license(s.inline, func(r *layout.License) {
			r.Devices[0] = layout.NewInlineDevice(&licensing.Device{ID: "device-0", BoundAt: kvtest.Time,
				LastSeenAt: kvtest.Time, Components: "\x04disk12345678"}, r.License.CreatedAt)
		}), []string{"license components " + lic(s.inline)}},
		{"an end with a value", seed{licenseEnd(s.ending, labEnd): bytesOf("LIC")},
			[]string{"license_end key x/l/" + odd(strings.TrimPrefix(licenseEnd(s.ending, labEnd), inLab("x/l/")))}},
		{"an end of a license without one", seed{licenseEnd(s.fresh, labEnd): {}},
			[]string{misplaced("license_end %s x/l/" + labEnd.Format(time.RFC3339Nano) + "/" +
				s.fresh.String())}},
		{"an end of no license", seed{licenseEnd(forged, labEnd): {}},
			[]string{gone("license_end %s x/l/" + labEnd.Format(time.RFC3339Nano) + "/" + forged.String())}},
		{"money of a canceled order that is not owed",
			l.orderSeed(s.sentBack, func(o *licensing.Order) { o.RefundedAt = time.Time{} }),
			[]string{"event kind " + lastOf(s.sentBack), "order refund_due " + ord(s.sentBack),
				"order refunds " + ord(s.sentBack)}},
		{"refunded and never paid", l.orderSeed(s.canceled, func(o *licensing.Order) { o.RefundedAt = kvtest.Time }),
			[]string{"order refund " + ord(s.canceled)}},
		{"late and never paid", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.Late = true }),
			[]string{"order late " + ord(s.unpaid)}},
		{"a checkout without an attempt", l.orderSeed(s.unpaid, func(o *licensing.Order) {
			o.Attempt, o.Checkout, o.CheckoutEnds = 0, "cs_1", kvtest.Time
		}), []string{"order checkout " + ord(s.unpaid), "sandbox attempt " + sandboxOf(s.unpaid)}},
		{"a checkout without an end", l.orderSeed(s.unpaid, func(o *licensing.Order) {
			o.Provider, o.Attempt, o.Checkout = licensing.ProviderStripe, 1, "cs_1"
		}), []string{"order checkout " + ord(s.unpaid)}},
		{"an attempt to pay at no provider",
			l.orderSeed(s.unpaid, func(o *licensing.Order) { o.Attempt, o.Provider = 1, "" }),
			[]string{"order checkout " + ord(s.unpaid)}},
		{"an order's license key that is none",
			l.orderSeed(s.paid, func(o *licensing.Order) { o.LicenseKey = paidLicense.ID().Key("acme") }),
			[]string{"event value " + lastOf(s.paid), "order value " + ord(s.paid)}},
		{"an order's license key with another prefix",
			l.orderSeed(s.paid, func(o *licensing.Order) { o.LicenseKey = paidLicense.ID().Key("ACME") }),
			[]string{"license order_other_license " + lic(paidLicense), "order license_key " + ord(s.paid)}},
		{"an order that can't be read", seed{keyspace.OrderKey(labOwner, s.unpaid.OrderNo): bytesOf("\x01\xff")},
			[]string{"order value " + ord(s.unpaid)}},
		{"an order that is gone", seed{keyspace.OrderKey(labOwner, s.unpaid.OrderNo): nil},
			[]string{"event unlinked e/", "buyer order_missing " + buyer(s.unpaid),
				"order_owner order_missing " + ptr(s.unpaid), gone(unpaidEnd),
				"sandbox order_missing " + sandboxOf(s.unpaid)}},
		{"an order that its buyer's listing lacks", seed{keyspace.BuyerListingKey(&s.unpaid): nil},
			[]string{"order buyer_missing " + ord(s.unpaid)}},
		{"an order of another buyer",
			l.orderSeed(s.unpaid, func(o *licensing.Order) { o.BuyerEmail = "bob@example.com" }),
			[]string{"buyer misplaced " + buyer(s.unpaid), "order buyer_missing " + ord(s.unpaid)}},
		{"an order without a buyer", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.BuyerEmail = "" }),
			[]string{"buyer misplaced " + buyer(s.unpaid)}},
		{"an order's place with a value", seed{keyspace.BuyerListingKey(&s.unpaid): bytesOf("x")},
			[]string{"buyer value " + buyer(s.unpaid)}},
		{"an order without a pointer", seed{keyspace.OrderOwnerKey(s.unpaid.OrderNo): nil},
			[]string{"order owner_missing " + ord(s.unpaid)}},
		{"a pointer to another owner", seed{keyspace.OrderOwnerKey(s.unpaid.OrderNo): layout.EncodeOwner(stranger)},
			[]string{"order owner_other " + ord(s.unpaid), "order_owner order_missing " + ptr(s.unpaid)}},
		{"a pointer that can't be read", seed{keyspace.OrderOwnerKey(s.unpaid.OrderNo): bytesOf("\x01")},
			[]string{"order_owner value " + ptr(s.unpaid)}},

		{"a product that can't be read", seed{keyspace.ProductKey(labOwner, "pro"): {}},
			[]string{"product value q/acct_lab/t/pro"}},
		{"a product without a key prefix", seed{keyspace.ProductKey(labOwner,
			"pro"): (&layout.Product{Product: licensing.Product{CreatedAt: product.CreatedAt}}).Encode()},
			[]string{"product terms q/acct_lab/t/pro", misplaced(rolloutAt)}},
		{"a rollout that is not in the index", seed{rolloutKey(labEnd): nil},
			[]string{"product due_missing q/acct_lab/t/pro"}},
		{"a rollout that is twice in the index", seed{rolloutKey(later): {}, rolloutKey(labEnd): bytesOf("x")},
			[]string{misplaced("rollout %s x/g/" + later.Format(time.RFC3339Nano) + "/acct_lab/t/pro"),
				"rollout key x/g/" + odd(rolloutKey(labEnd)[len(inLab("x/g/")):])}},
		{"a rollout of an unknown term", seed{keyspace.ProductKey(labOwner, "pro"): l.productValue("pro",
			func(p *layout.Product) { p.Product.Rollout.Applies = 1 << 15 })},
			[]string{"product rollout q/acct_lab/t/pro"}},
		{"a rollout of terms that are gone", seed{keyspace.ProductKey(labOwner, "pro"): l.productValue("pro",
			func(p *layout.Product) { p.Product.Rollout.Terms.Version = 1 })},
			[]string{"product terms_missing q/acct_lab/t/pro"}},
		{"a rollout that was canceled and goes on", seed{keyspace.ProductKey(labOwner, "pro"): l.productValue("pro",
			func(p *layout.Product) { p.Product.Rollout.Canceled = true })},
			[]string{"product rollout q/acct_lab/t/pro"}},
		{"a product's metadata that is no object", seed{keyspace.ProductKey(labOwner, "own"): l.productValue("own",
			func(p *layout.Product) { p.Product.Metadata = "[]" })},
			[]string{"product metadata q/acct_lab/t/own"}},
		{"a writer of a product twice",
			seed{keyspace.ProductKey(labOwner, "own"): l.productValue("own", func(p *layout.Product) {
				p.Writers = []layout.Writer{{By: store.Incarnation{1}, Swap: 5}, {By: store.Incarnation{1}, Swap: 4}}
			})}, []string{"product writers q/acct_lab/t/own"}},
		{"a product that is not listed", seed{keyspace.CatalogKey(pro, product): nil},
			[]string{"product catalog_missing q/acct_lab/t/pro"}},
		{"a product that is gone", seed{keyspace.ProductKey(labOwner, "pro"): nil},
			[]string{"catalog product_missing " + catalog(product.CreatedAt), gone(rolloutAt)}},
		{"a product that is listed twice",
			seed{keyspace.CatalogKey(pro, &licensing.Product{CreatedAt: later}): bytesOf("x")},
			[]string{"catalog misplaced " + catalog(later), "catalog value " + catalog(later)}},
		{"entries that are not on their upper levels", seed{skips[0]: nil, skips[1]: nil},
			[]string{"buyer skip_missing " + buyer(tallOrder), "order skip_missing " + ord(tallOrder)}},
		{"an upper level of nothing", seed{keyspace.SkipKey(1, tall): {}},
			[]string{"skip entry_missing " + skipName(keyspace.SkipKey(1, tall))}},
		{"an entry that is too high", seed{tooHigh: bytesOf("x")},
			[]string{"skip level " + skipName(tooHigh), "skip value " + skipName(tooHigh)}},
		{"an API key that can't be read", seed{string(apiKey.Key): bytesOf("\x01")},
			[]string{"api_key value k/" + odd(apiKeyHash)}},
		{"an API key without an id",
			seed{string(apiKey.Key): (&layout.APIKey{Key: licensing.APIKey{Owner: labOwner}}).Encode()},
			[]string{"api_key id k/" + odd(apiKeyHash), "api_key_index misplaced " + keyIndex}},
		{"a master key in use that is gone", seed{keyspace.MasterKeyKey("m1"): nil},
			[]string{"api_key master_missing k/" + odd(apiKeyHash), "id_key master_missing cell/id_key",
				"receipt_keys master_missing " + signing}},
		{"a master key of the secret before that is gone",
			seed{string(apiKey.Key): (&layout.APIKey{Key: licensing.APIKey{ID: "key_0elab", Owner: labOwner,
				MasterID: "m1",
				Previous: licensing.PreviousSecret{Version: 1, MasterID: "m0", Until: kvtest.Time}}}).Encode()},
			[]string{"api_key master_missing k/" + odd(apiKeyHash)}},
		{"an API key of another " +
			"id", seed{string(apiKey.Key): (&layout.APIKey{Key: licensing.APIKey{ID: "key_0eother", Owner: labOwner,
			MasterID: "m1"}}).Encode()},
			[]string{"api_key index_missing k/" + odd(apiKeyHash), "api_key_index misplaced " + keyIndex}},
		{"an API key of another slot", both(
			seed{string(apiKey.Key): (&layout.APIKey{Key: licensing.APIKey{ID: "key_zzlab", Owner: labOwner,
				MasterID: "m1"}}).Encode()},
			seed{keyspace.APIKeyIndexKey(labOwner, "key_0elab"): nil,
				keyspace.APIKeyIndexKey(labOwner, "key_zzlab"): []byte(apiKeyHash)}),
			[]string{"api_key slot k/" + odd(apiKeyHash), "claim api_key_missing " + claims.key}},
		{"an API key that is gone", seed{string(apiKey.Key): nil},
			[]string{"api_key_index api_key_missing " + keyIndex,
				"api_key_use api_key_missing u/" + odd(apiKeyHash)}},
		{"an id that leads to another API key",
			seed{keyspace.APIKeyIndexKey(labOwner, "key_0elab"): bytesOf(strings.Repeat("x", 32))},
			[]string{"api_key index_other k/" + odd(apiKeyHash),
				"api_key_index api_key_missing " + keyIndex}},
		{"an id that leads nowhere", seed{keyspace.APIKeyIndexKey(labOwner, "key_none"): []byte(apiKeyHash)},
			[]string{"api_key_index misplaced a/acct_lab/t/key_none"}},
		{"an id that leads to no hash", seed{keyspace.APIKeyIndexKey(labOwner, "key_none"): bytesOf("x")},
			[]string{"api_key_index value a/acct_lab/t/key_none"}},
		{"a revoked API key whose master keys are gone",
			seed{string(apiKey.Key): (&layout.APIKey{Key: licensing.APIKey{ID: "key_0elab", Owner: labOwner,
				MasterID: "m8", RevokedAt: kvtest.Time,
				Previous: licensing.PreviousSecret{Version: 1, MasterID: "m9", Until: kvtest.Time}}}).Encode()}, nil},
		{"a retired master " +
			"key", seed{keyspace.RetiredMasterKey("m0"): bytesOf(strings.Repeat("x", keyring.FingerprintSize)),
			string(apiKey.Key): (&layout.APIKey{Key: licensing.APIKey{ID: "key_0elab", Owner: labOwner,
				MasterID: "m1",
				Previous: licensing.PreviousSecret{Version: 1, MasterID: "m0", Until: kvtest.Time}}}).Encode()}, nil},
		{"a retired master key that a secret is derived from", seed{keyspace.MasterKeyKey("m1"): nil,
			keyspace.RetiredMasterKey("m1"): bytesOf(strings.Repeat("x", keyring.FingerprintSize))},
			[]string{"api_key master_missing k/" + odd(apiKeyHash), "id_key master_missing cell/id_key",
				"receipt_keys master_missing " + signing}},
		{"a retired master key that is in use",
			seed{keyspace.RetiredMasterKey("m1"): bytesOf(strings.Repeat("x", keyring.FingerprintSize))},
			[]string{"retired_master_key in_use cell/retired/m1"}},
		{"a retired fingerprint that is too short", seed{keyspace.RetiredMasterKey("m0"): bytesOf("x")},
			[]string{"retired_master_key value cell/retired/m0"}},
		{"writers of an API key that come " +
			"twice", seed{string(apiKey.Key): (&layout.APIKey{Key: licensing.APIKey{ID: "key_0elab", Owner: labOwner,
			MasterID: "m1"},
			Writers: []layout.Writer{{By: store.Incarnation{1}, Swap: 1},
				{By: store.Incarnation{1}, Swap: 2}}}).Encode()},
			[]string{"api_key writers k/" + odd(apiKeyHash)}},
		{"a use that can't be read", seed{keyspace.KeyUseKey([32]byte([]byte(apiKeyHash))): bytesOf("\x01")},
			[]string{"api_key_use value u/" + odd(apiKeyHash)}},
		{"a use of no API key", seed{keyspace.KeyUseKey(strangeHash): layout.EncodeKeyUse(kvtest.Time)},
			[]string{"api_key_use api_key_missing u/" + odd(string(strangeHash[:]))}},
		{"a claim of an API key that is gone", seed{string(apiKey.Key): nil,
			keyspace.APIKeyIndexKey(labOwner, "key_0elab"): nil, keyspace.KeyUseKey([32]byte([]byte(apiKeyHash))): nil},
			[]string{"claim api_key_missing " + claims.key}},
		{"a mark that is too short", seed{keyspace.APIKeysMark: bytesOf("x")},
			[]string{"api_key_mark value cell/keys"}},
		{"a mark of a part that is too short", seed{keyspace.APIKeyPartMark(7): bytesOf("x")},
			[]string{"api_key_mark value cell/keys"}},
		{"a fingerprint that is too short", seed{keyspace.MasterKeyKey("m1"): bytesOf("x")},
			[]string{"master_key value cell/master/m1"}},
		{"an order's claim without its " +
			"order", seed{keyspace.OrderKey(labOwner, s.free.OrderNo): nil, keyspace.BuyerListingKey(&s.free): nil,
			keyspace.OrderOwnerKey(s.free.OrderNo): nil, keyspace.LicenseKey(s.free.LicenseKey.ID()): nil,
			keyspace.ListingKey(labOwner, created(s.free.LicenseKey), s.free.LicenseKey.ID()): nil}, []string{"event " +
			"unlinked e/", "claim order_missing " + claims.order, "skip entry_missing " + skipName(skips[0]),
			"skip entry_missing " + skipName(skips[1])}},
		{"a grant's claim without its license", seed{keyspace.LicenseKey(s.fresh.ID()): nil,
			keyspace.ListingKey(labOwner, created(s.fresh), s.fresh.ID()): nil},
			[]string{"event unlinked e/", "claim license_missing " + claims.fresh}},
		{"a claim of more than was asked for", l.claim(claims.freshKey, func(c *licensing.Claim) { c.Grant.Done = 2 }),
			[]string{"claim grant " + claims.fresh}},
		{"a claim of two effects", l.claim(claims.freshKey, func(c *licensing.Claim) { c.OrderNo = s.free.OrderNo }),
			[]string{"claim effect " + claims.fresh}},
		{"a change's claim without its license",
			l.claim(claims.ownKey, func(c *licensing.Claim) { c.LicenseKey = forged }),
			[]string{"claim license_missing " + claims.own}},
		{"a change's claim of another one's license",
			l.claim(claims.ownKey, func(c *licensing.Claim) { c.LicenseKey = s.own.ID().Key("ACME") }),
			[]string{"claim license_other " + claims.own}},
		{"a change's claim of no license key",
			l.claim(claims.ownKey, func(c *licensing.Claim) { c.LicenseKey = s.own.ID().Key("acme") }),
			[]string{"claim value " + claims.own}},
		{"a claim of a redaction", l.claim(claims.orderKey, func(c *licensing.Claim) {
			c.OrderNo, c.Redaction = "",
				&licensing.Redaction{Orders: 2, Licenses: 2}
		}), nil},
		{"a claim of granted licenses redacted", l.claim(claims.orderKey,
			func(c *licensing.Claim) { c.OrderNo, c.Redaction = "", &licensing.Redaction{Orders: 1, Licenses: 2} }),
			nil},
		{"a claim of fewer than no orders redacted", l.claim(claims.orderKey,
			func(c *licensing.Claim) { c.OrderNo, c.Redaction = "", &licensing.Redaction{Orders: -1, Licenses: 2} }),
			[]string{"claim redaction " + claims.order}},
		{"a claim of no effect", l.claim(claims.orderKey, func(c *licensing.Claim) { c.OrderNo = "" }),
			[]string{"claim effect " + claims.order}},
		{"a claim that can't be read", seed{claims.orderKey: bytesOf("\x01\x0a\x01x")},
			[]string{"claim value " + claims.order}},
		{"a claim without its place by age",
			l.claim(claims.orderKey, func(c *licensing.Claim) { c.CreatedAt = c.CreatedAt.Add(time.Hour) }),
			[]string{"claim age_missing " + claims.order}},
		{"a claim older than its place",
			l.claim(claims.orderKey, func(c *licensing.Claim) { c.CreatedAt = c.CreatedAt.Add(-time.Hour) }),
			[]string{"claim age_missing " + claims.order, "claim_age misplaced " + claims.orderAge}},
		{"a claim that is gone", seed{claims.orderKey: nil},
			[]string{"claim_age claim_missing " + claims.orderAge}},
		{"a claim's place with a value", seed{claims.orderAgeKey: bytesOf("x")},
			[]string{"claim_age value " + claims.orderAge}},
		{"an older place of a claim", seed{keyspace.ClaimAgeKey(kvtest.Time.Add(-time.Hour), labOwner,
			strings.TrimPrefix(claims.orderKey, keyspace.OfOwner(labOwner, "y/"))): {}}, nil},

		{"events of a license that are gone", seed{ownEvents(4): nil},
			[]string{"event unlinked e/", "license event_missing " + lic(s.own)}},
		{"events before others that are gone", seed{ownEvents(2): nil},
			[]string{"event event_missing " + event(3), "event unlinked e/"}},
		{"a license's first event that is gone", seed{ownEvents(1): nil}, []string{"event event_missing " + event(2)}},
		{"an order's events that are gone", seed{orderEvents: nil},
			[]string{"event unlinked e/", "order event_missing " + ord(s.paid)}},
		{"events that are there twice", seed{ownEvents(5): l.value(ownEvents(4))}, []string{"event unlinked e/"}},
		{"events of another record", seed{keyspace.EventsKeyOf(labOwner, own.LastEvent,
			keyspace.LicenseInEvents(forged.ID()), 1): l.value(ownEvents(1))}, []string{"event unlinked e/"}},
		{"events in an epoch before", seed{ownEvents(4): nil, keyspace.EventsKeyOf(labOwner,
			keyspace.Location{Epoch: own.LastEvent.Epoch - 1}, record, 4): l.value(ownEvents(4))},
			[]string{"event before e/" + keyspace.EventID(labOwner, keyspace.Location{Epoch: own.LastEvent.Epoch - 1},
				record, 4),
				"event unlinked e/", "license event_missing " + lic(s.own)}},
		{"events in an epoch that has not begun", seed{ownEvents(4): nil,
			keyspace.EventsKeyOf(labOwner, keyspace.Location{Epoch: 1 << 60}, record, 4): l.value(ownEvents(4))},
			[]string{"event epoch e/" + keyspace.EventID(labOwner, keyspace.Location{Epoch: 1 << 60}, record, 4),
				"event unlinked e/",
				"license event_missing " + lic(s.own)}},
		{"a license whose latest events are of another epoch",
			l.license(s.own, func(r *layout.License) { r.LastEvent.Epoch-- }),
			[]string{"event unlinked e/", "license event_missing " + lic(s.own)}},
		{"a license that has had more events", l.license(s.own, func(r *layout.License) { r.License.Sequence++ }),
			[]string{"event unlinked e/", "license event_missing " + lic(s.own)}},
		{"a license that has had fewer events", l.license(s.own, func(r *layout.License) { r.License.Sequence-- }),
			[]string{"event unlinked e/"}},
		{"events before of another epoch", l.events(ownEvents(4), func(e *layout.Events) { e.Before.Epoch-- }),
			[]string{"event event_missing " + event(4), "event unlinked e/"}},
		{"events before of a later epoch", l.events(ownEvents(4), func(e *layout.Events) { e.Before.Epoch++ }),
			[]string{"event before " + event(4), "event unlinked e/"}},
		{"events before that nothing leads to",
			l.events(ownEvents(4), func(e *layout.Events) { e.Before = keyspace.Location{} }),
			[]string{"event before " + event(4), "event unlinked e/"}},
		{"events before the first", l.events(ownEvents(1), func(e *layout.Events) { e.Before = own.LastEvent }),
			[]string{"event before " + event(1)}},
		{"a number that two events have", l.events(ownEvents(4),
			func(e *layout.Events) { e.Events = append(e.Events, e.Events[0]) }), []string{"event unlinked e/"}},
		{"an event that tells of another license than there is",
			l.events(ownEvents(4), func(e *layout.Events) { e.Events[0].License.MaxDevices++ }),
			[]string{"license event_differs " + lic(s.own)}},
		{"an event that tells of another order than there is",
			l.events(orderEvents, func(e *layout.Events) { e.Events[0].Order.Amount++ }),
			[]string{"event contradicts " + lastOf(s.paid), "order event_differs " + ord(s.paid)}},
		{"an earlier event that tells of another product",
			l.events(ownEvents(2), func(e *layout.Events) { e.Events[0].License.ProductID = "other" }),
			[]string{"event contradicts " + event(2), "event contradicts " + event(3)}},
		{"an earlier event that tells of another time",
			l.events(ownEvents(1), func(e *layout.Events) { e.Events[0].License.CreatedAt = kvtest.Time }),
			[]string{"event contradicts " + event(2)}},
		{"an event of another kind",
			l.events(ownEvents(4), func(e *layout.Events) { e.Events[0].Type = licensing.EventLicenseRevoked }),
			[]string{"event kind " + event(4)}},
		{"a license's event of an order's kind",
			l.events(ownEvents(3), func(e *layout.Events) { e.Events[0].Type = licensing.EventOrderCreated }),
			[]string{"event kind " + event(3)}},
		{"a license that is issued once more",
			l.events(ownEvents(2), func(e *layout.Events) { e.Events[0].Type = licensing.EventLicenseIssued }),
			[]string{"event kind " + event(2)}},
		{"an event of a device that it can't mean",
			l.events(ownEvents(3), func(e *layout.Events) { e.Events[0].Device = &licensing.Device{ID: "d1"} }),
			[]string{"event kind " + event(3)}},
		{"an event of a device without one",
			l.events(ownEvents(3), func(e *layout.Events) { e.Events[0].Type = licensing.EventDeviceBound }),
			[]string{"event kind " + event(3)}},
		{"a payment at another time", l.events(orderEvents,
			func(e *layout.Events) { last := &e.Events[len(e.Events)-1]; last.At = last.At.Add(-time.Second) }),
			[]string{"event kind " + lastOf(s.paid)}},
		{"a payment before its order", l.events(orderEvents, func(e *layout.Events) {
			paid := e.Events[len(e.Events)-1].Order
			paid.PaidAt = paid.CreatedAt.Add(-time.Second)
		}), []string{"event kind " + lastOf(s.paid), "order event_differs " + ord(s.paid)}},
		{"events that can't be read", seed{ownEvents(4): bytesOf("\x01")}, []string{"event value " + event(4)}},
		{"events of an owner that is not registered", seed{keyspace.OwnerKey(labOwner): nil},
			[]string{"event owner_missing e/" + keyspace.OwnerPath(labOwner)}},
		{"a registration with a value", seed{keyspace.OwnerKey(stranger): bytesOf("x")},
			[]string{"owner key h/" + odd(keyspace.OwnerPath(stranger))}},
		{"an epoch with a value", seed{keyspace.EpochKey: bytesOf("x")}, []string{"epoch key cell/epoch" + odd("")}},
		{"events that are being swept",
			seed{keyspace.EpochKey: {}, keyspace.TrimmedKey: keyspace.AppendEpoch(nil, own.LastEvent.Epoch)}, nil},
		{"a swept epoch that is not closed", seed{keyspace.TrimmedKey: keyspace.AppendEpoch(nil, 1<<60)},
			[]string{"swept_events epoch cell/swept"}},
		{"a swept epoch that can't be read", seed{keyspace.TrimmedKey: bytesOf("x")},
			[]string{"swept_events value cell/swept"}},
		{"a usage record and the marks of a recount", seed{
			keyspace.UsageKey(labOwner): (&layout.Usage{}).Encode(), keyspace.RecountKey: (&layout.Recount{}).Encode(),
			keyspace.RecountedKey: (&layout.Recount{Revision: 1}).Encode(),
		}, nil},
		{"a usage record that can't be read", seed{keyspace.UsageKey(labOwner): bytesOf("x")},
			[]string{"usage value s/" + keyspace.OwnerPath(labOwner)}},
		{"a usage record with a recount of the future",
			seed{keyspace.UsageKey(labOwner): (&layout.Usage{Usage: licensing.Usage{CountedAt: 1 << 60}}).Encode()},
			[]string{"usage revision s/" + keyspace.OwnerPath(labOwner)}},
		{"a usage record without its warning",
			seed{keyspace.UsageKey(labOwner): (&layout.Usage{Usage: licensing.Usage{Sequence: 1},
				LastEvent: own.LastEvent}).Encode()},
			[]string{"usage event_missing s/" + keyspace.OwnerPath(labOwner)}},
		{"a mark of a recount that can't be read", seed{keyspace.RecountKey: bytesOf("x")},
			[]string{"recount value cell/recount"}},
		{"a backup", seed{keyspace.BackupKey: bytesOf(keyspace.TimeInKey(kvtest.Time))}, nil},
		{"a backup at no time", seed{keyspace.BackupKey: bytesOf("x")}, []string{"backup value cell/backup"}},
		{"a fence of who listens that can't be read", seed{keyspace.ListenKey: bytesOf("\x02")},
			[]string{"listen_fence value cell/listen"}},
		{"a mark of an epoch that is not " +
			"closed", seed{keyspace.MarkKey(1 << 60): (&layout.RetentionMark{At: kvtest.Time}).Encode()},
			[]string{fmt.Sprintf("event_mark epoch cell/t/%d", 1<<60)}},
		{"events that an owner gave up", seed{keyspace.EpochKey: {},
			keyspace.LedgerKey(labOwner): (&layout.Ledger{TrimmedEpoch: own.LastEvent.Epoch}).Encode()}, nil},
		{"a ledger of an epoch that is not " +
			"closed",
			seed{keyspace.LedgerKey(labOwner): (&layout.Ledger{Spans: []layout.Span{{Last: 1 << 60,
				Bytes: 1}}}).Encode()},
			[]string{"event_ledger epoch r/" + keyspace.OwnerPath(labOwner)}},
		{"a ledger that can't be read", seed{keyspace.LedgerKey(labOwner): bytesOf("\x01\x0a")},
			[]string{"event_ledger value r/" + keyspace.OwnerPath(labOwner)}},
		{"a ledger of an owner that is not registered", seed{keyspace.LedgerKey(stranger): (&layout.Ledger{}).Encode()},
			[]string{"event_ledger owner_missing r/" + keyspace.OwnerPath(stranger)}},
		{"a mark that can't be read", seed{keyspace.MarkKey(1): bytesOf("\x01")},
			[]string{"event_mark value cell/t/1"}},

		{"endpoints that can't be read", seed{keyspace.WebhooksKey(labOwner): bytesOf("\x01\x0a")},
			[]string{"webhooks value " + hooks}},
		{"endpoints that are gone", seed{keyspace.WebhooksKey(labOwner): nil}, []string{"event unlinked e/"}},
		{"endpoints of one who listens that are gone", seed{keyspace.WebhooksKey(labListener): nil},
			[]string{"listener webhooks_missing cell/f/" + keyspace.OwnerPath(labListener)}},
		{"an owner that listens without a key", seed{keyspace.ListenerKey(labListener): nil},
			[]string{"webhooks listening " + listener}},
		{"an owner that has a key and does not listen", seed{keyspace.ListenerKey(labOwner): {}},
			[]string{"webhooks listening " + hooks}},
		{"a stranger who listens", seed{keyspace.ListenerKey(stranger): {}},
			[]string{"listener webhooks_missing cell/f/" + keyspace.OwnerPath(stranger)}},
		{"a listener's key with a value", seed{keyspace.ListenerKey(labListener): bytesOf("x")},
			[]string{"listener key cell/f/" + odd(keyspace.OwnerPath(labListener))}},
		{"an owner whose request to listen waits", seed{keyspace.ListenerKey(labListener): nil,
			keyspace.ListenRequestKey(labListener): bytesOf(string(layout.EncodeListenRequest(true)))}, nil},
		{"a stranger who asks to " +
			"listen", seed{keyspace.ListenRequestKey(stranger): bytesOf(string(layout.EncodeListenRequest(true)))},
			[]string{"listen_request webhooks_missing cell/a/" + keyspace.OwnerPath(stranger)}},
		{"a request to listen that can't be read", seed{keyspace.ListenRequestKey(labListener): bytesOf("x")},
			[]string{"listen_request value cell/a/" + keyspace.OwnerPath(labListener)}},
		{"an endpoint that wants activations by now", endpoint(labOwner, func(e *licensing.Endpoint) { e.Types = nil }),
			[]string{"webhooks listening " + hooks}},
		{"no mark of endpoints", seed{keyspace.WebhooksMark: nil},
			[]string{"webhooks mark_missing " + hooks, "webhooks mark_missing " + listener}},
		{"a mark of endpoints with a value", seed{keyspace.WebhooksMark: bytesOf("x")},
			[]string{"webhooks_mark key cell/webhooks" + odd("")}},
		{"too many endpoints", l.hooks(labOwner, func(r *layout.Webhooks) {
			for i := range licensing.MaxEndpoints {
				e := r.Webhooks.Endpoints[0]
				e.ID = licensing.NewEndpointID(labOwner, fmt.Sprint(i))
				r.Webhooks.Endpoints = append(r.Webhooks.Endpoints, e)
			}
		}), []string{"webhooks limit " + hooks}},
		{"an endpoint twice", l.hooks(labOwner, func(r *layout.Webhooks) {
			r.Webhooks.Endpoints = append(r.Webhooks.Endpoints, r.Webhooks.Endpoints[0])
		}), []string{"webhooks twice " + hooks}},
		{"an endpoint's id of no form", endpoint(labOwner, func(e *licensing.Endpoint) { e.ID = "we_A" }),
			[]string{"webhooks id " + hooks}},
		{"an endpoint of another slot", l.hooks(labOwner, func(r *layout.Webhooks) {
			other := r.Webhooks.Endpoints[0]
			other.ID = "we_zzother"
			r.Webhooks.Endpoints = append(r.Webhooks.Endpoints, other)
		}), []string{"webhooks slot " + hooks}},
		{"an endpoint of another slot without an address", l.hooks(labOwner, func(r *layout.Webhooks) {
			other := r.Webhooks.Endpoints[0]
			other.ID, other.URL = "we_zzother", ""
			r.Webhooks.Endpoints = append(r.Webhooks.Endpoints, other)
		}), []string{"webhooks endpoint " + hooks, "webhooks slot " + hooks}},
		{"an endpoint without an address", endpoint(labOwner, func(e *licensing.Endpoint) { e.URL = "" }),
			[]string{"webhooks endpoint " + hooks}},
		{"an endpoint without a beginning", endpoint(labOwner, func(e *licensing.Endpoint) { e.Since = "" }),
			[]string{"webhooks endpoint " + hooks}},
		{"an endpoint that is disabled for no reason", endpoint(labOwner,
			func(e *licensing.Endpoint) { e.DisabledAt = kvtest.Time }), []string{"webhooks endpoint " + hooks}},
		{"an endpoint's master key that is gone", seed{keyspace.MasterKeyKey("m2"): nil},
			[]string{"webhooks master_missing " + hooks, "webhooks master_missing " + hooks,
				"webhooks master_missing " + listener}},
		{"an endpoint's master key before that is gone", endpoint(labListener, func(e *licensing.Endpoint) {
			e.Previous = licensing.PreviousSecret{Version: 1, MasterID: "m0", Until: kvtest.Time}
		}),
			[]string{"webhooks master_missing " + listener}},
		{"an endpoint's master key before that is retired",
			both(seed{keyspace.RetiredMasterKey("m0"): bytesOf(strings.Repeat("x", keyring.FingerprintSize))},
				endpoint(labListener, func(e *licensing.Endpoint) {
					e.Previous = licensing.PreviousSecret{Version: 1, MasterID: "m0", Until: kvtest.Time}
				})), nil},
		{"an endpoint that is to be swept", seed{keyspace.DeletedWebhookKey("we_0egood"): {}},
			[]string{"webhooks deleted " + hooks}},
		{"writers of endpoints that come twice", l.hooks(labOwner, func(r *layout.Webhooks) {
			r.Writers = []layout.Writer{{By: store.Incarnation{1}, Swap: 1}, {By: store.Incarnation{1}, Swap: 2}}
		}),
			[]string{"webhooks writers " + hooks}},
		{"an endpoint's event that is gone", seed{hookEvents: nil}, []string{"webhooks event_missing " + hooks}},
		{"an endpoint's event that was never recorded", l.hooks(labOwner, func(r *layout.Webhooks) {
			r.LastEvent,
				r.Webhooks.Sequence = keyspace.Location{}, 0
		}), []string{"event unlinked e/"}},
		{"an endpoint's event of another owner",
			seed{
				keyspace.EventsKeyOf(labOwner, lastEvent, keyspace.WebhooksInEvents(stranger), 1): l.value(hookEvents),
			},
			[]string{"event value e/" + keyspace.EventID(labOwner, lastEvent, keyspace.WebhooksInEvents(stranger), 1)}},
		{"a claim of an endpoint of no form", l.claim(claims.orderKey, func(c *licensing.Claim) {
			c.OrderNo,
				c.EndpointID = "", "we_A"
		}), []string{"claim endpoint " + claims.order}},
		{"a claim of an endpoint that was deleted",
			l.claim(claims.orderKey, func(c *licensing.Claim) { c.OrderNo, c.EndpointID = "", "we_0edeleted" }), nil},

		{"no check key", seed{keyspace.CheckKey: nil},
			[]string{"check_key missing cell/check"}},
		{"a check key that is too short", seed{keyspace.CheckKey: bytesOf("short")},
			[]string{"check_key value cell/check"}},

		{"an id key of no form", seed{keyspace.IDKeyKey: bytesOf("?")},
			[]string{"id_key value cell/id_key"}},
		{"an id key under a master key that is not in use", seed{
			keyspace.IDKeyKey: (&layout.SealedIDKey{MasterID: "m9"}).Encode()},
			[]string{"id_key master_missing cell/id_key"}},

		{"a node of no form", seed{keyspace.NodeKey(store.Incarnation{1}): bytesOf("x")},
			[]string{"node value cell/n/" + odd("\x01\x00\x00\x00\x00\x00\x00\x00")}},

		{"keys in a slot that is not their owner's", seed{
			elsewhere("l/" + block):                                                     bytesOf("x"),
			elsewhere("d/" + block + strings.Repeat("x", 16)):                           {},
			elsewhere("m/" + block):                                                     {},
			elsewhere("x/l/12345678" + block):                                           {},
			elsewhere("k/" + apiKeyHash):                                                bytesOf("x"),
			elsewhere("u/" + apiKeyHash):                                                bytesOf("x"),
			elsewhere("p/" + s.unpaid.OrderNo):                                          bytesOf("x"),
			elsewhere("v/" + labHook + "/p"):                                            bytesOf("x"),
			elsewhere("x/g/12345678" + keyspace.OwnerPath(labOwner) + "editor"):         {},
			elsewhere("g/" + keyspace.OwnerPath(labOwner) + "b"):                        {},
			elsewhere("x/w/" + labHook):                                                 {},
			elsewhere("j/1i/" + keyspace.OwnerPath(labOwner)):                           {},
			elsewhere("z/12345678" + keyspace.OwnerPath(labOwner) + "0123456789abcdef"): {},
			elsewhere("h/" + keyspace.OwnerPath(labOwner)):                              {},
			elsewhere("o/" + keyspace.OwnerPath(labOwner) + s.unpaid.OrderNo):           bytesOf("x"),
		}, []string{
			"license slot l/" + odd(block), "device slot d/" + odd(block+strings.Repeat("x", 16)),
			"metadata slot m/" + odd(block), "license_end slot x/l/" + odd("12345678"+block),
			"api_key slot k/" + odd(apiKeyHash), "api_key_use slot u/" + odd(apiKeyHash),
			"order_owner slot p/" + odd(s.unpaid.OrderNo), "delivery slot v/" + odd(labHook+"/p"),
			"rollout slot x/g/" + odd("12345678"+keyspace.OwnerPath(labOwner)+"editor"),
			"customer slot g/" + odd(keyspace.OwnerPath(labOwner)+"b"),
			"deleted_webhook slot x/w/" + odd(labHook), "skip slot j/" + odd("1i/"+keyspace.OwnerPath(labOwner)),
			"claim_age slot z/" + odd("12345678"+keyspace.OwnerPath(labOwner)+"0123456789abcdef"),
			"owner slot h/" + odd(keyspace.OwnerPath(labOwner)),
			"order slot o/" + odd(keyspace.OwnerPath(labOwner)+s.unpaid.OrderNo),
		}},
		{"a map of slots of no form", seed{keyspace.SlotMapKey: bytesOf("?")}, []string{"slot_map value cell/map"}},
		{"another map of slots", seed{keyspace.SlotMapKey + "s": {}}, []string{"slot_map key cell/map" + odd("s")}},
		{"a slot that is in another cell", seed{keyspace.SlotMapKey: layout.SlotMap{{
			First: licensing.SlotOf(labOwner), Last: licensing.SlotOf(labOwner), Cell: "other",
		}}.Encode()}, []string{"slot_map moved cell/map"}},
		{"a slot of no form", seed{keyspace.SlotsPrefix + "x": {}}, []string{"slot key cell/s/" + odd("x")}},
		{"a slot with a value", seed{keyspace.SlotKey(licensing.SlotOf(labOwner)): bytesOf("x")},
			[]string{"slot key cell/s/" + odd(licensing.SlotOf(labOwner).String())}},
		{"a slot that is not registered", seed{keyspace.SlotKey(licensing.SlotOf(labListener)): nil},
			[]string{fmt.Sprintf("unknown unknown_family %q", keyspace.InSlot(licensing.SlotOf(labListener), ""))}},

		{"keys of no form", seed{
			inLab("b/x"): {}, inLab("b/acct_lab/t/0123456789abcdeford_1"): {}, inLab("c/x"): {},
			inLab("c/acct_lab/t/12345678"): {}, inLab("j/x"): {}, inLab("j/"): {}, inLab("j/3x"): {},
			keyspace.Prefix + "cell/n/x": {},
			inLab("g/x"):                 {}, inLab("g/acct_lab/t/b0123456789abcdef12345678x"): {},
			inLab("l/x"): {}, inLab("d/x"): {}, inLab("m/x"): {},
			inLab("i/x"): {}, inLab("o/x"): {}, inLab("tr/x"): {}, inLab("x/t/x"): {},
			inLab("p/x"): {}, inLab("q/x"): {}, inLab(keyspace.LedgersFamily + "x"): {},
			inLab(keyspace.UsageFamily + "x"): {}, keyspace.RecountKey + "s": {},
			inLab("k/x"): {}, keyspace.Prefix + "cell/checkers": {}, inLab("y/x"): {},
			inLab("z/x"): {}, inLab("z/12345678x"): {},
			inLab("x/g/x"): {}, inLab("x/i/x"): {},
			inLab("x/l/x"): {}, inLab("x/n/x"): {}, inLab("x/o/12345678x"): {}, inLab("x/r/x"): {}, inLab("x/s/x"): {},
			inLab("a/x"): {}, inLab("a/acct_lab/t/"): {}, keyspace.Prefix + "cell/keys2": {},
			keyspace.Prefix + "cell/master/ä": {},
			inLab("u/x"):                      {}, keyspace.Prefix + "cell/retired/ä": {},
			inLab("n/x"): {}, inLab("pa/x"): {}, inLab("pt/x"): {}, inLab("sb/x"): {}, keyspace.BooksKey + "s": {},
			inLab("f/x"): {}, keyspace.SettingsKey(labOwner) + "x": {}, keyspace.ProviderEventsPrefix + "x": {},
			inLab("e/x"): {}, keyspace.EventsOf(labOwner) + "x": {}, inLab("h/x"): {},
			keyspace.Prefix + "cell/t/x": {},
			keyspace.IDKeyKey + "s":      {}, keyspace.BackupKey + "s": {}, keyspace.EpochKey + "s": {},
			keyspace.ListenKey + "s": {}, keyspace.ListenersPrefix + "x": {}, keyspace.ListenRequests + "x": {},
			keyspace.TrimmedKey + "s": {}, keyspace.WebhooksMark + "s": {}, inLab(keyspace.WebhooksFamily + "x"): {},
			keyspace.WebhooksKey(labOwner) + "x":                                {},
			inLab(keyspace.DeletedWebhooksFamily + "we_A"):                      {},
			inLab("i/acct_lab/x/y"):                                             {},
			keyspace.InSlot(first.Slot(), "d/"+keyspace.BlockOf(first)+"short"): {},
			inLab("l/" + strings.Repeat("\xff", 15)):                            {},
		}, []string{
			"trial key tr/" + odd("x"), "trial_end key x/t/" + odd("x"),
			"customer key g/" + odd("x"), "customer key g/" + odd("acct_lab/t/b0123456789abcdef12345678x"),
			"alias key n/" + odd("x"), "payment key pa/" + odd("x"), "sale key pt/" + odd("x"),
			"sandbox key sb/" + odd("x"),
			"books key cell/books" + odd("s"), "provider_events key cell/pe/" + odd("x"), "settings key f/" + odd("x"),
			"settings key f/" + odd(keyspace.OwnerPath(labOwner)+"x"),
			"event key e/" + odd("x"), "event key e/" + odd(keyspace.OwnerPath(labOwner)+"x"), "owner key h/" +
				odd("x"), "event_mark key cell/t/" + odd("x"), "event_ledger key r/" + odd("x"),
			"webhooks_mark key cell/webhooks" + odd("s"), "webhooks key w/" + odd("x"),
			"webhooks key w/" + odd(keyspace.OwnerPath(labOwner)+"x"), "deleted_webhook key x/w/" + odd("we_A"),
			"id_key key cell/id_key" + odd("s"), "backup key cell/backup" + odd("s"), "epoch key cell/epoch" + odd("s"),
			"listen_fence key cell/listen" + odd("s"),
			"usage key s/" + odd("x"), "recount key cell/recount" + odd("s"),
			"listener key cell/f/" + odd("x"), "listen_request key cell/a/" + odd("x"), "swept_events key cell/swept" +
				odd("s"),
			"api_key key k/" + odd("x"), "api_key_index key a/" + odd("acct_lab/t/"), "api_key_index key a/" + odd("x"),
			"buyer key b/" + odd("x"), "buyer key b/" + odd("acct_lab/t/0123456789abcdeford_1"),
			"catalog key c/" + odd("x"), "catalog key c/" + odd("acct_lab/t/12345678"),
			"skip key j/" + odd("x"), "skip key j/" + odd(""), "skip key j/" + odd("3x"),
			"api_key_mark key cell/keys" + odd("2"), "api_key_use key u/" + odd("x"),
			"retired_master_key key cell/retired/" + odd("ä"), "master_key key cell/master/" + odd("ä"),
			"check_key key cell/check" + odd("ers"), "claim key y/" + odd("x"), "claim_age key z/" + odd("x"),
			"claim_age key z/" + odd("12345678x"), "device key d/" + odd("x"), "device key d/" +
				odd(keyspace.BlockOf(first)+"short"),
			"license key l/" + odd("x"), "license key l/" + odd(strings.Repeat("\xff", 15)),
			"listing key i/" + odd("x"), "listing key i/" + odd("acct_lab/x/y"),
			"issue key x/i/" + odd("x"),
			"rollout key x/g/" + odd("x"), "license_end key x/l/" + odd("x"), "license_notice key x/n/" + odd("x"),
			"order_end key x/o/" + odd("12345678x"),
			"refund key x/r/" + odd("x"), "sandbox_renewal key x/s/" + odd("x"),
			"metadata key m/" + odd("x"), "node key cell/n/" + odd("x"), "order key o/" + odd("x"),
			"order_owner key p/" + odd("x"), "product key q/" + odd("x"),
		}},
		{"keys of unknown kinds", seed{
			inLab("A/1"): {}, inLab("A/2"): {}, keyspace.Prefix + "cell/other": {}, keyspace.Prefix + "zzz/1": {},
			keyspace.Prefix + "A/1": {}, inLab("nothing-that-a-log-should-show-in-full"): {},
		}, []string{
			fmt.Sprintf("unknown unknown_family %q", inLab("A/")), `unknown unknown_family "lc2/A/"`,
			fmt.Sprintf("unknown unknown_family %q", inLab("nothing-that-a-l")),
			`unknown unknown_family "lc2/cell/"`, `unknown unknown_family "lc2/zzz/"`,
		}},
	} {
		if i%depth.Of(7, 1) != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			defer l.plant(c.seed)()
			for name, reading := range readings() {
				if name != "streamed" && i%10 != 0 {
					continue // the checks see keys, not how they were read
				}
				store, cfg := reading(l.store)
				cfg.Keys = &l.keys
				_, found := (&lab{t: t, store: store}).verify(cfg)
				if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), names(found)); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%v", name, diff, found)
				}
				shown := fmt.Sprint(found)
				for _, key := range []licensing.LicenseKey{s.inline, s.spilled, s.lowered, s.fresh, paidLicense,
					s.refunded.LicenseKey, forged} {
					if strings.Contains(shown, strings.TrimPrefix(l.keys.Text(key), "LIC-")) {
						t.Errorf("a license key is shown: %s", shown)
					}
				}
			}
		})
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("in the end the store has changed: %v", found)
	}
}

func names(found []verify.Violation) []string {
	var names []string
	for _, v := range found {
		names = append(names, v.Family+" "+v.Rule+" "+v.Key)
	}
	slices.Sort(names)
	return names
}
