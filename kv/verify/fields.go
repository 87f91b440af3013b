package verify

import (
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// checkFacts checks what a license says of itself.
func (v *licenseChecks) checkFacts(stored *layout.License, bad func(rule, format string, args ...any)) {
	l := &stored.License
	if v.cfg.Keys != nil && !v.cfg.Keys.Made(l.Key.ID()) {
		bad("id", "its id was not made with this store's id key, or not for its slot")
	}
	if slot, own := l.Key.ID().Slot(), licensing.SlotOf(l.Owner); slot != own {
		bad("slot", "it is in slot %v, and the slot of its owner is %v", slot, own)
	}
	if !keyspace.ValidAccount(l.Owner.AccountID) {
		bad("owner", "its owner's account is malformed")
	}
	if l.CurrentDevices > 0 && l.ActivatedAt.IsZero() {
		bad("activated_at", "it has %d devices and was never activated", l.CurrentDevices)
	}
	if l.StateReason != "" && l.SuspendedAt.IsZero() && l.RevokedAt.IsZero() {
		bad("state_reason", "it has a reason for being suspended or revoked, and is neither")
	}
	if !l.EndRecorded.IsZero() && l.ExpiresAt.IsZero() {
		bad("end_recorded", "an end is recorded, and the license has none")
	}
	if l.ExpiresAt.IsZero() && (!l.GraceRecorded.IsZero() || l.Notice != licensing.Notice{}) {
		bad("grace", "the end of a grace, or a notice, is recorded, and the license has no end")
	}
	if l.Notice.Day < 0 || l.Notice.Day > licensing.MaxExpiringDay {
		bad("notice", "its next event license.expiring comes %d days before its end, and %d is the most", l.Notice.Day,
			licensing.MaxExpiringDay)
	}
	if most := l.SelfService.RemovalsPerMonth; most < 0 || l.Removals.Count < 0 || l.Removals.Count > most {
		bad("removals", "end users removed %d devices in a month, and %d are allowed", l.Removals.Count, most)
	}
	if l.AllowedOver > 0 &&
		(l.MaxDevices <= 0 || l.CurrentDevices <= l.MaxDevices || l.CurrentDevices > l.AllowedOver) {
		bad("allowed_over", "%d devices are allowed beyond the limit of %d, and it has %d", l.AllowedOver, l.MaxDevices,
			l.CurrentDevices)
	}
}

// checkCounts compares a license's count of devices with the devices there
// are, and with its limit. own is how many have keys of their own.
func (v *licenseChecks) checkCounts(stored *layout.License, own int, bad func(rule, format string, args ...any)) {
	stored.EachBrokenRule(own, bad)
	ids := make(map[string]bool, len(stored.Devices))
	devices, err := layout.DecodeInline(stored.Devices, stored.License.CreatedAt)
	if err != nil {
		bad("value", "a device in its record can't be read: %v", err)
	}
	for i := range devices {
		ids[devices[i].ID] = true
	}
	if err == nil && len(ids) < len(stored.Devices) {
		bad("inline_twice", "its record has one device twice")
	}
}

// checkLicenseReferences looks up a license's entry in the listing, and its order.
func (v *licenseChecks) checkLicenseReferences(
	stored *layout.License, id licensing.LicenseID, bad func(rule, format string, args ...any),
) {
	l := stored.License
	v.want(keyspace.ListingKey(l.Owner, l.CreatedAt, id), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("listing_missing", "it is not in its owner's listing")
		}
	})
	v.wantDue(l.Due(), keyspace.LicenseKey(id), bad)
	v.events.wantLicenseEvents(stored, bad)
	if l.OrderNo == "" {
		return
	}
	if !licensing.ValidOrderNo(l.OrderNo) {
		bad("order", "the number of the order that it names is malformed")
		return
	}
	v.want(keyspace.OrderKey(l.Owner, l.OrderNo), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("order_missing", "its order %s does not exist", l.OrderNo)
			return
		}
		order, err := layout.DecodeOrder(licensing.OrderRef(l.Owner, l.OrderNo), kv.Value)
		if err == nil && order.Order.Quantity > 1 {
			v.ofMany[l.OrderNo]++ // see checkQuantity
			return
		}
		if err == nil && order.Order.LicenseKey != l.Key {
			bad("order_other_license", "its order %s names %s", l.OrderNo, keyOrNone(order.Order.LicenseKey))
		}
	})
}

// checkWriters checks the whole table of writers of a stored value: decoding the value leaves surplus writers out.
func checkWriters(value []byte, num protowire.Number, bad func(rule, format string, args ...any)) {
	count, twice := 0, false
	seen := map[string]bool{}
	_ = layout.DecodeValue(value, func(f layout.Field) error { // it has been read before
		if f.Num == num && len(f.Bytes) >= len(store.Incarnation{}) {
			by := string(f.Bytes[:len(store.Incarnation{})])
			count, twice, seen[by] = count+1, twice || seen[by], true
		}
		return nil
	})
	if count > layout.MaxWriters {
		bad("writers", "%d writers stand in its table, and %d is the most", count, layout.MaxWriters)
	}
	if twice {
		bad("writers", "one writer stands twice in its table")
	}
}
