package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"licet/internal/depth"
)

// ledger remembers what a service has acknowledged. Whatever it then answers,
// also after it was killed and started again, must agree.
type ledger struct {
	mu       sync.Mutex
	orders   map[string]string // of each order, the license key: "" while it is unpaid
	devices  map[string]state  // of each "license key device"
	licenses map[string]bool
	acks     atomic.Int64
	resting  atomic.Bool // contenders pause between two changes
}

// state is what is known of a device.
type state int

const (
	unknown state = iota // an activation or a removal was never answered
	bound
	gone
)

func newLedger() *ledger {
	return &ledger{orders: map[string]string{}, devices: map[string]state{}, licenses: map[string]bool{}}
}

func (l *ledger) order(orderNo, licenseKey string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders[orderNo] = licenseKey
	if licenseKey != "" {
		l.licenses[licenseKey] = true
	}
	l.acks.Add(1)
}

func (l *ledger) device(licenseKey, device string, s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.licenses[licenseKey] = true
	l.devices[licenseKey+" "+device] = s
	if s != unknown {
		l.acks.Add(1)
	}
}

// work does the main job again and again until something goes wrong with the
// connection, or stop. Names that begin with its own keep it clear of other
// workers, except on the slots of the license that all share.
func (l *ledger) work(ctx context.Context, p api, name, sharedKey string) error {
	for i := 0; ctx.Err() == nil; i++ {
		if err := l.walk(ctx, p, fmt.Sprintf("%s-%d", name, i), sharedKey); err != nil {
			return err
		}
	}
	return nil
}

// errDraining is an answer that says nothing was done.
var errDraining = errors.New("the service is stopping")

// walk is one main job: order, pay, look, activate twice, remove one; then
// one activation and removal on the shared license.
func (l *ledger) walk(ctx context.Context, p api, name, sharedKey string) error {
	created, err := demand(201)(p.send(ctx, "POST", "/v1/orders", `{"product_id":"editor","amount":100,"currency":"EUR"}`))
	if err != nil {
		return err
	}
	orderNo := created.Data.text("order_no")
	l.order(orderNo, "")
	if _, err := demand(200)(p.pay(ctx, orderNo)); err != nil {
		return err
	}
	paid, err := demand(200)(p.send(ctx, "GET", "/v1/orders/"+orderNo, ""))
	if err != nil {
		return err
	}
	key := paid.Data.text("license_key")
	l.order(orderNo, key)
	for _, device := range []string{name + "-a", name + "-b"} {
		if err := l.bind(ctx, p, key, device); err != nil {
			return err
		}
	}
	if err := l.remove(ctx, p, key, name+"-a"); err != nil {
		return err
	}
	if err := l.bind(ctx, p, sharedKey, name); err != nil {
		return err
	}
	return l.remove(ctx, p, sharedKey, name)
}

func (l *ledger) bind(ctx context.Context, p api, key, device string) error {
	l.device(key, device, unknown)
	r, err := demand(200, 409)(p.activate(ctx, key, device))
	switch {
	case err != nil:
		return err
	case r.status == 200:
		l.device(key, device, bound)
	default: // all slots are taken, which changes nothing
		l.device(key, device, gone)
	}
	return nil
}

func (l *ledger) remove(ctx context.Context, p api, key, device string) error {
	l.device(key, device, unknown)
	_, err := demand(200)(p.send(ctx, "DELETE", "/v1/licenses/"+key+"/devices/"+device, ""))
	if err == nil {
		l.device(key, device, gone)
	}
	return err
}

// oddAnswer is an answer that was not asked for.
type oddAnswer struct{ reply }

// Error implements error.
func (o *oddAnswer) Error() string {
	return fmt.Sprintf("an answer that should not be: %d %s", o.status, o.body)
}

// demand accepts a response with one of the statuses. It returns errDraining for a refusal of a stopping service.
func demand(statuses ...int) func(reply, error) (reply, error) {
	return func(r reply, err error) (reply, error) {
		switch {
		case err != nil || slices.Contains(statuses, r.status):
			return r, err
		case r.Code == 50300:
			return r, errDraining
		default:
			return r, &oddAnswer{r}
		}
	}
}

