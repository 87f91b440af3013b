package node

import (
	"context"
	"errors"

	"licet"
)

// claiming is what a call with an Idempotency-Key has besides its command.
type claiming struct {
	once   *Once
	ref    licet.Ref   // of the claim
	effect licet.Claim // what the claim will say once the command has succeeded
	stale  error       // why the request can't be made any more; nil: it can

	replayed bool // it is answered as an earlier one was; its turn's alone until then
}

// doClaiming runs a command that was let in, once however often it is asked for:
// its claim is written in the transaction that has its effect.
func (n *Node) doClaiming(ctx context.Context, ref licet.Ref, cmd licet.Command, with *claiming) (replayed bool, err error) {
	c := &call{cmd: cmd, claiming: with}
	_, err = n.doCall(ctx, ref, c)
	return c.state.Load() == callAnswered && with.replayed, err
}

// settleClaiming settles a turn that is one call with an Idempotency-Key. Its
// record's mailbox keeps others off the record, and begin keeps them off the claim.
func (n *Node) settleClaiming(ctx context.Context, ref licet.Ref, c *call) {
	wants := []Want{wantOf(ref, []*call{c}), {Ref: c.claiming.ref}}
	var known []Snapshot // the record and its claim
	for try := range swapTries {
		if known == nil {
			var err error
			if known, err = n.cfg.Store.Load(ctx, wants...); err != nil {
				c.answer(licet.Result{}, err)
				return
			}
		}
		change, err := n.claimingChange(ref, c, known)
		if change == nil {
			c.answer(licet.Result{}, err)
			return
		}
		outcome, failed := n.cfg.Store.Commit(ctx, *change)
		switch {
		case failed != nil:
			c.answer(licet.Result{}, failed)
			return
		case outcome.Landed:
			c.answer(licet.Result{}, err)
			return
		}
		n.cfg.Metrics.SwapsLost.Inc()
		if !pause(ctx, try) || len(stillWanted([]*call{c})) == 0 {
			break
		}
		known = nil
		if len(outcome.Rivals) == len(wants) {
			known = outcome.Rivals
		}
	}
	c.answer(licet.Result{}, licet.ErrUnavailable)
}

// claimingChange makes of a call what is to be stored before it is answered with
// err; nil where there is nothing to store.
func (n *Node) claimingChange(ref licet.Ref, c *call, known []Snapshot) (change *Change, err error) {
	now := n.Now()
	record, claim := known[0], known[1]
	earlier, err := c.claiming.once.earlier(claim.Record.Claim, now)
	switch {
	case (err != nil || earlier == nil) && c.claiming.stale != nil:
		return nil, c.claiming.stale
	case err != nil:
		return nil, err
	case earlier != nil:
		c.claiming.replayed = true
		if earlier.Refusal != nil {
			return nil, earlier.Refusal
		}
		return nil, nil
	}
	fold := n.foldOne(record.Record, c)
	err = fold.answers[0].Err
	effect := c.claiming.effect
	var refusal *licet.Error
	switch {
	case err == nil:
	case errors.As(err, &refusal) && refusal.Final():
		effect = licet.Claim{Refusal: refusal}
	default:
		return nil, err
	}
	effect.Fingerprint, effect.CreatedAt = c.claiming.once.Fingerprint, now
	change = &Change{}
	if err == nil && fold.worthSwap {
		change.Writes = append(change.Writes, Write{Ref: ref, Token: record.Token, Record: fold.record})
	}
	change.Writes = append(change.Writes, Write{Ref: c.claiming.ref, Token: claim.Token, Record: licet.Record{Claim: &effect}})
	return change, err
}
