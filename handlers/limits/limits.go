package limits

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"time"
)

// Config holds the rate of each limit. A zero Rate is no limit.
type Config struct {
	Address Rate // of a client address, or its network; see [Network]
	APIKey  Rate // of an API key
	License Rate // of a license

	Clock func() time.Time // monotonic, like time.Now
}

// Limits are the limits of a process. They are safe for concurrent use. The zero value limits nothing.
// Make any other value with [New], and close it.
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

// Policy is the name and the rate of a limit.
type Policy struct {
	Name string
	Rate Rate
}

// Decision is what a limit decides about a request. The zero Decision means that no limit counted the
// request.
type Decision struct {
	Policy    *Policy // nil: the limit did not count the request
	Refused   bool
	Remaining int           // how many further requests the limit would accept at once
	Next      time.Duration // until Remaining grows by one
}

// New returns limits. Close must follow.
func New(cfg Config) (*Limits, error) {
	seed := maphash.MakeSeed()
	var l Limits
	var err error
	if l.address, err = newBuckets(Policy{NameAddress, cfg.Address}, cfg.Clock, func(network netip.Addr) uint64 {
		return maphash.Comparable(seed, region(network))
	}); err != nil {
		return nil, err
	}
	// These requests have a valid API key, or a license key with good check characters. No client
	// has millions of those, so these limits need no shared buckets.
	if l.apiKey, err = newBuckets[[32]byte](Policy{NameAPIKey, cfg.APIKey}, cfg.Clock, nil); err != nil {
		return nil, err
	}
	if l.license, err = newBuckets[string](Policy{NameLicense, cfg.License}, cfg.Clock, nil); err != nil {
		return nil, err
	}
	return &l, nil
}

// Close stops the background goroutines.
func (l *Limits) Close() {
	l.address.close()
	l.apiKey.close()
	l.license.close()
}

// Address counts a request by its client's network.
func (l *Limits) Address(client netip.Addr) Decision { return l.address.take(Network(client)) }

// APIKey counts a request by the hash of its API key.
func (l *Limits) APIKey(hash [32]byte) Decision { return l.apiKey.take(hash) }

// License counts a request by the license key that it names, in canonical form.
func (l *Limits) License(key string) Decision { return l.license.take(key) }

// Network returns the address that a client counts as: with IPv4 the client's own address, with IPv6
// its /64, because one machine can use any address of its /64.
func Network(client netip.Addr) netip.Addr {
	client = canonical(client)
	if client.Is6() {
		return netip.PrefixFrom(client, 64).Masked().Addr()
	}
	return client
}

// region returns the wider network of a network, about as large as a provider's: the /16 of IPv4, the
// /32 of IPv6.
func region(network netip.Addr) uint32 {
	if network.Is4() {
		four := network.As4()
		return binary.BigEndian.Uint32(four[:]) >> 16
	}
	sixteen := network.As16()
	return binary.BigEndian.Uint32(sixteen[:])
}
