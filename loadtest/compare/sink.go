package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"licet/client"
	"licet/client/webhook"
	"licet/loadtest/rig"
)

// sink is a fast receiver of webhooks on this machine. It counts messages by their ids,
// and checks some of the signatures.
type sink struct {
	server *httptest.Server
	url    string
	seed   maphash.Seed

	mu     sync.Mutex
	checks *webhook.Receiver
	ids    map[uint64]struct{} // hashes of the events that have come
	calls  int
	wrong  int       // wrong signatures
	latest time.Time // when a new one came last
}

// checkedOf says that one of so many signatures is checked.
const checkedOf = 64

func newSink() *sink {
	s := &sink{seed: maphash.MakeSeed(), ids: map[uint64]struct{}{}, latest: time.Now()}
	s.server = httptest.NewServer(s)
	s.url = s.server.URL + "/"
	return s
}

func (s *sink) stop() { s.server.Close() }

// ServeHTTP accepts every message.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	if _, err := io.Copy(body, r.Body); err != nil {
		return // the sender is gone
	}
	id := r.Header.Get("Webhook-Id")
	s.mu.Lock()
	s.calls++
	number := len(s.ids)
	s.ids[maphash.String(s.seed, id)] = struct{}{}
	if len(s.ids) > number {
		s.latest = time.Now()
	}
	checks := s.checks
	if s.calls%checkedOf != 0 {
		checks = nil
	}
	s.mu.Unlock()
	if checks != nil {
		if _, err := checks.Receive(r.Header, body.Bytes()); err != nil {
			s.mu.Lock()
			s.wrong++
			s.mu.Unlock()
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// events returns how many different events have come.
func (s *sink) events() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

// await waits until so many events have come. It returns an error if none comes for
// sinkPatience.
func (s *sink) await(ctx context.Context, events int) error {
	for {
		s.mu.Lock()
		have, latest := len(s.ids), s.latest
		s.mu.Unlock()
		switch {
		case have >= events:
			return nil
		case time.Since(latest) > sinkPatience:
			return fmt.Errorf("of %d events %d have come, and none for %v", events, have, sinkPatience)
		}
		if rig.Rest(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// sinkPatience is how long no event may come while some are missing: longer than the lease
// of a killed node, and than a message waits that has failed twice.
const sinkPatience = 7 * time.Minute

// describe returns a note about wrong signatures, empty if there are none.
func (s *sink) describe() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrong > 0 {
		return fmt.Sprintf("of %d signatures %d are wrong", s.calls/checkedOf, s.wrong)
	}
	return ""
}

// endpoint is a webhook endpoint that delivers to a sink.
type endpoint struct {
	*sink
	api *client.Client
	id  string
}

// webhookFlags let nodes deliver to this machine.
func webhookFlags() []string { return []string{"--webhook-allow-networks", "127.0.0.0/8"} }

// api returns a client of the measured node.
func (b *bench) api() *client.Client { return must(client.New("http://"+b.node.Address, b.apiKey)) }

// subscribe makes a sink, and an endpoint for all kinds of events.
func (b *bench) subscribe(ctx context.Context) *endpoint {
	e := &endpoint{sink: newSink(), api: b.api()}
	made := must(e.api.Webhooks.Create(ctx, client.NewWebhook{URL: e.url}))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.id, e.checks = made.ID, must(webhook.New(made.Secret))
	return e
}

// enable enables the endpoint, or disables it.
func (e *endpoint) enable(ctx context.Context, enabled bool) {
	must(e.api.Webhooks.Update(ctx, e.id, client.WebhookUpdate{Enabled: &enabled}))
}

// cancel deletes the endpoint, and stops the sink. The next load must not compete with
// deliveries.
func (e *endpoint) cancel(ctx context.Context) {
	defer e.stop()
	defer e.api.CloseIdleConnections()
	stopIf(e.api.Webhooks.Delete(ctx, e.id))
}
