package layout

import (
	"bytes"
	"encoding/binary"
	"time"

	"licet/licensing"
)

// InlineDevice is a device in its license's record, as stored. An activation changes one device, and leaves the bytes
// of the others as they are, including fields that only a newer format knows. An InlineDevice is never changed. Its
// times count from the moment when its license was created.
type InlineDevice []byte

// NewInlineDevice encodes a device for the record of a license that was created at created.
func NewInlineDevice(d *licensing.Device, created time.Time) InlineDevice {
	return appendDevice(nil, d, created)
}

// Decode returns the device. created is the moment when its license was created.
func (d InlineDevice) Decode(created time.Time) (licensing.Device, error) {
	return decodeDevice(d, created, "")
}

// Alone returns the value for a key of the device's own, without components: licenses with so many devices compare
// none. All fields but the times stay as they are, including fields that only a newer format knows.
func (d InlineDevice) Alone(created time.Time) ([]byte, error) {
	b := append(make([]byte, 0, 1+len(d)+binary.MaxVarintLen64), formatVersion)
	err := decodeMessage(d, func(f Field) error {
		switch f.Num {
		case deviceBoundAt:
			b = appendTimeAfter(b, deviceBoundAt, f.timeAfter(created), time.Time{})
		case deviceComponents:
		default:
			b = append(b, f.raw...)
		}
		return nil
	})
	return b, err
}

// InlineID returns the encoded id of a device, with which an InlineDevice begins.
func InlineID(buffer []byte, id string) []byte { return appendDeviceID(buffer, id) }

// Is reports whether d is the device with an id. front is the id as [InlineID] returns it. This service writes the id
// first; another writer may have put it elsewhere.
func (d InlineDevice) Is(id string, front []byte) bool {
	if bytes.HasPrefix(d, front) {
		return true
	}
	if len(d) > 0 && d[0] == front[0] {
		return false
	}
	decoded, err := d.Decode(time.Time{}) // only the id matters
	return err == nil && decoded.ID == id
}

// DecodeInline reads devices that stand in a license's record.
func DecodeInline(stored []InlineDevice, created time.Time) ([]licensing.Device, error) {
	devices := make([]licensing.Device, len(stored))
	for i, d := range stored {
		var err error
		if devices[i], err = d.Decode(created); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// MergeInline returns the devices of a license after a change. It leaves stored
// itself as it is: a token may be used again.
func MergeInline(stored []InlineDevice, changed []*licensing.DeviceEntry, created time.Time) []InlineDevice {
	merged := make([]InlineDevice, len(stored), len(stored)+len(changed))
	copy(merged, stored)
	var buffer [80]byte
	for _, entry := range changed {
		front := InlineID(buffer[:0], entry.Device.ID)
		at := 0
		for at < len(merged) && !merged[at].Is(entry.Device.ID, front) {
			at++
		}
		switch {
		case at == len(merged) && entry.Bound:
			merged = append(merged, NewInlineDevice(&entry.Device, created))
		case at == len(merged):
		case entry.Bound:
			merged[at] = NewInlineDevice(&entry.Device, created)
		default:
			merged = append(merged[:at], merged[at+1:]...)
		}
	}
	return merged
}

// MaxInline is how many devices a license's own record has. One more device moves them all to keys of their own, for
// good: from then on an activation writes the facts and one device, however many devices there are.
const MaxInline = 16
