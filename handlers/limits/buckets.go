package limits

import (
	"fmt"
	"math"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

const (
	// maxBuckets bounds the buckets of a limit. A bucket takes about 180 bytes, all take 12 MiB.
	maxBuckets = 1 << 16
	// sharedBuckets is the number of buckets for keys beyond maxBuckets. A bucket takes 80 bytes.
	sharedBuckets = 1 << 10
)

// buckets are the token buckets of one limit, by key.
//
// A bucket lives until it is full again: from then on, a new bucket is equal. Nothing evicts a bucket before that,
// so a client with an empty bucket can't get a new one by flooding the limit with other keys, and an account that owes
// tokens can't get rid of them by sending nothing for a few seconds. While there are maxBuckets buckets, a new key gets
// none: it takes from a shared bucket, or the limit does not count its requests.
type buckets[K comparable] struct {
	policy Policy
	clock  func() time.Time
	byKey  cache[K]
	shared []*rate.Limiter // empty: the limit does not count requests of keys without a bucket
	group  func(K) uint64  // selects one of shared; keys that are likely one client have the same group
}

// cache is an otter.Cache as an interface: a package that imports limits then does not compile otter's generic code
// once more.
type cache[K comparable] interface {
	GetIfPresent(K) (*rate.Limiter, bool)
	SetIfAbsent(K, *rate.Limiter) (*rate.Limiter, bool)
	EstimatedSize() int
	CleanUp()
	StopAllGoroutines() bool
}

// newBuckets returns the buckets of a limit, or nil, which counts nothing, if the policy has no rate.
// If group is nil, the limit has no shared buckets.
func newBuckets[K comparable](policy Policy, clock func() time.Time, group func(K) uint64) (*buckets[K], error) {
	if policy.Rate.Count == 0 {
		return nil, nil
	}
	b := &buckets[K]{policy: policy, clock: clock, group: group}
	var err error
	b.byKey, err = otter.New(&otter.Options[K, *rate.Limiter]{
		ExpiryCalculator: otter.ExpiryAccessingFunc(b.life),
		Clock:            cacheClock{clock, clock()},
	})
	if err != nil {
		return nil, fmt.Errorf("the limit by %s: %w", policy.Name, err)
	}
	if group != nil {
		b.shared = make([]*rate.Limiter, sharedBuckets)
		for i := range b.shared {
			b.shared[i] = b.newBucket()
		}
	}
	return b, nil
}

// life returns how long a bucket lives after an access: until it is full again, also if all its tokens are taken
// right after the access. The expiry after an access may be up to a second off, so a bucket lives two seconds longer.
func (b *buckets[K]) life(entry otter.Entry[K, *rate.Limiter]) time.Duration {
	owed := max(-entry.Value.TokensAt(b.clock()), 0)
	return b.policy.Rate.Per + time.Duration(owed/b.policy.Rate.perSecond()*float64(time.Second)) + 2*time.Second
}

// newBucket returns a full bucket.
func (b *buckets[K]) newBucket() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(b.policy.Rate.perSecond()), b.policy.Rate.Count)
}

// take takes a token from the bucket of a key. If the key has no bucket, take returns the zero
// Decision.
func (b *buckets[K]) take(key K) Decision {
	if b == nil {
		return Decision{}
	}
	return b.takeAbove(key, 0)
}

// takeAbove is take, but leaves a number of tokens in the bucket to others. A few more may be gone: other requests may
// take tokens at any moment. So Remaining and Next are hints, too.
func (b *buckets[K]) takeAbove(key K, reserve int) Decision {
	bucket := b.find(key)
	if bucket == nil {
		return Decision{}
	}
	now := b.clock()
	taken := (reserve == 0 || bucket.TokensAt(now) >= float64(reserve+1)) && bucket.AllowN(now, 1)
	return b.decide(!taken, bucket.TokensAt(now)-float64(reserve))
}

// peek refuses while fewer than a number of tokens are left in the bucket of a key. It takes none.
func (b *buckets[K]) peek(key K, least float64) Decision {
	if b == nil {
		return Decision{}
	}
	bucket := b.find(key)
	if bucket == nil {
		return Decision{}
	}
	left := bucket.TokensAt(b.clock())
	return b.decide(left < least, left)
}

// decide returns the decision on a bucket in which so many tokens are left.
func (b *buckets[K]) decide(refused bool, left float64) Decision {
	whole := math.Floor(left)
	return Decision{
		Policy:    &b.policy,
		Refused:   refused,
		Remaining: max(int(whole), 0),
		Next:      time.Duration((max(whole, 0) + 1 - left) / b.policy.Rate.perSecond() * float64(time.Second)),
	}
}

// giveBack puts a token back that take has taken.
func (b *buckets[K]) giveBack(key K) {
	if b == nil {
		return
	}
	if bucket := b.find(key); bucket != nil {
		bucket.AllowN(b.clock(), -1) // never more than a full bucket: the next take discards what is above
	}
}

// charge takes n tokens, also if the bucket has fewer, but no more than a full bucket has.
func (b *buckets[K]) charge(key K, n int) {
	if b == nil || n <= 0 {
		return
	}
	if bucket := b.find(key); bucket != nil {
		bucket.ReserveN(b.clock(), min(n, b.policy.Rate.Count))
		b.find(key) // this access extends the bucket's life by what the bucket owes now
	}
}

// find returns the bucket of a key, or nil if the key has none and there are no shared buckets.
func (b *buckets[K]) find(key K) *rate.Limiter {
	if bucket, known := b.byKey.GetIfPresent(key); known {
		return bucket
	}
	// Concurrent calls may all pass this check, so there may be a few more buckets: at most one for
	// each thread.
	if b.byKey.EstimatedSize() < maxBuckets {
		bucket, _ := b.byKey.SetIfAbsent(key, b.newBucket())
		return bucket
	}
	if len(b.shared) == 0 {
		return nil
	}
	return b.shared[b.group(key)%uint64(len(b.shared))]
}

func (b *buckets[K]) close() {
	if b != nil {
		b.byKey.StopAllGoroutines()
	}
}

// cacheClock makes a cache use the clock of its limit.
type cacheClock struct {
	now   func() time.Time
	began time.Time
}

// NowNano implements otter.Clock.
func (c cacheClock) NowNano() int64 { return int64(c.now().Sub(c.began)) }

// Tick implements otter.Clock. The cache removes expired entries at each tick, which only frees memory.
func (c cacheClock) Tick(d time.Duration) <-chan time.Time { return time.NewTicker(d).C }
