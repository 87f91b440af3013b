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
	"licet/kv/embedded/embeddedtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/clocks"
	"licet/node/service"
	"licet/node/store"
)

const (
	// waitLimit bounds each wait for something that must happen.
	waitLimit = time.Minute
	// shortTimeout is the timeout of attempts in tests whose receivers never respond in time. In other tests the
	// timeout is long, so that no attempt fails because the machine is busy.
	shortTimeout = 3 * time.Second
)

// testCluster is a test's own etcd, with nodes that deliver.
type testCluster struct {
	t            *testing.T
	endpoints    []string
	ring         keyring.MasterRing
	clockOffset  atomic.Int64       // of the clock of all nodes
	clockStopped atomic.Int64       // when the clock was stopped, in nanoseconds; 0: the clock runs
	clocks       *clocks.Comparison // of the next node; nil: the node trusts its clock
	ahead        time.Duration      // by which the next node's clock is ahead of the time
	owner        licensing.Owner
	nodes        []*testNode
}

// newTestCluster starts an etcd. The test runs in parallel with other tests.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	t.Parallel()
	l := &testCluster{
		t: t, endpoints: embeddedtest.Start(t, t.TempDir()).Endpoints(),
		owner: licensing.Owner{AccountID: "acct_lab", Mode: licensing.Test},
	}
	key := make([]byte, 32)
	var err error
	if l.ring, err = keyring.ParseMasterRing("m1:" + base64.StdEncoding.EncodeToString(key) + "\n"); err != nil {
		t.Fatal(err)
	}
	return l
}

// now returns the time of all nodes.
func (l *testCluster) now() time.Time {
	now := time.Now()
	if at := l.clockStopped.Load(); at != 0 {
		now = time.Unix(0, at)
	}
	return now.Add(time.Duration(l.clockOffset.Load()))
}

// stopClock stops the clock of all nodes until goOn is called.
func (l *testCluster) stopClock() (goOn func()) {
	l.clockStopped.Store(time.Now().UnixNano())
	return func() { l.clockStopped.Store(0) }
}

// advanceClock sets the clock of all nodes forward.
func (l *testCluster) advanceClock(d time.Duration) {
	l.clockOffset.Add(int64(d))
}

// ctx returns a context that ends after waitLimit, or with the test.
func (l *testCluster) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	l.t.Cleanup(cancel)
	return ctx
}

// testNode is a node with a store of its own.
type testNode struct {
	cluster      *testCluster
	now          func() time.Time
	store        *kv.Store
	deliveries   *deliveries.Store
	service      *service.Service
	server       *handlers.Server
	sender       *webhook.Sender
	metrics      *metrics.Metrics
	engine       *Engine // the latest one
	engineStore  Store
	listInterval time.Duration // of the engine; 0: listEvery
}

// node starts a node that does not deliver yet.
func (l *testCluster) node() *testNode {
	l.t.Helper()
	s := &testNode{cluster: l, metrics: metrics.New(prometheus.NewRegistry(), "", "", "")}
	ctx, ahead := l.ctx(), l.ahead
	s.now = func() time.Time { return l.now().Add(ahead) }
	var err error
	s.store, err = kv.Open(ctx, kv.Config{Endpoints: l.endpoints, Metrics: s.metrics, Log: zerolog.Nop()})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = s.store.Close() })
	s.deliveries = deliveries.New(s.store)
	keys, err := s.store.LicenseKeys(ctx, l.ring, rand.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := s.store.OpenEpoch(ctx); err != nil {
		l.t.Fatal(err)
	}
	s.store.KeepClosingEpochs()
	if err := s.store.CheckRing(ctx, l.ring); err != nil {
		l.t.Fatal(err)
	}
	s.service = service.New(service.Config{
		Config: node.Config{
			Records:     s.store,
			Queries:     s.store,
			LicenseKeys: keys,
			Clock:       s.now,
			Clocks:      l.clocks,
			Metrics:     s.metrics,
			Log:         zerolog.Nop(),
		},
		Sweeps:     s.store,
		Entropy:    rand.Reader,
		Events:     s.store,
		Deliveries: s.deliveries,
		Keys:       s.store,
		Ring:       l.ring,
	})
	s.server = handlers.New(handlers.Config{
		Node: s.service, Metrics: s.metrics, Log: zerolog.Nop(), PublicURL: "https://licet.example", Ring: l.ring,
	})
	s.sendWithin(waitLimit)
	s.engineStore = s.deliveries
	l.nodes = append(l.nodes, s)
	return s
}

