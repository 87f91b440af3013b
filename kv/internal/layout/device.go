package layout

import (
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of a stored device, in a license or on its own.
const (
	deviceID       protowire.Number = 1
	deviceHexID    protowire.Number = 2 // instead of 1, for an id of lower-case hex digits, in half the bytes
	deviceName     protowire.Number = 3
	deviceBoundAt  protowire.Number = 4 // in a license, counted from its created_at
	deviceSeenFor  protowire.Number = 5 // milliseconds from bound_at to last_seen_at
	deviceHasEmpty protowire.Number = 6 // a name was given, and it is empty
	deviceLeaseFor protowire.Number = 7 // milliseconds from bound_at to the end of its lease
	// deviceComponents is in a license's record only: see licensing.Components.
	deviceComponents protowire.Number = 8
)

// EncodeDevice returns the value of a device with a key of its own.
func EncodeDevice(d *licensing.Device) []byte {
	return appendDevice([]byte{formatVersion}, d, time.Time{})
}

// appendDevice writes a device of a license that was created at created. For a key of the device's own, created is the
// zero time, so that the value can be read without the license.
func appendDevice(b []byte, d *licensing.Device, created time.Time) []byte {
	if b == nil {
		b = make([]byte, 0, 32+len(d.ID)+len(d.Name)+len(d.Components))
	}
	b = appendDeviceID(b, d.ID)
	b = appendString(b, deviceName, d.Name)
	b = appendBool(b, deviceHasEmpty, d.Named && d.Name == "")
	b = appendTimeAfter(b, deviceBoundAt, d.BoundAt, created)
	b = appendUint(b, deviceSeenFor, uint64(d.LastSeenAt.UnixMilli()-d.BoundAt.UnixMilli()))
	if !d.LeaseEnd.IsZero() {
		b = appendUint(b, deviceLeaseFor, uint64(d.LeaseEnd.UnixMilli()-d.BoundAt.UnixMilli()))
	}
	return appendString(b, deviceComponents, string(d.Components))
}

// decodeDevice decodes a device. id is the id of the device, or empty if the caller does not know the id. created is as
// for appendDevice.
func decodeDevice(message []byte, created time.Time, id string) (licensing.Device, error) {
	d := licensing.Device{ID: id}
	var seenFor, leaseFor int64
	named := false // the message has an id
	err := decodeMessage(message, func(f Field) error {
		switch f.Num {
		case deviceID:
			if named = len(f.Bytes) > 0; id == "" {
				d.ID = f.string()
			}
		case deviceHexID:
			if named = len(f.Bytes) > 0; id == "" {
				d.ID = hex.EncodeToString(f.Bytes)
			}
		case deviceName:
			d.Name, d.Named = f.string(), true
		case deviceHasEmpty:
			d.Named = d.Named || f.bool()
		case deviceBoundAt:
			d.BoundAt = f.timeAfter(created)
		case deviceSeenFor:
			seenFor = int64(f.varint)
		case deviceLeaseFor:
			leaseFor = int64(f.varint)
		case deviceComponents:
			d.Components = licensing.Components(f.string())
		}
		return nil
	})
	if err == nil && (!named || !d.Components.Valid()) {
		err = ErrMalformed
	}
	d.LastSeenAt = time.UnixMilli(d.BoundAt.UnixMilli() + seenFor).UTC()
	if leaseFor != 0 {
		d.LeaseEnd = time.UnixMilli(d.BoundAt.UnixMilli() + leaseFor).UTC()
	}
	return d, err
}

// DecodeDeviceValue decodes the value of a device with a key of its own.
func DecodeDeviceValue(value []byte) (licensing.Device, error) { return DecodeDeviceOf("", value) }

// DecodeDeviceOf decodes the value of a device with a key of its own, whose id the caller knows from the key. It
// returns this id, and does not decode the id in the value.
func DecodeDeviceOf(id string, value []byte) (licensing.Device, error) {
	if len(value) == 0 || value[0] != formatVersion {
		return licensing.Device{}, ErrMalformed
	}
	return decodeDevice(value[1:], time.Time{}, id)
}

// appendDeviceID writes an id. An id of lower-case hex digits, such as a fingerprint, takes half the bytes. Short ids
// and all others are written as they are, since unpacking must return the same text.
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
