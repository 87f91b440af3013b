package kv

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"

	"licet"
	"licet/node"
)

const (
	idLength       = len(licet.LicenseID{})
	positionLength = len(node.DeviceCursor{})
)

// checkLicenses reads licenses, and along with them their devices and metadata,
// which stand in the same order: nothing of it has to be kept.
func (v *verification) checkLicenses(ctx context.Context) error {
	licenses, devices, metadata := v.stream("l/"), v.stream("d/"), v.stream("m/")
	defer licenses.close()
	defer devices.close()
	defer metadata.close()
	for {
		e, more, err := licenses.next(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		id, ok := licenseIDOf(e.rest)
		if !ok {
			v.report("license", "l/"+v.opaque(e.rest), "key", "the key has not the form of a license's")
			continue
		}
		if err := v.orphans(ctx, devices, metadata, e.rest); err != nil {
			return err
		}
		if err := v.checkLicense(ctx, id, e, devices, metadata); err != nil {
			return err
		}
		if err := v.settle(ctx, lookupBatch); err != nil {
			return err
		}
	}
	if err := v.orphans(ctx, devices, metadata, "\xff"+strings.Repeat("\xff", idLength)); err != nil {
		return err
	}
	if !v.checked && v.summary.Families[licenses.family].Keys > 0 {
		v.report("check_key", "s/check", "missing", "there are licenses, and no check key that their keys are made with")
	}
	return v.settle(ctx, 0)
}

// licenseIDOf reads a license's id out of a key. The last three bits of one
// are zero.
func licenseIDOf(rest string) (licet.LicenseID, bool) {
	var id licet.LicenseID
	if len(rest) != idLength || rest[idLength-1]&7 != 0 {
		return id, false
	}
	copy(id[:], rest)
	return id, true
}

// orphans reports the devices and metadata that stand before a license: theirs
// is not there.
func (v *verification) orphans(ctx context.Context, devices, metadata *stream, before string) error {
	for {
		e, more, err := devices.peek(ctx)
		if err != nil {
			return err
		}
		if !more || e.rest[:min(len(e.rest), idLength)] >= before {
			break
		}
		devices.skip()
		if _, ok := v.deviceKeyForm(e); ok {
			v.report("device", v.deviceName(e.rest), "orphan", "the license of this device does not exist")
		}
	}
	for {
		e, more, err := metadata.peek(ctx)
		if err != nil {
			return err
		}
		if !more || e.rest >= before {
			return nil
		}
		metadata.skip()
		id, ok := licenseIDOf(e.rest)
		if !ok {
			v.report("metadata", "m/"+v.opaque(e.rest), "key", "the key has not the form of a license's metadata")
			continue
		}
		v.report("metadata", "m/"+v.name(id), "orphan", "the license of this metadata does not exist")
	}
}

// deviceKeyForm reports a device's key that has not the form of one.
func (v *verification) deviceKeyForm(e entry) (licet.LicenseID, bool) {
	if len(e.rest) == idLength+positionLength {
		if id, ok := licenseIDOf(e.rest[:idLength]); ok {
			return id, true
		}
	}
	v.report("device", "d/"+v.opaque(e.rest), "key", "the key has not the form of a device's")
	return licet.LicenseID{}, false
}

// checkLicense checks one license with its devices and metadata, and asks for
// what it refers to.
func (v *verification) checkLicense(ctx context.Context, id licet.LicenseID, e entry, devices, metadata *stream) error {
	name := "l/" + v.name(id)
	stored, err := decodeLicense(id, e.value)
	if err != nil {
		v.report("license", name, "value", "the value can't be read: %v", err)
	} else if v.cfg.ShowKeys {
		name = "l/" + string(stored.license.Key)
	}
	own, err := v.checkOwnDevices(ctx, id, devices)
	if err != nil {
		return err
	}
	if err := v.checkMetadata(ctx, id, metadata); err != nil {
		return err
	}
	if stored == nil {
		return nil
	}
	bad := func(rule, format string, args ...any) { v.report("license", name, rule, format, args...) }
	checkWriters(e.value, licenseWriter, bad)
	v.checkFacts(stored, bad)
	v.checkCounts(stored, own, bad)
	v.checkLicenseReferences(stored, id, bad)
	return nil
}

// checkOwnDevices checks the devices of a license that have keys of their own,
// and counts them.
func (v *verification) checkOwnDevices(ctx context.Context, id licet.LicenseID, devices *stream) (int, error) {
	own := 0
	for {
		e, more, err := devices.peek(ctx)
		if err != nil {
			return own, err
		}
		if !more || !strings.HasPrefix(e.rest, string(id[:])) {
			return own, nil
		}
		devices.skip()
		if _, ok := v.deviceKeyForm(e); !ok {
			continue
		}
		own++
		device, err := decodeDeviceValue(e.value)
		if err != nil {
			v.report("device", v.deviceName(e.rest), "value", "the value can't be read: %v", err)
			continue
		}
		if at := devicePosition(device.ID); string(at[:]) != e.rest[idLength:] {
			v.report("device", v.deviceName(e.rest), "position", "the key is not made of the hash of the device's id")
		}
	}
}

func (v *verification) checkMetadata(ctx context.Context, id licet.LicenseID, metadata *stream) error {
	e, more, err := metadata.peek(ctx)
	if err != nil || !more || e.rest != string(id[:]) {
		return err
	}
	metadata.skip()
	if !isObject(e.value) {
		v.report("metadata", "m/"+v.name(id), "value", "the value is no JSON object")
	}
	return nil
}

// checkFacts checks what a license says of itself.
func (v *verification) checkFacts(stored *storedLicense, bad func(rule, format string, args ...any)) {
	l := &stored.license
	if v.check != nil {
		if key, err := v.check.Parse(string(l.Key)); err != nil || key != l.Key {
			bad("check_characters", "the check characters of its key are wrong under this store's check key")
		}
	}
	if !validAccount(l.Owner.AccountID) {
		bad("owner", "its owner's account has not the form of one")
	}
	if l.CurrentDevices > 0 && l.ActivatedAt.IsZero() {
		bad("activated_at", "it has %d devices and was never activated", l.CurrentDevices)
	}
	if l.StateReason != "" && l.SuspendedAt.IsZero() && l.RevokedAt.IsZero() {
		bad("state_reason", "it has a reason for being suspended or revoked, and is neither")
	}
	if most := l.SelfService.RemovalsPerMonth; most < 0 || l.Removals.Count < 0 || l.Removals.Count > most {
		bad("removals", "end users removed %d devices in a month, and %d are allowed", l.Removals.Count, most)
	}
	if l.AllowedOver > 0 && (l.MaxDevices <= 0 || l.CurrentDevices <= l.MaxDevices || l.CurrentDevices > l.AllowedOver) {
		bad("allowed_over", "%d devices are allowed beyond the limit of %d, and it has %d", l.AllowedOver, l.MaxDevices, l.CurrentDevices)
	}
}

// checkCounts compares a license's count of devices with the devices there
// are, and with its limit. own is how many have keys of their own.
func (v *verification) checkCounts(stored *storedLicense, own int, bad func(rule, format string, args ...any)) {
	l, inline := &stored.license, len(stored.devices)
	if l.CurrentDevices < 0 || l.MaxDevices < 0 || l.AllowedOver < 0 {
		bad("negative", "it counts %d devices of %d, and %d allowed beyond", l.CurrentDevices, l.MaxDevices, l.AllowedOver)
		return
	}
	if stored.spilled && inline > 0 {
		bad("spilled", "its devices have keys of their own, and %d are in its record too", inline)
	}
	if !stored.spilled && own > 0 {
		bad("spilled", "its devices are in its record, and %d have keys of their own too", own)
	}
	if inline > maxInline {
		bad("inline_limit", "%d devices are in its record, and %d is the most", inline, maxInline)
	}
	ids := make(map[string]bool, inline)
	devices, err := decodeInline(stored.devices, l.CreatedAt)
	if err != nil {
		bad("value", "a device in its record can't be read: %v", err)
	}
	for i := range devices {
		ids[devices[i].ID] = true
	}
	if err == nil && len(ids) < inline {
		bad("inline_twice", "one device stands twice in its record")
	}
	entries := inline
	if stored.spilled {
		entries = own
	}
	if l.CurrentDevices != entries {
		bad("device_count", "it counts %d devices, and there are %d", l.CurrentDevices, entries)
	}
	if l.MaxDevices > 0 && l.CurrentDevices > max(l.MaxDevices, l.AllowedOver) {
		bad("device_limit", "it counts %d devices, and %d are allowed", l.CurrentDevices, max(l.MaxDevices, l.AllowedOver))
	}
}

// checkLicenseReferences asks for a license's place in the listing and for its
// order.
func (v *verification) checkLicenseReferences(stored *storedLicense, id licet.LicenseID, bad func(rule, format string, args ...any)) {
	l := stored.license
	v.want(listingKey(l.Owner, l.CreatedAt, id), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("listing_missing", "it is not in its owner's listing")
		}
	})
	v.wantDue(l.Due(), licenseKey(id), bad)
	if l.OrderNo == "" {
		return
	}
	if !licet.ValidOrderNo(l.OrderNo) {
		bad("order", "the order it names has not the form of one")
		return
	}
	v.want(orderKey(l.Owner, l.OrderNo), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("order_missing", "its order %s does not exist", l.OrderNo)
			return
		}
		order, err := decodeOrder(licet.OrderRef(l.Owner, l.OrderNo), kv.Value)
		if err == nil && order.order.LicenseKey != l.Key {
			bad("order_other_license", "its order %s names %s", l.OrderNo, v.keyOrNone(order.order.LicenseKey))
		}
	})
}

// checkWriters checks the table of writers of a stored value, all of it: what
// is too much is left out when it is read.
func checkWriters(value []byte, num protowire.Number, bad func(rule, format string, args ...any)) {
	count, twice := 0, false
	seen := map[string]bool{}
	_ = decodeValue(value, func(f field) error { // it has been read before
		if f.num == num && len(f.bytes) >= len(incarnation{}) {
			by := string(f.bytes[:len(incarnation{})])
			count, twice, seen[by] = count+1, twice || seen[by], true
		}
		return nil
	})
	if count > maxWriters {
		bad("writers", "%d writers stand in its table, and %d is the most", count, maxWriters)
	}
	if twice {
		bad("writers", "one writer stands twice in its table")
	}
}
