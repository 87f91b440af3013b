package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// shop holds what all roles of the day share: the plan, the ledger, and the clients of the tills and desks, of the
// buyers, and of the programs that they have bought.
type shop struct {
	plan     *plan
	ledger   *ledger
	stage    *stage.Stage
	balancer *stage.Balancer
	progress *rig.Progress

	root       *client.Client // made on the store: may do everything
	rootScopes []string
	till       *client.Client // makes orders; signs its requests
	desk       *client.Client // refunds, and whatever there is to do about licenses
	clerk      *client.Client // describes products
	reader     *client.Client // may only read
	program    *client.Client // an installed copy, without an API key
	browser    *stage.Browser

	tillKey string // the text of the till's API key, and what else signs with it
	tillID  string
}

// support is the desk that changes licenses, and the devices of its customers.
type support struct{ *shop }

// sales sells: orders, payments and refunds.
type sales struct {
	*shop
	support *support
}

// keyring holds the API keys and the master keys.
type keyring struct{ *shop }

// day is the day with all actors.
type day struct {
	*shop
	support support
	sales   sales
	keys    keyring
}

func newDay(cfg *config, s *stage.Stage, progress *rig.Progress) (*day, error) {
	b := s.Balancer()
	shop := &shop{
		plan: newPlan(cfg.Seed, cfg.orders, cfg.refunds), ledger: newLedger(),
		stage: s, balancer: b, progress: progress, browser: stage.NewBrowser(b),
	}
	d := &day{shop: shop, support: support{shop}, keys: keyring{shop}}
	d.sales = sales{shop, &d.support}
	var err error
	shop.program, err = shop.client("")
	return d, err
}

// client returns a client whose requests go through the balancer.
func (s *shop) client(apiKey string, options ...client.Option) (*client.Client, error) {
	return s.ledger.Client(s.balancer, stage.Patience, apiKey, options...)
}

// codeOf returns the code of a refusal, 0 for a success, and -1 without an answer.
func codeOf(err error) int {
	var refused *client.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refused):
		return refused.Code
	default:
		return -1
	}
}

// worked reports whether a request has worked. A failure is a problem.
func (s *shop) worked(what, about string, err error) bool {
	if err != nil {
		s.ledger.Problem("%s: %s: %v", about, what, err)
	}
	return err == nil
}

// done counts a request that must have worked, and reports whether it has.
func (s *shop) done(what, about string, err error) bool {
	if err == nil {
		s.ledger.Did(what)
	}
	return s.worked(what, about, err)
}

// errorOf returns the error of an answer.
func errorOf[T any](_ T, err error) error { return err }

// refused records a request that must have been refused with a code.
func (s *shop) refused(what, about string, code int, err error) {
	if got := codeOf(err); got != code {
		s.ledger.Problem("%s: %s was answered %d (%v), and must be refused with %d", about, what, got, err, code)
		return
	}
	s.ledger.Did("refused: " + what)
}

// check records a problem unless ok.
func (s *shop) check(ok bool, format string, args ...any) {
	if !ok {
		s.ledger.Problem(format, args...)
	}
}

// atOnce calls do n times at once, toward the nodes in turns.
func atOnce(ctx context.Context, n int, do func(ctx context.Context, i int)) {
	var group sync.WaitGroup
	first := rand.IntN(nodeCount)
	for i := range n {
		group.Go(func() { do(stage.Toward(ctx, first+i), i) })
	}
	group.Wait()
}

// await waits until a condition holds, for as long as a buyer would wait. It reports
// whether the condition holds.
func await(ctx context.Context, what func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, stage.Patience)
	defer cancel()
	for !what(ctx) {
		if rig.Rest(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return false
		}
	}
	return true
}

// within reports whether a time of the service, in milliseconds, is between two times of
// this machine.
func within(at, from, to time.Time) bool {
	return !at.Before(from.Truncate(time.Millisecond)) && !at.After(to)
}
