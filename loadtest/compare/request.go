package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"licet/loadtest/rig"
)

const (
	deviceIDLength   = 64
	deviceNameLength = 24
)

// device names a device by a number: 64 hex digits that look like a fingerprint, and a
// name of 24 characters. Another salt names other devices.
type device struct{ salt, number uint64 }

// appendID appends the device's id. No two numbers have the same id: mix is a bijection.
func (d device) appendID(b []byte) []byte {
	var raw [deviceIDLength / 2]byte
	for i := range 4 {
		binary.BigEndian.PutUint64(raw[8*i:], mix(d.number+uint64(i)<<56^d.salt<<32))
	}
	return hex.AppendEncode(b, raw[:])
}

func (d device) appendName(b []byte) []byte {
	var raw [6]byte
	binary.BigEndian.PutUint16(raw[:], uint16(d.salt))
	binary.BigEndian.PutUint32(raw[2:], uint32(d.number))
	b = append(b, "Workstation "...)
	return hex.AppendEncode(b, raw[:])
}

// mix is the finalizer of splitmix64: it spreads numbers over all 64 bits, and
// has an inverse. https://prng.di.unimi.it/splitmix64.c
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// activation is a request that binds a device. It is built once; only the license key, the
// device's id and its name change, which always have the same length.
type activation struct {
	text                  []byte
	keyAt, idAt, namedAt  int
	keyLength, nameLength int
}

func newActivation(list *rig.Keys) *activation {
	const before, between, named = `{"license_key":"`, `","device_id":"`, `","device_name":"`
	keyLength, after := list.Length, `"`+list.Beside+`}`
	body := before + strings.Repeat("k", keyLength) + between + strings.Repeat("d", deviceIDLength) +
		named + strings.Repeat("n", deviceNameLength) + after
	head := fmt.Sprintf("POST /v1/licenses/activate HTTP/1.1\r\nHost: licet\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	a := &activation{text: []byte(head + body), keyLength: keyLength, nameLength: deviceNameLength}
	a.keyAt = len(head) + len(before)
	a.idAt = a.keyAt + keyLength + len(between)
	a.namedAt = a.idAt + deviceIDLength + len(named)
	return a
}

// of fills in the request. It is valid until the next call.
func (a *activation) of(key []byte, d device) []byte {
	copy(a.text[a.keyAt:a.keyAt+a.keyLength], key)
	d.appendID(a.text[a.idAt:a.idAt])
	d.appendName(a.text[a.namedAt:a.namedAt])
	return a.text
}

// pageRequest returns the request for the first page of a license's devices.
func pageRequest(key []byte, apiKey string, limit int) []byte {
	return fmt.Appendf(nil,
		"GET /v1/licenses/%s/devices?limit=%d HTTP/1.1\r\nHost: licet\r\nAuthorization: Bearer %s\r\n\r\n",
		key, limit, apiKey)
}
