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
	devices []inlineDevice // in the order they were bound; nil where spilled
	spilled bool
	unknown []byte // fields of a newer format, to be kept
}

func (s *storedLicense) encode() []byte {
	l := &s.license
	size := 160
	for _, d := range s.devices {
		size += len(d) + 4
	}
	b := make([]byte, 1, size)
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
	for _, d := range s.devices {
		b = appendBytes(b, licenseDevice, d)
	}
	return append(b, s.unknown...)
}

// decodeLicense reads the value under a license's key. The id comes from the
// key, since the value holds only the prefix. What it gives aliases the value,
// which must not change any more.
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
			if s.devices == nil {
				s.devices = make([]inlineDevice, 0, 4)
			}
			s.devices = append(s.devices, f.bytes)
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
	if b == nil {
		b = make([]byte, 0, 32+len(d.ID)+len(d.Name))
	}
	b = appendDeviceID(b, d.ID)
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

// appendDeviceID writes an id. One of lower-case hex digits, as fingerprints
// are, takes half the bytes; a short one and all others stay as they are, since
// unpacking must give the same text.
func appendDeviceID(b []byte, id string) []byte {
	if len(id) < 2 || len(id)%2 != 0 || !isLowerHex(id) {
		return appendString(b, deviceID, id)
	}
	b = protowire.AppendTag(b, deviceHexID, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(id)/2))
	for i := 0; i < len(id); i += 2 {
		b = append(b, hexDigit(id[i])<<4|hexDigit(id[i+1]))
	}
	return b
}

func isLowerHex(id string) bool {
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func hexDigit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'a' + 10
}
