package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"licet/client/webhook"
	"licet/loadtest/rig"
)

// answer answers a call whose signature is valid. It calls take if it accepts the event.
type answer func(w http.ResponseWriter, r *http.Request, take func())

// idOf returns the event id of a call.
func idOf(r *http.Request) string { return r.Header.Get("Webhook-Id") }

// receiver is one endpoint, with a record of all calls.
type receiver struct {
	id     string
	server *httptest.Server
	cancel context.CancelFunc
	url    string

	ready  chan struct{} // closed once it has a secret
	answer answer
	first  func() // called with each event that it has got for the first time

	mu      sync.Mutex
	secrets []string
	checks  *webhook.Receiver
	latest  time.Time // when it got an event for the first time last
	books
}

// books are the records of one endpoint.
type books struct {
	name     string
	live     bool              // must have got everything
	seen     map[string][]byte // bodies by event, of all calls, without their pay links
	taken    map[string]int    // calls that were answered well, by event
	calls    int
	failed   int // calls that were not answered well
	problems []string
}

// repeats returns how often an event was taken once more.
func (b *books) repeats() (n int) {
	for _, times := range b.taken {
		n += times - 1
	}
	return n
}

// newReceiver listens at an address of its own. Calls wait until the receiver has its
// secret.
func newReceiver(name string, answer answer) *receiver {
	r := &receiver{
		answer: answer, first: func() {}, ready: make(chan struct{}), latest: time.Now(),
		books: books{name: name, live: true, seen: map[string][]byte{}, taken: map[string]int{}},
	}
	running, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.server = httptest.NewUnstartedServer(r)
	r.server.Config.BaseContext = func(net.Listener) context.Context { return running }
	r.server.Start()
	r.url = r.server.URL + "/" + name
	return r
}

// stop breaks off all calls.
func (r *receiver) stop() {
	r.cancel()
	r.server.CloseClientConnections()
	r.server.Close()
}

// know adds a secret. Earlier secrets stay valid: calls signed with them may still be on
// their way.
func (r *receiver) know(secret string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets = append(r.secrets, secret)
	checks, err := webhook.New(r.secrets...)
	if err != nil {
		return err
	}
	if r.checks == nil {
		close(r.ready)
	}
	r.checks = checks
	return nil
}

// ServeHTTP checks the signature first, as any receiver does.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender is gone
	}
	select {
	case <-r.ready:
	case <-request.Context().Done():
		return
	}
	id, known := r.note(request, body)
	if !known {
		http.Error(w, "this is no event for this receiver", http.StatusBadRequest)
		return
	}
	r.answer(w, request, func() { r.take(id) })
}

// note records a call, whatever its answer will be.
func (r *receiver) note(request *http.Request, body []byte) (id string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	r.failed++ // until it is answered well
	event, err := r.checks.Receive(request.Header, body)
	if err != nil {
		r.problem("a call with webhook-id %q: %v", idOf(request), err)
		return "", false
	}
	if request.Method != http.MethodPost || request.URL.Path != "/"+r.name {
		r.problem("event %s came as %s %s", event.ID, request.Method, request.URL.Path)
	}
	body = withoutPayLink(body)
	if before, again := r.seen[event.ID]; !again {
		r.seen[event.ID] = body
	} else if !bytes.Equal(before, body) {
		r.problem("event %s came with two bodies: %.1000s\nand %.1000s", event.ID, before, body)
	}
	return event.ID, true
}

// problem records a call that must not happen. The lock is held.
func (r *receiver) problem(format string, args ...any) {
	r.problems = append(r.problems, "endpoint "+r.name+": "+fmt.Sprintf(format, args...))
}

// take records that an event was answered well.
func (r *receiver) take(id string) {
	r.mu.Lock()
	r.failed--
	r.taken[id]++
	first := r.taken[id] == 1
	if first {
		r.latest = time.Now()
	}
	r.mu.Unlock()
	if first {
		r.first()
	}
}

// got returns how many events have come, and the time of the last new one.
func (r *receiver) got() (events int, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken), r.latest
}

// wake restarts the time since the last new event.
func (r *receiver) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now()
}

// soFar returns a copy of the books.
func (r *receiver) soFar() books {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.books
	b.seen, b.taken, b.problems = maps.Clone(b.seen), maps.Clone(b.taken), slices.Clone(b.problems)
	return b
}

// well answers every call.
func well(w http.ResponseWriter, _ *http.Request, take func()) {
	take()
	w.WriteHeader(http.StatusNoContent)
}

// unreliable fails a share of all calls, in each of the ways that receivers fail, but
// fails no event more often than most; 0 means no bound. It takes its time, so calls are
// under way whenever a node is killed. Calls that break off in the meantime are not taken.
func unreliable(seed uint64, share float64, most int, longest time.Duration) answer {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 2))
	times := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request, take func()) {
		mu.Lock()
		fails, way, wait := random.Float64() < share, random.IntN(60), time.Duration(random.Int64N(int64(longest)+1))
		fails = fails && (most == 0 || times[idOf(r)] < most)
		if fails {
			times[idOf(r)]++
		}
		mu.Unlock()
		if rig.Rest(r.Context(), wait); r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		if !fails {
			well(w, r, take)
			return
		}
		switch {
		case way == 0: // seldom: nothing at all is sent to it in that second
			w.Header().Set("Retry-After", "1")
			http.Error(w, "not now", http.StatusServiceUnavailable)
		case way%4 == 0:
			http.Error(w, "no", http.StatusInternalServerError)
		case way%4 == 1:
			http.Error(w, "the database is away", http.StatusBadGateway)
		case way%4 == 2:
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		default:
			panic(http.ErrAbortHandler) // it breaks off
		}
	}
}

// hanging never answers until the caller gives up: it is silent, or sends a header that
// does not end, one byte after the other.
func hanging() answer {
	var calls atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, _ func()) {
		if calls.Add(1)%2 == 0 {
			drip(r.Context(), w)
			return
		}
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // else that would be an answer
	}
}

func drip(ctx context.Context, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-More: ")
	for err == nil && ctx.Err() == nil {
		rig.Rest(ctx, time.Second)
		_, err = io.WriteString(conn, ".")
	}
}
