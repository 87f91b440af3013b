package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"licet/client"
	"licet/loadtest/rig"
)

const (
	// rivalAddress is the rival's own address on the loopback network. Not every system has it.
	rivalAddress = "127.0.0.2"
	rivalUnread  = 40 // connections of a client that read no response
	// rivalPause is how long a client with all its connections waits before it replaces the oldest one. A flood of
	// new connections would measure the kernel.
	rivalPause    = 50 * time.Millisecond
	rivalGranted  = 60 // licenses of a grant, each with rivalMetadata bytes
	rivalMetadata = 16 << 10
	rivalDevices  = 1000 // of the license that is looked up
)

// readNothing makes a client look a large license up over many connections, three times on each, and read nothing.
func (r *rival) readNothing(ctx context.Context) turnFunc {
	must(bind(ctx, r.bench.seeder, fairWorkers, r.large, rivalDevices, onto(0)))
	lookups := strings.Repeat(fmt.Sprintf("GET /v1/licenses/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
		r.large.At(0), r.key), 3)
	open := r.newHoard(rivalUnread)
	return func(ctx context.Context, c, _ int) error {
		conn, err := open.replace(ctx, c)
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, lookups)
		return err
	}
}

// grantMetadata makes a client grant licenses with as much metadata as a license may have.
func (r *rival) grantMetadata(context.Context) turnFunc {
	grant := fmt.Sprintf(`{"product_id":"rival","quantity":%d,"metadata":{"a":%q}}`, rivalGranted,
		strings.Repeat("x", rivalMetadata-len(`{"a":""}`)))
	return func(ctx context.Context, _, _ int) error {
		_, err := r.send(ctx, "POST", "/v1/licenses", grant)
		return err
	}
}

// guess makes a client guess API keys and payment links. The node reads the store for each payment link; it refuses an
// API key by its check characters, which no client can compute. A client pauses only for refusals of a rate limit.
func (r *rival) guess(context.Context) turnFunc {
	guesser := r.guesser()
	return func(ctx context.Context, c, turn int) error {
		path, key := fmt.Sprintf("/pay/ord_%028d/%032d", turn, c), ""
		if turn%2 == 0 {
			path, key = "/v1/orders", fmt.Sprintf("lk_test_%d_%d", c, turn)
		}
		_, err := r.sendBy(ctx, guesser, key, "GET", path, "")
		var status statusError
		if errors.As(err, &status) && status != http.StatusTooManyRequests {
			return nil
		}
		return err
	}
}

// guessExternal makes a client guess external keys of the other account, many at the same time. The node reads the
// store for each, until it has found too many unknown keys for the client's address.
func (r *rival) guessExternal(context.Context) turnFunc {
	guesser := r.guesser()
	var guesses atomic.Int64
	return together(func(ctx context.Context, _, _ int) error {
		_, err := r.sendBy(ctx, guesser, "", "POST", "/v1/licenses/activate",
			fmt.Sprintf(`{"license_key":"GUESS-%08d","device_id":"guess"%s}`, guesses.Add(1), r.external.Beside))
		if errors.Is(err, statusError(http.StatusNotFound)) {
			return nil // the node has looked the key up
		}
		return err
	})
}

// guesser returns an HTTP client that connects from the rival's address.
func (r *rival) guesser() *http.Client {
	by := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: fairRivals * rivalAtOnce,
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return r.dial(ctx) },
	}}
	r.undo = func(context.Context) error { by.CloseIdleConnections(); return nil }
	return by
}

// hoardConnections makes a client open connections and never use them.
func (r *rival) hoardConnections(ctx context.Context) turnFunc {
	open := r.newHoard(r.connections / fairRivals)
	for i := range r.connections {
		must(open.replace(ctx, i%fairRivals))
	}
	return func(ctx context.Context, c, _ int) error {
		_, err := open.replace(ctx, c)
		return err
	}
}

// addDevices makes an end user bind new devices to a license without a limit, and rename them.
func (r *rival) addDevices(context.Context) turnFunc {
	return func(ctx context.Context, c, turn int) error {
		_, err := r.here.Activate(ctx, client.Activation{
			LicenseKey: string(r.large.At(0)), DeviceID: fmt.Sprintf("new-%d-%d", c, turn/2),
			DeviceName: fmt.Sprint(turn),
		})
		return err
	}
}

// statusError is the status of a response that is no success.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// send makes a request to the measured node, with the rival's API key, and returns the response's body.
func (r *rival) send(ctx context.Context, method, path, body string) ([]byte, error) {
	return r.sendAs(ctx, r.key, method, path, body)
}

// sendAs makes a request with an API key, or without an API key.
func (r *rival) sendAs(ctx context.Context, key, method, path, body string) ([]byte, error) {
	return r.sendBy(ctx, r.raw, key, method, path, body)
}

// sendBy makes a request by an HTTP client. sendBy decodes nothing: the processor time of the rival's clients is part
// of the loss.
func (r *rival) sendBy(ctx context.Context, by *http.Client, key, method, path, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+r.bench.node.Address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := by.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = statusError(response.StatusCode)
	}
	return text, err
}

// dial connects to the measured node from the rival's address.
func (r *rival) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(rivalAddress)}}
	return dialer.DialContext(ctx, "tcp", r.bench.node.Address)
}

// hoard keeps the latest connections of each client.
type hoard struct {
	dial  func(context.Context) (net.Conn, error)
	each  int
	conns [fairRivals][]net.Conn
}

// newHoard returns an empty hoard, which the end of the attack closes.
func (r *rival) newHoard(each int) *hoard {
	h := &hoard{dial: r.dial, each: max(each, 1)}
	r.undo = h.close
	return h
}

// replace opens a connection for a client. If the client has all its connections, replace waits and closes the oldest
// one first. Each client has a goroutine of its own.
func (h *hoard) replace(ctx context.Context, c int) (net.Conn, error) {
	if len(h.conns[c]) == h.each {
		if rig.Rest(ctx, rivalPause); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		_ = h.conns[c][0].Close()
		h.conns[c] = h.conns[c][1:]
	}
	conn, err := h.dial(ctx)
	if err == nil {
		h.conns[c] = append(h.conns[c], conn)
	}
	return conn, err
}

func (h *hoard) close(context.Context) error {
	for _, conns := range h.conns {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	return nil
}
