package verify

import (
	"cmp"
	"context"
	"strings"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// licenseChecks checks licenses with their devices and metadata, their aliases and their trials.
type licenseChecks struct {
	*reading
	events *eventChecks
	// ofMany counts the licenses that name an order for several licenses, by the number of the order.
	ofMany map[string]int
	// settings are the settings of owners. The families before licenses fill it.
	settings map[licensing.Owner]licensing.Settings
}

// checkLicenses reads licenses together with their devices and metadata. All three have the same order, so nothing must
// be kept in memory.
func (v *licenseChecks) checkLicenses(ctx context.Context) error {
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
		id, ok := keyspace.LicenseIDOf(e.slot, e.rest)
		if !ok {
			v.report("license", "l/"+Opaque(e.rest), "key", "this is not the key of a license")
			continue
		}
		if err := v.orphans(ctx, devices, metadata, e); err != nil {
			return err
		}
		if err := v.checkLicense(ctx, id, e, devices, metadata); err != nil {
			return err
		}
		if err := v.lookUp(ctx, lookupBatch); err != nil {
			return err
		}
	}
	if err := v.orphans(ctx, devices, metadata, entry{slot: licensing.Slots}); err != nil {
		return err
	}
	if v.summary.Families[licenses.place].Keys > 0 {
		if !v.checkKey {
			v.report("check_key", "cell/check", "missing",
				"there are licenses, and no check key that their keys are made with")
		}
		if !v.idKey {
			v.report("id_key", "cell/id_key", "missing",
				"there are licenses, and no id key that their ids are made with")
		}
	}
	return v.lookUp(ctx, 0)
}

// orphans reports the devices and metadata whose keys sort before those of a license: their own license does not exist.
func (v *licenseChecks) orphans(ctx context.Context, devices, metadata *stream, license entry) error {
	for {
		e, more, err := devices.peek(ctx)
		if err != nil {
			return err
		}
		if !more || !e.sortsBefore(license) {
			break
		}
		devices.skip()
		if name, ok := v.deviceKeyForm(e); ok {
			v.report("device", name, "orphan", "the license of this device does not exist")
		}
	}
	for {
		e, more, err := metadata.peek(ctx)
		if err != nil {
			return err
		}
		if !more || !e.sortsBefore(license) {
			return nil
		}
		metadata.skip()
		id, ok := keyspace.LicenseIDOf(e.slot, e.rest)
		if !ok {
			v.report("metadata", "m/"+Opaque(e.rest), "key",
				"this is not the key of a license's metadata")
			continue
		}
		v.report("metadata", "m/"+id.String(), "orphan", "the license of this metadata does not exist")
	}
}

// sortsBefore reports whether a key of a device or of metadata sorts before those of a license.
func (e entry) sortsBefore(license entry) bool {
	return cmp.Or(cmp.Compare(e.slot, license.slot),
		cmp.Compare(e.rest[:min(len(e.rest), keyspace.LicenseIDSize)], license.rest)) < 0
}

// deviceKeyForm returns how violations name the key of a device, and reports a malformed key.
func (v *licenseChecks) deviceKeyForm(e entry) (name string, ok bool) {
	if len(e.rest) == keyspace.LicenseIDSize+keyspace.DevicePositionSize {
		id, _ := keyspace.LicenseIDOf(e.slot, e.rest[:keyspace.LicenseIDSize])
		return deviceName(id, e.rest[keyspace.LicenseIDSize:]), true
	}
	v.report("device", "d/"+Opaque(e.rest), "key", "this is not the key of a device")
	return "", false
}

// checkLicense checks one license with its devices and metadata, and looks up what it refers to.
func (v *licenseChecks) checkLicense(
	ctx context.Context, id licensing.LicenseID, e entry, devices, metadata *stream,
) error {
	name := "l/" + id.String()
	stored, err := layout.DecodeLicense(id, e.value)
	if err != nil {
		v.events.links.unread = true
		v.report("license", name, "value", "the value can't be read: %v", err)
	}
	own, leased, err := v.checkOwnDevices(ctx, id, devices)
	if err != nil {
		return err
	}
	attached, err := v.checkMetadata(ctx, id, metadata)
	if err != nil {
		return err
	}
	if stored == nil {
		return nil
	}
	bad := func(rule, format string, args ...any) { v.report("license", name, rule, format, args...) }
	checkWriters(e.value, layout.LicenseWriter, bad)
	v.checkFacts(stored, bad)
	v.checkCounts(stored, own, bad)
	v.checkLeases(stored, leased, bad)
	v.checkLicenseReferences(stored, id, bad)
	v.checkExternalKey(&stored.License, attached, bad)
	v.checkReissues(&stored.License, bad)
	v.checkLicenseTrial(&stored.License, bad)
	v.wantTerms(stored.License.Owner, stored.License.Terms, bad)
	v.checkCustomerOf(&stored.License, attached.Customer, bad)
	if attached.Entitlements.Version() != stored.License.OwnEntitlements {
		bad("entitlements", "its own entitlements do not have the version that it names")
	}
	return nil
}

// checkOwnDevices checks the devices of a license that have keys of their own,
// and counts them and their leases.
func (v *licenseChecks) checkOwnDevices(
	ctx context.Context, id licensing.LicenseID, devices *stream,
) (own int, leased leases, err error) {
	block := keyspace.BlockOf(id)
	for {
		e, more, err := devices.peek(ctx)
		if err != nil {
			return own, leased, err
		}
		if !more || !strings.HasPrefix(e.rest, block) {
			return own, leased, nil
		}
		devices.skip()
		name, ok := v.deviceKeyForm(e)
		if !ok {
			continue
		}
		own++
		device, err := layout.DecodeDeviceValue(e.value)
		if err != nil {
			v.report("device", name, "value", "the value can't be read: %v", err)
			continue
		}
		leased.add(&device)
		if at := keyspace.DevicePosition(device.ID); string(at[:]) != e.rest[keyspace.LicenseIDSize:] {
			v.report("device", name, "position", "the key is not made of the hash of the device's id")
		}
	}
}

// checkMetadata checks and returns the metadata of a license.
func (v *licenseChecks) checkMetadata(
	ctx context.Context, id licensing.LicenseID, metadata *stream,
) (m licensing.Metadata, err error) {
	e, more, err := metadata.peek(ctx)
	if err != nil || !more || e.slot != id.Slot() || e.rest != keyspace.BlockOf(id) {
		return m, err
	}
	metadata.skip()
	bad := func(rule, problem string) { v.report("metadata", "m/"+id.String(), rule, "%s", problem) }
	if m, _, err = layout.DecodeMetadata(e.value); err != nil {
		bad("value", "the value can't be read")
		return licensing.Metadata{}, nil
	}
	if m.Object != "" && !isObject([]byte(m.Object)) {
		bad("object", "the value is no JSON object")
	}
	return m, nil
}
