package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"licet/client/webhook"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	older  = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

// running is a started program.
type running struct {
	url   string
	lines chan string // the printed lines
	stop  func() error
}

func start(t *testing.T, file string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, "127.0.0.1:0", file, older+" "+secret, write)
		_ = write.CloseWithError(errors.Join(err, io.EOF))
		done <- err
	}()
	r := running{lines: make(chan string, 100), stop: func() error { cancel(); return <-done }}
	go func() {
		defer close(r.lines)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			r.lines <- lines.Text()
		}
	}()
	t.Cleanup(cancel)
	line, found := strings.CutPrefix(<-r.lines, "listening on ")
	if !found {
		t.Fatalf("it does not listen: %v", <-done)
	}
	r.url = line
	return r
}

// post sends an event and returns the status.
func (r running) post(t *testing.T, by, id, body string) int {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, r.url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if request.Header, err = webhook.Sign(by, id, time.Now(), []byte(body)); err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func event(id, kind, data string) string {
	return `{"id":"` + id + `","type":"` + kind +
		`","timestamp":"2030-01-02T03:04:05.678Z","sequence":2,"revision":77,"actor":"provider","data":{` + data + `}}`
}

func TestEventsAreShownOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen.txt")
	r := start(t, file)
	f := func(by, body string, wantStatus int, want ...string) {
		t.Helper()
		id := strings.Split(body, `"`)[3]
		if status := r.post(t, by, id, body); status != wantStatus {
			t.Errorf("%s: status %d, want %d", id, status, wantStatus)
		}
		for _, line := range want {
			if got := <-r.lines; got != line {
				t.Errorf("%s is shown as %q, want %q", id, got, line)
			}
		}
	}
	paid := event("evt_1", "order.paid", `"order":{"order_no":"ord_1","amount":4900,"currency":"USD"}`)
	revoked := event("evt_2", "license.revoked", `"license":{"license_key":"LIC-1"}`)
	bound := event("evt_3", "device.bound", `"license":{"license_key":"LIC-1"},"device":{"device_id":"laptop-1"}`)
	f(secret, paid, http.StatusNoContent, "2030-01-02T03:04:05Z evt_1 order.paid #2 by provider order ord_1 4900 USD")
	f(secret, paid, http.StatusNoContent)
	f("whsec_"+strings.Repeat("B", 32), revoked, http.StatusUnauthorized)
	f(older, revoked, http.StatusNoContent, "2030-01-02T03:04:05Z evt_2 license.revoked #2 by provider license LIC-1")
	if err := r.stop(); err != nil {
		t.Error(err)
	}

	// The program knows the events after a restart too. If it printed a repeated event, that line would come instead of
	// the next one.
	r = start(t, file)
	f(secret, paid, http.StatusNoContent)
	f(secret, revoked, http.StatusNoContent)
	f(secret, bound, http.StatusNoContent,
		`2030-01-02T03:04:05Z evt_3 device.bound #2 by provider license LIC-1 device "laptop-1"`)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if line, more := <-r.lines; more {
		t.Errorf("also shown: %s", line)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "evt_1\nevt_2\nevt_3\n" {
		t.Errorf("remembered %q, %v", text, err)
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	s, err := openSeen(filepath.Join(t.TempDir(), "seen.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	failed := errors.New("failed")
	calls := 0
	for _, want := range []error{failed, nil, nil} {
		if err := s.once("evt_1", func() error { calls++; return want }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if calls != 2 {
		t.Errorf("worked %d times, want 2", calls)
	}
}

func TestRunNeedsASecret(t *testing.T) {
	for _, secrets := range []string{"", "whsec_short"} {
		if err := run(t.Context(), "127.0.0.1:0", filepath.Join(t.TempDir(), "seen.txt"), secrets,
			io.Discard); err == nil || !strings.Contains(err.Error(), "LICET_WEBHOOK_SECRET") {
			t.Errorf("%q: %v", secrets, err)
		}
	}
}
