package fakestripe

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/webhook"
)

// Sending says how callbacks are sent. The chances are in a thousand.
type Sending struct {
	MaxDelay time.Duration // each callback waits for a random time up to this: so they come in any order
	Double   int           // send twice
	Drop     int           // never send, except about refunds, disputes and fees
	Hide     int           // never send about refunds and disputes
	Tries    int           // how often to send until the answer is 2xx; 0: once
	Pause    time.Duration // between two tries
}

// sender sends callbacks to the endpoints of accounts.
type sender struct {
	*state
	client    *http.Client
	sending   Sending
	callbacks sync.WaitGroup
	posts     chan struct{} // contains one for each callback that is being sent
	renewing  bool          // see Fake.Renew
	stop      chan struct{}
}

func newSender(s *state) *sender {
	return &sender{
		state: s, client: &http.Client{Timeout: 10 * time.Second}, stop: make(chan struct{}),
		posts: make(chan struct{}, maxPosts),
	}
}

// SetSending sets how callbacks are sent from now on.
func (s *sender) SetSending(sending Sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = sending
}

// maxEndpointSecrets is how many secrets of an endpoint are valid during a rotation.
const maxEndpointSecrets = 2

func (s *sender) createEndpoint(a *account, in input) answer {
	if in.text("url") == "" {
		return badParameter("url", "Missing required param: url.")
	}
	names := in.list("enabled_events")
	if len(names) == 0 {
		return badParameter("enabled_events", "Missing required param: enabled_events.")
	}
	endpoint := s.store(a, "webhook_endpoint", object{
		"url": in.text("url"), "enabled_events": names, "status": "enabled", "api_version": in.text("api_version"),
		"description": in.text("description"),
	})
	secret := s.newSecret()
	endpoint["_secrets"] = []string{secret}
	rendered := s.render(endpoint, in)
	rendered["secret"] = secret // only in the answer to the request that makes the endpoint
	return ok(rendered)
}

// eventsKept is how long an event is listed.
const eventsKept = 30 * 24 * time.Hour

// listEvents lists events, delivered or not. The fake knows no other filters than types and created[gte].
func (s *sender) listEvents(a *account, path string, in input) answer {
	kept := s.clock().Add(-eventsKept).Unix()
	if after := in.text("starting_after"); after != "" {
		if event := s.of(a, "event", after); event == nil || event.number("created") < kept {
			return missing("event", after)
		}
	}
	oldest := max(in.number("created[gte]"), kept)
	types := in.list("types")
	return ok(s.page(a, "event", path, in, func(event object) bool {
		return event.number("created") >= oldest && (len(types) == 0 || slices.Contains(types, event.text("type")))
	}))
}

func (s *sender) newSecret() string {
	return fmt.Sprintf("whsec_%016x%016x", s.random.Uint64(), s.random.Uint64())
}

// AddEndpoint makes a webhook endpoint for all events of an account, and returns its secret.
func (s *sender) AddEndpoint(key, url string) (secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	secret = s.newSecret()
	s.store(s.accounts[key], "webhook_endpoint", object{
		"url": url, "enabled_events": []string{"*"}, "status": "enabled", "_secrets": []string{secret},
	})
	return secret
}

// RollSecrets gives all endpoints of an account another secret, and returns the last one. Callbacks are signed with
// both.
func (s *sender) RollSecrets(key string) (secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.ids["webhook_endpoint"] {
		if endpoint := s.objects[id]; endpoint.text("_account") == key {
			secret = s.newSecret()
			secrets := append(endpoint["_secrets"].([]string), secret)
			endpoint["_secrets"] = secrets[max(0, len(secrets)-maxEndpointSecrets):]
		}
	}
	return secret
}

// emit records an event about an object, and sends it to the endpoints of the account.
func (s *sender) emit(name string, about object) { s.emitIn(name, about, about.flag("livemode")) }

func (s *sender) emitIn(name string, about object, live bool) {
	key := about.text("_account")
	event := s.store(s.accounts[key], "event", object{
		"api_version": sdk.APIVersion, "type": name, "livemode": live, "data": object{"object": about.clone()},
		"pending_webhooks": 1, "request": object{"id": nil},
	})
	body, err := json.Marshal(event.clone())
	if err != nil {
		panic(err)
	}
	for _, id := range s.ids["webhook_endpoint"] {
		endpoint := s.objects[id]
		names, _ := endpoint["enabled_events"].([]string)
		if endpoint.text("_account") != key || !slices.Contains(names, name) && !slices.Contains(names, "*") ||
			s.drops(name) {
			continue
		}
		s.send(endpoint.text("url"), slices.Clone(endpoint["_secrets"].([]string)), body)
		if s.chance(s.sending.Double) {
			s.send(endpoint.text("url"), slices.Clone(endpoint["_secrets"].([]string)), body)
		}
	}
}

// drops reports whether the callback of an event is never sent.
func (s *sender) drops(event string) bool {
	switch {
	case strings.HasPrefix(event, "refund."), strings.HasPrefix(event, "charge.dispute."):
		return s.chance(s.sending.Hide)
	case s.renewing && strings.HasPrefix(event, "customer.subscription."), event == "charge.updated":
		return false
	}
	return s.chance(s.sending.Drop)
}

// send sends a callback after a random delay.
func (s *sender) send(url string, secrets []string, body []byte) {
	sending := s.sending
	delay := time.Duration(0)
	if sending.MaxDelay > 0 {
		delay = time.Duration(s.random.Int64N(int64(sending.MaxDelay)))
	}
	s.callbacks.Add(1)
	go func() {
		defer s.callbacks.Done()
		for try := 0; try < max(sending.Tries, 1); try++ {
			select {
			case <-time.After(delay):
			case <-s.stop:
				return
			}
			if s.post(url, secrets, body) {
				return
			}
			delay = sending.Pause
		}
	}()
}

// maxPosts bounds the callbacks that are sent at the same time: when days pass, thousands are due.
const maxPosts = 64

// post sends a callback once, and reports whether the answer is 2xx. Each try is signed anew.
func (s *sender) post(url string, secrets []string, body []byte) bool {
	select {
	case s.posts <- struct{}{}:
		defer func() { <-s.posts }()
	case <-s.stop:
		return false
	}
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Stripe-Signature", Sign(time.Now(), body, secrets...))
	response, err := s.client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode/100 == 2
}

// Sign returns the signature header of a callback, with one signature for each secret.
func Sign(at time.Time, body []byte, secrets ...string) string {
	header := []string{fmt.Sprintf("t=%d", at.Unix())}
	for _, secret := range secrets {
		header = append(header, "v1="+hex.EncodeToString(webhook.ComputeSignature(at, body, secret)))
	}
	return strings.Join(header, ",")
}

// Delivered waits until all callbacks so far are delivered or given up.
func (s *sender) Delivered() { s.callbacks.Wait() }

// SendThrough sets the transport that sends callbacks, such as a balancer of nodes. Call it before the first callback.
func (s *sender) SendThrough(transport http.RoundTripper) { s.client.Transport = transport }