// sendWithin sets the timeout of attempts.
func (s *testNode) sendWithin(timeout time.Duration) {
	s.sender = webhook.NewSender(webhook.Config{
		Policy: webhook.Policy{Loopback: true}, Clock: time.Now, Timeout: timeout,
	})
	s.cluster.t.Cleanup(s.sender.Close)
}

// startEngine starts a new engine, which ends with the test at the latest.
func (s *testNode) startEngine() *Engine {
	e := s.newEngine()
	s.startMade()
	return e
}

// newEngine returns a new engine; startMade starts it.
func (s *testNode) newEngine() *Engine {
	s.engine = New(Config{
		Store: s.engineStore, Node: s.service, Sender: s.sender, Render: s.server.RenderEvent,
		Clock: s.now, Metrics: s.metrics, Log: zerolog.Nop(),
	})
	e := s.engine
	e.maxSleep = 50 * time.Millisecond // since tests set the clock forward
	e.listInterval = cmp.Or(s.listInterval, e.listInterval)
	return e
}

func (s *testNode) startMade() {
	s.engine.Start()
	s.cluster.t.Cleanup(s.engine.Kill)
}

// grant grants n licenses. Each grant records one event.
func (s *testNode) grant(n int) {
	s.cluster.t.Helper()
	for left := n; left > 0; left -= 1000 {
		key := ulid.Make()
		grant := service.Grant{ProductID: "pro", Quantity: min(left, 1000), Once: &node.Once{Hash: string(key[:])}}
		s.cluster.waitUntil("licenses are granted", func() bool {
			_, _, err := s.service.Grant(s.cluster.ctx(), s.cluster.owner, grant)
			return err == nil // etcd may be slow on a busy machine
		})
	}
}

