package delivery

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	receiving "licet/client/webhook"
	"licet/delivery/webhook"
	"licet/handlers"
	"licet/kv"
	"licet/kv/deliveries"
	"licet/kv/embedded"
	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

const (
	// patience is how long what must happen is waited for.
	patience = time.Minute
	// shortTimeout is that of attempts where receivers take longer than any. Elsewhere
	// no attempt fails because the machine is busy.
	shortTimeout = 3 * time.Second
)

// lab is an etcd of a test's own, with nodes before it that deliver.
type lab struct {
	t         *testing.T
	endpoints []string
	ring      licensing.MasterRing
	ahead     atomic.Int64 // by how much the clock of all nodes is
	stopped   atomic.Int64 // since when it stands still, in nanoseconds; 0: it goes
	owner     licensing.Owner
	sites     []*site
}

func newLab(t *testing.T) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	etcd, err := embedded.Start(ctx, t.TempDir(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	l := &lab{t: t, endpoints: etcd.Endpoints(), owner: licensing.Owner{AccountID: "acct_lab", Mode: licensing.Test}}
	key := make([]byte, 32)
	if l.ring, err = licensing.ParseMasterRing("m1:" + base64.StdEncoding.EncodeToString(key) + "\n"); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) now() time.Time {
	now := time.Now()
	if at := l.stopped.Load(); at != 0 {
		now = time.Unix(0, at)
	}
	return now.Add(time.Duration(l.ahead.Load()))
}

// stopClock has the clock of all nodes stand still, until goOn is called: what happens
// meanwhile has waited for no time.
func (l *lab) stopClock() (goOn func()) {
	l.stopped.Store(time.Now().UnixNano())
	return func() { l.stopped.Store(0) }
}

// pass puts the clock of all nodes forward.
func (l *lab) pass(d time.Duration) {
	l.ahead.Add(int64(d))
}

func (l *lab) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	l.t.Cleanup(cancel)
	return ctx
}

// site is a node of its own.
type site struct {
	lab        *lab
	store      *kv.Store
	deliveries *deliveries.Store
	node       *service.Service
	front      *handlers.Server
	sender     *webhook.Sender
	metrics    *metrics.Metrics
	engine     *Engine // the latest
	through    Store
	trust      time.Duration // see Engine; 0: the usual
}

// site starts a node that does not deliver yet.
func (l *lab) site() *site {
	l.t.Helper()
	s := &site{lab: l, metrics: metrics.New(prometheus.NewRegistry(), "", "", "")}
	ctx := l.ctx()
	var err error
	if s.store, err = kv.Open(ctx, kv.Config{Endpoints: l.endpoints, Metrics: s.metrics, Log: zerolog.Nop()}); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = s.store.Close() })
	s.deliveries = deliveries.New(s.store)
	check, err := s.store.KeyCheck(ctx, rand.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := s.store.OpenEpoch(ctx); err != nil {
		l.t.Fatal(err)
	}
	if err := s.store.CheckRing(ctx, l.ring); err != nil {
		l.t.Fatal(err)
	}
	s.node = service.New(service.Config{
		Config: node.Config{
			Records:  s.store,
			Queries:  s.store,
			KeyCheck: check,
			Clock:    l.now,
			Metrics:  s.metrics,
			Log:      zerolog.Nop(),
		},
		Sweeps:     s.store,
		Entropy:    rand.Reader,
		Events:     s.store,
		Deliveries: s.deliveries,
		Keys:       s.store,
		Ring:       l.ring,
	})
	sealing, stop := context.WithCancel(context.Background())
	var sealed sync.WaitGroup
	sealed.Go(func() { s.node.KeepSealing(sealing) })
	l.t.Cleanup(func() { stop(); sealed.Wait() })
	s.front = handlers.New(handlers.Config{Node: s.node, Metrics: s.metrics, Log: zerolog.Nop(), PublicURL: "https://licet.example", Ring: l.ring})
	s.sendWithin(patience)
	s.through = s.deliveries
	l.sites = append(l.sites, s)
	return s
}

