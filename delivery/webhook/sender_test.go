package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	client "licet/client/webhook"
	"licet/delivery/webhook"
)

// TestReceiversAcceptSentMessages: package client/webhook, which receivers use, accepts the messages.
func TestReceiversAcceptSentMessages(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		var got *http.Request
		var sent []byte
		server := start(t, func(w http.ResponseWriter, r *http.Request) {
			got = r
			sent, _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "thanks")
		}, http2)
		s := newSender(t, server)
		old, fresh := secretOf(t, 1), secretOf(t, 2)
		m := message(t, server.URL+"/licet?token=a%20b")
		m.Secrets = []webhook.Secret{fresh, old}
		attempt, err := s.Send(t.Context(), m)
		if err != nil || attempt.Outcome != webhook.Delivered || attempt.Status != http.StatusAccepted ||
			attempt.Failure != "" ||
			attempt.Answer != "thanks" || attempt.Err != nil || attempt.At.IsZero() || attempt.Duration <= 0 {
			t.Fatalf("got %+v, %v", attempt, err)
		}
		if string(sent) != body || got.Method != http.MethodPost || got.RequestURI != "/licet?token=a%20b" ||
			got.ContentLength != int64(len(body)) ||
			got.Header.Get("Content-Type") != "application/json" || got.Header.Get("User-Agent") != "Licet/1.2.3" ||
			got.Header.Get("Accept-Encoding") != "" || got.Header.Get("Authorization") != "" {
			t.Errorf("sent %s %s %v %s", got.Method, got.RequestURI, got.Header, sent)
		}
		if wantMajor := map[bool]int{true: 2, false: 1}[http2]; got.ProtoMajor != wantMajor {
			t.Errorf("sent by %s", got.Proto)
		}
		for _, secrets := range [][]string{{old.Text()}, {fresh.Text()}, {old.Text(), fresh.Text()}} {
			r, err := client.New(secrets...)
			if err != nil {
				t.Fatal(err)
			}
			if event, err := r.Receive(got.Header, sent); err != nil || event.ID != m.ID {
				t.Errorf("a receiver says %v, %v", event, err)
			}
		}
		if r, _ := client.New(secretOf(t, 3).Text()); r != nil {
			if _, err := r.Receive(got.Header, sent); !errors.Is(err, client.ErrSignature) {
				t.Errorf("a receiver with another secret says %v", err)
			}
		}
	}
}

// TestEachAttemptIsSignedAnew: attempts have the same id, but a new time and a new signature.
func TestEachAttemptIsSignedAnew(t *testing.T) {
	var ids, times, signatures []string
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		ids = append(ids, r.Header.Get("webhook-id"))
		times = append(times, r.Header.Get("webhook-timestamp"))
		signatures = append(signatures, r.Header.Get("webhook-signature"))
	})
	now := time.Unix(1614265330, 0)
	s := newSender(t, server, func(cfg *webhook.Config) { cfg.Clock = func() time.Time { return now } })
	send(t, s, server.URL)
	now = now.Add(time.Hour)
	if attempt := send(t, s, server.URL); !attempt.At.Equal(now) || attempt.Duration != 0 {
		t.Errorf("got %+v", attempt)
	}
	if len(ids) != 2 || ids[0] != "evt_1" || ids[1] != "evt_1" || times[0] != "1614265330" ||
		times[1] != "1614268930" || signatures[0] == signatures[1] {
		t.Errorf("sent %v, %v, %v", ids, times, signatures)
	}
}

func TestOutcomes(t *testing.T) {
	var status int
	var header http.Header
	server := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		for name := range header {
			w.Header().Set(name, header.Get(name))
		}
		w.WriteHeader(status)
	})
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSender(t, server, func(cfg *webhook.Config) { cfg.Clock = func() time.Time { return now } })
	f := func(code int, retryAfter string, want webhook.Attempt) {
		t.Helper()
		status, header = code, http.Header{}
		if retryAfter != "" {
			header.Set("Retry-After", retryAfter)
		}
		got := send(t, s, server.URL)
		if got.Status != code || got.Outcome != want.Outcome || got.Failure != want.Failure ||
			got.RetryAfter != want.RetryAfter || got.Err != nil {
			t.Errorf("%d, Retry-After %q: got %+v, want %+v", code, retryAfter, got, want)
		}
	}
	delivered := webhook.Attempt{Outcome: webhook.Delivered}
	gone := webhook.Attempt{Outcome: webhook.Gone, Failure: webhook.FailureStatus}
	retry := func(after time.Duration) webhook.Attempt {
		return webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureStatus, RetryAfter: after}
	}
	for _, code := range []int{200, 201, 202, 204, 206, 299} {
		f(code, "", delivered)
	}
	f(200, "60", delivered)
	f(410, "", gone)
	f(410, "60", gone)
	for _, code := range []int{400, 401, 403, 404, 408, 409, 413, 418, 429, 499, 500, 502, 503, 504, 599, 600, 999} {
		f(code, "", retry(0))
	}
	for _, code := range []int{300, 301, 302, 303, 304, 307, 308, 399} {
		f(code, "", webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureRedirect})
	}
	f(503, "120", retry(2*time.Minute))
	f(429, " 0 ", retry(0))
	f(500, "5", retry(5*time.Second))
	f(429, "86400", retry(24*time.Hour))
	f(429, "86401", retry(24*time.Hour))
	f(429, strings.Repeat("9", 40), retry(24*time.Hour))
	f(429, "-5", retry(0))
	f(429, "1.5", retry(0))
	f(429, "soon", retry(0))
	f(503, now.Add(90*time.Second).Format(http.TimeFormat), retry(90*time.Second))
	f(503, now.Add(-time.Hour).Format(http.TimeFormat), retry(0))
	f(503, now.Add(1000*time.Hour).Format(http.TimeFormat), retry(24*time.Hour))
}

