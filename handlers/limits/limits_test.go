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

	"licet/licensing"
)

// clock is a clock that tests advance.
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

var acme = licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}

// client returns address i of the /32 whose first four bytes are first. Each address has its own /64.
func client(first uint32, i int) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint32(b[:], first)
	binary.BigEndian.PutUint32(b[4:], uint32(i))
	b[15] = 1
	return netip.AddrFrom16(b)
}

const provider = 0x20010db8

func (d Decision) String() string {
	return fmt.Sprintf("refused %v, %d remain, next in %v", d.Refused, d.Remaining, d.Next)
}

func TestBucket(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{Account: Rate{Count: 3, Per: 6 * time.Second}})
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
		if got := l.Account(acme).String(); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	if got := l.Account(licensing.Owner{AccountID: acme.AccountID, Mode: licensing.Live}); got.Refused ||
		got.Remaining != 2 || got.Policy.Name != NameAccount || got.Policy.Rate.Count != 3 {
		t.Errorf("the other mode: %v of %v", got, got.Policy)
	}
}

// TestAccountCost: a request that costs more takes more tokens, also if the bucket has fewer.
func TestAccountCost(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{Account: Rate{Count: 10, Per: 10 * time.Second}})
	for i, step := range []struct {
		after time.Duration
		cost  int
		want  string
	}{
		{0, -1, "refused false, 9 remain, next in 1s"},
		{0, 3, "refused false, 8 remain, next in 1s"},
		{0, 7, "refused false, 4 remain, next in 1s"},
		{0, 0, "refused true, 0 remain, next in 4s"}, // 3 tokens short
		{3 * time.Second, 0, "refused true, 0 remain, next in 1s"},
		{time.Second, 1_000_000, "refused false, 0 remain, next in 1s"}, // a full bucket at most
		{10 * time.Second, 0, "refused true, 0 remain, next in 1s"},
		{time.Second, 0, "refused false, 0 remain, next in 1s"},
	} {
		clock.advance(step.after)
		got := l.Account(acme)
		if got.String() != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
		if !got.Refused {
			l.AccountCost(acme, step.cost)
		}
	}
	if got := l.Account(licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}); got.Remaining != 9 {
		t.Errorf("another account: %s", got)
	}
}

// TestDebtOutlivesIdleTime: an account that owes many times the tokens of a bucket does not get rid of them by sending
// nothing for a few seconds.
func TestDebtOutlivesIdleTime(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{Account: Rate{Count: 500, Per: time.Second}})
	l.Account(acme)
	for range 100 { // many requests at the same time
		l.AccountCost(acme, 500)
	}
	for range 9 {
		clock.advance(11 * time.Second)
		if got := l.Account(acme); !got.Refused {
			t.Fatalf("while the account owes tokens: %s", got)
		}
	}
	clock.advance(time.Second)
	if got := l.Account(acme); got.Refused {
		t.Errorf("when the account owes none: %s", got)
	}
}

// TestAuthentication: attempts that succeed count for nothing. Failures without a look-up leave half of the limit to
// attempts with one.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{Authentication: Rate{Count: 4, Per: 40 * time.Second}})
	network, other := client(provider, 1), client(provider, 2)
	want := func(what string, got Decision, want string) {
		t.Helper()
		if got.String() != want || got.Policy.Name != NameAuthentication {
			t.Errorf("%s: %s of %q, want %s", what, got, got.Policy.Name, want)
		}
	}
	for range 3 {
		for i := range 4 {
			want("an attempt", l.Attempt(network), fmt.Sprintf("refused false, %d remain, next in 10s", 3-i))
		}
		want("one attempt too many", l.Attempt(network), "refused true, 0 remain, next in 10s")
		for range 6 { // two more than there were
			l.AttemptSucceeded(network)
		}
	}
	want("a failure", l.FailedAuthentication(network), "refused false, 1 remain, next in 10s")
	want("another failure", l.FailedAuthentication(network), "refused false, 0 remain, next in 10s")
	want("one failure too many", l.FailedAuthentication(network), "refused true, 0 remain, next in 10s")
	want("an attempt among failures", l.Attempt(network), "refused false, 1 remain, next in 10s")
	want("a failure among attempts", l.FailedAuthentication(network), "refused true, 0 remain, next in 20s")
	want("an attempt from elsewhere", l.Attempt(other), "refused false, 3 remain, next in 10s")
	clock.advance(20 * time.Second)
	want("a failure later", l.FailedAuthentication(network), "refused false, 0 remain, next in 10s")
}