// verify reads everything that was ever acknowledged, and notes the outcome of all other requests. No other goroutine
// may use the service or the ledger meanwhile.
func (l *ledger) verify(t *testing.T, p api) {
	t.Helper()
	for orderNo, key := range l.orders {
		order := p.want(t, 200, "GET", "/v1/orders/"+orderNo, "").Data
		now := order.text("license_key")
		if key != "" && now != key {
			t.Errorf("order %s had license %s, and now %q", orderNo, key, now)
		}
		if (order.text("status") == "paid") != (now != "") {
			t.Errorf("order %s is %s and has license %q", orderNo, order.text("status"), now)
		}
		if now != "" {
			l.licenses[now] = true
		}
	}
	there := map[string]bool{}
	for key := range l.licenses {
		license := p.want(t, 200, "GET", "/v1/licenses/"+key, "").Data
		devices := license.list("devices")
		if n := license.number("current_devices"); n != len(devices) || n > license.number("max_devices") {
			t.Errorf("license %s counts %d devices, lists %d and allows %d", key, n, len(devices),
				license.number("max_devices"))
		}
		for _, device := range devices {
			name := key + " " + device.text("device_id")
			there[name] = true
			if _, asked := l.devices[name]; !asked {
				t.Errorf("%s exists, and no request created it", name)
			}
		}
	}
	for name, s := range l.devices {
		switch {
		case s == bound && !there[name]:
			t.Errorf("%s was acknowledged and is not there", name)
		case s == gone && there[name]:
			t.Errorf("%s is there, and its removal or refusal was acknowledged", name)
		}
		// The outcome is known now: no running request can bind the device later.
		l.devices[name] = gone
		if there[name] {
			l.devices[name] = bound
		}
	}
}

const workers = 8

// load runs workers until each of them has failed, and returns their errors.
func (l *ledger) load(ctx context.Context, p api, name, sharedKey string) <-chan []error {
	result := make(chan []error, 1)
	go func() {
		errs := make([]error, workers)
		atOnce(workers, func(i int) { errs[i] = l.work(ctx, p, fmt.Sprintf("%s-%d", name, i), sharedKey) })
		result <- errs
	}()
	return result
}

// TestNothingAcknowledgedIsLostByKill kills a service under load several times, and checks after each kill that
// everything the service ever acknowledged is there.
func TestNothingAcknowledgedIsLostByKill(t *testing.T) {
	t.Parallel()
	const acksPerRound = 150
	rounds := depth.Of(3, 10)
	dir := t.TempDir()
	book := newLedger()
	sharedKey := ""
	for round := range rounds {
		p := startProcess(t, dir)
		book.verify(t, p.api)
		if sharedKey == "" {
			sharedKey = p.grant(t, 3)
		}
		book.clear(t, p.api, sharedKey)

		before := book.acks.Load()
		done := book.load(t.Context(), p.api, fmt.Sprintf("r%d", round), sharedKey)
		enough := before + acksPerRound + int64(round)*7 // not always at the same point
		waitFor(t, func() bool { return book.acks.Load() >= enough })
		p.kill()
		for _, err := range <-done {
			if !brokenConnection(err) {
				t.Errorf("round %d: %v", round+1, err)
			}
		}
		if t.Failed() {
			return
		}
	}
	p := startProcess(t, dir)
	book.verify(t, p.api)
	t.Logf("%d changes were acknowledged, and none was lost over %d kills", book.acks.Load(), rounds)
	if code := p.terminate(t); code != exitOK {
		t.Errorf("the last one ended with exit code %d", code)
	}
}

// clear removes the devices that a license has been left with by removals that
// were cut short, so that there are slots to fight for.
func (l *ledger) clear(t *testing.T, p api, key string) {
	t.Helper()
	for _, device := range p.want(t, 200, "GET", "/v1/licenses/"+key, "").Data.list("devices") {
		if err := l.remove(t.Context(), p, key, device.text("device_id")); err != nil {
			t.Fatal(err)
		}
	}
}

// brokenConnection reports whether an error is of a connection whose other end has died.
func brokenConnection(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		err != nil && strings.Contains(err.Error(), "server closed idle connection")
}

// TestTerminateUnderLoad stops a service with SIGTERM while it works.
func TestTerminateUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir)
	sharedKey := p.grant(t, 3)
	book := newLedger()
	done := book.load(t.Context(), p.api, "w", sharedKey)
	waitFor(t, func() bool { return book.acks.Load() >= 200 })

	began := time.Now()
	code := p.terminate(t)
	took := time.Since(began)
	if code != exitOK || took > 10*time.Second+busySlack {
		t.Errorf("exit code %d after %v", code, took)
	}
	t.Logf("it took %v", took)
	for i, err := range <-done {
		// A connection that the listener had not yet taken is reset. Any other
		// way to end without an answer is a fault.
		if !errors.Is(err, errDraining) && !errors.Is(err, syscall.ECONNREFUSED) &&
			!errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("worker %d got neither an answer nor a refused connection: %v", i, err)
		}
	}
	if _, err := p.send(t.Context(), "GET", "/livez", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("afterwards: %v", err)
	}

	again := startProcess(t, dir)
	book.verify(t, again.api)
}