func TestFailures(t *testing.T) {
	server := receiver(t, func(http.ResponseWriter, *http.Request) {})
	f := func(what string, s *webhook.Sender, url string, want webhook.Failure) {
		t.Helper()
		got := send(t, s, url)
		if got.Outcome != webhook.Retry || got.Failure != want || got.Status != 0 || got.Err == nil ||
			got.Answer != "" {
			t.Errorf("%s: got %+v, want %s", what, got, want)
		}
		if got.Err != nil && strings.Contains(got.Err.Error(), "token") {
			t.Errorf("%s: the error tells the whole URL: %v", what, got.Err)
		}
	}
	s := newSender(t, server)
	closed := newTrap(t, "127.0.0.1:0")
	_ = closed.Close()
	f("a closed port", s, "https://"+closed.Addr().String()+"/?token=1", webhook.FailureConnectionRefused)
	f("a closed port, without TLS", s, "http://"+closed.Addr().String()+"/?token=1", webhook.FailureConnectionRefused)
	f("a certificate of an unknown authority", newSender(t, nil), server.URL+"/?token=1", webhook.FailureTLS)
	f("a certificate of another name", s, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), webhook.FailureTLS)
	f("a port that is not allowed", newSender(t, server, under(webhook.Policy{})), "https://a.example:22/",
		webhook.FailureURL)
	f("plain HTTP", newSender(t, server, under(webhook.Policy{})), "http://a.example/", webhook.FailureURL)

	old := httptest.NewUnstartedServer(nil)
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11}
	old.Config.ErrorLog = server.Config.ErrorLog
	old.StartTLS()
	t.Cleanup(old.Close)
	f("TLS 1.1", newSender(t, old), old.URL, webhook.FailureTLS)

	plain := httptest.NewServer(nil)
	t.Cleanup(plain.Close)
	f("no TLS", s, strings.Replace(plain.URL, "http:", "https:", 1), webhook.FailureTLS)
}

// TestNothingIsSentThroughAProxy: a proxy would dial without checking the policy. Go reads the environment once, so
// the test needs a process of its own.
func TestNothingIsSentThroughAProxy(t *testing.T) {
	const inside = "LICET_TEST_BEHIND_PROXY"
	if port, err := strconv.ParseUint(os.Getenv(inside), 10, 16); err == nil {
		// The policy allows the proxy's address, so that nothing else keeps the sender from using the proxy.
		s := newSender(t, nil, func(cfg *webhook.Config) {
			cfg.Policy = webhook.Policy{Networks: networks("127.0.0.1/32"), Ports: []uint16{443, uint16(port)}}
			cfg.Resolver = names(t, map[string][]string{"shop.example.": {"10.0.0.1"}})
		})
		if got := send(t, s, "https://shop.example/"); got.Failure != webhook.FailureAddress {
			t.Errorf("got %+v", got)
		}
		return
	}
	proxy := newTrap(t, "127.0.0.1:0")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=20s")
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", inside, proxy.port()))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		command.Env = append(command.Env, name+"=http://"+proxy.Addr().String(),
			strings.ToLower(name)+"=http://"+proxy.Addr().String())
	}
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if proxy.caught(t) {
		t.Error("the proxy was asked")
	}
}

func TestNoCookieIsSentBack(t *testing.T) {
	var cookies []*http.Cookie
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		cookies = append(cookies, r.Cookies()...)
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
	})
	s := newSender(t, server)
	send(t, s, server.URL)
	send(t, s, server.URL)
	if len(cookies) != 0 {
		t.Errorf("sent %v", cookies)
	}
}

// TestSendEndsWithItsCaller: Send returns when its context ends, with no outcome to count against the endpoint.
func TestSendEndsWithItsCaller(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	server := receiver(t, func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	attempt, err := newSender(t, server).Send(ctx, message(t, server.URL))
	if !errors.Is(err, context.Canceled) || attempt != (webhook.Attempt{}) {
		t.Errorf("got %+v, %v", attempt, err)
	}
}

func TestSendRefusesHalfAMessage(t *testing.T) {
	s := newSender(t, nil)
	f := func(what string, change func(*webhook.Message)) {
		t.Helper()
		m := message(t, "https://127.0.0.1/")
		change(&m)
		if attempt, err := s.Send(t.Context(), m); err == nil || attempt != (webhook.Attempt{}) {
			t.Errorf("%s: got %+v, %v", what, attempt, err)
		}
	}
	f("no id", func(m *webhook.Message) { m.ID = "" })
	f("a point in the id", func(m *webhook.Message) { m.ID = "evt_1.2" })
	f("no secret", func(m *webhook.Message) { m.Secrets = nil })
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	s := webhook.NewSender(webhook.Config{Policy: webhook.Policy{Loopback: true}, Clock: time.Now,
		RootCAs: trusting(server)})
	if got := send(t, s, server.URL); got.Outcome != webhook.Delivered {
		t.Errorf("got %+v", got)
	}
	s.Close()
}
