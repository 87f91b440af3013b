package fair

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fill takes places for an owner until there is none left for the owner, and returns how many.
func fill(p *Places[string], owner string) (taken int) {
	for p.TryEnter(owner) {
		taken++
	}
	return taken
}

// wantEmpty checks that nothing is left of the owners of places.
func wantEmpty(t *testing.T, p *Places[string], cfg Config) {
	t.Helper()
	if p.free != cfg.Places || p.freeWaiting != cfg.Waiting || len(p.owners) != 0 || len(p.turns) != 0 {
		t.Errorf("left: %d places free, %d may wait, %d owners, %d turns",
			p.free, p.freeWaiting, len(p.owners), len(p.turns))
	}
}

func TestShares(t *testing.T) {
	cfg := Config{Places: 16}
	p := New[string](cfg)
	all := []struct {
		owner string
		taken int
	}{{"first", 8}, {"second", 4}, {"third", 2}, {"fourth", 1}, {"fifth", 1}, {"sixth", 0}}
	for _, want := range all {
		if taken := fill(p, want.owner); taken != want.taken {
			t.Errorf("the %s owner has %d places, want %d", want.owner, taken, want.taken)
		}
	}
	for _, of := range all {
		for range of.taken {
			p.Leave(of.owner)
		}
	}
	wantEmpty(t, p, cfg)
}

func TestEach(t *testing.T) {
	p := New[string](Config{Places: 16, Each: 3})
	for i, want := range []int{3, 3, 3, 3, 2, 1} {
		if taken := fill(p, fmt.Sprint(i)); taken != want {
			t.Errorf("owner %d has %d places, want %d", i, taken, want)
		}
	}
}

// queue is places with callers who wait.
type queue struct {
	*Places[string]
	t       *testing.T
	entered chan string // the owners of callers, as they enter
}

// in runs a test with places in a bubble of fake time.
func in(t *testing.T, cfg Config, test func(*queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{New[string](cfg), t, make(chan string, 100)}
		test(q)
		wantEmpty(t, q.Places, cfg)
	})
}

// come starts a caller for each of the owners, who come one after another.
func (q *queue) come(owners ...string) {
	for _, owner := range owners {
		go func() {
			if err := q.Enter(q.t.Context(), owner); err != nil {
				q.t.Errorf("%s: %v", owner, err)
			}
			q.entered <- owner
		}()
		synctest.Wait()
	}
}

// want checks which owners' callers have entered since the last check.
func (q *queue) want(owners ...string) {
	q.t.Helper()
	synctest.Wait()
	got := []string{}
	for len(q.entered) > 0 {
		got = append(got, <-q.entered)
	}
	if fmt.Sprint(got) != fmt.Sprint(owners) {
		q.t.Errorf("entered: %v, want %v", got, owners)
	}
}

// TestOwnersTakeTurns: many callers of one owner don't make the callers of others wait for all of them.
func TestOwnersTakeTurns(t *testing.T) {
	in(t, Config{Places: 2, Waiting: 100}, func(q *queue) {
		q.come("a", "b", "a", "a", "a", "b", "c", "c", "d")
		q.want("a", "b")
		if n := q.Waiting(); n != 7 {
			t.Errorf("%d callers wait, want 7", n)
		}
		for _, step := range []struct{ leaves, enters string }{
			{"a", "a"}, // it is the turn of a
			{"a", "c"}, // it is the turn of b, which has a place
			{"b", "b"}, {"b", "d"}, {"c", "a"}, {"d", "c"}, {"a", "a"},
		} {
			q.Leave(step.leaves)
			q.want(step.enters)
		}
		q.Leave("a")
		q.Leave("c")
		q.want()
	})
}

// TestNewOwnerEntersAtOnce: an owner with many waiting callers leaves a place for an owner who has none.
func TestNewOwnerEntersAtOnce(t *testing.T) {
	in(t, Config{Places: 16, Waiting: 64}, func(q *queue) {
		for range 40 {
			q.come("greedy")
		}
		q.want(slices.Repeat([]string{"greedy"}, 8)...)
		q.come("other")
		q.want("other")
		q.Leave("other")
		for range 32 {
			q.Leave("greedy")
			q.want("greedy")
		}
		for range 8 {
			q.Leave("greedy")
		}
	})
}

// TestLocks: callers of one owner wait for each other, and for no other owner.
func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{NewLocks[string](), t, make(chan string, 100)}
		q.come("a", "a", "b", "a")
		q.want("a", "b")
		q.Leave("a")
		q.want("a")
		q.Leave("b")
		q.want()
		q.Leave("a")
		q.want("a")
		q.Leave("a")
		wantEmpty(t, q.Places, Config{Places: math.MaxInt, Waiting: math.MaxInt})
	})
}

// TestFull: callers of one owner take at most half of the places to wait in.
func TestFull(t *testing.T) {
	in(t, Config{Places: 1, Waiting: 4}, func(q *queue) {
		q.come("greedy", "greedy", "greedy")
		if err := q.Enter(q.t.Context(), "greedy"); !errors.Is(err, ErrFull) {
			t.Errorf("a caller too many: %v", err)
		}
		q.come("other")
		if err := q.Enter(q.t.Context(), "other"); !errors.Is(err, ErrFull) {
			t.Errorf("a caller too many of the other owner: %v", err)
		}
		q.Leave("greedy")
		q.Leave("greedy")
		q.Leave("other")
		q.Leave("greedy")
	})
}

// TestGiveUp: a caller whose context ends leaves its turn to the others.
func TestGiveUp(t *testing.T) {
	in(t, Config{Places: 1, Waiting: 8}, func(q *queue) {
		q.come("first")
		ctx, cancel := context.WithCancel(q.t.Context())
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- q.Enter(ctx, "second") }()
		synctest.Wait()
		q.come("third")
		q.want("first")
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that gave up: %v", err)
		}
		q.Leave("first")
		q.want("third")
		q.Leave("third")
	})
}

// TestManyCallers: whatever comes at the same time, no more callers are in than there are places, and none is
// forgotten.
func TestManyCallers(t *testing.T) {
	cfg := Config{Places: 4, Each: 3, Waiting: 1000}
	p := New[string](cfg)
	var all sync.WaitGroup
	places := make(chan struct{}, cfg.Places)
	for i := range 200 {
		owner := fmt.Sprint(i % 7)
		all.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(time.Millisecond))
				if err := p.Enter(ctx, owner); err == nil {
					select {
					case places <- struct{}{}:
						<-places
					default:
						t.Error("more callers are in than there are places")
					}
					p.Leave(owner)
				}
				cancel()
			}
		})
	}
	all.Wait()
	wantEmpty(t, p, cfg)
}
