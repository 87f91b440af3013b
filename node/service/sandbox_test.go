package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// renewals is a store in which a subscription in the sandbox is due at a time. It notes when a sweep asks for the slots
// in which one is due soon.
type renewals struct {
	store.Store
	due time.Time
	at  []time.Time
	// fails makes the store unreadable.
	fails bool
}

func (r *renewals) DueSlots(
	_ context.Context, kind licensing.DueKind, span store.DueSpan,
) ([]licensing.Slot, error) {
	if kind != licensing.DueSandbox {
		return nil, nil
	}
	if r.fails {
		return nil, licensing.ErrUnavailable
	}
	if span.Until.After(time.Now()) {
		r.at = append(r.at, time.Now())
	}
	if r.due.IsZero() || r.due.After(span.Until) {
		return nil, nil
	}
	return []licensing.Slot{1}, nil
}

func (r *renewals) Due(
	_ context.Context, _ licensing.DueKind, _ licensing.Slot, span store.DueSpan, _ string, _ int,
) (page store.DuePage, err error) {
	if !r.due.After(span.Until) {
		owner := licensing.Owner{AccountID: "acct_a", Mode: licensing.Test}
		page.Records = []licensing.Ref{licensing.OrderRef(owner, "ord_1")}
	}
	return page, nil
}

// TestRenewalsInTheSandbox: the sweep of the sandbox reads the store each five seconds while nothing is due, and finds
// a subscription about a second after it is due.
func TestRenewalsInTheSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &renewals{}
		n := stateService(Config{Config: node.Config{Records: r, Queries: r}, Keys: r, Sweeps: r, Events: r})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		n.SweepSandbox(ctx, func(ctx context.Context) error { return n.EachSandboxDue(ctx, nil) })
		cancel()
		if len(r.at) < 500 || len(r.at) > 3600/5 {
			t.Errorf("%d questions in an hour without a subscription", len(r.at))
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		paid := time.Now()
		r.due = paid.Add(10 * time.Second) // the shortest interval
		renewed := 0
		n.SweepSandbox(ctx, func(ctx context.Context) error {
			return n.EachSandboxDue(ctx, func(context.Context, licensing.Order) error {
				if late := time.Since(r.due); late < 0 || late > 1500*time.Millisecond {
					t.Errorf("the subscription renews %v after it is due", late)
				}
				renewed++
				r.due = r.due.Add(10 * time.Second)
				return nil
			})
		})
		if renewed < 355 {
			t.Errorf("%d renewals in an hour", renewed)
		}
	})
}

// TestFailedRenewalsInTheSandbox: a renewal that fails, or a store that can't be read, is tried again about a second
// later.
func TestFailedRenewalsInTheSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &renewals{due: time.Now()}
		n := stateService(Config{Config: node.Config{Records: r, Queries: r}, Keys: r, Sweeps: r, Events: r})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var tried []time.Time
		n.SweepSandbox(ctx, func(ctx context.Context) error {
			r.fails = len(tried)%2 == 1 && !r.fails
			return n.EachSandboxDue(ctx, func(context.Context, licensing.Order) error {
				tried = append(tried, time.Now())
				return errors.New("the record is damaged")
			})
		})
		if len(tried) < 25 {
			t.Errorf("%d tries in a minute", len(tried))
		}
		for i := 1; i < len(tried); i++ {
			if pause := tried[i].Sub(tried[i-1]); pause > 3*time.Second {
				t.Errorf("a try comes %s after the one before", pause)
			}
		}
	})
}
