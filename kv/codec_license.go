package kv

import (
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet"
)

// Field numbers of a stored license. A number is never used for something else.
const (
	licensePrefix         protowire.Number = 1
	licenseAccount        protowire.Number = 2
	licenseMode           protowire.Number = 3
	licenseProduct        protowire.Number = 4
	licenseOrder          protowire.Number = 5
	licenseMaxDevices     protowire.Number = 6
	licenseCurrentDevices protowire.Number = 7
	licenseAllowedOver    protowire.Number = 8
	licenseValidity       protowire.Number = 9
	licenseCreatedAt      protowire.Number = 10
	licenseActivatedAt    protowire.Number = 11
	licenseExpiresAt      protowire.Number = 12
	licenseSuspendedAt    protowire.Number = 13
	licenseRevokedAt      protowire.Number = 14
	licenseWriter         protowire.Number = 15 // repeated
	licenseDevice         protowire.Number = 16 // repeated; only where not spilled
	licenseSpilled        protowire.Number = 17
)

// Field numbers of a stored device, in a license or on its own.
const (
	deviceID       protowire.Number = 1
	deviceHexID    protowire.Number = 2 // instead of 1: an id of lower-case hex digits, in half the bytes
	deviceName     protowire.Number = 3
	deviceBoundAt  protowire.Number = 4
	deviceSeenFor  protowire.Number = 5 // milliseconds from bound_at to last_seen_at
	deviceHasEmpty protowire.Number = 6 // a name was given, and it is empty
)

// storedLicense is a license as one key holds it.
type storedLicense struct {
	license licet.License
	writers []writer
	devices []licet.Device // nil where spilled
	spilled bool
	unknown []byte // fields of a newer format, to be kept
}

func (s *storedLicense) encode() []byte {
	l := &s.license
	b := make([]byte, 1, 96+96*len(s.devices))
	b[0] = formatVersion
	b = appendString(b, licensePrefix, l.Key.Prefix())
	b = appendString(b, licenseAccount, l.Owner.AccountID)
	b = appendMode(b, licenseMode, l.Owner.Mode)
	b = appendString(b, licenseProduct, l.ProductID)
	b = appendString(b, licenseOrder, l.OrderNo)
	b = appendCount(b, licenseMaxDevices, l.MaxDevices)
	b = appendUint(b, licenseCurrentDevices, uint64(l.CurrentDevices))
	b = appendUint(b, licenseAllowedOver, uint64(l.AllowedOver))
	if !l.Validity.IsZero() {
		b = appendBytes(b, licenseValidity, encodePeriod(l.Validity))
	}
	b = appendTime(b, licenseCreatedAt, l.CreatedAt)
	b = appendTime(b, licenseActivatedAt, l.ActivatedAt)
	b = appendTime(b, licenseExpiresAt, l.ExpiresAt)
	b = appendTime(b, licenseSuspendedAt, l.SuspendedAt)
	b = appendTime(b, licenseRevokedAt, l.RevokedAt)
	b = appendWriters(b, licenseWriter, s.writers)
	b = appendBool(b, licenseSpilled, s.spilled)
	for i := range s.devices {
		b = appendBytes(b, licenseDevice, appendDevice(nil, &s.devices[i]))
	}
	return append(b, s.unknown...)
}

// decodeLicense reads the value under a license's key. The id comes from the
// key, since the value holds only the prefix.
func decodeLicense(id licet.LicenseID, value []byte) (*storedLicense, error) {
	s := &storedLicense{}
	l := &s.license
	var prefix string
	limited := false
	err := decodeValue(value, func(f field) (err error) {
		switch f.num {
		case licensePrefix:
			prefix = f.string()
		case licenseAccount:
			l.Owner.AccountID = f.string()
		case licenseMode:
			l.Owner.Mode = f.mode()
		case licenseProduct:
			l.ProductID = f.string()
		case licenseOrder:
			l.OrderNo = f.string()
		case licenseMaxDevices:
			l.MaxDevices, limited = f.int(), f.bytes == nil
		case licenseCurrentDevices:
			l.CurrentDevices = f.int()
		case licenseAllowedOver:
			l.AllowedOver = f.int()
		case licenseValidity:
			l.Validity, err = decodePeriod(f.bytes)
		case licenseCreatedAt:
			l.CreatedAt = f.time()
		case licenseActivatedAt:
			l.ActivatedAt = f.time()
		case licenseExpiresAt:
			l.ExpiresAt = f.time()
		case licenseSuspendedAt:
			l.SuspendedAt = f.time()
		case licenseRevokedAt:
			l.RevokedAt = f.time()
		case licenseWriter:
			s.writers, err = decodeWriter(s.writers, f.bytes)
		case licenseSpilled:
			s.spilled = f.bool()
		case licenseDevice:
			var d licet.Device
			d, err = decodeDevice(f.bytes)
			s.devices = append(s.devices, d)
		default:
			s.unknown = append(s.unknown, f.raw...)
		}
		return err
	})
	if err = owned(l.Owner, err); err != nil {
		return nil, err
	}
	if !licet.ValidKeyPrefix(prefix) || !limited {
		return nil, errMalformed
	}
	l.Key = id.Key(prefix)
	return s, nil
}

func encodeDevice(d *licet.Device) []byte {
	return appendDevice([]byte{formatVersion}, d)
}

func appendDevice(b []byte, d *licet.Device) []byte {
	if packed, ok := packHex(d.ID); ok {
		b = appendBytes(b, deviceHexID, packed)
	} else {
		b = appendString(b, deviceID, d.ID)
	}
	b = appendString(b, deviceName, d.Name)
	b = appendBool(b, deviceHasEmpty, d.Named && d.Name == "")
	b = appendTime(b, deviceBoundAt, d.BoundAt)
	return appendUint(b, deviceSeenFor, uint64(d.LastSeenAt.UnixMilli()-d.BoundAt.UnixMilli()))
}

func decodeDevice(message []byte) (licet.Device, error) {
	var d licet.Device
	var seenFor int64
	err := decodeMessage(message, func(f field) error {
		switch f.num {
		case deviceID:
			d.ID = f.string()
		case deviceHexID:
			d.ID = hex.EncodeToString(f.bytes)
		case deviceName:
			d.Name, d.Named = f.string(), true
		case deviceHasEmpty:
			d.Named = d.Named || f.bool()
		case deviceBoundAt:
			d.BoundAt = f.time()
		case deviceSeenFor:
			seenFor = int64(f.varint)
		}
		return nil
	})
	if err == nil && d.ID == "" {
		err = errMalformed
	}
	d.LastSeenAt = time.UnixMilli(d.BoundAt.UnixMilli() + seenFor).UTC()
	return d, err
}

func decodeDeviceValue(value []byte) (licet.Device, error) {
	if len(value) == 0 || value[0] != formatVersion {
		return licet.Device{}, errMalformed
	}
	return decodeDevice(value[1:])
}

// packHex packs an id of lower-case hex digits, as fingerprints are. Short
// ones and others stay as they are: unpacking must give the same text.
func packHex(id string) ([]byte, bool) {
	if len(id) < 2 {
		return nil, false
	}
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil, false
		}
	}
	packed, err := hex.DecodeString(id)
	return packed, err == nil
}
