package limits

import (
	"fmt"
	"math"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

const (
	// maxBuckets bounds the buckets of a limit: some 180 bytes each, 12 MiB in
	// all.
	maxBuckets = 1 << 16
	// sharedBuckets are for those whom there is no room for: 80 bytes each.
	sharedBuckets = 1 << 10
)

// buckets are the token buckets of one limit, by whom they count.
//
// A bucket is kept until it is full again, whatever comes meanwhile: then it
// says nothing that a new one would not. So whoever has used up a bucket can't
// get a fresh one by having others push it out. While there are as many as may
// be, newcomers are not given one. They share buckets, or are not counted.
type buckets[K comparable] struct {
	policy Policy
	clock  func() time.Time
	own    *otter.Cache[K, *rate.Limiter]
	shared []*rate.Limiter // empty: who has no bucket is not counted
	share  func(K) uint64  // says which of shared; the same for those that are likely one
}

// newBuckets makes the buckets of a limit, or gives nil, which counts nothing,
// where it is off. Without share, whom there is no room for is not counted.
func newBuckets[K comparable](policy Policy, clock func() time.Time, share func(K) uint64) (*buckets[K], error) {
	if policy.Rate.Count == 0 {
		return nil, nil
	}
	b := &buckets[K]{policy: policy, clock: clock, share: share}
	var err error
	b.own, err = otter.New(&otter.Options[K, *rate.Limiter]{
		// A read may leave the time as it is, if it would move by up to a second.
		ExpiryCalculator: otter.ExpiryAccessing[K, *rate.Limiter](policy.Rate.Per + 2*time.Second),
		Clock:            cacheClock{clock, clock()},
	})
	if err != nil {
		return nil, fmt.Errorf("the limit by %s: %w", policy.Name, err)
	}
	if share != nil {
		b.shared = make([]*rate.Limiter, sharedBuckets)
		for i := range b.shared {
			b.shared[i] = b.full()
		}
	}
	return b, nil
}

// full is a bucket that nothing was taken from.
func (b *buckets[K]) full() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(b.policy.Rate.perSecond()), b.policy.Rate.Count)
}

// take takes a token from a key's bucket, if there is one.
func (b *buckets[K]) take(key K) Count {
	if b == nil {
		return Count{}
	}
	bucket := b.of(key)
	if bucket == nil {
		return Count{}
	}
	now := b.clock()
	taken := bucket.AllowN(now, 1)
	// Others may take between the two: what is told is a hint.
	left := bucket.TokensAt(now)
	whole := math.Floor(left)
	return Count{
		Policy:    &b.policy,
		Refused:   !taken,
		Remaining: int(whole),
		Next:      time.Duration((whole + 1 - left) / b.policy.Rate.perSecond() * float64(time.Second)),
	}
}

// of finds the bucket that counts a key; nil: none does.
func (b *buckets[K]) of(key K) *rate.Limiter {
	if bucket, known := b.own.GetIfPresent(key); known {
		return bucket
	}
	// Those that come in the same moment may all pass: as many more as there are
	// threads.
	if b.own.EstimatedSize() < maxBuckets {
		bucket, _ := b.own.SetIfAbsent(key, b.full())
		return bucket
	}
	if len(b.shared) == 0 {
		return nil
	}
	return b.shared[b.share(key)%uint64(len(b.shared))]
}

func (b *buckets[K]) close() {
	if b != nil {
		b.own.StopAllGoroutines()
	}
}

// cacheClock lets a cache go by the clock of its limit.
type cacheClock struct {
	now   func() time.Time
	began time.Time
}

// NowNano implements otter.Clock.
func (c cacheClock) NowNano() int64 { return int64(c.now().Sub(c.began)) }

// Tick implements otter.Clock. It says when to look for what has expired, which
// is a matter of memory alone.
func (c cacheClock) Tick(d time.Duration) <-chan time.Time { return time.NewTicker(d).C }