// sendWithin sets how long an attempt takes at most.
func (s *site) sendWithin(timeout time.Duration) {
	s.sender = webhook.NewSender(webhook.Config{Policy: webhook.Policy{Loopback: true}, Clock: time.Now, Timeout: timeout})
	s.lab.t.Cleanup(s.sender.Close)
}

// deliver starts an engine. It ends with the test, or before.
func (s *site) deliver() *Engine {
	e := s.newEngine()
	s.start()
	return e
}

// newEngine makes one that is still to be started.
func (s *site) newEngine() *Engine {
	s.engine = New(Config{
		Store: s.through, Node: s.node, Sender: s.sender, Render: s.front.RenderEvent, Clock: s.lab.now, Metrics: s.metrics, Log: zerolog.Nop(),
	})
	e := s.engine
	e.nap = 50 * time.Millisecond // the clock is put forward
	e.trust = cmp.Or(s.trust, e.trust)
	return e
}

func (s *site) start() {
	s.engine.Start()
	s.lab.t.Cleanup(s.engine.Kill)
}

// record grants licenses, and answers how many events there are of that.
func (s *site) record(n int) {
	s.lab.t.Helper()
	for left := n; left > 0; left -= 1000 {
		key := ulid.Make()
		grant := service.Grant{ProductID: "pro", Quantity: min(left, 1000), Once: &node.Once{Hash: string(key[:])}}
		s.lab.until("licenses are granted", func() bool {
			_, _, err := s.node.Grant(s.lab.ctx(), s.lab.owner, grant)
			return err == nil // etcd may take its time on a busy machine
		})
	}
}

// feed reads the ids of all events.
func (s *site) feed() []string {
	s.lab.t.Helper()
	var ids []string
	page := store.FeedPage{Limit: 1000}
	for {
		var feed service.EventFeed
		s.lab.until("the feed can be read", func() bool {
			var err error
			feed, err = s.node.Feed(s.lab.ctx(), s.lab.owner, page, service.FeedWait{})
			return err == nil
		})
		for i := range feed.Events {
			ids = append(ids, feed.Events[i].ID)
		}
		if page.After = feed.Next; !feed.More {
			return ids
		}
	}
}

// recorded waits until so many events are in the feed, and reads their ids.
func (s *site) recorded(n int) []string {
	s.lab.t.Helper()
	var ids []string
	s.lab.until("events are in the feed", func() bool {
		ids = s.feed()
		return len(ids) == n
	})
	return ids
}

// subscribe makes an endpoint that a receiver gets all events of licenses at.
func (s *site) subscribe(r *receiver) licensing.Endpoint {
	s.lab.t.Helper()
	made, _, err := s.node.CreateWebhook(s.lab.ctx(), service.EndpointCreation{
		Owner: s.lab.owner, URL: r.server.URL, Types: []licensing.EventType{licensing.EventLicenseIssued},
	})
	if err != nil {
		s.lab.t.Fatal(err)
	}
	r.trust(made.Secret)
	return made.Endpoint
}

func (s *site) progress(id string) store.DeliveryProgress {
	s.lab.t.Helper()
	var read map[string]store.DeliveryProgress
	s.lab.until("the progress can be read", func() (ok bool) {
		var err error
		read, err = s.deliveries.Progresses(s.lab.ctx(), id)
		return err == nil // etcd may take its time on a busy machine
	})
	return read[id]
}

func (s *site) endpoint(id string) licensing.Endpoint {
	s.lab.t.Helper()
	var endpoint licensing.Endpoint
	s.lab.until("the endpoint can be read", func() (ok bool) {
		var err error
		endpoint, err = s.node.Webhook(s.lab.ctx(), s.lab.owner, id)
		return err == nil
	})
	return endpoint
}

// until waits for something that nothing tells of.
func (l *lab) until(what string, is func() bool) {
	l.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("it did not come about that %s", what)
		}
	}
}

