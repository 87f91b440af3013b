package node

import (
	"context"
	"iter"
	"slices"

	"licet/licensing"
	"licet/node/store"
)

// settle answers the calls of one turn. Whatever happens in it, every call has
// its answer when it returns.
//
// What the store remembers of the record says how to go about it. Commands
// that will change something are folded and swapped at once, against the
// revision that is remembered: if the swap lands, what was remembered was true.
// Commands that will change nothing must not be answered from memory alone: the
// store is asked whether that is still true. Either is one round trip; where
// nothing is remembered, a read comes before the swap.
func (n *Node) settle(ctx context.Context, ref licensing.Ref, calls []*call) {
	n.answering(calls, func() {
		if n.cfg.Tracer != nil {
			var ended func()
			ctx, ended = n.traceTurn(ctx, ref, calls)
			defer ended()
		}
		n.settleTurn(ctx, ref, calls)
	})
}

func (n *Node) settleTurn(ctx context.Context, ref licensing.Ref, calls []*call) {
	if work := calls[0].work; work != nil {
		calls[0].answer(work(ctx))
		return
	}
	n.cfg.Metrics.FoldCommands.Observe(float64(len(calls)))

	if calls[0].claim != nil {
		n.settleClaim(ctx, ref, calls[0]) // it came alone
		return
	}
	guess, unsure, ok := n.cfg.Records.Recall(wantOf(ref, calls))
	if ok {
		if calls = n.tellOwner(calls, guess.Record.License); len(calls) == 0 {
			return
		}
	}
	switch {
	case !ok:
		n.readAndSwap(ctx, ref, calls)
	case len(unsure) == 0:
		n.swapOrConfirm(ctx, ref, calls, guess)
	default:
		n.settleApart(ctx, ref, calls, guess, unsure)
	}
}

// answering runs work, which answers calls. After a panic it answers those that are left.
func (n *Node) answering(calls []*call, work func()) {
	if !n.guard.Do("mailbox", work) {
		answerAll(calls, licensing.ErrInternal)
	}
}

// settleApart settles the calls on devices that the store knows too little of
// by a read, and the others meanwhile. Those devices are most likely bound, and
// then there is nothing to change.
func (n *Node) settleApart(ctx context.Context, ref licensing.Ref, calls []*call, guess store.Snapshot, unsure []string) {
	isUnsure := make(map[string]struct{}, len(unsure))
	for _, id := range unsure {
		isUnsure[id] = struct{}{}
	}
	var known, unknown []*call
	for _, c := range calls {
		if _, is := isUnsure[c.cmd.DeviceID()]; is {
			unknown = append(unknown, c)
		} else {
			known = append(known, c)
		}
	}
	if len(known) == 0 {
		n.readAndSwap(ctx, ref, unknown)
		return
	}
	read := make(chan []*call)
	n.guard.Start("mailbox", func() {
		var rest []*call
		defer func() { read <- rest }()
		n.answering(unknown, func() {
			for part := range parts(unknown) {
				_, changing := n.read(ctx, ref, part)
				rest = append(rest, changing...)
			}
		})
	})
	// A panic here must not keep the read from being waited for.
	n.answering(known, func() { n.swapOrConfirm(ctx, ref, known, guess) })
	// What is left must change something after all. It was read before the swap
	// above was made, and so is read anew.
	if rest := <-read; len(rest) > 0 {
		n.readAndSwap(ctx, ref, rest)
	}
}

