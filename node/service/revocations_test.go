package service_test

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// TestListLife: a list that takes long to read is read less often, and lists of every life are young enough.
func TestListLife(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 250 * time.Millisecond: 5 * time.Second, 400 * time.Millisecond: 10 * time.Second,
		time.Second: 20 * time.Second, time.Minute: 20 * time.Second, -time.Hour: 5 * time.Second,
	} {
		if life := service.ListLife(took); life != want {
			t.Errorf("a list whose reading took %v lives for %v, want %v", took, life, want)
		}
	}
}

// revokedLicense grants a license of an owner, activates it with a receipt, and revokes the license.
func revokedLicense(t *testing.T, n *service.Service, owner licensing.Owner) {
	t.Helper()
	ctx := nodetest.Context(t)
	granted, _, err := n.Grant(ctx, owner, service.Grant{ProductID: "pro", Quantity: 1})
	nodetest.WantError(t, err, nil)
	target := licensing.Target{Key: granted[0].License.Key}
	_, err = n.Activate(ctx, licensing.Activate{Target: target, Device: "pc",
		Receipt: licensing.AskReceipt(true, false, 0)})
	nodetest.WantError(t, err, nil)
	_, err = n.Do(ctx, licensing.LicenseRef(target.Key), licensing.RevokeLicense{Target: target})
	nodetest.WantError(t, err, nil)
}

// TestListOfClockInDoubt: a node that must not act by its clock makes no list, since as_of may be in the future. A list
// from before is good for as long as any list.
func TestListOfClockInDoubt(t *testing.T) {
	t.Parallel()
	clock := &nodetest.Clock{}
	comparison := nodetest.NewComparison(clock.Source)
	n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock),
		func(cfg *service.Config) { cfg.Clocks = comparison })
	owner := nodetest.NewOwner(licensing.Test)
	read := func() (*service.RevocationList, error) {
		return n.Revocations(nodetest.Context(t), owner, netip.Addr{})
	}
	_, err := read()
	nodetest.WantError(t, err, licensing.ErrUnavailable) // no comparison yet
	nodetest.CompareWith(comparison, 0)
	before, err := read()
	nodetest.WantError(t, err, nil)

	clock.Advance(time.Second)
	nodetest.CompareWith(comparison, -time.Hour)
	nodetest.WantError(t, n.ActsByTime(), licensing.ErrUnavailable)
	again, err := read()
	if nodetest.WantError(t, err, nil); again != before {
		t.Errorf("within the life of a list there is one as of %v", again.AsOf)
	}
	clock.Advance(30 * time.Second)
	_, err = read()
	nodetest.WantError(t, err, licensing.ErrUnavailable)

	nodetest.CompareWith(comparison, 0, 0)
	nodetest.CompareWith(comparison, 0, 0)
	after, err := read()
	if nodetest.WantError(t, err, nil); !after.AsOf.Equal(clock.Now()) {
		t.Errorf("once the clocks agree, the list is as of %v", after.AsOf)
	}
}

// TestListOfClockSetBack: entries that a clock ahead has left out of a list are in the list once the clock is right.
func TestListOfClockSetBack(t *testing.T) {
	t.Parallel()
	clock := &nodetest.Clock{}
	n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
	owner := nodetest.NewOwner(licensing.Test)
	read := func() (entries []store.Revocation, epoch int64) {
		t.Helper()
		list, err := n.Revocations(nodetest.Context(t), owner, netip.Addr{})
		nodetest.WantError(t, err, nil)
		return list.After(0), list.Epoch
	}
	revokedLicense(t, n, owner)
	revokedLicense(t, n, owner)
	entries, position := read()
	if len(entries) != 2 {
		t.Fatalf("%d entries of two licenses", len(entries))
	}
	for _, step := range []struct {
		by      time.Duration
		entries int
	}{{100 * 24 * time.Hour, 0}, {-100 * 24 * time.Hour, 2}, {time.Minute, 2}, {100 * 24 * time.Hour, 0}} {
		clock.Advance(step.by)
		if entries, epoch := read(); len(entries) != step.entries || epoch != position {
			t.Errorf("after %v: %d entries at %d, want %d at %d", step.by, len(entries), epoch, step.entries, position)
		}
	}
}

