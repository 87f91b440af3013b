package kv

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"licet/kv/internal/etcd"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// interruption is the fate of the first attempt at a change. Something else happens after that attempt, which the next
// attempt must take into account.
type interruption struct {
	name   string
	faults []kvtest.Fault
	landed bool // whether the change has landed before that happens
}

// eachInterruption runs a test with each interruption; i is the number of the interruption.
func (l *eventsLab) eachInterruption(run func(l *eventsLab, i int, c interruption)) {
	lost := rpctypes.ErrTimeout
	for i, c := range []interruption{
		{"no fault", nil, false},
		{"not applied, answer lost", []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost}}, false},
		{"applied, answer lost", []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}}, true},
		{"applied late", []kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}}, false},
		{"twice in doubt",
			[]kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}, {Apply: kvtest.AppliedNever, Tell: lost}}, false},
	} {
		l.t.Run(c.name, func(t *testing.T) { run(l.in(t), i, c) })
	}
}

// in returns the lab for a subtest.
func (l *eventsLab) in(t *testing.T) *eventsLab {
	return &eventsLab{t: t, etcd: l.etcd, store: l.store}
}

// interrupted opens a store that calls happens after the first attempt at its first change, or before that attempt if
// it meets no fault.
func (l *eventsLab) interrupted(c interruption, happens func()) *Store {
	l.t.Helper()
	next := kvtest.Script(c.faults...)
	writes := 0
	s := l.open(nil)
	s.etcd.Remote = &kvtest.FaultyKV{KVClient: s.etcd.Remote, Next: func() kvtest.Fault {
		if writes++; writes == 1+min(len(c.faults), 1) {
			happens()
		}
		return next()
	}}
	return s
}

func (l *eventsLab) commitInterrupted(s *Store, change store.Change, c interruption) store.Outcome {
	l.t.Helper()
	outcome, err := s.Commit(l.t.Context(), change)
	if err != nil || outcome.Landed != c.landed {
		l.t.Fatalf("%+v, %v; want landed: %v", outcome, err, c.landed)
	}
	return outcome
}

// leave checks that exactly the owners listen, unsubscribes them, and checks the store.
func (l *eventsLab) leave(s *Store, owners ...licensing.Owner) {
	l.t.Helper()
	l.wantListeners(owners...)
	for _, owner := range owners {
		l.hook(s, owner, unsubscribe(owner))
	}
	l.wantListeners()
	l.clean()
}

// TestListenDuringACommit makes an owner listen after a writer has read that no owner listens: the feed has each
// change that is acknowledged afterwards.
func TestListenDuringACommit(t *testing.T) {
	t.Parallel()
	newEventsLab(t).eachInterruption(func(l *eventsLab, i int, c interruption) {
		owner := acct(fmt.Sprint("listens", i))
		ref := l.license(l.store, owner)
		l.listen()
		s := l.interrupted(c, func() { l.listen(owner) })
		outcome := l.commitInterrupted(s, l.bound(s, ref, "a"), c)
		want := []string{"1 license.issued"}
		if !c.landed {
			if len(outcome.Rivals) != 1 || !outcome.Rivals[0].Record.Listening ||
				outcome.Rivals[0].Record.License.CurrentDevices != 0 {
				l.t.Errorf("it lost to %+v", outcome.Rivals)
			}
			l.commit(s, l.bound(s, ref, "a"))
			want = append(want, "2 license.activated a", "3 device.bound a")
		}
		l.commit(s, l.bound(s, ref, "b"))
		want = append(want, fmt.Sprintf("%d device.bound b", len(want)+1))
		l.closeEpoch()
		if kinds := kindsOf(l.feed(owner, 10)); !slices.Equal(kinds, want) {
			l.t.Errorf("the feed is %q, want %q", kinds, want)
		}
	})
}

