package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// shop is whoever does something on this day: its tills and desks with their API
// keys, its buyers, and the programs that they have bought.
type shop struct {
	plan     *plan
	ledger   *ledger
	stage    *stage.Stage
	balancer *stage.Balancer
	progress *rig.Progress

	root    *client.Client // made on the store: may do everything
	till    *client.Client // makes orders; signs its requests
	desk    *client.Client // refunds, and whatever there is to do about licenses
	clerk   *client.Client // describes products
	reader  *client.Client // may only read
	program *client.Client // an installed copy, without an API key
	browser *stage.Browser

	tillKey string // the text of the till's API key, and what else signs with it
	tillID  string
}

func newShop(cfg *config, s *stage.Stage, progress *rig.Progress) (*shop, error) {
	b := s.Balancer()
	shop := &shop{
		plan: newPlan(cfg.seed, cfg.orders, cfg.refunds), ledger: newLedger(),
		stage: s, balancer: b, progress: progress, browser: stage.NewBrowser(b),
	}
	var err error
	shop.program, err = shop.client("")
	return shop, err
}

// client makes a client that goes through the balancer.
func (s *shop) client(apiKey string, options ...client.Option) (*client.Client, error) {
	usual := []client.Option{
		client.WithHTTPClient(&http.Client{Transport: s.balancer, Timeout: answerTime}),
		client.RetryFor(stage.Patience),
		client.OnRetry(s.again),
	}
	return client.New(stage.PublicURL, apiKey, append(usual, options...)...)
}

// again counts requests that are sent again, by why.
func (s *shop) again(err error, _ time.Duration) bool {
	why := "no answer"
	var refused *client.Error
	if errors.As(err, &refused) {
		why = fmt.Sprintf("%d %s", refused.Code, refused.Reason)
	}
	s.ledger.did("sent again after: " + why)
	return true
}

// answerTime is how long one request may take with its answer; the service ends
// the work on one within 4 seconds.
const answerTime = 15 * time.Second

// codeOf is the code of a refusal, 0 of a success, and -1 where no answer came.
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

// worked notes where a thing has failed that must not, and tells whether it has
// worked.
func (s *shop) worked(what, about string, err error) bool {
	if err != nil {
		s.ledger.problem("%s: %s: %v", about, what, err)
	}
	return err == nil
}

// done counts a thing that must have worked, too.
func (s *shop) done(what, about string, err error) bool {
	if err == nil {
		s.ledger.did(what)
	}
	return s.worked(what, about, err)
}

// refused notes a thing that must have been refused with a code.
func (s *shop) refused(what, about string, code int, err error) {
	if got := codeOf(err); got != code {
		s.ledger.problem("%s: %s was answered %d (%v), and must be refused with %d", about, what, got, err, code)
		return
	}
	s.ledger.did("refused: " + what)
}

// check notes something about an answer that must be so.
func (s *shop) check(ok bool, format string, args ...any) {
	if !ok {
		s.ledger.problem(format, args...)
	}
}

// workers is how many people do something at a time.
const workers = 16

// each does something for each of many things, some at a time.
func each[T any](ctx context.Context, list []T, do func(context.Context, T)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(workers, len(list)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(list) {
					return
				}
				do(ctx, list[i])
			}
		})
	}
	group.Wait()
}

// atOnce does something n times at once, toward the nodes by turns.
func atOnce(ctx context.Context, n int, do func(ctx context.Context, i int)) {
	var group sync.WaitGroup
	first := rand.IntN(nodeCount)
	for i := range n {
		group.Go(func() { do(stage.Toward(ctx, first+i), i) })
	}
	group.Wait()
}

// await asks again and again whether something has come, as long as anybody would
// wait.
func await(ctx context.Context, what func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, stage.Patience)
	defer cancel()
	for !what(ctx) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return true
}

// within tells whether a time that the service has answered, in milliseconds, is
// between two of this machine's clock.
func within(at, from, to time.Time) bool {
	return !at.Before(from.Truncate(time.Millisecond)) && !at.After(to)
}
