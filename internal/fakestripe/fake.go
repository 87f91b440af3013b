package fakestripe

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fake is a stand-in for Stripe. It is safe for concurrent use.
type Fake struct {
	URL string // the base of the API, and of the pages of checkouts

	server *httptest.Server
	sender *http.Client

	mu       sync.Mutex
	random   *rand.Rand
	ahead    time.Duration // of the machine's clock
	accounts map[string]*account
	objects  map[string]object
	ids      map[string][]string // by the type of the object, oldest first
	count    int                 // of objects
	kept     map[string]*kept
	ledger   []Entry
	faults   Faults
	planned  []*plan
	sending  Sending
	later    []task // what happens by itself later, such as a refund that fails; the earliest first

	callbacks sync.WaitGroup
	stop      chan struct{}
	stopped   sync.Once
}

// account is an account in one mode, which is known by its secret key.
type account struct {
	key  string
	live bool
	// forbidden has the paths for which a restricted key lacks the permission.
	forbidden map[string]bool
}

// task is something that happens at a time.
type task struct {
	at time.Time
	do func()
}

// New starts a fake whose faults and delays follow from a seed. Close it after use.
func New(seed uint64) *Fake {
	f := &Fake{
		random:   rand.New(rand.NewPCG(seed, seed)),
		accounts: map[string]*account{},
		objects:  map[string]object{},
		ids:      map[string][]string{},
		kept:     map[string]*kept{},
		sender:   &http.Client{Timeout: 10 * time.Second},
		stop:     make(chan struct{}),
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
		f.sender.CloseIdleConnections()
	})
}

// AddKey makes a secret key valid, which names the account and the mode. A restricted key (rk_…) is another account:
// give an account one key.
func (f *Fake) AddKey(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accounts[key] = &account{key: key, live: strings.Contains(key, "_live_"), forbidden: map[string]bool{}}
}

// SendThrough sets by what callbacks are sent, such as a balancer of nodes. Call it before the first callback.
func (f *Fake) SendThrough(transport http.RoundTripper) { f.sender.Transport = transport }

// Forbid takes from a key the permission for a path, such as "/v1/refunds".
func (f *Fake) Forbid(key, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accounts[key].forbidden[path] = true
}

// Advance moves the fake's clock, and does what is due by then.
func (f *Fake) Advance(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead += by
	f.catchUp()
}

// Now returns the time of the fake.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock()
}

func (f *Fake) clock() time.Time { return time.Now().Add(f.ahead) }

// after does something later, by the fake's clock.
func (f *Fake) after(wait time.Duration, do func()) { f.at(f.clock().Add(wait), do) }

// at does something at a time, after what was asked for earlier at the same time.
func (f *Fake) at(at time.Time, do func()) {
	place, _ := slices.BinarySearchFunc(f.later, at, func(t task, at time.Time) int {
		if t.at.After(at) {
			return 1
		}
		return -1
	})
	f.later = slices.Insert(f.later, place, task{at, do})
}

// catchUp does what is due. It runs before each request.
func (f *Fake) catchUp() {
	for now := f.clock(); len(f.later) > 0 && !f.later[0].at.After(now); {
		due := f.later[0]
		f.later = f.later[1:]
		due.do()
	}
}

// chance reports whether something happens that happens so many times in a thousand.
func (f *Fake) chance(perMille int) bool { return perMille > 0 && f.random.IntN(1000) < perMille }
