package kv

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
	"licet/node/store"
)

// seed is raw keys to write into a healthy store; nil deletes one.
type seed map[string][]byte

// plant writes a seed, and gives what puts the store back.
func (l *lab) plant(s seed) (undo func()) {
	l.t.Helper()
	before := seed{}
	for key := range s {
		before[key] = nil
		if kvs := must(l.client.Get(l.ctx(), key))(l.t).Kvs; len(kvs) > 0 {
			before[key] = append([]byte{}, kvs[0].Value...)
		}
	}
	l.write(s)
	return func() { l.write(before) }
}

func (l *lab) write(s seed) {
	l.t.Helper()
	var ops []clientv3.Op
	for key, value := range s {
		if value == nil {
			ops = append(ops, clientv3.OpDelete(key))
		} else {
			ops = append(ops, clientv3.OpPut(key, string(value)))
		}
	}
	must(l.client.Txn(l.ctx()).Then(ops...).Commit())(l.t)
}

// license gives a seed that changes a license's record.
func (l *lab) license(key licensing.LicenseKey, change func(*storedLicense)) seed {
	l.t.Helper()
	record := must(decodeLicense(key.ID(), l.value(licenseKey(key.ID()))))(l.t)
	owner := record.license.Owner
	change(record)
	changed := seed{licenseKey(key.ID()): record.encode()}
	if owner == record.license.Owner {
		told := record.license
		l.retell(changed, eventsKey(owner, record.told, licenseInEvents(key.ID()), told.Sequence), func(e *licensing.Event) { e.License = &told })
	}
	return changed
}

// retell lets the latest event of a record tell what a seed says of it, so that it is
// no contradiction too.
func (l *lab) retell(s seed, key string, change func(*licensing.Event)) {
	l.t.Helper()
	found := must(l.client.Get(l.ctx(), key))(l.t).Kvs
	if len(found) == 0 {
		return
	}
	for key, value := range l.events(key, func(e *storedEvents) { change(&e.events[len(e.events)-1]) }) {
		s[key] = value
	}
}

// events gives a seed that changes events.
func (l *lab) events(key string, change func(*storedEvents)) seed {
	l.t.Helper()
	at, _ := readEventsKey([]byte(key[len(eventsOfOwner(labOwner)):]))
	stored := must(decodeEvents(labOwner, at.record, at.last, l.value(key)))(l.t)
	change(stored)
	return seed{key: encodeEvents(stored.events, stored.before)}
}

// orderSeed gives a seed that changes an order's record.
func (l *lab) orderSeed(o licensing.Order, change func(*licensing.Order)) seed {
	l.t.Helper()
	key := orderKey(o.Owner, o.OrderNo)
	record := must(decodeOrder(licensing.OrderRef(o.Owner, o.OrderNo), l.value(key)))(l.t)
	change(&record.order)
	told := record.order
	changed := seed{key: must(record.encode())(l.t)}
	l.retell(changed, eventsKey(o.Owner, record.told, orderInEvents(o.OrderNo), told.Sequence), func(e *licensing.Event) { e.Order = &told })
	return changed
}

// productValue gives a product's value after a change.
func (l *lab) productValue(id string, change func(*storedProduct)) []byte {
	l.t.Helper()
	record := must(decodeProduct(licensing.ProductRef(labOwner, id), l.value(productKey(labOwner, id))))(l.t)
	change(record)
	return record.encode()
}

// hooks gives a seed that changes an owner's endpoints.
func (l *lab) hooks(owner licensing.Owner, change func(*storedWebhooks)) seed {
	l.t.Helper()
	record := must(decodeWebhooks(owner, l.value(webhooksKey(owner))))(l.t)
	change(record)
	return seed{webhooksKey(owner): record.encode()}
}

// both is two seeds in one.
func both(a, b seed) seed {
	maps.Copy(a, b)
	return a
}

// claim gives a seed that changes a claim.
func (l *lab) claim(key string, change func(*licensing.Claim)) seed {
	l.t.Helper()
	claim, writers, err := decodeClaim(l.value(key))
	if err != nil {
		l.t.Fatal(err)
	}
	change(claim)
	return seed{key: encodeClaim(claim, writers)}
}

// labClaims is where the claims of the free order, of the fresh license and of
// the change of the own one are, and what violations call them and the claim of
// an API key.
type labClaims struct{ orderKey, order, orderAgeKey, orderAge, freshKey, fresh, ownKey, own, key string }