// stuckLists is a store that reads the first list until the caller gives up.
type stuckLists struct {
	store.Store
	first atomic.Bool
	began chan struct{}
}

func (s *stuckLists) ReadRevocations(
	ctx context.Context, owner licensing.Owner, want store.RevocationsWanted,
) (store.Revocations, error) {
	if !s.first.CompareAndSwap(false, true) {
		return s.Store.ReadRevocations(ctx, owner, want)
	}
	close(s.began)
	<-ctx.Done()
	return store.Revocations{}, licensing.ErrUnavailable
}

// waitReporter is a context that tells when somebody waits for its end.
type waitReporter struct {
	context.Context
	waits sync.Once
	began chan struct{}
}

func (w *waitReporter) Done() <-chan struct{} {
	w.waits.Do(func() { close(w.began) })
	return w.Context.Done()
}

// TestListOfAnotherCaller: if the caller who reads a list gives up, those who wait for its reading read the list anew.
func TestListOfAnotherCaller(t *testing.T) {
	t.Parallel()
	db := &stuckLists{Store: nodetest.OpenStore(t), began: make(chan struct{})}
	n := nodetest.New(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	read := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := n.Revocations(ctx, owner, netip.Addr{})
			done <- err
		}()
		return done
	}
	impatient, giveUp := context.WithCancel(nodetest.Context(t))
	first := read(impatient)
	<-db.began
	waiting := &waitReporter{Context: nodetest.Context(t), began: make(chan struct{})}
	second := read(waiting)
	<-waiting.began
	giveUp()
	nodetest.WantError(t, <-first, licensing.ErrUnavailable)
	nodetest.WantError(t, <-second, nil)
}

// TestIncrements: whatever position a client names, the answer has all entries that came since, and a list has few
// answers, which are together not three times as long as the list.
func TestIncrements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3000).Draw(t, "entries")
		together := rapid.IntRange(1, 16).Draw(t, "together") // entries of one transaction
		entries := make([]store.Revocation, n)
		for i, at := range rand.New(rand.NewPCG(1, uint64(n))).Perm(n) {
			entries[i].Name, entries[i].At = licensing.RevocationName{byte(i >> 8), byte(i)}, int64(10+10*(at/together))
		}
		epoch := int64(20 + 10*n)
		list := service.NewRevocationList(epoch, entries)
		lengths := map[int64]int{}
		for position := range epoch + 10 {
			after := list.Increment(position)
			if after > position || after < 0 || position > epoch && after != 0 {
				t.Fatalf("for %d of %d, the increment continues %d", position, epoch, after)
			}
			if _, met := lengths[after]; met {
				continue
			}
			sent := list.After(after)
			lengths[after] = len(sent)
			later := 0
			for _, e := range entries {
				if e.At > after {
					later++
				}
			}
			if later != len(sent) || after != 0 && later == n {
				t.Fatalf("the answer after %d has %d of %d entries, want %d", after, len(sent), n, later)
			}
		}
		sum := 0
		for _, length := range lengths {
			sum += length
		}
		if most := 2 + bits.Len(uint(n)); len(lengths) > most || sum > 3*n {
			t.Fatalf("%d entries have %d answers of %d entries together", n, len(lengths), sum)
		}
	})
}

// TestSigningOfLists: a list is signed once for callers who come together. Lists of other owners do not wait for that
// list, and a caller whose time ends waits no longer.
func TestSigningOfLists(t *testing.T) {
	t.Parallel()
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner, other := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)
	list := service.NewRevocationList(1, nil)
	var signed atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			_, err := n.SignList(t.Context(), owner, list, 0, func() (d service.SignedDocument, err error) {
				if signed.Add(1) > 1 {
					t.Error("a list is signed twice")
					return d, nil
				}
				close(begun)
				<-goOn
				return d, nil
			})
			nodetest.WantError(t, err, nil)
		})
	}
	<-begun
	sign := func() (d service.SignedDocument, err error) { return d, nil }
	_, err := n.SignList(t.Context(), other, service.NewRevocationList(1, nil), 0, sign)
	nodetest.WantError(t, err, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = n.SignList(ctx, owner, list, 1, sign)
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	close(goOn)
	group.Wait()
}
