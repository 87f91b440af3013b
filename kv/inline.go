package kv

import (
	"bytes"
	"encoding/binary"
	"time"

	"licet/licensing"
)

// inlineDevice is a device in its license's record, as it is stored: an
// activation touches one device and leaves the others as they are, also what
// only a newer format knows of them. It is never changed. To read or write its
// times takes the moment when its license was created.
type inlineDevice []byte

func inline(d *licensing.Device, created time.Time) inlineDevice {
	return appendDevice(nil, d, created)
}

func (d inlineDevice) decode(created time.Time) (licensing.Device, error) {
	return decodeDevice(d, created)
}

// alone gives the value for a key of the device's own. All but the time stays
// as it is, also what only a newer format knows.
func (d inlineDevice) alone(created time.Time) ([]byte, error) {
	b := append(make([]byte, 0, 1+len(d)+binary.MaxVarintLen64), formatVersion)
	err := decodeMessage(d, func(f field) error {
		if f.num == deviceBoundAt {
			b = appendTimeAfter(b, deviceBoundAt, f.timeAfter(created), time.Time{})
		} else {
			b = append(b, f.raw...)
		}
		return nil
	})
	return b, err
}

// inlineID is the id of a device as it stands at the front of an inlineDevice.
func inlineID(buffer []byte, id string) []byte { return appendDeviceID(buffer, id) }

// is tells whether d is the device of an id, given as [inlineID] makes it. The
// id comes first as we write it; somebody else may have put it elsewhere.
func (d inlineDevice) is(id string, front []byte) bool {
	if bytes.HasPrefix(d, front) {
		return true
	}
	if len(d) > 0 && d[0] == front[0] {
		return false
	}
	decoded, err := d.decode(time.Time{}) // only the id matters
	return err == nil && decoded.ID == id
}

// decodeInline reads devices that stand in a license's record.
func decodeInline(stored []inlineDevice, created time.Time) ([]licensing.Device, error) {
	devices := make([]licensing.Device, len(stored))
	for i, d := range stored {
		var err error
		if devices[i], err = d.decode(created); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// mergeInline gives the devices of a license after a change. It leaves stored
// itself as it is: a token may be used again.
func mergeInline(stored []inlineDevice, changed []*licensing.DeviceEntry, created time.Time) []inlineDevice {
	merged := make([]inlineDevice, len(stored), len(stored)+len(changed))
	copy(merged, stored)
	var buffer [80]byte
	for _, entry := range changed {
		front := inlineID(buffer[:0], entry.Device.ID)
		at := 0
		for at < len(merged) && !merged[at].is(entry.Device.ID, front) {
			at++
		}
		switch {
		case at == len(merged) && entry.Bound:
			merged = append(merged, inline(&entry.Device, created))
		case at == len(merged):
		case entry.Bound:
			merged[at] = inline(&entry.Device, created)
		default:
			merged = append(merged[:at], merged[at+1:]...)
		}
	}
	return merged
}
