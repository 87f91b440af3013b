package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"licet/kv/internal/etcd"
	"licet/licensing"
	"licet/metrics/guard"
)

// putting returns an item that compares and writes keys.
func putting(keys ...string) *batchItem {
	p := &batchItem{}
	for _, key := range keys {
		p.compares = append(p.compares, etcd.Unchanged([]byte(key), 0))
		p.then = append(p.then, etcd.Put([]byte(key), []byte("value")))
		p.reads = append(p.reads, []byte(key))
	}
	return p
}

// reading returns an item that compares and writes one key, and also reads other keys if the compare fails.
func reading(key string, reads ...string) *batchItem {
	p := putting(key)
	for _, read := range reads {
		p.reads = append(p.reads, []byte(read))
	}
	return p
}

// comparing returns an item that writes one key, and compares other keys that it does not read. The payment of an order
// that issues a license is such an item.
func comparing(key string, compared ...string) *batchItem {
	p := putting(key)
	for _, other := range compared {
		p.compares = append(p.compares, etcd.Unchanged([]byte(other), 0))
	}
	return p
}

func many(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(prefix, i)
	}
	return keys
}

// TestBatchRules takes batch after batch from the waiting items, and checks which items share a batch.
func TestBatchRules(t *testing.T) {
	big := func(key string) *batchItem {
		p := putting(key)
		p.bytes = maxBatchBytes/2 + 1
		return p
	}
	abandoned := func(p *batchItem) *batchItem {
		p.gone = true
		return p
	}
	singles := func(n int) []*batchItem {
		var parts []*batchItem
		for _, key := range many("k", n) {
			parts = append(parts, putting(key))
		}
		return parts
	}
	for _, c := range []struct {
		name    string
		shared  bool // items with common keys may share a batch, as reads may
		waiting []*batchItem
		want    []int // the sizes of the batches, in order
	}{
		{"nothing", false, nil, nil},
		{"others travel together", false, []*batchItem{putting("a"), putting("b"), putting("c")}, []int{3}},
		{"whose caller has gone stays behind", false, []*batchItem{abandoned(putting("a")), putting("b")}, []int{1}},
		{"two writers of a key", false, []*batchItem{putting("a"), putting("a")}, []int{1, 1}},
		{"a third one passes", false, []*batchItem{putting("a"), putting("a"), putting("b")}, []int{2, 1}},
		{"one reads what the other writes", false, []*batchItem{putting("a"), reading("b", "a")}, []int{1, 1}},
		{"one writes what the other reads", false, []*batchItem{reading("b", "a"), putting("a")}, []int{1, 1}},
		{"one compares what the other writes", false, []*batchItem{putting("a"), comparing("b", "a")}, []int{1, 1}},
		{"one writes what the other compares", false, []*batchItem{comparing("b", "a"), putting("a")}, []int{1, 1}},
		{"two read a key", false, []*batchItem{reading("a", "c"), reading("b", "c")}, []int{2}},
		{"reads meet no writes", true, []*batchItem{reading("a", "c"), reading("a", "c")}, []int{2}},
		// Two compares of fences may stand before them.
		{"singles", false, singles(200), []int{etcd.MaxOps - fenceOps, 200 - (etcd.MaxOps - fenceOps)}},
		{"nesting counts the children and the widest", true, singles(200), []int{127, 73}},
		{"operations", false, []*batchItem{putting(many("a", 31)...), putting(many("b", 31)...),
			putting(many("c", 31)...), putting(many("d", 31)...), putting(many("e", 5)...), putting("f")}, []int{5, 1}},
		{"a hot record travels alone", false, []*batchItem{putting("a"), putting(many("h", hotOps)...), putting("b")},
			[]int{2, 1}},
		{"a hot record comes first", false, []*batchItem{putting(many("h", hotOps)...), putting("a"), putting("b")},
			[]int{1, 2}},
		{"bytes", false, []*batchItem{big("a"), putting("c"), big("b")}, []int{2, 1}},
		{"more than fits goes alone, to be refused by etcd", false,
			[]*batchItem{putting(many("h", etcd.MaxOps+1)...), putting("a")}, []int{1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &batcher{apart: !c.shared, waiting: slices.Clone(c.waiting)}
			for _, p := range l.waiting {
				l.ops += p.ops()
			}
			packer := newPacker(l.apart)
			var got []int
			boarded := map[*batchItem]bool{}
			for batch := l.nextBatch(packer); len(batch) > 0; batch = l.nextBatch(packer) {
				got = append(got, len(batch))
				for _, p := range batch {
					if boarded[p] || p.gone {
						t.Fatal("an item was sent twice, or after its caller had gone")
					}
					boarded[p] = true
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("batches of %v, want %v", got, c.want)
			}
			if len(l.waiting) != 0 || l.ops != 0 {
				t.Errorf("%d items with %d operations are left", len(l.waiting), l.ops)
			}
		})
	}
}

// TestBatcherGrowsByItself: the first item is sent at once and alone. The items that come while it is under way are
// sent together.
func TestBatcherGrowsByItself(t *testing.T) {
	sent, back := make(chan int), make(chan struct{})
	l := &batcher{few: 1, most: 1, apart: true, send: func(batch []*batchItem) {
		sent <- len(batch)
		<-back
		for _, p := range batch {
			p.answer(reply{succeeded: true})
		}
	}}
	var group sync.WaitGroup
	do := func(key string) {
		group.Go(func() {
			if r, sent := l.do(t.Context(), putting(key)); !sent || !r.succeeded {
				t.Errorf("%s: %+v, sent %v", key, r, sent)
			}
		})
	}
	do("first")
	if got := <-sent; got != 1 {
		t.Fatalf("the first item was sent among %d", got)
	}
	const later = 50
	for _, key := range many("later", later) {
		do(key)
	}
	awaitWaiting(t, l, later)
	back <- struct{}{}
	if got := <-sent; got != later {
		t.Errorf("then %d left together, want %d", got, later)
	}
	back <- struct{}{}
	group.Wait()
}

// awaitWaiting returns when n items wait.
func awaitWaiting(t *testing.T, l *batcher, n int) {
	t.Helper()
	awaitBatcher(t, l, fmt.Sprint(n, " wait"), func() bool { return len(l.waiting) >= n })
}

// awaitIdle returns when no request is under way. The last callers have their answers shortly before.
func awaitIdle(t *testing.T, l *batcher) {
	t.Helper()
	awaitBatcher(t, l, "nothing is under way", func() bool { return l.dispatching == 0 })
}

// awaitBatcher waits until is reports true of the batcher.
func awaitBatcher(t *testing.T, l *batcher, want string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Microsecond) {
		l.mu.Lock()
		got, flying, waiting := is(), l.dispatching, len(l.waiting)
		l.mu.Unlock()
		if got {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d requests are under way and %d items wait; want that %s", flying, waiting, want)
		}
	}
}

