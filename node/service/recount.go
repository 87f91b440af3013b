package service

import (
	"context"

	"licet/licensing"
	"licet/node"
)

// Recount counts how much every owner stores, if a recount is due and no other node has begun one, and corrects the
// usage records. It fails with clocks.ErrUntrusted unless the clock is known to agree with the other nodes' clocks.
// Growth that nodes add meanwhile is kept; see licensing.Usage. A recount that fails begins again two hours later, on
// any node.
func (b *Budgets) Recount(ctx context.Context) error {
	if b.cfg.Usages == nil {
		return nil
	}
	began := b.engine.Now() // before the check, which notices a step since the last comparison
	if err := b.cfg.Clocks.Untrusted(); err != nil {
		return err
	}
	revision, begun, err := b.cfg.Usages.BeginRecount(ctx, began)
	if err != nil || !begun {
		return err
	}
	counted, err := b.cfg.Usages.CountUsage(ctx, revision)
	if err != nil {
		return err
	}
	for owner, size := range counted {
		if err := b.correct(ctx, owner, size, revision); err != nil {
			return err
		}
	}
	b.cfg.Log.Info().Int("accounts", len(counted)).Int64("revision", revision).Msg("counted what accounts store")
	return b.cfg.Usages.EndRecount(ctx, revision, began)
}

// correct stores how much an owner stores at the revision of a recount.
func (b *Budgets) correct(ctx context.Context, owner licensing.Owner, counted licensing.Size, revision int64) error {
	b.pass.Lock()
	defer b.pass.Unlock()
	result, err := b.engine.SwapTogether(ctx, node.Step{
		Ref: licensing.UsageRef(owner),
		Cmd: licensing.SetUsage{Owner: owner, Counted: counted, RecountAt: revision, Budget: b.cfg.Budget},
	})
	if err != nil {
		return err
	}
	b.note(owner, result.Stored())
	if off := result.Corrected(); off != (licensing.Size{}) {
		b.cfg.Metrics.UsageCorrections.Add(float64(max(off.Bytes, -off.Bytes)))
		b.cfg.Log.Debug().Str("account_id", owner.AccountID).Str("mode", string(owner.Mode)).
			Int64("bytes", off.Bytes).Int64("keys", off.Keys).
			Msg("a recount has corrected the usage record of an account")
	}
	return nil
}
