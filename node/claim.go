package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// Once identifies a request with an Idempotency-Key, whose effect happens once, however often the request is made.
type Once struct {
	Hash        string   // of the Idempotency-Key, 16 bytes
	Fingerprint [32]byte // of the request and the key; another request with the same key is refused
}

// Claim is the claim of a request to its Idempotency-Key, while the request is under way here. The transaction that
// has the request's effect also stores a licensing.Claim, the memory of the request. Every request takes the same
// steps:
//
//  1. BeginOnce refuses other requests with the same key at this node.
//  2. LoadWithClaim reads the claim that is stored under the key together with the records that the request needs,
//     and check decides: the request continues, was made before (Earlier), or must be refused.
//  3. Change adds the new claim to what the request writes.
//  4. One Commit stores both. If the Commit loses, another request was first with the key or with one of the
//     records, and the request continues from step 2.
//
// Requests differ in how they guard the other records meanwhile. A change of existing records has turns of its own in
// their mailboxes, and SwapTogetherOnce takes the steps. No other request knows a new record yet (an order, licenses,
// an API key), so its caller takes the steps by itself, each time with a new record.
type Claim struct {
	once   *Once // nil: the request came without an Idempotency-Key, and nothing is remembered
	ref    licensing.Ref
	stale  error           // why the request can't be made any more; nil: it can
	Effect licensing.Claim // the memory of the request, once it has succeeded
	// EffectOf returns Effect where it depends on the result of the command; nil: it does not.
	EffectOf func(licensing.Result) licensing.Claim

	// Set by check. While a turn has the claim, only the turn uses them.
	token   store.Token      // of the claim that is stored under the key
	Earlier *licensing.Claim // the memory of the same request, made before; nil: it was not
}

// openClaims are the claims of the requests under way at this node.
type openClaims struct {
	claimLock sync.Mutex
	claiming  map[licensing.Ref]struct{} // guarded by claimLock
}

// BeginOnce marks a request with an Idempotency-Key as under way here, until end. Requests on two nodes may still
// meet: then one of their Commits loses. BeginOnce fails with ErrRequestInProgress if a request with the key is
// under way here.
func (o *openClaims) BeginOnce(owner licensing.Owner, once *Once, stale error) (c *Claim, end func(), err error) {
	c = &Claim{once: once, stale: stale}
	if once == nil {
		return c, func() {}, nil
	}
	c.ref = licensing.ClaimRef(owner, once.Hash)
	o.claimLock.Lock()
	defer o.claimLock.Unlock()
	if _, busy := o.claiming[c.ref]; busy {
		return nil, nil, licensing.ErrRequestInProgress
	}
	o.claiming[c.ref] = struct{}{}
	return c, func() {
		o.claimLock.Lock()
		defer o.claimLock.Unlock()
		delete(o.claiming, c.ref)
	}, nil
}

// LoadWithClaim reads records and the claim that is stored under the key, in one round trip, and checks that claim.
func (s *runner) LoadWithClaim(ctx context.Context, c *Claim, wants ...store.Want) ([]store.Snapshot, error) {
	if wants = c.join(wants); len(wants) == 0 {
		return c.split(nil)
	}
	loaded, err := s.load(ctx, wants...)
	if err != nil {
		return nil, err
	}
	return c.split(loaded)
}

// join adds the claim that is stored under the key to what a request wants to know.
func (c *Claim) join(wants []store.Want) []store.Want {
	if c.once != nil {
		wants = append(wants, store.Want{Ref: c.ref})
	}
	return wants
}

// split returns the snapshots of the records, and checks the claim, whose snapshot is the last; see join.
func (c *Claim) split(loaded []store.Snapshot) ([]store.Snapshot, error) {
	if c.once == nil {
		return loaded, c.check(store.Snapshot{})
	}
	last := len(loaded) - 1
	return loaded[:last], c.check(loaded[last])
}

// check compares the request with the claim that is stored under its key. It fails if the request is stale, if
// another request has used the key, or if the same request was refused before. If the same request has succeeded
// before, or is under way, check sets Earlier, from which the caller answers.
func (c *Claim) check(stored store.Snapshot) error {
	c.token, c.Earlier = stored.Token, nil
	earlier := stored.Record.Claim
	switch {
	case earlier != nil && earlier.Fingerprint == c.once.Fingerprint:
		c.Earlier = earlier
		if earlier.Refusal != nil {
			return earlier.Refusal
		}
		return nil
	case c.stale != nil:
		return c.stale
	case earlier != nil:
		return licensing.ErrIdempotencyKeyReused
	}
	return nil
}

// Once reports whether the request came with an Idempotency-Key.
func (c *Claim) Once() bool { return c.once != nil }

// Replayed reports whether the answer is the answer of the same request, made before.
func (c *Claim) Replayed() bool { return c.Earlier != nil }

// Change returns what must be stored before a request is answered with err; nil if nothing must be. The store
// remembers a success together with its writes, and a final refusal alone. The store does not remember other
// failures: the same request may be made again.
func (c *Claim) Change(now time.Time, err error, writes ...store.Write) *store.Change {
	effect := c.Effect
	if err != nil {
		var refusal *licensing.Error
		if c.once == nil || !errors.As(err, &refusal) || !refusal.Final() {
			return nil
		}
		effect, writes = licensing.Claim{Refusal: refusal}, nil
	}
	if c.once != nil {
		effect.Fingerprint = c.once.Fingerprint
		if effect.CreatedAt.IsZero() {
			effect.CreatedAt = now
		}
		writes = append(writes, store.Write{Ref: c.ref, Token: c.token, Record: licensing.Record{Claim: &effect}})
	}
	return &store.Change{Writes: writes}
}

// CommitClaim stores the outcome of a request, and then returns err. If another request was first, CommitClaim
// stores nothing and returns ErrClaimTaken.
func (s *runner) CommitClaim(ctx context.Context, c *Claim, err error, writes ...store.Write) error {
	at, failed := s.timeOfTurn()
	if failed != nil {
		return failed
	}
	change := c.Change(at.now, err, writes...)
	if change == nil {
		return err
	}
	outcome, failed := s.commit(ctx, *change)
	switch {
	case failed != nil:
		return failed
	case !outcome.Landed:
		return store.ErrClaimTaken
	}
	return err
}

// CommitInTurn stores the outcome of a request, as CommitClaim does, in a turn of the mailbox of one of the
// records that the request writes: a record must not be in two Commits of one store at a time. A request
// that waited for its turn fails with ErrClaimTaken: most likely another request has changed the record.
func (n *Node) CommitInTurn(ctx context.Context, ref licensing.Ref, c *Claim, writes ...store.Write) error {
	commit := &call{kind: kindTask}
	commit.task = func(ctx context.Context) (licensing.Result, error) {
		if commit.waited {
			return licensing.Result{}, store.ErrClaimTaken
		}
		return licensing.Result{}, n.CommitClaim(ctx, c, nil, writes...)
	}
	_, err := n.doCall(ctx, ref, commit)
	return err
}
