package service

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/metrics/guard"
	"licet/node"
	"licet/node/store"
)

const (
	// usageEvery is the default pause between two passes of KeepUsage.
	usageEvery = 10 * time.Second
	// usageTimeout bounds one pass.
	usageTimeout = 30 * time.Second
	// usageAtOnce bounds the owners whose usage a pass stores at the same time, and usageReads the owners whose
	// usage one request reads.
	usageAtOnce, usageReads = 16, 60
	// usageKept is after how many passes without a question the node forgets the usage of an owner.
	usageKept = 30
	// maxGrowth bounds the changes that wait for the next pass while the store refuses them.
	maxGrowth = 1 << 16
)

// Budgets refuses ordinary growth of owners that have reached their budget. It also stores how much the changes of
// this node make their owners store more.
//
// A decision costs no request, except for the first one about an owner: Budgets knows the usage of an owner from the
// last pass, and a pass reads the usage of all owners that were asked for lately. So a change counts for decisions of
// its own node after 10 s at most, and of other nodes after 20 s. An owner may exceed the limit by what it can add in
// that time on all nodes.
type Budgets struct {
	cfg    *Config
	guard  *guard.Guard
	engine *node.Node // set once, before use

	mu    sync.RWMutex
	known map[licensing.Owner]*knownUsage

	pass sync.Mutex // one pass at a time, or one batch of a recount: a record must not be in two Commits
	left []store.OwnerGrowth
}

// knownUsage is the usage of an owner as of the last pass.
type knownUsage struct {
	size  atomic.Pointer[licensing.Size] // nil: not read yet
	idle  int                            // passes since the last question; only the pass uses it
	asked atomic.Bool                    // since the last pass
}

func newBudgets(cfg *Config) *Budgets {
	return &Budgets{cfg: cfg, guard: guard.New(cfg.Metrics, cfg.Log), known: make(map[licensing.Owner]*knownUsage)}
}

// off reports whether there are no budgets to ask about.
func (b *Budgets) off() bool { return b.cfg.Budget == (licensing.Budget{}) }

// Refuse returns ErrAccountBudgetReached if an owner may not store more now, and nil if the owner may. It makes no
// request: of an owner that it does not know, the next pass reads the usage.
func (b *Budgets) Refuse(owner licensing.Owner) error {
	if b.off() || owner == (licensing.Owner{}) {
		return nil
	}
	known := b.ask(owner)
	size := known.size.Load()
	if size == nil {
		return nil
	}
	err := b.cfg.Budget.Refuse(*size)
	if err != nil {
		b.cfg.Metrics.BudgetRefusals.WithLabelValues("growth").Inc()
	}
	return err
}

// admitLicenses is admit for an order for so many licenses: no budget refuses them once they are paid.
func (b *Budgets) admitLicenses(ctx context.Context, owner licensing.Owner, quantity int) error {
	if err := b.admit(ctx, owner); err != nil || quantity <= 1 || b.off() {
		return err
	}
	size := b.ask(owner).size.Load()
	if size == nil {
		return nil
	}
	err := b.cfg.Budget.RefuseMore(*size, licensing.SizeOfLicenses(quantity))
	if err != nil {
		b.cfg.Metrics.BudgetRefusals.WithLabelValues("growth").Inc()
	}
	return err
}

// RefuseTrial is Refuse for a trial.
func (b *Budgets) RefuseTrial(owner licensing.Owner) error {
	if b.off() {
		return nil
	}
	size := b.ask(owner).size.Load()
	if size == nil {
		return nil
	}
	err := b.cfg.Budget.RefuseTrial(*size)
	if err != nil {
		b.cfg.Metrics.BudgetRefusals.WithLabelValues("trial").Inc()
	}
	return err
}

// admit is Refuse for requests with an API key: it reads the usage of an owner that it does not know.
func (b *Budgets) admit(ctx context.Context, owner licensing.Owner) error {
	if err := b.learn(ctx, owner); err != nil {
		return err
	}
	return b.Refuse(owner)
}

// refuseClaim returns an error if an owner has reached its whole budget and makes too many requests with an
// Idempotency-Key, each of which stores a claim. Like Refuse, it makes no request.
func (b *Budgets) refuseClaim(owner licensing.Owner) error {
	if b.off() {
		return nil
	}
	if size := b.ask(owner).size.Load(); size == nil || !b.cfg.Budget.Exceeded(*size) {
		return nil
	}
	return b.engine.TakeClaim(owner)
}

// learn reads the usage of an owner that b does not know. It is for requests that may make the owner store more: the
// engine refuses their commands once it knows the record.
func (b *Budgets) learn(ctx context.Context, owner licensing.Owner) error {
	if b.off() || b.ask(owner).size.Load() != nil {
		return nil
	}
	return b.read(ctx, owner)
}

// ask returns what is known of an owner, and keeps it known.
func (b *Budgets) ask(owner licensing.Owner) *knownUsage {
	b.mu.RLock()
	known := b.known[owner]
	b.mu.RUnlock()
	if known == nil {
		b.mu.Lock()
		if known = b.known[owner]; known == nil {
			known = &knownUsage{}
			b.known[owner] = known
		}
		b.mu.Unlock()
	}
	if !known.asked.Load() {
		known.asked.Store(true)
	}
	return known
}