// swapOrConfirm swaps what the calls make of a guess. Where they make nothing
// of it, their answers hold if the record is still as it was guessed: that is
// asked after they came.
func (n *Node) swapOrConfirm(ctx context.Context, ref licensing.Ref, calls []*call, guess store.Snapshot) {
	seen, others := apartSeen(calls)
	if len(seen) > 0 && len(others) > 0 {
		// When devices were seen is stored without a look at the rest of the record,
		// so it would prove nothing of what the others are told.
		n.swapOrConfirm(ctx, ref, others, guess)
		n.readAndSwap(ctx, ref, stillWanted(seen))
		return
	}
	fold := n.fold(guess, calls)
	if fold.worthSwap {
		n.swap(ctx, ref, calls, guess, fold)
		return
	} // else the fold has run all calls
	switch still, err := n.cfg.Records.Confirm(ctx, ref, guess.Token); {
	case err != nil:
		answerAll(calls, err)
	case still:
		n.answerFold(fold, calls)
	default:
		n.readAndSwap(ctx, ref, stillWanted(calls))
	}
}

// apartSeen tells the calls that only store when a device was seen from others.
func apartSeen(calls []*call) (seen, others []*call) {
	isSeen := func(c *call) bool { _, is := c.cmd.(licensing.Seen); return is }
	first := slices.IndexFunc(calls, isSeen)
	if first < 0 {
		return nil, calls
	}
	others = append(others, calls[:first]...)
	for _, c := range calls[first:] {
		if isSeen(c) {
			seen = append(seen, c)
		} else {
			others = append(others, c)
		}
	}
	return seen, others
}

// readAndSwap answers what a read can answer, and swaps the rest.
func (n *Node) readAndSwap(ctx context.Context, ref licensing.Ref, calls []*call) {
	for part := range parts(calls) {
		if snapshot, rest := n.read(ctx, ref, part); len(rest) > 0 {
			n.swap(ctx, ref, rest, snapshot, n.fold(snapshot, rest))
		}
	}
}

// parts splits calls, in their order, so that each part touches no more devices
// than any record has room for.
func parts(calls []*call) iter.Seq[[]*call] {
	return func(yield func([]*call) bool) {
		from := 0
		devices := make(map[string]struct{}, store.MaxTouchedDevices)
		for i, c := range calls {
			id := c.cmd.DeviceID()
			if _, known := devices[id]; !known && len(devices) == store.MaxTouchedDevices {
				if !yield(calls[from:i]) {
					return
				}
				from = i
				clear(devices)
			}
			if id != "" {
				devices[id] = struct{}{}
			}
		}
		if from < len(calls) {
			yield(calls[from:])
		}
	}
}

// read loads a record and answers the calls that change nothing in it: what
// they are told holds at the snapshot's revision, which was read after they
// came. The others are given back.
func (n *Node) read(ctx context.Context, ref licensing.Ref, calls []*call) (store.Snapshot, []*call) {
	if len(calls) == 0 {
		return store.Snapshot{}, nil
	}
	loaded, err := n.cfg.Records.Load(ctx, wantOf(ref, calls))
	if err != nil {
		answerAll(calls, err)
		return store.Snapshot{}, nil
	}
	n.placement.sawWriter(ref, loaded[0].Writer)
	calls = n.tellOwner(calls, loaded[0].Record.License)
	// Whoever was told meanwhile that the outcome is unknown must not be run on
	// this snapshot: it may hold changes that came after that answer.
	calls = stillWanted(calls)
	return loaded[0], n.answerUnchanging(loaded[0], calls)
}

// wantOf is what calls need to know of their record.
func wantOf(ref licensing.Ref, calls []*call) store.Want {
	return store.Want{
		Ref:      ref,
		Devices:  touched(calls),
		Metadata: slices.ContainsFunc(calls, func(c *call) bool { return licensing.NeedsMetadata(c.cmd) }),
	}
}

func touched(calls []*call) []string {
	if len(calls) == 1 { // as most turns are
		if id := calls[0].cmd.DeviceID(); id != "" {
			return []string{id}
		}
		return nil
	}
	var ids []string
	seen := make(map[string]struct{}, len(calls))
	for _, c := range calls {
		id := c.cmd.DeviceID()
		if _, known := seen[id]; known || id == "" {
			continue
		}
		seen[id] = struct{}{}
		ids = append(ids, id)
	}
	return ids
}
