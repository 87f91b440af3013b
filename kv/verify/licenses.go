package verify

import (
	"cmp"
	"context"
	"strings"

	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkLicenses reads licenses together with their devices and metadata. All three have the same order, so nothing must
// be kept in memory.
func (v *recordChecks) checkLicenses(ctx context.Context) error {
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
		id, ok := layout.LicenseIDOf(e.rest)
		if !ok {
			v.report("license", "l/"+v.names.Opaque(e.rest), "key", "the key is not in the form of a license's")
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
	if !v.checked && v.summary.Families[licenses.place].Keys > 0 {
		v.report("check_key", "cell/check", "missing",
			"there are licenses, and no check key that their keys are made with")
	}
	return v.lookUp(ctx, 0)
}

// orphans reports the devices and metadata whose keys sort before those of a license: their own license does not exist.
func (v *recordChecks) orphans(ctx context.Context, devices, metadata *stream, license entry) error {
	for {
		e, more, err := devices.peek(ctx)
		if err != nil {
			return err
		}
		if !more || !e.sortsBefore(license) {
			break
		}
		devices.skip()
		if _, ok := v.deviceKeyForm(e); ok {
			v.report("device", v.names.Device(e.rest), "orphan", "the license of this device does not exist")
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
		id, ok := layout.LicenseIDOf(e.rest)
		if !ok {
			v.report("metadata", "m/"+v.names.Opaque(e.rest), "key",
				"the key is not in the form of a license's metadata")
			continue
		}
		v.report("metadata", "m/"+v.names.License(id), "orphan", "the license of this metadata does not exist")
	}
}

// sortsBefore reports whether a key of a device or of metadata sorts before those of a license.
func (e entry) sortsBefore(license entry) bool {
	return cmp.Or(cmp.Compare(e.slot, license.slot),
		cmp.Compare(e.rest[:min(len(e.rest), layout.LicenseIDSize)], license.rest)) < 0
}

// deviceKeyForm reports a malformed key of a device.
func (v *recordChecks) deviceKeyForm(e entry) (licensing.LicenseID, bool) {
	if len(e.rest) == layout.LicenseIDSize+layout.DevicePositionSize {
		if id, ok := layout.LicenseIDOf(e.rest[:layout.LicenseIDSize]); ok {
			return id, true
		}
	}
	v.report("device", "d/"+v.names.Opaque(e.rest), "key", "the key is not in the form of a device's")
	return licensing.LicenseID{}, false
}

// checkLicense checks one license with its devices and metadata, and looks up what it refers to.
func (v *recordChecks) checkLicense(
	ctx context.Context, id licensing.LicenseID, e entry, devices, metadata *stream,
) error {
	name := "l/" + v.names.License(id)
	stored, err := layout.DecodeLicense(id, e.value)
	if err != nil {
		v.events.links.unread = true
		v.report("license", name, "value", "the value can't be read: %v", err)
	} else if v.cfg.ShowKeys {
		name = "l/" + string(stored.License.Key)
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
	checkWriters(e.value, layout.LicenseWriter, bad)
	v.checkFacts(stored, bad)
	v.checkCounts(stored, own, bad)
	v.checkLicenseReferences(stored, id, bad)
	return nil
}

// checkOwnDevices checks the devices of a license that have keys of their own,
// and counts them.
func (v *recordChecks) checkOwnDevices(ctx context.Context, id licensing.LicenseID, devices *stream) (int, error) {
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
		device, err := layout.DecodeDeviceValue(e.value)
		if err != nil {
			v.report("device", v.names.Device(e.rest), "value", "the value can't be read: %v", err)
			continue
		}
		if at := layout.DevicePosition(device.ID); string(at[:]) != e.rest[layout.LicenseIDSize:] {
			v.report("device", v.names.Device(e.rest), "position", "the key is not made of the hash of the device's id")
		}
	}
}

func (v *recordChecks) checkMetadata(ctx context.Context, id licensing.LicenseID, metadata *stream) error {
	e, more, err := metadata.peek(ctx)
	if err != nil || !more || e.rest != string(id[:]) {
		return err
	}
	metadata.skip()
	if !isObject(e.value) {
		v.report("metadata", "m/"+v.names.License(id), "value", "the value is no JSON object")
	}
	return nil
}
