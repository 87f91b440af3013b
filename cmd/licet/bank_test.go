package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"licet/licensing"
	"licet/payment"
)

// runWithBank tells this test binary to be licet serve with the provider at an
// address. The sandbox keeps no books, and so can't tell what was sent back twice.
const runWithBank = "RUN_TEST_BINARY_WITH_BANK"

// serveWithBank is licet serve, but for the provider and for how often it sweeps.
func serveWithBank(address string, args []string) int {
	return serveWith(args, func(n *serve) {
		n.providers = payment.ForMode(licensing.Test, bankClient{address: address})
		n.sweepEvery = 100 * time.Millisecond
	})
}

// serveWith is licet serve with a change.
func serveWith(args []string, change func(*serve)) int {
	var cfg serveConfig
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	cfg.addFlags(flags)
	if err := errors.Join(flags.Parse(args[1:]), cfg.validate()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	log, err := cfg.newLog(os.Stderr)
	if err != nil {
		return exitUsage
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	n := newServe(cfg, log.Level(zerolog.InfoLevel))
	change(n)
	if err := n.run(ctx, func(ctx context.Context) error { return n.start(ctx, build{}) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return exitOK
}

// bankClient is a provider that is reached over HTTP, as real ones are.
type bankClient struct {
	payment.Sandbox
	address string
}

func (c bankClient) post(ctx context.Context, what string, o licensing.Order) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+"/"+what+"/"+o.OrderNo, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return err
}

func (c bankClient) Begin(ctx context.Context, o licensing.Order) (payment.Step, error) {
	return payment.Step{Payment: "bank_" + o.OrderNo}, c.post(ctx, "take", o)
}

func (c bankClient) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	if err := c.post(ctx, "return", o); err != nil {
		return payment.State{}, err
	}
	return c.Sandbox.Refund(ctx, o, refund)
}

// bank moves the money of an order once in each direction, and keeps books. It
// outlives all nodes, and takes its time, so that nodes die while it is asked.
type bank struct {
	*httptest.Server
	mu    sync.Mutex
	books map[string]money // by order
}

// money is what a bank has done with that of an order.
type money struct {
	taken, returned int
	asked           int // to return it
}

// of returns what was done for an order by now.
func (b *bank) of(orderNo string) money {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.books[orderNo]
}

// orders returns the orders that the bank knows.
func (b *bank) orders() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.books))
}

func newBank(t *testing.T) *bank {
	b := &bank{books: map[string]money{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
	what, orderNo, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	b.move(what, orderNo)
	time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
	if rand.IntN(50) == 0 { // the refund was made, and the answer is lost
		w.WriteHeader(http.StatusBadGateway)
	}
}

func (b *bank) move(what, orderNo string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.books[orderNo]
	switch what {
	case "take":
		m.taken = 1
	case "return":
		m.asked++
		if m.taken == 1 && m.returned == 0 {
			m.returned++
		}
	}
	b.books[orderNo] = m
}