// TestDocument: a document may be longer than the rest of the limit, and its network then waits until it owes nothing.
func TestDocument(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{DocumentBytes: Rate{Count: 1000, Per: 10 * time.Second}})
	network, neighbor, other := netip.MustParseAddr("2001:db8:1:2::3"), netip.MustParseAddr("2001:db8:1:fff0::1"),
		netip.MustParseAddr("2001:db8:2:2::3")
	for i, step := range []struct {
		after time.Duration
		of    netip.Addr
		bytes int
		want  string
	}{
		{0, network, 900, "refused false, 1000 remain, next in 10ms"},
		{0, neighbor, 900, "refused false, 100 remain, next in 10ms"}, // of the same /48
		{0, network, 1, "refused true, 0 remain, next in 8.01s"},
		{0, network, 65_537, "refused false, 1000 remain, next in 10ms"}, // long documents count apart
		{0, neighbor, 65_537, "refused false, 0 remain, next in 10ms"},
		{0, network, 65_537, "refused true, 0 remain, next in 10.01s"},
		{0, other, 65_536, "refused false, 1000 remain, next in 10ms"}, // a full bucket at most
		{7900 * time.Millisecond, network, 1, "refused true, 0 remain, next in 110ms"},
		{100 * time.Millisecond, network, 1, "refused false, 0 remain, next in 10ms"},
		{0, other, 1, "refused false, 800 remain, next in 10ms"},
	} {
		clock.advance(step.after)
		if got := l.Document(step.of, step.bytes); got.String() != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}

func TestOff(t *testing.T) {
	t.Parallel()
	made, _ := newLimits(t, Config{})
	for _, l := range []*Limits{made, {}} {
		for _, d := range []Decision{l.Address(netip.Addr{}), l.Account(acme), l.Attempt(netip.Addr{}),
			l.FailedAuthentication(netip.Addr{}), l.License("LIC-x"), l.Document(netip.Addr{}, 1)} {
			if d != (Decision{}) {
				t.Errorf("a limit that is off counted a request: %v", d)
			}
		}
		l.AttemptSucceeded(netip.Addr{})
		l.Close()
	}
}

// TestConcurrentRequests: concurrent requests get exactly the tokens of the bucket.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	l, _ := newLimits(t, Config{License: Rate{Count: 100, Per: time.Minute}})
	var accepted atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 50 {
				if !l.License("LIC-x").Refused {
					accepted.Add(1)
				}
			}
		})
	}
	group.Wait()
	if got := accepted.Load(); got != 100 {
		t.Errorf("%d requests were accepted, want 100", got)
	}
}

// TestMillionAddresses: an attacker guesses license keys from a million addresses. Memory stays bounded,
// an address with an empty bucket does not get a new one, and clients of other networks are unaffected.
func TestMillionAddresses(t *testing.T) {
	l, clock := newLimits(t, Config{Address: perMinute})
	before := heap()
	attacker := client(provider, 1<<30)
	for range perMinute.Count {
		l.Address(attacker)
	}
	refused := 0
	for i := range 1_000_000 {
		if l.Address(client(provider, i)).Refused {
			refused++
		}
	}
	if got := l.address.byKey.EstimatedSize(); got > maxBuckets {
		t.Errorf("there are %d buckets, want at most %d", got, maxBuckets)
	}
	const bound = 16 << 20
	if grown := heap() - before; grown > bound {
		t.Errorf("the buckets take %d bytes, want at most %d", grown, bound)
	}
	if got := l.Address(attacker); !got.Refused {
		t.Errorf("an address with an empty bucket got a new one: %v", got)
	}
	// All addresses without a bucket have shared one.
	if want := 1_000_000 - (maxBuckets - 1) - perMinute.Count; refused != want {
		t.Errorf("%d were refused, want %d", refused, want)
	}
	if got := l.Address(client(provider, 2_000_000)); !got.Refused {
		t.Errorf("another address of the same network: %v", got)
	}
	free := 0
	const others = 100
	for i := range others {
		if !l.Address(client(uint32(0x2a000000+i), 0)).Refused {
			free++
		}
	}
	// A few may share that bucket by chance.
	if free < others-3 {
		t.Errorf("of %d from other networks %d are refused", others, others-free)
	}

	// Full buckets expire.
	clock.advance(perMinute.Per + 3*time.Second)
	l.address.byKey.CleanUp()
	if got := l.address.byKey.EstimatedSize(); got != 0 {
		t.Errorf("%d full buckets are left", got)
	}
	if got := l.Address(attacker); got.Remaining != perMinute.Count-1 {
		t.Errorf("a minute later: %v", got)
	}
}

// heap returns the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	for range 3 { // pools and finalizers free their memory with the second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestEmptyBucketIsKept: a bucket lives until it is full again.
func TestEmptyBucketIsKept(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{Address: perMinute})
	for range perMinute.Count {
		l.Address(client(provider, 1))
	}
	clock.advance(perMinute.Per - time.Second)
	l.address.byKey.CleanUp()
	if got := l.Address(client(provider, 1)); got.Remaining != perMinute.Count-2 {
		t.Errorf("after 59 s: %v", got)
	}
}

// TestLicensesBeyond: with more licenses than buckets, the limit applies to the licenses that have a
// bucket, and to no others.
func TestLicensesBeyond(t *testing.T) {
	t.Parallel()
	l, clock := newLimits(t, Config{License: Rate{Count: 1, Per: time.Minute}})
	for i := range maxBuckets {
		l.License(fmt.Sprint(i))
	}
	if got := l.License("7"); !got.Refused {
		t.Errorf("a license with a bucket: %v", got)
	}
	for range 2 {
		if got := l.License("another"); got != (Decision{}) {
			t.Errorf("a license without a bucket: %v", got)
		}
	}
	clock.advance(2 * time.Minute)
	l.license.byKey.CleanUp()
	if got := l.License("another"); got.Policy == nil {
		t.Error("the limit does not count a license although it has room")
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
