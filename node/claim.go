package node

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// Once makes something happen once, however often it is asked for: it carries
// what an Idempotency-Key and its request boil down to.
type Once struct {
	Hash        string   // of the Idempotency-Key, 16 bytes
	Fingerprint [32]byte // of the request, made with the key: another one under the same key is refused
}

// Claim is the claim of a request to its Idempotency-Key, while the request is
// worked on here. What is left of it afterwards is a licensing.Claim, which is stored
// in the transaction that has the effect. Every request takes the same steps:
//
//  1. BeginOnce keeps others with the same key off, at this node.
//  2. What is stored under the key is read along with the records that the request
//     needs, and judge says what follows: the request goes on, it was made before
//     (Earlier), or it must not be made.
//  3. Change adds to what the request writes what is to be remembered of it.
//  4. One Commit stores both. Where it loses, somebody else was first with the key
//     or with one of the records, and it goes on from 2.
//
// What differs is who guards the other records meanwhile. A change of a record that
// is there is a turn of its own in the record's mailbox (settleClaim). What is made
// anew (an order, licenses, an API key) is nobody else's yet, so its caller goes
// through the steps by itself, each time with a new one.
type Claim struct {
	once   *Once // nil: the request came without an Idempotency-Key, and nothing is remembered
	ref    licensing.Ref
	stale  error           // why the request can't be made any more; nil: it can
	Effect licensing.Claim // what to remember once the request has succeeded

	// Set by judge; while a turn has the claim, the turn's alone.
	token   store.Token      // of what is stored under the key
	Earlier *licensing.Claim // what came of the same request before; nil: nothing
}

// BeginOnce marks a request with an Idempotency-Key as being worked on here, until end.
// Two nodes may still meet: then the store tells who was first.
func (n *Node) BeginOnce(owner licensing.Owner, once *Once, stale error) (c *Claim, end func(), err error) {
	c = &Claim{once: once, stale: stale}
	if once == nil {
		return c, func() {}, nil
	}
	c.ref = licensing.ClaimRef(owner, once.Hash)
	n.claimLock.Lock()
	defer n.claimLock.Unlock()
	if _, busy := n.claiming[c.ref]; busy {
		return nil, nil, licensing.ErrRequestInProgress
	}
	n.claiming[c.ref] = struct{}{}
	return c, func() {
		n.claimLock.Lock()
		defer n.claimLock.Unlock()
		delete(n.claiming, c.ref)
	}, nil
}

// LoadWithClaim reads records and what is stored under the key, in one round trip,
// and judges that.
func (n *Node) LoadWithClaim(ctx context.Context, c *Claim, wants ...store.Want) ([]store.Snapshot, error) {
	if c.once != nil {
		wants = append(wants, store.Want{Ref: c.ref})
	}
	if len(wants) == 0 {
		return nil, c.judge(store.Snapshot{}, n.Now())
	}
	loaded, err := n.cfg.Records.Load(ctx, wants...)
	if err != nil {
		return nil, err
	}
	var stored store.Snapshot
	if c.once != nil {
		last := len(loaded) - 1
		loaded, stored = loaded[:last], loaded[last]
	}
	return loaded, c.judge(stored, n.Now())
}

// judge takes in what is stored under the key. Its error ends the request: it is
// stale, its key is another request's, or it was refused before. Where the request
// has succeeded before, or is under way, that is Earlier, and the caller's to answer.
func (c *Claim) judge(stored store.Snapshot, now time.Time) error {
	c.token, c.Earlier = stored.Token, nil
	earlier := stored.Record.Claim
	known := earlier != nil && earlier.Live(now)
	switch {
	case known && earlier.Fingerprint == c.once.Fingerprint:
		c.Earlier = earlier
		if earlier.Refusal != nil {
			return earlier.Refusal
		}
		return nil
	case c.stale != nil:
		return c.stale
	case known:
		return licensing.ErrIdempotencyKeyReused
	}
	return nil
}

// Once reports whether the request came with an Idempotency-Key.
func (c *Claim) Once() bool { return c.once != nil }

// Replayed reports that the answer is that of the same request before.
func (c *Claim) Replayed() bool { return c.Earlier != nil }

// Change makes of what a request comes to what is to be stored before it is answered
// with err; nil where that is nothing. A success is remembered along with what it
// writes, and so is a refusal for good, of which nothing else is stored. Other
// failures are not: the same request may try again.
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

// CommitClaim stores what a request comes to, and answers err once that is done;
// where somebody else was first, nothing is stored and it answers ErrClaimTaken.
func (n *Node) CommitClaim(ctx context.Context, c *Claim, err error, writes ...store.Write) error {
	change := c.Change(n.Now(), err, writes...)
	if change == nil {
		return err
	}
	outcome, failed := n.cfg.Records.Commit(ctx, *change)
	switch {
	case failed != nil:
		return failed
	case !outcome.Landed:
		return store.ErrClaimTaken
	}
	return err
}

// settleClaim settles a turn that is one call with an Idempotency-Key. Its record's
// mailbox keeps others off the record, and BeginOnce keeps them off the claim.
func (n *Node) settleClaim(ctx context.Context, ref licensing.Ref, c *call) {
	wants := []store.Want{wantOf(ref, []*call{c}), {Ref: c.claim.ref}}
	var known []store.Snapshot // the record and what is stored under the key
	for try := range swapTries {
		if len(known) != len(wants) {
			var err error
			if known, err = n.cfg.Records.Load(ctx, wants...); err != nil {
				c.answer(licensing.Result{}, err)
				return
			}
		}
		now := n.Now()
		if err := c.claim.judge(known[1], now); err != nil || c.claim.Replayed() {
			c.answer(licensing.Result{}, err)
			return
		}
		fold := n.foldOne(known[0].Record, c)
		result, err := fold.answers[0].Result, fold.answers[0].Err
		var writes []store.Write
		if fold.worthSwap {
			writes = []store.Write{{Ref: ref, Token: known[0].Token, Record: fold.record}}
		}
		change := c.claim.Change(now, err, writes...)
		if change == nil {
			c.answer(result, err)
			return
		}
		switch outcome, failed := n.cfg.Records.Commit(ctx, *change); {
		case failed != nil:
			c.answer(licensing.Result{}, failed)
			return
		case outcome.Landed:
			c.answer(result, err)
			return
		default:
			known = outcome.Rivals // of both only if both were to be written
		}
		if !pause(ctx, try) {
			break
		}
	}
	c.answer(licensing.Result{}, licensing.ErrUnavailable) // every swap was lost for certain
}

// CommitInTurn stores what a request comes to, as CommitClaim does, in a turn of the mailbox of one of the
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
