package limits

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is set by hand.
type clock struct{ nanos atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Unix(1_900_000_000, c.nanos.Load()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

func newLimits(t testing.TB, cfg Config) (*Limits, *clock) {
	t.Helper()
	c := &clock{}
	cfg.Clock = c.Now
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, c
}

var perMinute = Rate{Count: 60, Per: time.Minute}

// client is one of many addresses: each is in a /64 of its own, all are in the
// /32 that first names.
func client(first uint32, i int) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint32(b[:], first)
	binary.BigEndian.PutUint32(b[4:], uint32(i))
	b[15] = 1
	return netip.AddrFrom16(b)
}

const provider = 0x20010db8

func (c Count) String() string {
	return fmt.Sprintf("refused %v, %d remain, next in %v", c.Refused, c.Remaining, c.Next)
}

func TestBucket(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{APIKey: Rate{Count: 3, Per: 6 * time.Second}})
	for i, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "refused false, 2 remain, next in 2s"},
		{0, "refused false, 1 remain, next in 2s"},
		{0, "refused false, 0 remain, next in 2s"},
		{0, "refused true, 0 remain, next in 2s"},
		{500 * time.Millisecond, "refused true, 0 remain, next in 1.5s"},
		{1500 * time.Millisecond, "refused false, 0 remain, next in 2s"},
		{0, "refused true, 0 remain, next in 2s"},
		{5 * time.Second, "refused false, 1 remain, next in 1s"},
		{time.Hour, "refused false, 2 remain, next in 2s"},
	} {
		clock.advance(step.after)
		if got := l.APIKey([32]byte{1}).String(); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	if got := l.APIKey([32]byte{2}); got.Refused || got.Remaining != 2 || got.Policy.Name != NameAPIKey || got.Policy.Rate.Count != 3 {
		t.Errorf("another key: %v of %v", got, got.Policy)
	}
}

func TestOff(t *testing.T) {
	t.Parallel()
	made, _ := newLimits(t, Config{})
	for _, l := range []*Limits{made, {}} {
		for _, c := range []Count{l.Address(netip.Addr{}), l.APIKey([32]byte{1}), l.License("LIC-x")} {
			if c != (Count{}) {
				t.Errorf("it was counted: %v", c)
			}
		}
		l.Close()
	}
}

// TestNothingIsGivenTwice lets many ask at the same moment.
func TestNothingIsGivenTwice(t *testing.T) {
	t.Parallel()
	l, _ := newLimits(t, Config{License: Rate{Count: 100, Per: time.Minute}})
	var through atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 50 {
				if !l.License("LIC-x").Refused {
					through.Add(1)
				}
			}
		})
	}
	group.Wait()
	if got := through.Load(); got != 100 {
		t.Errorf("%d came through, want 100", got)
	}
}

// TestMillionAddresses is a guesser who has a million addresses: memory stays
// bounded, who has used up a bucket does not get a new one by that, and who
// comes from elsewhere is not hurt.
func TestMillionAddresses(t *testing.T) {
	l, clock := newLimits(t, Config{Address: perMinute})
	before := heap()
	guesser := client(provider, 1<<30)
	for range perMinute.Count {
		l.Address(guesser)
	}
	refused := 0
	for i := range 1_000_000 {
		if l.Address(client(provider, i)).Refused {
			refused++
		}
	}
	if got := l.address.own.EstimatedSize(); got > maxBuckets {
		t.Errorf("there are %d buckets, want at most %d", got, maxBuckets)
	}
	const bound = 16 << 20
	if grown := heap() - before; grown > bound {
		t.Errorf("they take %d bytes, want at most %d", grown, bound)
	}
	if got := l.Address(guesser); !got.Refused {
		t.Errorf("who had used up its bucket got a new one: %v", got)
	}
	// All that had no bucket of their own have shared one.
	if want := 1_000_000 - (maxBuckets - 1) - perMinute.Count; refused != want {
		t.Errorf("%d were refused, want %d", refused, want)
	}
	if got := l.Address(client(provider, 2_000_000)); !got.Refused {
		t.Errorf("one more of the same network: %v", got)
	}
	free := 0
	const others = 100
	for i := range others {
		if !l.Address(client(uint32(0x2a000000+i), 0)).Refused {
			free++
		}
	}
	// By chance one of them may share that bucket.
	if free < others-3 {
		t.Errorf("of %d from other networks %d are refused", others, others-free)
	}

	// What is full again is dropped. The one that is counted meanwhile stays.
	clock.advance(perMinute.Per + 3*time.Second)
	l.address.own.CleanUp()
	if got := l.address.own.EstimatedSize(); got != 0 {
		t.Errorf("%d buckets are left that say nothing", got)
	}
	if got := l.Address(guesser); got.Remaining != perMinute.Count-1 {
		t.Errorf("a minute later: %v", got)
	}
}

// heap is what is in use.
func heap() int64 {
	var m runtime.MemStats
	for range 3 { // what was let go by finalizers and pools takes a second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestEmptyBucketIsKept: a bucket that says something is there as long as it does.
func TestEmptyBucketIsKept(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{Address: perMinute})
	for range perMinute.Count {
		l.Address(client(provider, 1))
	}
	clock.advance(perMinute.Per - time.Second)
	l.address.own.CleanUp()
	if got := l.Address(client(provider, 1)); got.Remaining != perMinute.Count-2 {
		t.Errorf("after 59 s: %v", got)
	}
}

// TestLicensesBeyond: with more licenses than there are buckets, those that
// have one are held to it, and no others.
func TestLicensesBeyond(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{License: Rate{Count: 1, Per: time.Minute}})
	for i := range maxBuckets {
		l.License(fmt.Sprint(i))
	}
	if got := l.License("7"); !got.Refused {
		t.Errorf("one that has a bucket: %v", got)
	}
	for range 2 {
		if got := l.License("another"); got != (Count{}) {
			t.Errorf("one that has none: %v", got)
		}
	}
	clock.advance(2 * time.Minute)
	l.license.own.CleanUp()
	if got := l.License("another"); got.Policy == nil {
		t.Error("it is not counted although there is room")
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	on, _ := newLimits(t, Config{Address: perMinute, License: perMinute})
	off := new(Limits)
	key, addr := "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1", client(provider, 1)
	on.License(key)
	on.Address(addr)
	for name, f := range map[string]func(){
		"off":            func() { off.License(key) },
		"a license":      func() { on.License(key) },
		"a full address": func() { on.Address(addr) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for of, want := range map[string]string{
		"192.0.2.7":             "192.0.2.7",
		"::ffff:192.0.2.7":      "192.0.2.7",
		"2001:db8:1:2:3:4:5:6":  "2001:db8:1:2::",
		"2001:db8:1:2:ffff::1":  "2001:db8:1:2::",
		"2001:db8:1:3::1":       "2001:db8:1:3::",
		"fe80::1%eth0":          "fe80::",
		"::1":                   "::",
		"64:ff9b::192.0.2.7":    "64:ff9b::",
		"::ffff:0:0":            "0.0.0.0",
		"2001:db8::192.0.2.255": "2001:db8::",
	} {
		if got := Network(netip.MustParseAddr(of)); got != netip.MustParseAddr(want) {
			t.Errorf("%s counts as %v, want %s", of, got, want)
		}
	}
	if got := Network(netip.Addr{}); got.IsValid() {
		t.Errorf("no address counts as %v", got)
	}
}

func BenchmarkLicense(b *testing.B) {
	l, err := New(Config{License: Rate{Count: maxCount, Per: time.Second}, Clock: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		l.License("LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1")
	}
}
