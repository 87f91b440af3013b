package limits

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"time"

	"licet/licensing"
)

// Config contains the rate of each limit. A zero Rate is no limit.
type Config struct {
	Address        Rate // of a client address, or its network; see [Network]
	Authentication Rate // of failed authentications of a client address, or its network
	Account        Rate // of an account in one mode
	License        Rate // of a license
	PayPage        Rate // of the pay page of an order
	DocumentBytes  Rate // of the bytes of open documents that a client address, or its site, gets

	Clock func() time.Time // monotonic, like time.Now
}

// Limits are the limits of a process. They are safe for concurrent use. The zero value limits nothing.
// Make any other value with [New], and close it.
type Limits struct {
	address        *buckets[netip.Addr]
	authentication *buckets[netip.Addr]
	account        *buckets[licensing.Owner]
	license        *buckets[string]
	payPage        *buckets[string]
	documentBytes  *buckets[documents]
}

// documents are the documents of one of two lengths for the clients of a site.
type documents struct {
	site netip.Addr
	long bool
}

// longDocument is the length in bytes above which a document is long.
const longDocument = 64 << 10

// The names of the limits, in metrics and headers.
const (
	NameAddress        = "address"
	NameAuthentication = "authentication"
	NameAccount        = "account"
	NameLicense        = "license"
	NamePayPage        = "pay_page"
	NameDocumentBytes  = "document_bytes"
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
	byRegion := func(network netip.Addr) uint64 { return maphash.Comparable(seed, region(network)) }
	if l.address, err = newBuckets(Policy{NameAddress, cfg.Address}, cfg.Clock, byRegion); err != nil {
		return nil, err
	}
	authentication := Policy{NameAuthentication, cfg.Authentication}
	if l.authentication, err = newBuckets(authentication, cfg.Clock, byRegion); err != nil {
		return nil, err
	}
	documentBytes := Policy{NameDocumentBytes, cfg.DocumentBytes}
	byRegionOfSite := func(d documents) uint64 { return byRegion(d.site) }
	if l.documentBytes, err = newBuckets(documentBytes, cfg.Clock, byRegionOfSite); err != nil {
		return nil, err
	}
	// These requests have a valid API key, a license key with good check characters, or the link of an order. No client
	// has millions of those, so these limits need no shared buckets.
	if l.account, err = newBuckets[licensing.Owner](Policy{NameAccount, cfg.Account}, cfg.Clock, nil); err != nil {
		return nil, err
	}
	if l.license, err = newBuckets[string](Policy{NameLicense, cfg.License}, cfg.Clock, nil); err != nil {
		return nil, err
	}
	if l.payPage, err = newBuckets[string](Policy{NamePayPage, cfg.PayPage}, cfg.Clock, nil); err != nil {
		return nil, err
	}
	return &l, nil
}

// Close stops the background goroutines.
func (l *Limits) Close() {
	l.address.close()
	l.authentication.close()
	l.account.close()
	l.license.close()
	l.payPage.close()
	l.documentBytes.close()
}

// Address counts a request by its client's network.
func (l *Limits) Address(client netip.Addr) Decision { return l.address.take(Network(client)) }

// AddressLeft refuses while Address would refuse a request of a client's network. AddressLeft takes no token.
func (l *Limits) AddressLeft(client netip.Addr) Decision { return l.address.peek(Network(client), 1) }

// Attempt counts an attempt of a client's network to authenticate that needs a look-up, before the look-up. Unless it
// fails, AttemptSucceeded must follow. So the attempts under way can't exceed the limit either.
func (l *Limits) Attempt(client netip.Addr) Decision { return l.authentication.take(Network(client)) }

// AttemptSucceeded undoes Attempt: the attempt has not failed.
func (l *Limits) AttemptSucceeded(client netip.Addr) { l.authentication.giveBack(Network(client)) }

// FailedAuthentication counts a failed authentication that needed no look-up. Such failures leave half of the limit to
// attempts that need one: a client that repeats a bad API key all the time does not keep those of other clients of the
// network from being looked up.
func (l *Limits) FailedAuthentication(client netip.Addr) Decision {
	if l.authentication == nil {
		return Decision{}
	}
	return l.authentication.takeAbove(Network(client), l.authentication.policy.Rate.Count/2)
}

// Account counts a request by the account and mode of its API key.
func (l *Limits) Account(owner licensing.Owner) Decision { return l.account.take(owner) }

// AccountCost takes n more tokens for an accepted request of an account and mode, also if the bucket has fewer, but no
// more than a full bucket has. While the bucket lacks tokens, the limit refuses requests.
func (l *Limits) AccountCost(owner licensing.Owner, n int) { l.account.charge(owner, n) }

// AccountDebt refuses while AccountCost has taken more tokens of an account and mode than there were. AccountDebt
// takes no token.
func (l *Limits) AccountDebt(owner licensing.Owner) Decision { return l.account.peek(owner, 0) }

// License counts a request by the license key that it names, in canonical form.
func (l *Limits) License(key string) Decision { return l.license.take(key) }

// PayPage counts a request to the pay page of an order that asks a payment provider.
func (l *Limits) PayPage(orderNo string) Decision { return l.payPage.take(orderNo) }

// Document counts the bytes of a document that a client's site is about to get. The document may be longer than the
// rest of the limit: then the limit refuses further documents until the bucket lacks no tokens. Documents of up to
// longDocument bytes have a bucket of their own, as large: a client who fetches long documents in a loop does not keep
// short documents from other clients of the site.
//
// A site is a client's own address with IPv4, and the /48 with IPv6: one customer of a provider may have a /48, which
// has 65,536 networks.
func (l *Limits) Document(client netip.Addr, bytes int) Decision {
	key := documents{masked(client, 48), bytes > longDocument}
	d := l.documentBytes.peek(key, 0)
	if !d.Refused {
		l.documentBytes.charge(key, bytes)
	}
	return d
}

// Network returns the address that a client counts as: with IPv4 the client's own address, with IPv6
// its /64, because one machine can use any address of its /64.
func Network(client netip.Addr) netip.Addr { return masked(client, 64) }

// masked returns an IPv4 address, or the first bits of an IPv6 address.
func masked(client netip.Addr, bits int) netip.Addr {
	client = canonical(client)
	if client.Is6() {
		return netip.PrefixFrom(client, bits).Masked().Addr()
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