// receiver is an endpoint's.
type receiver struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	trusted *receiving.Receiver
	got     map[string]int // by id of the message
	taken   map[string]int // those that were answered 2xx
	order   []string       // of taken
	signed  map[int]int    // how many messages had so many signatures
	// answer decides what is answered; nil: 200.
	answer func(w http.ResponseWriter, r *http.Request, id string, time int) bool
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, got: map[string]int{}, taken: map[string]int{}, signed: map[int]int{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

func (r *receiver) trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	trusted, err := receiving.New(secret)
	if err != nil {
		r.t.Error(err)
	}
	r.trusted = trusted
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	id := request.Header.Get("webhook-id")
	r.mu.Lock()
	if r.trusted != nil {
		if event, err := r.trusted.Receive(request.Header, body); err != nil || event.ID != id {
			r.t.Errorf("message %s: %v", id, err)
		}
	}
	r.got[id]++
	times, answer := r.got[id], r.answer
	signatures := 1
	for _, c := range request.Header.Get("webhook-signature") {
		if c == ' ' {
			signatures++
		}
	}
	r.signed[signatures]++
	r.mu.Unlock()
	if answer != nil && !answer(w, request, id, times) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[id]++
	r.order = append(r.order, id)
}

// decide sets what is answered.
func (r *receiver) decide(answer func(w http.ResponseWriter, r *http.Request, id string, time int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// status answers always the same.
func status(code int) func(http.ResponseWriter, *http.Request, string, int) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		w.WriteHeader(code)
		return code == http.StatusOK
	}
}

func (r *receiver) count() (messages, accepted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got), len(r.taken)
}

// attempts is how many messages came, each as often as it came.
func (r *receiver) attempts() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for times := range maps.Values(r.got) {
		n += times
	}
	return n
}

// missing tells which of the events were not taken, and which are none of them.
func (r *receiver) missing(events []string) (missing, invented []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range events {
		if r.taken[id] == 0 {
			missing = append(missing, id)
		}
	}
	for id := range r.got {
		if !slices.Contains(events, id) {
			invented = append(invented, id)
		}
	}
	return missing, invented
}

// mustHaveAll waits until all events were taken.
func (r *receiver) mustHaveAll(l *lab, events []string) {
	r.t.Helper()
	l.until(fmt.Sprintf("all %d events have arrived", len(events)), func() bool {
		_, taken := r.count()
		return taken >= len(events)
	})
	if missing, invented := r.missing(events); len(missing)+len(invented) > 0 {
		r.t.Fatalf("%d events are missing, %d were invented: %v", len(missing), len(invented), invented)
	}
}

func (r *receiver) times(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[id]
}

func (r *receiver) withSignatures(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.signed[n]
}

// trustAll believes whoever signs.
func (r *receiver) trustAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trusted = nil
}

// kind looks up what an event is of.
func (s *site) kind(id string) licensing.EventType {
	s.lab.t.Helper()
	view, err := s.node.Event(s.lab.ctx(), s.lab.owner, id)
	if err != nil {
		s.lab.t.Fatal(err)
	}
	return view.Type
}

// subscribeFrom is subscribe from a place in the feed on.
func (s *site) subscribeFrom(r *receiver, since store.FeedPosition) licensing.Endpoint {
	s.lab.t.Helper()
	endpoint := s.subscribe(r)
	s.replay(endpoint.ID, store.Replay{After: string(since)})
	return endpoint
}

// replay asks for a replay.
func (s *site) replay(endpoint string, replay store.Replay) {
	s.lab.t.Helper()
	replay.ID = ulid.Make().String()
	s.lab.until("the replay is noted", func() bool {
		return s.deliveries.AddReplay(s.lab.ctx(), s.lab.owner, endpoint, replay) == nil
	})
}

// jobs are the replays that are not done.
func (s *site) jobs(endpoint string) ([]store.Replay, error) {
	for _, r := range s.engine.held() {
		if r.id == endpoint {
			jobs, _, err := r.hold.Jobs(s.lab.ctx())
			return jobs, err
		}
	}
	return nil, errors.New("nobody has it")
}