// TestBatcherFlights: a few requests are under way at a time, and more only if the waiting items fill them.
func TestBatcherFlights(t *testing.T) {
	const few, most = 2, 4
	flying, back := make(chan []*batchItem, 100), make(chan struct{})
	l := &batcher{few: few, most: most, apart: true, send: func(batch []*batchItem) {
		flying <- batch
		<-back
		for _, p := range batch {
			p.answer(reply{succeeded: true})
		}
	}}
	var group sync.WaitGroup
	count := 0
	come := func(n int) {
		for range n {
			count++
			key := fmt.Sprint("key ", count)
			group.Go(func() { l.do(t.Context(), putting(key)) })
		}
	}
	none := func(when string) {
		t.Helper()
		select {
		case batch := <-flying:
			t.Fatalf("%s: a request of %d was sent", when, len(batch))
		default:
		}
	}
	for range few {
		come(1) // one after the other, or the second might leave with the first
		if batch := <-flying; len(batch) != 1 {
			t.Fatalf("%d left together, while requests were free", len(batch))
		}
	}
	come(etcd.MaxOps - 1)
	awaitWaiting(t, l, etcd.MaxOps-1)
	none("what waits does not fill a request")
	come(1)
	if batch := <-flying; len(batch) != etcd.MaxOps-fenceOps {
		t.Errorf("%d left together, want %d", len(batch), etcd.MaxOps-fenceOps)
	}
	come(3 * etcd.MaxOps)
	if batch := <-flying; len(batch) != etcd.MaxOps-fenceOps {
		t.Errorf("then %d left together, want %d", len(batch), etcd.MaxOps-fenceOps)
	}
	awaitWaiting(t, l, 2*etcd.MaxOps)
	none("the most are under way")
	close(back)
	group.Wait()
	awaitIdle(t, l)
	if l.ops != 0 || len(l.waiting) != 0 {
		t.Errorf("in the end %d items wait with %d operations", len(l.waiting), l.ops)
	}
}

