package main

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"licet/loadtest/trial"
)

// The states of orders and licenses, as the API calls them.
const (
	stateUnpaid   = "unpaid"
	statePaid     = "paid"
	stateExpired  = "expired" // of licenses too
	stateCanceled = "canceled"
	stateRefunded = "refunded"

	stateNotActivated = "not_activated"
	stateActivated    = "activated"
	stateSuspended    = "suspended"
	stateRevoked      = "revoked"

	stateActive = "active" // of API keys
)

// orderEntry holds what the service has acknowledged about an order. One goroutine at a time writes it.
type orderEntry struct {
	plan   *orderPlan
	number string
	payURL string
	// early: the order was made before all nodes derived pay tokens from the new master key. Without the old master key
	// the service does not show its pay_url.
	early bool
	// As they were ordered, or empty once they are redacted:
	email       string
	description string
	metadata    map[string]any

	made     time.Time
	ends     time.Time
	paid     bool // by a buyer, even if refunded since
	late     bool
	canceled bool
	refunded bool
	reason   string
	license  string // key
}

// status returns what the order must be at a moment.
func (o *orderEntry) status(now time.Time) string {
	switch {
	case o.refunded:
		return stateRefunded
	case o.canceled:
		return stateCanceled
	case o.paid:
		return statePaid
	case !o.ends.After(now):
		return stateExpired
	default:
		return stateUnpaid
	}
}

// licenseEntry holds what the service has acknowledged about a license. One goroutine at a time writes it.
type licenseEntry struct {
	key        string
	product    string
	order      string // empty: granted
	email      string // of the order
	terms      terms
	maxDevices int
	devices    map[string]string // names by id
	made       time.Time
	activated  time.Time // first
	ends       time.Time // zero: never, or not yet known
	endGiven   bool      // by the shop, so the first activation does not set an end
	suspended  bool
	revoked    bool
	reason     string
	metadata   map[string]any
	removals   map[string]int // by its user, by month
}

// status returns what the license must be at a moment.
func (l *licenseEntry) status(now time.Time) string {
	switch {
	case l.revoked:
		return stateRevoked
	case l.suspended:
		return stateSuspended
	case !l.ends.IsZero() && !l.ends.After(now):
		return stateExpired
	case len(l.devices) > 0:
		return stateActivated
	default:
		return stateNotActivated
	}
}

// full reports whether no further device fits.
func (l *licenseEntry) full() bool { return l.maxDevices > 0 && len(l.devices) >= l.maxDevices }

// keyEntry holds what the service has acknowledged about an API key.
type keyEntry struct {
	id, name string
	scopes   []string
	signed   bool // requests must be
	ends     time.Time
	revoked  bool
}

func (k *keyEntry) status(now time.Time) string {
	switch {
	case k.revoked:
		return stateRevoked
	case !k.ends.IsZero() && !k.ends.After(now):
		return stateExpired
	default:
		return stateActive
	}
}

// ledger is what the shop itself has recorded: everything that the service has
// acknowledged, and every wrong answer.
type ledger struct {
	trial.Tally
	products []product

	mu       sync.Mutex
	now      []terms // on which products are sold, by place in the catalog
	orders   map[string]*orderEntry
	licenses map[string]*licenseEntry
	keys     map[string]*keyEntry
}

func newLedger() *ledger {
	l := &ledger{
		products: catalog(),
		orders:   map[string]*orderEntry{}, licenses: map[string]*licenseEntry{}, keys: map[string]*keyEntry{},
	}
	for _, p := range l.products {
		l.now = append(l.now, p.before)
	}
	return l
}

// ordered records a new order.
func (l *ledger) ordered(o *orderEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orders[o.number] != nil {
		l.Problem("two orders have the number %s", o.number)
	}
	l.orders[o.number] = o
}

// issued records the license of an order that was paid at a moment.
func (l *ledger) issued(o *orderEntry, key string, at time.Time) *licenseEntry {
	o.paid, o.license = true, key
	entry := l.license(o.plan.product, key, at)
	entry.order, entry.email = o.number, o.email
	return entry
}

// license records a license on the current terms of its product.
func (l *ledger) license(product int, key string, at time.Time) *licenseEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.licenses[key] != nil {
		l.Problem("license %s was issued twice", key)
	}
	t := l.now[product]
	entry := &licenseEntry{
		key: key, product: l.products[product].id, terms: t, maxDevices: t.maxDevices, made: at,
		devices: map[string]string{}, metadata: map[string]any{}, removals: map[string]int{},
	}
	if t.months > 0 && !t.fromActivation {
		entry.ends = addMonths(at, t.months)
	}
	l.licenses[key] = entry
	return entry
}

// bound records a device, and the first activation.
func (l *licenseEntry) bound(device, name string, at time.Time) {
	if l.activated.IsZero() {
		l.activated = at
		if l.terms.fromActivation && !l.endGiven {
			l.ends = addMonths(at, l.terms.months)
		}
	}
	l.devices[device] = name
}

// renewed records an end that the shop has set.
func (l *licenseEntry) renewed(ends time.Time) { l.ends, l.endGiven = ends, true }

// change makes the products' later terms the current ones.
func (l *ledger) change() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.products {
		l.now[i] = p.after
	}
}

// opened records an API key.
func (l *ledger) opened(k *keyEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys[k.id] = k
}

// find returns the license of an order, or nil.
func (l *ledger) find(o *orderEntry) *licenseEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.licenses[o.license]
}

// allOrders returns the orders, by number.
func (l *ledger) allOrders() []*orderEntry {
	return slices.SortedFunc(maps.Values(l.orders),
		func(a, b *orderEntry) int { return strings.Compare(a.number, b.number) })
}

// allLicenses returns the licenses, by key.
func (l *ledger) allLicenses() []*licenseEntry {
	return slices.SortedFunc(maps.Values(l.licenses),
		func(a, b *licenseEntry) int { return strings.Compare(a.key, b.key) })
}
