// Package limits tells who asks for too much. A limit counts requests by whose
// they are, in a token bucket each: one for each client address, API key or
// license key that was seen lately. Each process counts for itself, and nothing
// is stored.
//
// What is counted, and what a caller is told, is the business of package
// handlers.
package limits

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"time"
)

// Config says what is allowed. A zero Rate is no limit.
type Config struct {
	Address Rate // of one client address, or network; see [Network]
	APIKey  Rate // of one API key
	License Rate // of one license

	Clock func() time.Time // monotonic, as time.Now is
}

// Limits are the limits of one process. The zero value has none. Make others
// with [New], and close them.
type Limits struct {
	address *buckets[netip.Addr]
	apiKey  *buckets[[32]byte]
	license *buckets[string]
}

// The names of the limits, in metrics and headers.
const (
	NameAddress = "address"
	NameAPIKey  = "api_key"
	NameLicense = "license"
)

// Policy is a limit by its name.
type Policy struct {
	Name string
	Rate Rate
}

// Count is what became of a request that was held against a limit. The zero
// Count says that none was.
type Count struct {
	Policy    *Policy // nil: it was not counted
	Refused   bool
	Remaining int           // how many more would be let through at once
	Next      time.Duration // until it is one more than that
}

// New makes limits.
func New(cfg Config) (*Limits, error) {
	seed := maphash.MakeSeed()
	var l Limits
	var err error
	if l.address, err = newBuckets(Policy{NameAddress, cfg.Address}, cfg.Clock, func(network netip.Addr) uint64 {
		return maphash.Comparable(seed, region(network))
	}); err != nil {
		return nil, err
	}
	// Whoever is counted here has shown a key that is good, or well made. Those
	// are not to be had by the million, so nobody need share a bucket.
	if l.apiKey, err = newBuckets[[32]byte](Policy{NameAPIKey, cfg.APIKey}, cfg.Clock, nil); err != nil {
		return nil, err
	}
	if l.license, err = newBuckets[string](Policy{NameLicense, cfg.License}, cfg.Clock, nil); err != nil {
		return nil, err
	}
	return &l, nil
}

// Close ends what runs in the background.
func (l *Limits) Close() {
	l.address.close()
	l.apiKey.close()
	l.license.close()
}

// Address counts a request by its client's network.
func (l *Limits) Address(client netip.Addr) Count { return l.address.take(Network(client)) }

// APIKey counts a request by the hash of its API key.
func (l *Limits) APIKey(hash [32]byte) Count { return l.apiKey.take(hash) }

// License counts a request by the license that it names, in canonical form.
func (l *Limits) License(key string) Count { return l.license.take(key) }

// Network is whom a client's address stands for: itself, or with IPv6 the /64
// that it is in, any address of which one machine can give itself.
func Network(client netip.Addr) netip.Addr {
	client = plain(client)
	if client.Is6() {
		return netip.PrefixFrom(client, 64).Masked().Addr()
	}
	return client
}

// region is the wider network that a network belongs to, about as much as one
// provider has: /16 with IPv4, /32 with IPv6.
func region(network netip.Addr) uint32 {
	if network.Is4() {
		four := network.As4()
		return binary.BigEndian.Uint32(four[:]) >> 16
	}
	sixteen := network.As16()
	return binary.BigEndian.Uint32(sixteen[:])
}