// TestBatcherGiveUp: if a caller gives up before its item was sent, the item is never sent. If the item is under way,
// the outcome is unknown.
func TestBatcherGiveUp(t *testing.T) {
	flying, back := make(chan []*batchItem), make(chan struct{})
	l := &batcher{few: 1, most: 1, apart: true, send: func(batch []*batchItem) {
		flying <- batch
		<-back
		for _, p := range batch {
			p.answer(reply{succeeded: true})
		}
	}}
	type end struct {
		r    reply
		sent bool
	}
	run := func(key string) (context.CancelFunc, chan end) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan end, 1)
		go func() {
			r, sent := l.do(ctx, putting(key))
			ended <- end{r, sent}
		}()
		return cancel, ended
	}
	giveUpFlying, endFlying := run("under way")
	<-flying
	giveUpWaiting, endWaiting := run("waiting")
	awaitWaiting(t, l, 1)
	giveUpWaiting()
	if e := <-endWaiting; e.sent || !errors.Is(e.r.err, context.Canceled) {
		t.Errorf("the waiting item: %+v", e)
	}
	giveUpFlying()
	if e := <-endFlying; !e.sent || !errors.Is(e.r.err, context.Canceled) {
		t.Errorf("the item under way: %+v", e)
	}
	_, endLast := run("last")
	back <- struct{}{}
	if batch := <-flying; len(batch) != 1 || !strings.HasPrefix(string(etcd.WrittenKey(batch[0].then[0])), "last") {
		t.Error("an item was sent although its caller gave up")
	}
	back <- struct{}{}
	<-endLast
}

// TestBatcherFull: a full batcher refuses the next item at once.
func TestBatcherFull(t *testing.T) {
	l := &batcher{few: 0, most: 0, waiting: make([]*batchItem, maxWaiting)}
	r, sent := l.do(t.Context(), putting("a"))
	if sent || !errors.Is(r.err, licensing.ErrOverloaded) {
		t.Errorf("got %+v, sent %v", r, sent)
	}
}

// TestBatcherPanics: after a panic in the goroutine that sends, all waiting items are answered, and the batcher sends
// again.
func TestBatcherPanics(t *testing.T) {
	t.Parallel()
	flying, back := make(chan struct{}), make(chan bool)
	l := &batcher{few: 1, most: 1, apart: true, guard: guard.New(nil, zerolog.Nop()), send: func(batch []*batchItem) {
		flying <- struct{}{}
		panics := <-back
		for _, p := range batch {
			p.answer(reply{succeeded: true})
		}
		if panics {
			panic("a bug")
		}
	}}
	do := func(key string) <-chan reply {
		done := make(chan reply, 1)
		go func() {
			r, _ := l.do(t.Context(), putting(key))
			done <- r
		}()
		return done
	}
	first := do("first")
	<-flying
	waiting := do("waiting")
	awaitWaiting(t, l, 1)
	back <- true
	if r := <-first; !r.succeeded {
		t.Errorf("the item that was answered before the panic: %+v", r)
	}
	if r := <-waiting; !errors.Is(r.err, errPanicked) {
		t.Errorf("a waiting item: %+v", r)
	}
	awaitIdle(t, l)
	last := do("last")
	<-flying
	back <- false
	if r := <-last; !r.succeeded {
		t.Errorf("a later item: %+v", r)
	}
}
