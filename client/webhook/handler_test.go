package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHandler(t *testing.T) {
	secret := secretOf(1, 32)
	r, err := New(secret)
	if err != nil {
		t.Fatal(err)
	}
	var got []*Event
	var fails error
	server := httptest.NewServer(r.Handler(func(_ context.Context, e *Event) error {
		got = append(got, e)
		return fails
	}))
	defer server.Close()

	send := func(method string, header http.Header, body io.Reader) *http.Response {
		t.Helper()
		request, err := http.NewRequest(method, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || strings.Contains(string(answer), "disk") {
			t.Errorf("answer %q, %v", answer, err)
		}
		return response
	}
	f := func(what string, wantStatus, wantCalls int, method string, header http.Header, body string) {
		t.Helper()
		got = nil
		if status := send(method, header, strings.NewReader(body)).StatusCode; status != wantStatus ||
			len(got) != wantCalls {
			t.Errorf("%s: status %d with %d calls, want %d with %d", what, status, len(got), wantStatus, wantCalls)
		}
	}
	now := time.Now()
	good := signed(t, secret, "evt_1", now, eventBody)
	f("an event", http.StatusNoContent, 1, http.MethodPost, good, eventBody)
	if len(got) != 1 || got[0].ID != "evt_1" || got[0].Type != OrderPaid || got[0].Data.Order == nil ||
		got[0].Data.Order.OrderNo != "ord_1" {
		t.Errorf("the function got %+v", got)
	}
	f("the same again", http.StatusNoContent, 1, http.MethodPost, good, eventBody)
	f("another secret", http.StatusUnauthorized, 0, http.MethodPost,
		signed(t, secretOf(2, 32), "evt_1", now, eventBody), eventBody)
	f("an old one", http.StatusUnauthorized, 0, http.MethodPost,
		signed(t, secret, "evt_1", now.Add(-time.Hour), eventBody), eventBody)
	f("no signature", http.StatusUnauthorized, 0, http.MethodPost, http.Header{}, eventBody)
	f("no event", http.StatusBadRequest, 0, http.MethodPost, signed(t, secret, "evt_1", now, "{}"), "{}")
	f("a GET", http.StatusMethodNotAllowed, 0, http.MethodGet, good, "")
	fails = errors.New("the disk is full")
	f("a message that was not processed", http.StatusInternalServerError, 1, http.MethodPost, good, eventBody)

	// A body that is too long is refused, with or without Content-Length.
	long := strings.Repeat(" ", maxBody)
	f("a long body", http.StatusRequestEntityTooLarge, 0, http.MethodPost, good, eventBody+long)
	got = nil
	if status := send(http.MethodPost, good, io.MultiReader(bytes.NewReader([]byte(long)),
		strings.NewReader(eventBody))).StatusCode; status != http.StatusRequestEntityTooLarge || got != nil {
		t.Errorf("a long body without a length: status %d, %d calls", status, len(got))
	}
}