// eventIDs returns the ids of all events.
func (s *testNode) eventIDs() []string {
	s.cluster.t.Helper()
	var ids []string
	page := store.FeedPage{Limit: 1000}
	for {
		var feed service.EventFeed
		s.cluster.waitUntil("the feed can be read", func() bool {
			var err error
			feed, err = s.service.Feed(s.cluster.ctx(), s.cluster.owner, page, service.FeedWait{})
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

// waitForEvents waits until the feed has n events, and returns their ids.
func (s *testNode) waitForEvents(n int) []string {
	s.cluster.t.Helper()
	var ids []string
	s.cluster.waitUntil("events are in the feed", func() bool {
		ids = s.eventIDs()
		return len(ids) == n
	})
	return ids
}

// subscribe creates an endpoint that sends each issued license to a receiver.
func (s *testNode) subscribe(r *receiver) licensing.Endpoint {
	s.cluster.t.Helper()
	made, _, err := s.service.CreateWebhook(s.cluster.ctx(), service.EndpointCreation{
		Owner: s.cluster.owner, URL: r.server.URL, Types: []licensing.EventType{licensing.EventLicenseIssued},
	})
	if err != nil {
		s.cluster.t.Fatal(err)
	}
	r.trust(made.Secret)
	return made.Endpoint
}

func (s *testNode) progress(id string) store.DeliveryProgress {
	s.cluster.t.Helper()
	var read map[string]store.DeliveryProgress
	s.cluster.waitUntil("the progress can be read", func() (ok bool) {
		var err error
		read, err = s.deliveries.Progresses(s.cluster.ctx(), id)
		return err == nil // etcd may be slow on a busy machine
	})
	return read[id]
}

func (s *testNode) endpoint(id string) licensing.Endpoint {
	s.cluster.t.Helper()
	var endpoint licensing.Endpoint
	s.cluster.waitUntil("the endpoint can be read", func() (ok bool) {
		var err error
		endpoint, err = s.service.Webhook(s.cluster.ctx(), s.cluster.owner, id)
		return err == nil
	})
	return endpoint
}

// waitUntil polls until is reports true. It is for states without a notification.
func (l *testCluster) waitUntil(what string, is func() bool) {
	l.t.Helper()
	for end := time.Now().Add(waitLimit); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// receiver is the server behind an endpoint.
type receiver struct {
	t      *testing.T
	server *httptest.Server

	mu           sync.Mutex
	verifier     *receiving.Receiver
	received     map[string]int // the number of attempts, by message id
	accepted     map[string]int // the number of attempts answered 2xx, by message id
	order        []string       // the ids of accepted attempts, in order
	bySignatures map[int]int    // the number of attempts, by number of signatures
	// respond responds, and reports whether it accepted the message; nil: 200.
	respond func(w http.ResponseWriter, r *http.Request, id string, time int) bool
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, received: map[string]int{}, accepted: map[string]int{}, bySignatures: map[int]int{}}
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
	r.verifier = trusted
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	id := request.Header.Get("webhook-id")
	r.mu.Lock()
	if r.verifier != nil {
		if event, err := r.verifier.Receive(request.Header, body); err != nil || event.ID != id {
			r.t.Errorf("message %s: %v", id, err)
		}
	}
	r.received[id]++
	times, answer := r.received[id], r.respond
	signatures := 1
	for _, c := range request.Header.Get("webhook-signature") {
		if c == ' ' {
			signatures++
		}
	}
	r.bySignatures[signatures]++
	r.mu.Unlock()
	if answer != nil && !answer(w, request, id, times) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepted[id]++
	r.order = append(r.order, id)
}

// respondWith sets how the receiver responds.
func (r *receiver) respondWith(answer func(w http.ResponseWriter, r *http.Request, id string, time int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.respond = answer
}

// status returns a respond function that always responds with a status.
func status(code int) func(http.ResponseWriter, *http.Request, string, int) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		w.WriteHeader(code)
		return code == http.StatusOK
	}
}

func (r *receiver) count() (messages, accepted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.received), len(r.accepted)
}

// attempts returns the number of attempts that the receiver got.
func (r *receiver) attempts() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for times := range maps.Values(r.received) {
		n += times
	}
	return n
}

// missing returns the events that were not accepted, and the messages that are of none of the events.
func (r *receiver) missing(events []string) (missing, invented []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range events {
		if r.accepted[id] == 0 {
			missing = append(missing, id)
		}
	}
	for id := range r.received {
		if !slices.Contains(events, id) {
			invented = append(invented, id)
		}
	}
	return missing, invented
}

// waitForAll waits until the receiver has accepted all events, and fails if it got a message of another event.
func (r *receiver) waitForAll(l *testCluster, events []string) {
	r.t.Helper()
	l.waitUntil(fmt.Sprintf("all %d events are accepted", len(events)), func() bool {
		_, taken := r.count()
		return taken >= len(events)
	})
	if missing, invented := r.missing(events); len(missing)+len(invented) > 0 {
		r.t.Fatalf("%d events are missing, %d were invented: %v", len(missing), len(invented), invented)
	}
}

func (r *receiver) timesReceived(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received[id]
}

func (r *receiver) withSignatures(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bySignatures[n]
}

// trustAll accepts any signature.
func (r *receiver) trustAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verifier = nil
}

// eventType reads the type of an event.
func (s *testNode) eventType(id string) licensing.EventType {
	s.cluster.t.Helper()
	view, err := s.service.Event(s.cluster.ctx(), s.cluster.owner, id)
	if err != nil {
		s.cluster.t.Fatal(err)
	}
	return view.Type
}

// subscribeFrom creates an endpoint, and replays the feed behind a position.
func (s *testNode) subscribeFrom(r *receiver, since store.FeedPosition) licensing.Endpoint {
	s.cluster.t.Helper()
	endpoint := s.subscribe(r)
	s.replay(endpoint.ID, store.Replay{After: string(since)})
	return endpoint
}

// replay requests a replay.
func (s *testNode) replay(endpoint string, replay store.Replay) {
	s.cluster.t.Helper()
	replay.ID = ulid.Make().String()
	s.cluster.waitUntil("the replay is noted", func() bool {
		return s.deliveries.AddReplay(s.cluster.ctx(), s.cluster.owner, endpoint, replay) == nil
	})
}

// jobs returns the replays that are not done.
func (s *testNode) jobs(endpoint string) ([]store.Replay, error) {
	for _, r := range s.engine.heldLoops() {
		if r.id == endpoint {
			jobs, _, err := r.lease.Jobs(s.cluster.ctx())
			return jobs, err
		}
	}
	return nil, errors.New("no loop delivers to the endpoint")
}