// TestSubscribeDuringACommit lets an owner subscribe, or unsubscribe, after another store has read whether the owner
// listens, while the swap of that store meets every fault: a change that lands after the subscription has an event,
// and a change that lands after its end has none.
func TestSubscribeDuringACommit(t *testing.T) {
	lab := newHooksLab(t)
	for _, begins := range []bool{true, false} {
		t.Run(fmt.Sprint("begins ", begins), func(t *testing.T) {
			lab.in(t).eachInterruption(func(l *eventsLab, i int, c interruption) {
				owner := acct(fmt.Sprintf("during%d%v", i, begins))
				ref := l.license(l.store, owner)
				if !begins {
					l.hook(l.store, owner, subscribe(owner))
				}
				s := l.interrupted(c, func() {
					if begins {
						l.hook(l.store, owner, subscribe(owner))
					} else {
						l.hook(l.store, owner, unsubscribe(owner))
					}
				})
				outcome := l.commitInterrupted(s, l.bound(s, ref, "a"), c)
				if !outcome.Landed {
					if len(outcome.Rivals) != 1 || outcome.Rivals[0].Record.Listening != begins {
						l.t.Errorf("it lost to %+v", outcome.Rivals)
					}
					l.commit(s, l.bound(s, ref, "a"))
				}
				l.commit(s, l.bound(s, ref, "b")) // also runs what is late
				l.closeEpoch()
				events := []string{"1 license.issued"}
				if c.landed != begins { // the first device was bound while the owner listened
					events = append(events, "2 license.activated a", "3 device.bound a")
				}
				if begins {
					events = append(events, fmt.Sprintf("%d device.bound b", len(events)+1))
				}
				if kinds := kindsOf(l.feed(owner, 10)); !slices.Equal(kinds, events) {
					l.t.Errorf("the feed is %q, want %q", kinds, events)
				}
				if begins {
					l.leave(l.store, owner)
				} else {
					l.leave(l.store)
				}
			})
		})
	}
}

// TestSubscriptionInDoubt loses the answer to a subscription in every way. If Commit reports that the subscription
// landed, it has landed once and its owner listens; otherwise neither is the case.
func TestSubscriptionInDoubt(t *testing.T) {
	lost := rpctypes.ErrTimeout
	l := newHooksLab(t)
	for i, c := range []struct {
		name   string
		faults []kvtest.Fault
		err    error
		made   bool
	}{
		{"no fault", nil, nil, true},
		{"applied, answer lost", []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}}, nil, true},
		{"not applied, answer lost", []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost}}, nil, true},
		{"applied late", []kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}}, nil, true},
		{"twice in doubt",
			[]kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}, {Apply: kvtest.AppliedNow, Tell: lost}}, nil, true},
		{"no space", []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrNoSpace}}, nil, true},
		{"refused", []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests}},
			licensing.ErrUnavailable, false},
		{"in doubt, then refused", []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost},
			{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests}}, licensing.ErrOutcomeUnknown, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := l.in(t)
			owner := acct(fmt.Sprint("doubt", i))
			s := l.open(kvtest.Script(c.faults...))
			outcome, err := s.Commit(t.Context(), l.hooked(s, owner, subscribe(owner)))
			// After the answer NoSpace nothing is sent until a probe has found no alarm.
			full := errors.Is(err, etcd.ErrFull) && errors.Is(err, licensing.ErrOutcomeUnknown) && c.name == "no space"
			if !full && (!errors.Is(err, c.err) || c.err == nil && !outcome.Landed) {
				t.Errorf("%+v, %v", outcome, err)
			}
			if full {
				kvtest.Await(t, func() bool { return s.Space() != store.SpaceFull })
			}
			if c.made && c.err == nil && !full {
				l.wantListeners(owner)
			}
			l.hook(s, owner, subscribe(owner)) // again; also runs what is late
			if now := loadOne(t, l.store, licensing.WebhooksRef(owner)).Record.Webhooks; len(now.Endpoints) != 1 {
				t.Errorf("there are %+v", now.Endpoints)
			}
			l.leave(s, owner)
		})
	}
}

// TestOwnersSubscribeBetweenAttempts lets another owner subscribe, or leave, while the
// attempts at a subscription are in doubt: the subscription is lost to none of them.
func TestOwnersSubscribeBetweenAttempts(t *testing.T) {
	newHooksLab(t).eachInterruption(func(l *eventsLab, i int, c interruption) {
		owner, other, leaves := acct(fmt.Sprint("own", i)), acct(fmt.Sprint("other", i)), acct(fmt.Sprint("leaves", i))
		l.hook(l.store, leaves, subscribe(leaves))
		s := l.interrupted(c, func() {
			l.hook(l.store, other, subscribe(other))
			l.hook(l.store, leaves, unsubscribe(leaves))
		})
		l.commitInterrupted(s, l.hooked(s, owner, subscribe(owner)), interruption{landed: true})
		_ = s.Ping(l.t.Context())
		l.leave(s, owner, other)
	})
}