func (l *lab) claims(s specimens) (c labClaims) {
	l.t.Helper()
	for _, kv := range must(l.client.Get(l.ctx(), layout+"y/", clientv3.WithPrefix()))(l.t).Kvs {
		claim, _, err := decodeClaim(kv.Value)
		if err != nil {
			l.t.Fatal(err)
		}
		path, hash := ownerPath(labOwner), strings.TrimPrefix(string(kv.Key), layout+"y/"+ownerPath(labOwner))
		name := fmt.Sprintf("%s%x", path, hash)
		switch {
		case claim.OrderNo == s.free.OrderNo:
			c.orderKey, c.order = string(kv.Key), "y/"+name
			c.orderAgeKey = claimAgeKey(claim.CreatedAt, labOwner, hash)
			c.orderAge = "z/" + claim.CreatedAt.Format(time.RFC3339Nano) + "/" + name
		case claim.LicenseKey == s.own:
			c.ownKey, c.own = string(kv.Key), "y/"+name
		case claim.Grant != nil && claim.Grant.Key(l.check, store.Cell, 0) == s.fresh:
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

// tallLicense is where a license would stand that is not there, and whose place
// is on an upper level too.
func tallLicense() string {
	var id licensing.LicenseID
	for {
		if entry := listingKey(labOwner, testTime, id); skipHeight(entry) > 0 {
			return entry
		}
		binary.BigEndian.PutUint32(id[:], binary.BigEndian.Uint32(id[:])+1)
	}
}

func bytesOf(text string) []byte { return []byte(text) }

// TestVerifyFindsEachSeededCorruption plants one corruption after the other in
// a healthy store: each is found, named exactly, and nothing else is.
func TestVerifyFindsEachSeededCorruption(t *testing.T) {
	l := newLab(t)
	s := l.fill()
	paidLicense := s.paid.LicenseKey
	created := func(key licensing.LicenseKey) time.Time {
		return must(decodeLicense(key.ID(), l.value(licenseKey(key.ID()))))(t).license.CreatedAt
	}
	stranger := licensing.Owner{AccountID: "acct_stranger", Mode: licensing.Live}
	first, last := licensing.LicenseID{15: 8}, licensing.LicenseID{}
	for i := range last {
		last[i] = 0xff
	}
	last[15] = 0xf8
	device := func(id string) []byte {
		return encodeDevice(&licensing.Device{ID: id, BoundAt: testTime, LastSeenAt: testTime})
	}
	inlineDevices := func(record *storedLicense, ids ...string) (devices []inlineDevice) {
		for _, id := range ids {
			devices = append(devices, inline(&licensing.Device{ID: id, BoundAt: testTime, LastSeenAt: testTime}, record.license.CreatedAt))
		}
		return devices
	}
	forged := licensing.NewKeyCheck(bytesOf("another check key")).Mint("LIC", '0', [licensing.LicenseKeyEntropy]byte{1})
	forgedLicense := storedLicense{license: *licensing.DefaultTerms().Issue(forged, labOwner, "pro", "", testTime)}
	apiKey := must(l.client.Get(l.ctx(), layout+"k/", clientv3.WithPrefix()))(t).Kvs[0]

	keyIndex := "a/" + ownerPath(labOwner) + "key_lab"

	claims := l.claims(s)
	pro := licensing.ProductRef(labOwner, "pro")
	product := &must(decodeProduct(pro, l.value(productKey(labOwner, "pro"))))(t).product
	later := product.CreatedAt.Add(time.Hour)
	var skips []string
	for _, kv := range must(l.client.Get(l.ctx(), layout+skipPrefix, clientv3.WithPrefix()))(t).Kvs {
		skips = append(skips, string(kv.Key))
	}
	if len(skips) != 2 {
		t.Fatalf("on upper levels are %q; see labSeed", skips)
	}
	tall := tallLicense()

	// What violations call things.
	v := &verification{}
	lic := func(key licensing.LicenseKey) string { return "l/" + v.name(key.ID()) }
	meta := func(key licensing.LicenseKey) string { return "m/" + v.name(key.ID()) }
	dev := func(id licensing.LicenseID, device string) string {
		return v.deviceName(strings.TrimPrefix(deviceKey(id, device), layout+"d/"))
	}
	list := func(owner licensing.Owner, at time.Time, id licensing.LicenseID) string {
		return "i/" + ownerPath(owner) + at.UTC().Format(time.RFC3339Nano) + "/" + v.name(id)
	}
	ord := func(o licensing.Order) string { return "o/" + ownerPath(o.Owner) + o.OrderNo }
	orderEnd := func(o licensing.Order, at time.Time) (key, name string) {
		place := dueOf(licensing.Due{Kind: licensing.DueOrderEnd, At: at})
		return place.key(orderKey(o.Owner, o.OrderNo)), "order_end %s x/o/" + at.Format(time.RFC3339Nano) + "/" + ownerPath(o.Owner) + o.OrderNo
	}
	unpaidEndKey, unpaidEnd := orderEnd(s.unpaid, s.unpaid.ExpiresAt)
	gone := func(name string) string { return fmt.Sprintf(name, "record_missing") }
	misplaced := func(name string) string { return fmt.Sprintf(name, "misplaced") }
	licenseEnd := func(key licensing.LicenseKey, at time.Time) string {
		return dueOf(licensing.Due{Kind: licensing.DueLicenseEnd, At: at}).key(licenseKey(key.ID()))
	}
	endingAt := "license_end %s x/l/" + labEnd.Format(time.RFC3339Nano) + "/" + v.name(s.ending.ID())
	refundKey := dueOf(licensing.Due{Kind: licensing.DueRefund}).key(orderKey(s.owed.Owner, s.owed.OrderNo))
	refundAt := "refund %s x/r/1970-01-01T00:00:00Z/" + ownerPath(s.owed.Owner) + s.owed.OrderNo
	ptr := func(o licensing.Order) string { return "p/" + o.OrderNo }
	odd := func(text string) string { return v.opaque(text) }
	buyer := func(o licensing.Order) string {
		return fmt.Sprintf("b/%s%x/%s", ownerPath(o.Owner), placeOfOrder(&o)[len(layout+"b/"+ownerPath(o.Owner)):][:buyerLength], o.OrderNo)
	}
	skipName := func(key string) string { return key[len(layout):][:len("j/1")] + odd(key[len(layout+"j/1"):]) }
	tooHigh := skipKey(2, placeOfProduct(pro, product)[len(layout):])
	tallOrder := licensing.Order{Owner: labOwner, BuyerEmail: labBuyer, OrderNo: skips[1][len(layout+"j/1"+ordersOf(labOwner)):]}
	catalog := func(at time.Time) string {
		return "c/" + ownerPath(labOwner) + at.UTC().Format(time.RFC3339Nano) + "/pro"
	}

	own := must(decodeLicense(s.own.ID(), l.value(licenseKey(s.own.ID()))))(t)
	record := licenseInEvents(s.own.ID())
	ownEvents := func(last uint64) string { return eventsKey(labOwner, own.told, record, last) }
	event := func(last uint64) string { return "e/" + eventID(own.told, record, last) }
	paid := must(decodeOrder(licensing.OrderRef(labOwner, s.paid.OrderNo), l.value(orderKey(labOwner, s.paid.OrderNo))))(t)
	lastOf := func(o licensing.Order) string {
		r := must(decodeOrder(licensing.OrderRef(labOwner, o.OrderNo), l.value(orderKey(labOwner, o.OrderNo))))(t)
		return "e/" + eventID(r.told, orderInEvents(o.OrderNo), r.order.Sequence)
	}
	lastOfLicense := func(key licensing.LicenseKey) string {
		r := must(decodeLicense(key.ID(), l.value(licenseKey(key.ID()))))(t)
		return "e/" + eventID(r.told, licenseInEvents(key.ID()), r.license.Sequence)
	}
	orderEvents := eventsKey(labOwner, paid.told, orderInEvents(s.paid.OrderNo), paid.order.Sequence)

	hooks, listener := "w/"+ownerPath(labOwner), "w/"+ownerPath(labListener)
	told := must(decodeWebhooks(labOwner, l.value(webhooksKey(labOwner))))(t).told
	hookEvents := eventsKey(labOwner, told, webhooksInEvents(labOwner), 1)
	endpoint := func(owner licensing.Owner, change func(*licensing.Endpoint)) seed {
		return l.hooks(owner, func(r *storedWebhooks) { change(&r.webhooks.Endpoints[0]) })
	}

	for i, c := range []struct {
		name string
		seed seed
		want []string // family, rule and key
	}{
		{"a count that is too high", l.license(s.inline, func(r *storedLicense) { r.license.CurrentDevices = 3 }),
			[]string{"license device_count " + lic(s.inline)}},
		{"a count that is too low, of spilled devices", l.license(s.spilled, func(r *storedLicense) { r.license.CurrentDevices = 18 }),
			[]string{"license device_count " + lic(s.spilled)}},
		{"a spilled device that is gone", seed{deviceKey(s.spilled.ID(), "device-3"): nil},
			[]string{"license device_count " + lic(s.spilled)}},
		{"a spilled device that came back", seed{deviceKey(s.spilled.ID(), "device-7"): device("device-7")},
			[]string{"license device_count " + lic(s.spilled)}},
		{"more devices than allowed", l.license(s.inline, func(r *storedLicense) { r.license.MaxDevices = 1 }),
			[]string{"license device_limit " + lic(s.inline)}},
		{"more devices than at the lowering", l.license(s.lowered, func(r *storedLicense) { r.license.AllowedOver = 3 }),
			[]string{"license allowed_over " + lic(s.lowered), "license device_limit " + lic(s.lowered)}},
		{"an allowance within the limit", l.license(s.inline, func(r *storedLicense) { r.license.AllowedOver = 9 }),
			[]string{"license allowed_over " + lic(s.inline)}},
		{"a negative count", l.license(s.fresh, func(r *storedLicense) { r.license.CurrentDevices = -1 }),
			[]string{"license negative " + lic(s.fresh)}},
		{"too many devices inline", l.license(s.fresh, func(r *storedLicense) {
			r.devices, r.license.CurrentDevices, r.license.MaxDevices, r.license.ActivatedAt = inlineDevices(r, deviceIDs(17)...), 17, 0, testTime
		}), []string{"license inline_limit " + lic(s.fresh)}},
		{"a device twice inline", l.license(s.fresh, func(r *storedLicense) {
			r.devices, r.license.CurrentDevices, r.license.MaxDevices, r.license.ActivatedAt = inlineDevices(r, "a", "b", "a"), 3, 0, testTime
		}), []string{"license inline_twice " + lic(s.fresh)}},
		{"inline devices of a spilled license", l.license(s.spilled, func(r *storedLicense) { r.devices = inlineDevices(r, "a") }),
			[]string{"license spilled " + lic(s.spilled)}},
		{"a device key of an inline license", seed{deviceKey(s.inline.ID(), "x"): device("x")},
			[]string{"license spilled " + lic(s.inline)}},
		{"a device at another's place", seed{
			deviceKey(s.spilled.ID(), "device-3"): nil, deviceKey(s.spilled.ID(), "elsewhere"): device("device-3"),
		}, []string{"device position " + dev(s.spilled.ID(), "elsewhere")}},
		{"a device that can't be read", seed{deviceKey(s.spilled.ID(), "device-3"): bytesOf("\x01\x0a")},
			[]string{"device value " + dev(s.spilled.ID(), "device-3")}},
		{"devices of no license", seed{deviceKey(first, "x"): device("x"), deviceKey(last, "y"): device("y"), deviceKey(last, "z"): device("z")},
			[]string{"device orphan " + dev(first, "x"), "device orphan " + dev(last, "y"), "device orphan " + dev(last, "z")}},
		{"metadata of no license", seed{metadataKey(first): bytesOf(`{}`), metadataKey(last): bytesOf(`{}`)},
			[]string{"metadata orphan m/" + v.name(first), "metadata orphan m/" + v.name(last)}},
		{"metadata that is no object", seed{metadataKey(s.inline.ID()): bytesOf(`[]`)},
			[]string{"metadata value " + meta(s.inline)}},
		{"never activated", l.license(s.inline, func(r *storedLicense) { r.license.ActivatedAt = time.Time{} }),
			[]string{"license activated_at " + lic(s.inline)}},
		{"a reason for no state", l.license(s.inline, func(r *storedLicense) { r.license.StateReason = "fraud" }),
			[]string{"license state_reason " + lic(s.inline)}},
		{"more removals in a month than are allowed", l.license(s.own, func(r *storedLicense) { r.license.Removals.Count = 2 }),
			[]string{"license removals " + lic(s.own)}},
		{"removals that nobody bounds", l.license(s.inline, func(r *storedLicense) { r.license.Removals.Count = 1 }),
			[]string{"license removals " + lic(s.inline)}},
		{"a writer twice", l.license(s.inline, func(r *storedLicense) {
			r.writers = []writer{{store.Incarnation{1}, 5}, {store.Incarnation{2}, 6}, {store.Incarnation{1}, 4}}
		}), []string{"license writers " + lic(s.inline)}},
		{"nine writers", l.license(s.inline, func(r *storedLicense) {
			r.writers = nil
			for i := range byte(9) {
				r.writers = append(r.writers, writer{store.Incarnation{i}, 1})
			}
		}), []string{"license writers " + lic(s.inline)}},
		{"a writer that can't be read", l.license(s.inline, func(r *storedLicense) { r.unknown = []byte{15<<3 | 2, 1, 0} }),
			[]string{"license value " + lic(s.inline)}},
		{"a license that can't be read", seed{licenseKey(s.spilled.ID()): bytesOf("?")},
			[]string{"license value " + lic(s.spilled)}},
		{"a license of a newer format", seed{licenseKey(paidLicense.ID()): bytesOf("\x02")},
			[]string{"license value " + lic(paidLicense)}},
		{"a license that is gone", seed{licenseKey(s.inline.ID()): nil},
			[]string{"event unlinked e/", "listing license_missing " + list(labOwner, created(s.inline), s.inline.ID()), "metadata orphan " + meta(s.inline)}},
		{"an order's license that is gone", seed{licenseKey(paidLicense.ID()): nil},
			[]string{"event unlinked e/", "listing license_missing " + list(labOwner, created(paidLicense), paidLicense.ID()), "order license_missing " + ord(s.paid)}},
		{"a key with wrong check characters", seed{
			licenseKey(forged.ID()): forgedLicense.encode(), listingKey(labOwner, testTime, forged.ID()): {},
		}, []string{"license check_characters " + lic(forged)}},
		{"a license of another owner", l.license(s.inline, func(r *storedLicense) { r.license.Owner = stranger }),
			[]string{"event unlinked e/", "license event_missing " + lic(s.inline), "license listing_missing " + lic(s.inline), "listing misplaced " + list(labOwner, created(s.inline), s.inline.ID())}},
		{"an account that is no key", l.license(s.inline, func(r *storedLicense) { r.license.Owner.AccountID = "a/t/b" }),
			[]string{"event unlinked e/", "license event_missing " + lic(s.inline), "license listing_missing " + lic(s.inline), "license owner " + lic(s.inline),
				"listing misplaced " + list(labOwner, created(s.inline), s.inline.ID())}},
		{"an order's license of another owner", l.license(paidLicense, func(r *storedLicense) { r.license.Owner = stranger }),
			[]string{"event unlinked e/", "license event_missing " + lic(paidLicense), "license listing_missing " + lic(paidLicense), "license order_missing " + lic(paidLicense),
				"listing misplaced " + list(labOwner, created(paidLicense), paidLicense.ID()), "order license_owner " + ord(s.paid)}},
		{"a license that is not listed", seed{listingKey(labOwner, created(s.fresh), s.fresh.ID()): nil},
			[]string{"license listing_missing " + lic(s.fresh)}},
		{"a license that is listed twice", seed{listingKey(labOwner, testTime, s.fresh.ID()): {}},
			[]string{"listing misplaced " + list(labOwner, testTime, s.fresh.ID())}},
		{"a listing with a value", seed{listingKey(labOwner, created(s.fresh), s.fresh.ID()): bytesOf("x")},
			[]string{"listing value " + list(labOwner, created(s.fresh), s.fresh.ID())}},

		{"two licenses of one order", l.license(s.fresh, func(r *storedLicense) { r.license.OrderNo = s.paid.OrderNo }),
			[]string{"license order_other_license " + lic(s.fresh)}},
		{"a license of no order", l.license(s.fresh, func(r *storedLicense) { r.license.OrderNo = "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A" }),
			[]string{"license order_missing " + lic(s.fresh)}},
		{"a license of something that is no order", l.license(s.fresh, func(r *storedLicense) { r.license.OrderNo = "ord_1" }),
			[]string{"license order " + lic(s.fresh)}},
		{"a license that forgot its order", l.license(paidLicense, func(r *storedLicense) { r.license.OrderNo = "" }),
			[]string{"order license_other_order " + ord(s.paid)}},
		{"an order that forgot its license and that it was paid", l.orderSeed(s.paid, func(o *licensing.Order) { o.LicenseKey, o.PaidAt = "", time.Time{} }),
			[]string{"event kind " + lastOf(s.paid), "license order_other_license " + lic(paidLicense), "order due_missing " + ord(s.paid)}},
		{"an order that forgot its license", l.orderSeed(s.paid, func(o *licensing.Order) { o.LicenseKey = "" }),
			[]string{"event kind " + lastOf(s.paid), "license order_other_license " + lic(paidLicense), "order paid_license " + ord(s.paid)}},
		{"a refunded order that forgot its license", l.orderSeed(s.refunded, func(o *licensing.Order) { o.LicenseKey = "" }),
			[]string{"event contradicts " + lastOf(s.refunded), "license order_other_license " + lic(s.refunded.LicenseKey), "order paid_license " + ord(s.refunded)}},
		{"paid without a license", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.PaidAt = testTime }),
			[]string{"order paid_license " + ord(s.unpaid), misplaced(unpaidEnd)}},
		{"a license without payment", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.LicenseKey = s.fresh }),
			[]string{"order license_other_order " + ord(s.unpaid), "order paid_license " + ord(s.unpaid)}},
		{"two orders with one license", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.PaidAt, o.LicenseKey = testTime, paidLicense }),
			[]string{"order license_other_order " + ord(s.unpaid), misplaced(unpaidEnd)}},
		{"a canceled order with a license", l.orderSeed(s.canceled, func(o *licensing.Order) { o.LicenseKey = s.fresh }),
			[]string{"order canceled_license " + ord(s.canceled), "order license_other_order " + ord(s.canceled)}},
		{"a refund due that nobody will find", l.orderSeed(s.paid, func(o *licensing.Order) { o.RefundDue = true }),
			[]string{"order due_missing " + ord(s.paid)}},
		{"a refund due of a refunded order", l.orderSeed(s.refunded, func(o *licensing.Order) { o.RefundDue = true }),
			[]string{"order due_missing " + ord(s.refunded), "order refund_due " + ord(s.refunded)}},
		{"a refund due of an order that was never paid", l.orderSeed(s.canceled, func(o *licensing.Order) { o.RefundDue = true }),
			[]string{"order due_missing " + ord(s.canceled), "order refund_due " + ord(s.canceled)}},
		{"a refunded order whose license still works", l.license(s.refunded.LicenseKey, func(r *storedLicense) { r.license.RevokedAt = time.Time{} }),
			[]string{"event kind " + lastOfLicense(s.refunded.LicenseKey), "order refunded_license " + ord(s.refunded)}},
		{"a refund's place that is gone", seed{refundKey: nil}, []string{"order due_missing " + ord(s.owed)}},
		{"a refund's place that is left", l.orderSeed(s.owed, func(o *licensing.Order) { o.RefundDue = false }), []string{misplaced(refundAt)}},
		{"a refund that is to be tried at another time", l.orderSeed(s.owed, func(o *licensing.Order) { o.RefundRetryAt = testTime }),
			[]string{"order due_missing " + ord(s.owed), misplaced(refundAt)}},
		{"an order's end that is gone", seed{unpaidEndKey: nil}, []string{"order due_missing " + ord(s.unpaid)}},
		{"an order's end that is left", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.ExpiredAt = testTime }), []string{misplaced(unpaidEnd)}},
		{"a license's end that is gone", seed{licenseEnd(s.ending, labEnd): nil}, []string{"license due_missing " + lic(s.ending)}},
		{"a license's end that moved", l.license(s.ending, func(r *storedLicense) { r.license.ExpiresAt = labEnd.Add(time.Hour) }),
			[]string{"license due_missing " + lic(s.ending), misplaced(endingAt)}},
		{"a license's end that was recorded", l.license(s.ending, func(r *storedLicense) { r.license.EndRecorded = labEnd }),
			[]string{misplaced(endingAt)}},
		{"an end with another license's prefix", seed{licenseEnd(s.ending, labEnd): bytesOf("ACME")}, []string{misplaced(endingAt)}},
		{"an end of a license without one", seed{licenseEnd(s.fresh, labEnd): bytesOf("LIC")},
			[]string{misplaced("license_end %s x/l/" + labEnd.Format(time.RFC3339Nano) + "/" + v.name(s.fresh.ID()))}},
		{"an end of no license", seed{licenseEnd(forged, labEnd): bytesOf("LIC")},
			[]string{gone("license_end %s x/l/" + labEnd.Format(time.RFC3339Nano) + "/" + v.name(forged.ID()))}},
		{"money of a canceled order that is not owed", l.orderSeed(s.sentBack, func(o *licensing.Order) { o.RefundedAt = time.Time{} }),
			[]string{"event kind " + lastOf(s.sentBack), "order refund_due " + ord(s.sentBack)}},
		{"refunded and never paid", l.orderSeed(s.canceled, func(o *licensing.Order) { o.RefundedAt = testTime }),
			[]string{"order refund " + ord(s.canceled)}},
		{"late and never paid", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.Late = true }),
			[]string{"order late " + ord(s.unpaid)}},
		{"an order's license key that is none", l.orderSeed(s.paid, func(o *licensing.Order) { o.LicenseKey = "LIC-00000" }),
			[]string{"license order_other_license " + lic(paidLicense), "order license_key " + ord(s.paid)}},
		{"an order's license key with another prefix", l.orderSeed(s.paid, func(o *licensing.Order) { o.LicenseKey = paidLicense.ID().Key("ACME") }),
			[]string{"license order_other_license " + lic(paidLicense), "order license_key " + ord(s.paid)}},
		{"an order that can't be read", seed{orderKey(labOwner, s.unpaid.OrderNo): bytesOf("\x01\xff")},
			[]string{"order value " + ord(s.unpaid)}},
		{"an order that is gone", seed{orderKey(labOwner, s.unpaid.OrderNo): nil},
			[]string{"event unlinked e/", "buyer order_missing " + buyer(s.unpaid), "order_owner order_missing " + ptr(s.unpaid), gone(unpaidEnd)}},
		{"an order that its buyer's listing lacks", seed{placeOfOrder(&s.unpaid): nil},
			[]string{"order buyer_missing " + ord(s.unpaid)}},
		{"an order of another buyer", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.BuyerEmail = "bob@example.com" }),
			[]string{"buyer misplaced " + buyer(s.unpaid), "order buyer_missing " + ord(s.unpaid)}},
		{"an order of nobody", l.orderSeed(s.unpaid, func(o *licensing.Order) { o.BuyerEmail = "" }),
			[]string{"buyer misplaced " + buyer(s.unpaid)}},
		{"an order's place with a value", seed{placeOfOrder(&s.unpaid): bytesOf("x")},
			[]string{"buyer value " + buyer(s.unpaid)}},
		{"an order without a pointer", seed{orderOwnerKey(s.unpaid.OrderNo): nil},
			[]string{"order owner_missing " + ord(s.unpaid)}},
		{"a pointer to another owner", seed{orderOwnerKey(s.unpaid.OrderNo): encodeOwner(stranger)},
			[]string{"order owner_other " + ord(s.unpaid), "order_owner order_missing " + ptr(s.unpaid)}},
		{"a pointer that can't be read", seed{orderOwnerKey(s.unpaid.OrderNo): bytesOf("\x01")},
			[]string{"order_owner value " + ptr(s.unpaid)}},

		{"a product that can't be read", seed{productKey(labOwner, "pro"): {}},
			[]string{"product value q/acct_lab/t/pro"}},
		{"a product without a key prefix", seed{productKey(labOwner, "pro"): (&storedProduct{product: licensing.Product{CreatedAt: product.CreatedAt}}).encode()},
			[]string{"product terms q/acct_lab/t/pro"}},
		{"a product's metadata that is no object", seed{productKey(labOwner, "own"): l.productValue("own", func(p *storedProduct) { p.product.Metadata = "[]" })},
			[]string{"product metadata q/acct_lab/t/own"}},
		{"a writer of a product twice", seed{productKey(labOwner, "own"): l.productValue("own", func(p *storedProduct) {
			p.writers = []writer{{store.Incarnation{1}, 5}, {store.Incarnation{1}, 4}}
		})}, []string{"product writers q/acct_lab/t/own"}},
		{"a product that is not listed", seed{placeOfProduct(pro, product): nil},
			[]string{"product catalog_missing q/acct_lab/t/pro"}},
		{"a product that is gone", seed{productKey(labOwner, "pro"): nil},
			[]string{"catalog product_missing " + catalog(product.CreatedAt)}},
		{"a product that is listed twice", seed{placeOfProduct(pro, &licensing.Product{CreatedAt: later}): bytesOf("x")},
			[]string{"catalog misplaced " + catalog(later), "catalog value " + catalog(later)}},
		{"entries that are not on their upper levels", seed{skips[0]: nil, skips[1]: nil},
			[]string{"buyer skip_missing " + buyer(tallOrder), "order skip_missing " + ord(tallOrder)}},
		{"an upper level of nothing", seed{skipKey(1, tall[len(layout):]): {}},
			[]string{"skip entry_missing " + skipName(skipKey(1, tall[len(layout):]))}},
		{"an entry that is too high", seed{tooHigh: bytesOf("x")},
			[]string{"skip level " + skipName(tooHigh), "skip value " + skipName(tooHigh)}},
		{"an API key that can't be read", seed{string(apiKey.Key): bytesOf("\x01")},
			[]string{"api_key value k/" + odd(string(apiKey.Key[6:]))}},
		{"an API key without an id", seed{string(apiKey.Key): (&storedAPIKey{key: licensing.APIKey{Owner: labOwner}}).encode()},
			[]string{"api_key id k/" + odd(string(apiKey.Key[6:])), "api_key_index misplaced " + keyIndex}},
		{"a master key in use that is gone", seed{masterKeyKey("m1"): nil},
			[]string{"api_key master_missing k/" + odd(string(apiKey.Key[6:]))}},
		{"a master key of the secret before that is gone", seed{string(apiKey.Key): (&storedAPIKey{key: licensing.APIKey{ID: "key_lab", Owner: labOwner,
			MasterID: "m1", Previous: licensing.PreviousSecret{Version: 1, MasterID: "m0", Until: testTime}}}).encode()},
			[]string{"api_key master_missing k/" + odd(string(apiKey.Key[6:]))}},
		{"an API key of another id", seed{string(apiKey.Key): (&storedAPIKey{key: licensing.APIKey{ID: "key_other", Owner: labOwner, MasterID: "m1"}}).encode()},
			[]string{"api_key index_missing k/" + odd(string(apiKey.Key[6:])), "api_key_index misplaced " + keyIndex}},
		{"an API key that is gone", seed{string(apiKey.Key): nil},
			[]string{"api_key_index api_key_missing " + keyIndex, "api_key_use api_key_missing u/" + odd(string(apiKey.Key[6:]))}},
		{"an id that leads to another API key", seed{apiKeyIndexKey(labOwner, "key_lab"): bytesOf(strings.Repeat("x", 32))},
			[]string{"api_key index_other k/" + odd(string(apiKey.Key[6:])), "api_key_index api_key_missing " + keyIndex}},
		{"an id that leads nowhere", seed{apiKeyIndexKey(labOwner, "key_none"): apiKey.Key[6:]},
			[]string{"api_key_index misplaced a/acct_lab/t/key_none"}},
		{"an id that leads to no hash", seed{apiKeyIndexKey(labOwner, "key_none"): bytesOf("x")},
			[]string{"api_key_index value a/acct_lab/t/key_none"}},
		{"a revoked API key whose master keys are gone", seed{string(apiKey.Key): (&storedAPIKey{key: licensing.APIKey{ID: "key_lab", Owner: labOwner,
			MasterID: "m8", RevokedAt: testTime, Previous: licensing.PreviousSecret{Version: 1, MasterID: "m9", Until: testTime}}}).encode()}, nil},
		{"a retired master key", seed{retiredMasterKey("m0"): bytesOf(strings.Repeat("x", licensing.FingerprintSize)), string(apiKey.Key): (&storedAPIKey{key: licensing.APIKey{ID: "key_lab", Owner: labOwner,
			MasterID: "m1", Previous: licensing.PreviousSecret{Version: 1, MasterID: "m0", Until: testTime}}}).encode()}, nil},
		{"a retired master key that a secret is derived from", seed{masterKeyKey("m1"): nil, retiredMasterKey("m1"): bytesOf(strings.Repeat("x", licensing.FingerprintSize))},
			[]string{"api_key master_missing k/" + odd(string(apiKey.Key[6:]))}},
		{"a retired master key that is in use", seed{retiredMasterKey("m1"): bytesOf(strings.Repeat("x", licensing.FingerprintSize))},
			[]string{"retired_master_key in_use s/retired/m1"}},
		{"a retired fingerprint that is too short", seed{retiredMasterKey("m0"): bytesOf("x")}, []string{"retired_master_key value s/retired/m0"}},
		{"writers of an API key that come twice", seed{string(apiKey.Key): (&storedAPIKey{key: licensing.APIKey{ID: "key_lab", Owner: labOwner, MasterID: "m1"},
			writers: []writer{{store.Incarnation{1}, 1}, {store.Incarnation{1}, 2}}}).encode()},
			[]string{"api_key writers k/" + odd(string(apiKey.Key[6:]))}},
		{"a use that can't be read", seed{keyUseKey([32]byte(apiKey.Key[6:])): bytesOf("\x01")},
			[]string{"api_key_use value u/" + odd(string(apiKey.Key[6:]))}},
		{"a use of no API key", seed{keyUseKey([32]byte{1}): encodeKeyUse(testTime)},
			[]string{"api_key_use api_key_missing u/" + odd(string([]byte{0: 1, 31: 0}))}},
		{"a claim of an API key that is gone", seed{string(apiKey.Key): nil, apiKeyIndexKey(labOwner, "key_lab"): nil, keyUseKey([32]byte(apiKey.Key[6:])): nil},
			[]string{"claim api_key_missing " + claims.key}},
		{"a mark that is too short", seed{apiKeysMark: bytesOf("x")}, []string{"api_key_mark value s/keys"}},
		{"a mark of a part that is too short", seed{apiKeyPartMark(7): bytesOf("x")}, []string{"api_key_mark value s/keys"}},
		{"a fingerprint that is too short", seed{masterKeyKey("m1"): bytesOf("x")}, []string{"master_key value s/master/m1"}},
		{"an order's claim without its order", seed{orderKey(labOwner, s.free.OrderNo): nil, placeOfOrder(&s.free): nil, orderOwnerKey(s.free.OrderNo): nil, licenseKey(s.free.LicenseKey.ID()): nil,
			listingKey(labOwner, created(s.free.LicenseKey), s.free.LicenseKey.ID()): nil}, []string{"event unlinked e/", "claim order_missing " + claims.order, "skip entry_missing " + skipName(skips[0]), "skip entry_missing " + skipName(skips[1])}},
		{"a grant's claim without its license", seed{licenseKey(s.fresh.ID()): nil, listingKey(labOwner, created(s.fresh), s.fresh.ID()): nil},
			[]string{"event unlinked e/", "claim license_missing " + claims.fresh}},
		{"a claim of more than was asked for", l.claim(claims.freshKey, func(c *licensing.Claim) { c.Grant.Done = 2 }),
			[]string{"claim grant " + claims.fresh}},
		{"a claim of two effects", l.claim(claims.freshKey, func(c *licensing.Claim) { c.OrderNo = s.free.OrderNo }),
			[]string{"claim effect " + claims.fresh}},
		{"a change's claim without its license", l.claim(claims.ownKey, func(c *licensing.Claim) { c.LicenseKey = forged }),
			[]string{"claim license_missing " + claims.own}},
		{"a change's claim of another one's license", l.claim(claims.ownKey, func(c *licensing.Claim) { c.LicenseKey = s.own.ID().Key("ACME") }),
			[]string{"claim license_other " + claims.own}},
		{"a change's claim of no license key", l.claim(claims.ownKey, func(c *licensing.Claim) { c.LicenseKey = "LIC-00000" }),
			[]string{"claim license_key " + claims.own}},
		{"a claim of a redaction", l.claim(claims.orderKey, func(c *licensing.Claim) { c.OrderNo, c.Redaction = "", &licensing.Redaction{Orders: 2, Licenses: 2} }), nil},
		{"a claim of more licenses redacted than orders", l.claim(claims.orderKey, func(c *licensing.Claim) { c.OrderNo, c.Redaction = "", &licensing.Redaction{Orders: 1, Licenses: 2} }),
			[]string{"claim redaction " + claims.order}},
		{"a claim of no effect", l.claim(claims.orderKey, func(c *licensing.Claim) { c.OrderNo = "" }),
			[]string{"claim effect " + claims.order}},
		{"a claim that can't be read", seed{claims.orderKey: bytesOf("\x01\x0a\x01x")},
			[]string{"claim value " + claims.order}},
		{"a claim without its place by age", l.claim(claims.orderKey, func(c *licensing.Claim) { c.CreatedAt = c.CreatedAt.Add(time.Hour) }),
			[]string{"claim age_missing " + claims.order}},
		{"a claim older than its place", l.claim(claims.orderKey, func(c *licensing.Claim) { c.CreatedAt = c.CreatedAt.Add(-time.Hour) }),
			[]string{"claim age_missing " + claims.order, "claim_age misplaced " + claims.orderAge}},
		{"a claim that is gone", seed{claims.orderKey: nil},
			[]string{"claim_age claim_missing " + claims.orderAge}},
		{"a claim's place with a value", seed{claims.orderAgeKey: bytesOf("x")},
			[]string{"claim_age value " + claims.orderAge}},
		{"an older place of a claim", seed{claimAgeKey(testTime.Add(-time.Hour), labOwner, strings.TrimPrefix(claims.orderKey, layout+"y/"+ownerPath(labOwner))): {}}, nil},

		{"events of a license that are gone", seed{ownEvents(4): nil}, []string{"event unlinked e/", "license event_missing " + lic(s.own)}},
		{"events before others that are gone", seed{ownEvents(2): nil}, []string{"event event_missing " + event(3), "event unlinked e/"}},
		{"a license's first event that is gone", seed{ownEvents(1): nil}, []string{"event event_missing " + event(2)}},
		{"an order's events that are gone", seed{orderEvents: nil}, []string{"event unlinked e/", "order event_missing " + ord(s.paid)}},
		{"events that are there twice", seed{ownEvents(5): l.value(ownEvents(4))}, []string{"event unlinked e/"}},
		{"events of another record", seed{eventsKey(labOwner, own.told, licenseInEvents(forged.ID()), 1): l.value(ownEvents(1))}, []string{"event unlinked e/"}},
		{"events in an epoch before", seed{ownEvents(4): nil, eventsKey(labOwner, site{epoch: own.told.epoch - 1}, record, 4): l.value(ownEvents(4))},
			[]string{"event before e/" + eventID(site{epoch: own.told.epoch - 1}, record, 4), "event unlinked e/", "license event_missing " + lic(s.own)}},
		{"events in an epoch that has not begun", seed{ownEvents(4): nil, eventsKey(labOwner, site{epoch: 1 << 60}, record, 4): l.value(ownEvents(4))},
			[]string{"event epoch e/" + eventID(site{epoch: 1 << 60}, record, 4), "event unlinked e/", "license event_missing " + lic(s.own)}},
		{"a license whose latest events are of another epoch", l.license(s.own, func(r *storedLicense) { r.told.epoch-- }),
			[]string{"event unlinked e/", "license event_missing " + lic(s.own)}},
		{"a license that has had more events", l.license(s.own, func(r *storedLicense) { r.license.Sequence++ }),
			[]string{"event unlinked e/", "license event_missing " + lic(s.own)}},
		{"a license that has had fewer events", l.license(s.own, func(r *storedLicense) { r.license.Sequence-- }), []string{"event unlinked e/"}},
		{"events before of another epoch", l.events(ownEvents(4), func(e *storedEvents) { e.before.epoch-- }),
			[]string{"event event_missing " + event(4), "event unlinked e/"}},
		{"events before of a later epoch", l.events(ownEvents(4), func(e *storedEvents) { e.before.epoch++ }),
			[]string{"event before " + event(4), "event unlinked e/"}},
		{"events before that nothing leads to", l.events(ownEvents(4), func(e *storedEvents) { e.before = site{} }),
			[]string{"event before " + event(4), "event unlinked e/"}},
		{"events before the first", l.events(ownEvents(1), func(e *storedEvents) { e.before = own.told }), []string{"event before " + event(1)}},
		{"a number that two events have", l.events(ownEvents(4), func(e *storedEvents) { e.events = append(e.events, e.events[0]) }), []string{"event unlinked e/"}},
		{"an event that tells of another license than there is", l.events(ownEvents(4), func(e *storedEvents) { e.events[0].License.MaxDevices++ }),
			[]string{"license event_differs " + lic(s.own)}},
		{"an event that tells of another order than there is", l.events(orderEvents, func(e *storedEvents) { e.events[0].Order.Amount++ }),
			[]string{"event contradicts " + lastOf(s.paid), "order event_differs " + ord(s.paid)}},
		{"an earlier event that tells of another product", l.events(ownEvents(2), func(e *storedEvents) { e.events[0].License.ProductID = "other" }),
			[]string{"event contradicts " + event(2), "event contradicts " + event(3)}},
		{"an earlier event that tells of another time", l.events(ownEvents(1), func(e *storedEvents) { e.events[0].License.CreatedAt = testTime }),
			[]string{"event contradicts " + event(2)}},
		{"an event of another kind", l.events(ownEvents(4), func(e *storedEvents) { e.events[0].Type = licensing.EventLicenseRevoked }),
			[]string{"event kind " + event(4)}},
		{"a license's event of an order's kind", l.events(ownEvents(3), func(e *storedEvents) { e.events[0].Type = licensing.EventOrderCreated }),
			[]string{"event kind " + event(3)}},
		{"a license that is issued once more", l.events(ownEvents(2), func(e *storedEvents) { e.events[0].Type = licensing.EventLicenseIssued }),
			[]string{"event kind " + event(2)}},
		{"an event of a device that it can't mean", l.events(ownEvents(3), func(e *storedEvents) { e.events[0].Device = &licensing.Device{ID: "d1"} }),
			[]string{"event kind " + event(3)}},
		{"an event of a device without one", l.events(ownEvents(3), func(e *storedEvents) { e.events[0].Type = licensing.EventDeviceBound }),
			[]string{"event kind " + event(3)}},
		{"a payment at another time", l.events(orderEvents, func(e *storedEvents) { last := &e.events[len(e.events)-1]; last.At = last.At.Add(time.Second) }),
			[]string{"event kind " + lastOf(s.paid)}},
		{"events that can't be read", seed{ownEvents(4): bytesOf("\x01")}, []string{"event value " + event(4)}},
		{"events of an owner that is not registered", seed{eventOwnerKey(labOwner): nil}, []string{"event owner_missing e/" + ownerPath(labOwner)}},
		{"a registration with a value", seed{eventOwnerKey(stranger): bytesOf("x")}, []string{"event_owner key h/" + odd(ownerPath(stranger))}},
		{"an epoch with a value", seed{epochKey: bytesOf("x")}, []string{"epoch key s/epoch" + odd("")}},
		{"events that are being swept", seed{epochKey: {}, sweptKey: appendEpoch(nil, own.told.epoch)}, nil},
		{"a swept epoch that is not sealed", seed{sweptKey: appendEpoch(nil, 1<<60)}, []string{"swept_events epoch s/swept"}},
		{"a swept epoch that can't be read", seed{sweptKey: bytesOf("x")}, []string{"swept_events value s/swept"}},
		{"a backup", seed{backupKey: bytesOf(timeInKey(testTime))}, nil},
		{"a backup at no time", seed{backupKey: bytesOf("x")}, []string{"backup value s/backup"}},
		{"a fence of who listens that can't be read", seed{listenKey: bytesOf("\x02")}, []string{"listen_fence value s/listen"}},
		{"a mark of an epoch that is not sealed", seed{markKey(1 << 60): (&eventMark{at: testTime}).encode()}, []string{fmt.Sprintf("event_mark epoch t/%d", 1<<60)}},
		{"events that an owner gave up", seed{epochKey: {}, ledgerKey(labOwner): (&eventLedger{swept: own.told.epoch}).encode()}, nil},
		{"a ledger of an epoch that is not sealed", seed{ledgerKey(labOwner): (&eventLedger{spans: []eventSpan{{1 << 60, 1}}}).encode()},
			[]string{"event_ledger epoch s/ledger/" + ownerPath(labOwner)}},
		{"a ledger that can't be read", seed{ledgerKey(labOwner): bytesOf("\x01\x0a")}, []string{"event_ledger value s/ledger/" + ownerPath(labOwner)}},
		{"a ledger of an owner that is not registered", seed{ledgerKey(stranger): (&eventLedger{}).encode()},
			[]string{"event_ledger owner_missing s/ledger/" + ownerPath(stranger)}},
		{"a mark that can't be read", seed{markKey(1): bytesOf("\x01")}, []string{"event_mark value t/1"}},

		{"endpoints that can't be read", seed{webhooksKey(labOwner): bytesOf("\x01\x0a")}, []string{"webhooks value " + hooks}},
		{"endpoints that are gone", seed{webhooksKey(labOwner): nil}, []string{"event unlinked e/"}},
		{"endpoints of one who listens that are gone", seed{webhooksKey(labListener): nil}, []string{"listener webhooks_missing f/" + ownerPath(labListener)}},
		{"an owner that listens without a key", seed{listenerKey(labListener): nil}, []string{"webhooks listening " + listener}},
		{"an owner that has a key and does not listen", seed{listenerKey(labOwner): {}}, []string{"webhooks listening " + hooks}},
		{"a stranger who listens", seed{listenerKey(stranger): {}}, []string{"listener webhooks_missing f/" + ownerPath(stranger)}},
		{"a listener's key with a value", seed{listenerKey(labListener): bytesOf("x")}, []string{"listener key f/" + odd(ownerPath(labListener))}},
		{"an owner whose request to listen waits", seed{listenerKey(labListener): nil, listenRequestKey(labListener): bytesOf(string(encodeListenRequest(true)))}, nil},
		{"a stranger who asks to listen", seed{listenRequestKey(stranger): bytesOf(string(encodeListenRequest(true)))}, []string{"listen_request webhooks_missing x/a/" + ownerPath(stranger)}},
		{"a request to listen that can't be read", seed{listenRequestKey(labListener): bytesOf("x")}, []string{"listen_request value x/a/" + ownerPath(labListener)}},
		{"an endpoint that wants activations by now", endpoint(labOwner, func(e *licensing.Endpoint) { e.Types = nil }), []string{"webhooks listening " + hooks}},
		{"no mark of endpoints", seed{webhooksMark: nil}, []string{"webhooks mark_missing " + hooks, "webhooks mark_missing " + listener}},
		{"a mark of endpoints with a value", seed{webhooksMark: bytesOf("x")}, []string{"webhooks_mark key s/webhooks" + odd("")}},
		{"too many endpoints", l.hooks(labOwner, func(r *storedWebhooks) {
			for i := range licensing.MaxEndpoints {
				e := r.webhooks.Endpoints[0]
				e.ID = fmt.Sprintf("we_%d", i)
				r.webhooks.Endpoints = append(r.webhooks.Endpoints, e)
			}
		}), []string{"webhooks limit " + hooks}},
		{"an endpoint twice", l.hooks(labOwner, func(r *storedWebhooks) {
			r.webhooks.Endpoints = append(r.webhooks.Endpoints, r.webhooks.Endpoints[0])
		}), []string{"webhooks twice " + hooks}},
		{"an endpoint's id of no form", endpoint(labOwner, func(e *licensing.Endpoint) { e.ID = "we_A" }), []string{"webhooks id " + hooks}},
		{"an endpoint without an address", endpoint(labOwner, func(e *licensing.Endpoint) { e.URL = "" }), []string{"webhooks endpoint " + hooks}},
		{"an endpoint without a beginning", endpoint(labOwner, func(e *licensing.Endpoint) { e.Since = "" }), []string{"webhooks endpoint " + hooks}},
		{"an endpoint that is disabled for no reason", endpoint(labOwner, func(e *licensing.Endpoint) { e.DisabledAt = testTime }), []string{"webhooks endpoint " + hooks}},
		{"an endpoint's master key that is gone", seed{masterKeyKey("m2"): nil},
			[]string{"webhooks master_missing " + hooks, "webhooks master_missing " + hooks, "webhooks master_missing " + listener}},
		{"an endpoint's master key before that is gone", endpoint(labListener, func(e *licensing.Endpoint) {
			e.Previous = licensing.PreviousSecret{Version: 1, MasterID: "m0", Until: testTime}
		}),
			[]string{"webhooks master_missing " + listener}},
		{"an endpoint's master key before that is retired", both(seed{retiredMasterKey("m0"): bytesOf(strings.Repeat("x", licensing.FingerprintSize))},
			endpoint(labListener, func(e *licensing.Endpoint) {
				e.Previous = licensing.PreviousSecret{Version: 1, MasterID: "m0", Until: testTime}
			})), nil},
		{"an endpoint that is to be swept", seed{deletedWebhookKey("we_0good"): {}}, []string{"webhooks deleted " + hooks}},
		{"writers of endpoints that come twice", l.hooks(labOwner, func(r *storedWebhooks) { r.writers = []writer{{store.Incarnation{1}, 1}, {store.Incarnation{1}, 2}} }),
			[]string{"webhooks writers " + hooks}},
		{"an endpoint's event that is gone", seed{hookEvents: nil}, []string{"webhooks event_missing " + hooks}},
		{"an endpoint's event that was never told", l.hooks(labOwner, func(r *storedWebhooks) { r.told, r.webhooks.Sequence = site{}, 0 }), []string{"event unlinked e/"}},
		{"an endpoint's event of another owner", seed{eventsKey(labOwner, told, webhooksInEvents(stranger), 1): l.value(hookEvents)},
			[]string{"event value e/" + eventID(told, webhooksInEvents(stranger), 1)}},
		{"a claim of an endpoint of no form", l.claim(claims.orderKey, func(c *licensing.Claim) { c.OrderNo, c.EndpointID = "", "we_A" }), []string{"claim endpoint " + claims.order}},
		{"a claim of an endpoint that was deleted", l.claim(claims.orderKey, func(c *licensing.Claim) { c.OrderNo, c.EndpointID = "", "we_0deleted" }), nil},

		{"no check key", seed{checkKey: nil},
			[]string{"check_key missing s/check"}},
		{"a check key that is too short", seed{checkKey: bytesOf("short")},
			[]string{"check_key value s/check"}},

		{"a node of no form", seed{nodeKey(store.Incarnation{1}): bytesOf("x")},
			[]string{"node value n/" + odd("\x01\x00\x00\x00\x00\x00\x00\x00")}},

		{"keys of no form", seed{
			layout + "b/x": {}, layout + "b/acct_lab/t/0123456789abcdeford_1": {}, layout + "c/x": {}, layout + "c/acct_lab/t/12345678": {}, layout + "j/x": {}, layout + "j/": {}, layout + "j/3x": {},
			layout + "n/x": {}, layout + "l/x": {}, layout + "d/x": {}, layout + "m/x": {}, layout + "i/x": {}, layout + "o/x": {},
			layout + "p/x": {}, layout + "q/x": {}, ledgersPrefix + "x": {}, layout + "k/x": {}, layout + "s/checkers": {}, layout + "y/x": {}, layout + "z/x": {}, layout + "z/12345678x": {},
			layout + "x/l/x": {}, layout + "x/o/12345678x": {}, layout + "x/r/x": {},
			layout + "a/x": {}, layout + "a/acct_lab/t/": {}, layout + "s/keys2": {}, layout + "s/master/ä": {},
			layout + "u/x": {}, layout + "s/retired/ä": {},
			layout + "e/x": {}, eventsOfOwner(labOwner) + "x": {}, layout + "h/x": {}, layout + "t/x": {},
			backupKey + "s": {}, epochKey + "s": {}, listenKey + "s": {}, listenersPrefix + "x": {}, listenRequests + "x": {}, sweptKey + "s": {}, webhooksMark + "s": {}, webhooksPrefix + "x": {}, webhooksKey(labOwner) + "x": {}, deletedWebhooksPrefix + "we_A": {},
			layout + "i/acct_lab/x/y": {}, layout + "d/" + string(first[:]) + "short": {}, layout + "l/" + strings.Repeat("\xff", 16): {},
		}, []string{
			"event key e/" + odd("x"), "event key e/" + odd(ownerPath(labOwner)+"x"), "event_owner key h/" + odd("x"), "event_mark key t/" + odd("x"), "event_ledger key s/ledger/" + odd("x"),
			"webhooks_mark key s/webhooks" + odd("s"), "webhooks key w/" + odd("x"), "webhooks key w/" + odd(ownerPath(labOwner)+"x"), "deleted_webhook key x/w/" + odd("we_A"),
			"backup key s/backup" + odd("s"), "epoch key s/epoch" + odd("s"), "listen_fence key s/listen" + odd("s"), "listener key f/" + odd("x"), "listen_request key x/a/" + odd("x"), "swept_events key s/swept" + odd("s"),
			"api_key key k/" + odd("x"), "api_key_index key a/" + odd("acct_lab/t/"), "api_key_index key a/" + odd("x"),
			"buyer key b/" + odd("x"), "buyer key b/" + odd("acct_lab/t/0123456789abcdeford_1"), "catalog key c/" + odd("x"), "catalog key c/" + odd("acct_lab/t/12345678"),
			"skip key j/" + odd("x"), "skip key j/" + odd(""), "skip key j/" + odd("3x"),
			"api_key_mark key s/keys" + odd("2"), "api_key_use key u/" + odd("x"), "retired_master_key key s/retired/" + odd("ä"), "master_key key s/master/" + odd("ä"), "check_key key s/check" + odd("ers"), "claim key y/" + odd("x"), "claim_age key z/" + odd("x"), "claim_age key z/" + odd("12345678x"), "device key d/" + odd("x"), "device key d/" + odd(string(first[:])+"short"),
			"license key l/" + odd("x"), "license key l/" + odd(strings.Repeat("\xff", 16)), "listing key i/" + odd("x"), "listing key i/" + odd("acct_lab/x/y"),
			"license_end key x/l/" + odd("x"), "order_end key x/o/" + odd("12345678x"), "refund key x/r/" + odd("x"), "metadata key m/" + odd("x"), "node key n/" + odd("x"), "order key o/" + odd("x"), "order_owner key p/" + odd("x"), "product key q/" + odd("x"),
		}},
		{"keys of unknown kinds", seed{
			layout + "A/1": {}, layout + "A/2": {}, layout + "s/other": {}, layout + "zzz/1": {}, layout + "nothing-that-a-log-should-show-in-full": {},
		}, []string{
			`unknown unknown_family "lc1/A/"`, `unknown unknown_family "lc1/nothing-that-a-l"`,
			`unknown unknown_family "lc1/s/"`, `unknown unknown_family "lc1/zzz/"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer l.plant(c.seed)()
			for name, reading := range readings() {
				if name == "in pages" || name == "key by key" && i%5 != 0 {
					continue // pages of 7 do the same; and key by key takes long
				}
				store, cfg := reading(l.store)
				_, found := (&lab{t: t, store: store}).verify(cfg)
				if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), names(found)); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%v", name, diff, found)
				}
				shown := fmt.Sprint(found)
				for _, key := range []licensing.LicenseKey{s.inline, s.spilled, s.lowered, s.fresh, paidLicense, s.refunded.LicenseKey, forged} {
					if strings.Contains(shown, string(key)[5:]) || strings.Contains(shown, string(key.ID().Key("XX"))) {
						t.Errorf("a license key is shown: %s", shown)
					}
				}
			}
		})
	}
	if _, found := l.verify(VerifyConfig{}); len(found) > 0 {
		t.Errorf("in the end the store is not as it was: %v", found)
	}
}

func names(found []Violation) []string {
	var names []string
	for _, v := range found {
		names = append(names, v.Family+" "+v.Rule+" "+v.Key)
	}
	slices.Sort(names)
	return names
}

// TestVerifyShowsKeysWhereAsked, so that an operator can look at the license.
func TestVerifyShowsKeysWhereAsked(t *testing.T) {
	l := newLab(t)
	s := l.fill()
	l.plant(l.license(s.inline, func(r *storedLicense) { r.license.CurrentDevices = 3 }))
	_, found := l.verify(VerifyConfig{ShowKeys: true})
	if len(found) != 1 || found[0].Key != "l/"+string(s.inline) || found[0].Problem != "it counts 3 devices, and there are 2" {
		t.Errorf("found %+v", found)
	}
}