// read reads the usage of up to usageReads owners.
func (b *Budgets) read(ctx context.Context, owners ...licensing.Owner) error {
	wants := make([]store.Want, len(owners))
	for i, owner := range owners {
		wants[i].Ref = licensing.UsageRef(owner)
	}
	loaded, err := b.cfg.Records.Load(ctx, wants...)
	if err != nil {
		return err
	}
	for i, owner := range owners {
		var size licensing.Size
		if u := loaded[i].Record.Usage; u != nil {
			size = u.Size
		}
		b.note(owner, size)
	}
	return nil
}

// note keeps the usage of an owner that was asked for.
func (b *Budgets) note(owner licensing.Owner, size licensing.Size) {
	b.mu.RLock()
	known := b.known[owner]
	b.mu.RUnlock()
	if known != nil {
		known.size.Store(&size)
	}
}

// KeepUsage runs passes at intervals until ctx ends, and then once more. If the node is killed, the growth of its last
// interval is lost until the next recount.
func (b *Budgets) KeepUsage(ctx context.Context) {
	if b.cfg.Usages == nil {
		return
	}
	ticker := time.NewTicker(b.cfg.UsageEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.StoreUsage(ctx)
		case <-ctx.Done():
			b.StoreUsage(context.WithoutCancel(ctx))
			return
		}
	}
}

// StoreUsage runs a pass: it adds the growth since the last pass to the usage records, and reads the usage of the
// other owners that were asked for.
func (b *Budgets) StoreUsage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	b.pass.Lock()
	defer b.pass.Unlock()
	grown := make(map[licensing.Owner][]licensing.SizeChange)
	for _, c := range append(b.left, b.cfg.Usages.TakeGrowth()...) {
		grown[c.Owner] = append(grown[c.Owner], c.SizeChange)
	}
	b.left = b.left[:0]
	b.each(grown, func(owner licensing.Owner, changes []licensing.SizeChange) {
		err := b.add(ctx, owner, changes)
		if licensing.NotExecuted(err) {
			b.putBack(owner, changes)
		} else if err != nil {
			b.cfg.Log.Warn().Err(err).Str("account_id", owner.AccountID).Str("mode", string(owner.Mode)).
				Msg("can't add to the usage of an account; the next recount corrects it")
		}
	})
	b.refresh(ctx, grown)
}

// each calls do for every owner, some at the same time.
func (b *Budgets) each(
	grown map[licensing.Owner][]licensing.SizeChange, do func(licensing.Owner, []licensing.SizeChange),
) {
	var group sync.WaitGroup
	free := make(chan struct{}, usageAtOnce)
	for owner, changes := range grown {
		free <- struct{}{}
		b.guard.StartIn(&group, "usage", func() {
			defer func() { <-free }()
			do(owner, changes)
		})
	}
	group.Wait()
}

// add adds changes to the usage record of an owner. If the outcome is unknown, the changes must not be added again.
func (b *Budgets) add(ctx context.Context, owner licensing.Owner, changes []licensing.SizeChange) error {
	result, err := b.engine.SwapTogether(ctx, node.Step{
		Ref: licensing.UsageRef(owner),
		Cmd: licensing.AddUsage{Owner: owner, Changes: changes, Budget: b.cfg.Budget},
	})
	if err == nil {
		b.note(owner, result.Stored())
	}
	return err
}

// putBack keeps changes for the next pass, as far as there is room.
func (b *Budgets) putBack(owner licensing.Owner, changes []licensing.SizeChange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes[:min(len(changes), maxGrowth-len(b.left))] {
		b.left = append(b.left, store.OwnerGrowth{Owner: owner, SizeChange: c})
	}
}

// refresh reads the usage of the owners that were asked for lately, except those whose usage the pass has stored, and
// forgets the others. If it can't read an owner, it keeps the last known usage.
func (b *Budgets) refresh(ctx context.Context, stored map[licensing.Owner][]licensing.SizeChange) {
	var owners []licensing.Owner
	warned := 0
	b.mu.Lock()
	for owner, known := range b.known {
		if known.idle++; known.asked.Swap(false) {
			known.idle = 0
		}
		size := known.size.Load()
		if known.idle > usageKept {
			delete(b.known, owner)
		} else if _, fresh := stored[owner]; !fresh || size == nil {
			owners = append(owners, owner)
		}
		if size != nil && b.cfg.Budget.Warns(*size) {
			warned++
		}
	}
	b.mu.Unlock()
	b.cfg.Metrics.BudgetWarnings.Set(float64(warned))
	for some := range slices.Chunk(owners, usageReads) {
		if err := b.read(ctx, some...); err != nil {
			b.cfg.Log.Debug().Err(err).Int("owners", len(some)).
				Msg("can't read how much accounts store; the node continues with the last known sizes")
			return
		}
	}
}

// Usage returns how much an owner stores, and the budget. The read is linearizable, but nodes add growth only every
// few seconds.
func (b *Budgets) Usage(
	ctx context.Context, owner licensing.Owner,
) (size licensing.Size, budget licensing.Budget, err error) {
	size, err = admittedFor(ctx, b.engine, b.engine.OwnerShare(owner), func(*node.Place) (licensing.Size, error) {
		loaded, err := b.cfg.Records.Load(ctx, store.Want{Ref: licensing.UsageRef(owner)})
		if err != nil || loaded[0].Record.Usage == nil {
			return licensing.Size{}, err
		}
		return loaded[0].Record.Usage.Size, nil
	})
	return size, b.cfg.Budget, err
}
