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
	"time"

	sdk "github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/webhook"
)

// Sending says how callbacks are sent. The chances are in a thousand.
type Sending struct {
	MaxDelay time.Duration // each callback waits for a random time up to this: so they come in any order
	Double   int           // send twice
	Drop     int           // never send
	Tries    int           // how often to send until the answer is 2xx; 0: once
	Pause    time.Duration // between two tries
}

// SetSending sets how callbacks are sent from now on.
func (f *Fake) SetSending(s Sending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sending = s
}

// maxEndpointSecrets is how many secrets of an endpoint are valid during a rotation.
const maxEndpointSecrets = 2

func (f *Fake) createEndpoint(a *account, in input) answer {
	if in.text("url") == "" {
		return badParameter("url", "Missing required param: url.")
	}
	names := in.list("enabled_events")
	if len(names) == 0 {
		return badParameter("enabled_events", "Missing required param: enabled_events.")
	}
	endpoint := f.store(a, "webhook_endpoint", object{
		"url": in.text("url"), "enabled_events": names, "status": "enabled", "api_version": in.text("api_version"),
		"description": in.text("description"),
	})
	secret := f.newSecret()
	endpoint["_secrets"] = []string{secret}
	rendered := f.render(endpoint, in)
	rendered["secret"] = secret // only in the answer to the request that makes the endpoint
	return ok(rendered)
}

func (f *Fake) newSecret() string {
	return fmt.Sprintf("whsec_%016x%016x", f.random.Uint64(), f.random.Uint64())
}

// AddEndpoint makes a webhook endpoint for all events of an account, and returns its secret.
func (f *Fake) AddEndpoint(key, url string) (secret string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	secret = f.newSecret()
	f.store(f.accounts[key], "webhook_endpoint", object{
		"url": url, "enabled_events": []string{"*"}, "status": "enabled", "_secrets": []string{secret},
	})
	return secret
}

// RollSecrets gives all endpoints of an account another secret, and returns the last one. Callbacks are signed with
// both.
func (f *Fake) RollSecrets(key string) (secret string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.ids["webhook_endpoint"] {
		if endpoint := f.objects[id]; endpoint.text("_account") == key {
			secret = f.newSecret()
			secrets := append(endpoint["_secrets"].([]string), secret)
			endpoint["_secrets"] = secrets[max(0, len(secrets)-maxEndpointSecrets):]
		}
	}
	return secret
}

// emit records an event about an object, and sends it to the endpoints of the account.
func (f *Fake) emit(name string, about object) { f.emitIn(name, about, about.flag("livemode")) }

func (f *Fake) emitIn(name string, about object, live bool) {
	key := about.text("_account")
	event := f.store(f.accounts[key], "event", object{
		"api_version": sdk.APIVersion, "type": name, "livemode": live, "data": object{"object": about.clone()},
		"pending_webhooks": 1, "request": object{"id": nil},
	})
	body, err := json.Marshal(event.clone())
	if err != nil {
		panic(err)
	}
	for _, id := range f.ids["webhook_endpoint"] {
		endpoint := f.objects[id]
		names, _ := endpoint["enabled_events"].([]string)
		if endpoint.text("_account") != key || !slices.Contains(names, name) && !slices.Contains(names, "*") ||
			f.chance(f.sending.Drop) {
			continue
		}
		f.send(endpoint.text("url"), slices.Clone(endpoint["_secrets"].([]string)), body)
		if f.chance(f.sending.Double) {
			f.send(endpoint.text("url"), slices.Clone(endpoint["_secrets"].([]string)), body)
		}
	}
}

// send sends a callback after a random delay.
func (f *Fake) send(url string, secrets []string, body []byte) {
	s := f.sending
	delay := time.Duration(0)
	if s.MaxDelay > 0 {
		delay = time.Duration(f.random.Int64N(int64(s.MaxDelay)))
	}
	f.callbacks.Add(1)
	go func() {
		defer f.callbacks.Done()
		for try := 0; try < max(s.Tries, 1); try++ {
			select {
			case <-time.After(delay):
			case <-f.stop:
				return
			}
			if f.post(url, secrets, body) {
				return
			}
			delay = s.Pause
		}
	}()
}

// post sends a callback once, and reports whether the answer is 2xx. Each try is signed anew.
func (f *Fake) post(url string, secrets []string, body []byte) bool {
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Stripe-Signature", Sign(time.Now(), body, secrets...))
	response, err := f.sender.Do(request)
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
func (f *Fake) Delivered() { f.callbacks.Wait() }
