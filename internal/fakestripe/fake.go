package fakestripe

import (
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
)

// Fake is a stand-in for Stripe. It is safe for concurrent use.
type Fake struct {
	URL string // the base of the API, and of the pages of checkouts

	*state
	*sender
	*book
	*breaker
	*refunds
	*disputes
	*charges
	*subscriptions

	server  *httptest.Server
	kept    map[string]*kept
	stopped sync.Once
}

// account is an account in one mode, which is known by its secret key.
type account struct {
	key  string
	live bool
	// forbidden has the paths for which a restricted key lacks the permission.
	forbidden map[string]bool
}

// New starts a fake whose faults and delays follow from a seed. Close it after use.
func New(seed uint64) *Fake {
	s := &state{
		random:   rand.New(rand.NewPCG(seed, seed)),
		accounts: map[string]*account{},
		objects:  map[string]object{},
		ids:      map[string][]string{},
	}
	sender, book := newSender(s), &book{state: s}
	disputes := &disputes{state: s, sender: sender, book: book}
	charges := &charges{state: s, sender: sender, book: book, disputes: disputes}
	f := &Fake{
		state: s, sender: sender, book: book, breaker: &breaker{state: s}, kept: map[string]*kept{},
		refunds: &refunds{state: s, sender: sender, book: book}, disputes: disputes, charges: charges,
		subscriptions: &subscriptions{state: s, sender: sender, charges: charges},
	}
	f.server = httptest.NewServer(f)
	f.URL = f.server.URL
	return f
}

// Close stops the fake. Callbacks that are not delivered are lost. Closing a closed fake is a no-op.
func (f *Fake) Close() {
	f.stopped.Do(func() {
		close(f.stop)
		f.server.CloseClientConnections()
		f.server.Close()
		f.callbacks.Wait()
		f.client.CloseIdleConnections()
	})
}

// AddKey makes a secret key valid, which names the account and the mode. A restricted key (rk_…) is another account:
// give an account one key.
func (f *Fake) AddKey(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accounts[key] = &account{key: key, live: strings.Contains(key, "_live_"), forbidden: map[string]bool{}}
}

// Forbid takes from a key the permission for a path, such as "/v1/refunds".
func (f *Fake) Forbid(key, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accounts[key].forbidden[path] = true
}

// Allow gives the permission for a path back to a key.
func (f *Fake) Allow(key, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.accounts[key].forbidden, path)
}
