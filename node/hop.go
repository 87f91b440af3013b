package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"licet/licensing"
	"licet/metrics/tracing"
	"licet/node/store"
)

// defaultHopMargin is a fraction of a request's time, and much longer than timers are late.
const defaultHopMargin = 250 * time.Millisecond

// hopAnswered is the outcome of a hop whose commands the other node has run.
const hopAnswered = "answered"

// forward sends calls to the node that owns their license, and returns the calls that this node must run itself:
// calls with too little time left, and calls that the other node refused. If the outcome of calls stays open, this
// node does not run them. Their callers get ErrOutcomeUnknown at their deadline, when the calls have expired on the
// other node too.
func (s *runner) forward(ctx context.Context, ref licensing.Ref, calls []*call, to store.Incarnation) []*call {
	hopping, rest, earliest := apartHopping(calls, s.leastLeft())
	if len(hopping) == 0 {
		return rest
	}
	hop := Hop{
		From:     s.placement.self,
		License:  ref.LicenseID(),
		Commands: make([]licensing.Command, len(hopping)),
		Over:     earliest.Add(-s.cfg.HopMargin),
	}
	for i, c := range hopping {
		hop.Commands[i] = c.cmd
	}
	spans := s.traceHop(hopping)
	hop.Trace = spans.parent()
	reply, err := s.send(ctx, to, hop)
	outcome := "unknown"
	switch {
	case err == nil && len(reply.Answers) == len(hopping):
		outcome = hopAnswered
		served := slices.ContainsFunc(reply.Answers, func(a Answer) bool { return a.Err == nil || wasServed(a.Err) })
		if served {
			s.placement.served(ref, to, reply.YieldsTo, reply.Busy)
		} else {
			s.placement.servedNone(ref, to, reply.YieldsTo)
		}
		for i, c := range hopping {
			if a := &reply.Answers[i]; licensing.ReasonOf(a.Err) == licensing.ReasonUnavailable {
				rest = append(rest, c) // the call was not run, and never will be
			} else {
				c.answer(a.Result, a.Err)
			}
		}
	case errors.Is(err, ErrNotTaken):
		outcome = "not_taken"
		s.placement.notTaken(ref, to)
		s.cfg.Log.Debug().Stringer("to", to).Err(err).
			Msg("another node did not take the commands of a hop; this node runs them")
		rest = append(rest, hopping...)
	default:
		s.placement.notTaken(ref, to)
		s.cfg.Log.Warn().Stringer("to", to).Int("commands", len(hopping)).Err(err).
			Msg("the outcome of the commands of a hop is unknown")
	}
	s.cfg.Metrics.Hops.WithLabelValues(outcome).Inc()
	spans.end(outcome)
	return rest
}

// send sends a hop, and waits for the answer until the hop expires.
func (s *runner) send(ctx context.Context, to store.Incarnation, hop Hop) (HopAnswer, error) {
	ctx, cancel := context.WithDeadline(ctx, hop.Over.Add(s.cfg.HopMargin/2))
	defer cancel()
	s.cfg.Metrics.HopCommands.Add(float64(len(hop.Commands)))
	return s.cfg.Peers.Send(ctx, to, hop)
}

// leastLeft returns how much time a command must have left to hop.
func (s *runner) leastLeft() time.Duration { return 4 * s.cfg.HopMargin }

// apartHopping returns the calls that hop, and the rest: calls with less than leastLeft left, and calls whose
// deadline is so much earlier than the latest. The earliest deadline of the calls that hop bounds the whole hop.
func apartHopping(calls []*call, leastLeft time.Duration) (hopping, rest []*call, earliest time.Time) {
	soon := time.Now().Add(leastLeft)
	for _, c := range calls {
		if start := c.deadline.Add(-leastLeft); start.After(soon) {
			soon = start
		}
	}
	for _, c := range calls {
		if c.deadline.Before(soon) {
			rest = append(rest, c)
			continue
		}
		if earliest.IsZero() || c.deadline.Before(earliest) {
			earliest = c.deadline
		}
		hopping = append(hopping, c)
	}
	return hopping, rest, earliest
}

// mayHop reports whether another node may run a command: an activation or a removal of a device. Other commands are
// rare.
func mayHop(cmd licensing.Command) bool {
	switch cmd.(type) {
	case licensing.Activate, licensing.RemoveDevice:
		return true
	}
	return false
}

// Execute runs commands that another node has sent, and never sends them further. If Execute fails, with
// ErrNotTaken, it runs none of them, now or later. Otherwise it answers each command, at hop.Over at the latest, and
// begins none after that.
func (n *Node) Execute(hop Hop) (HopAnswer, error) {
	if !time.Now().Before(hop.Over) {
		return HopAnswer{}, notTaken("they came too late")
	}
	if len(hop.Commands) == 0 {
		return HopAnswer{}, notTaken("there are none")
	}
	if len(hop.Commands) > MaxHop {
		return HopAnswer{}, notTaken("they are too many")
	}
	if !n.cfg.LicenseKeys.Made(hop.License) {
		return HopAnswer{}, notTaken("they are for no license of this store")
	}
	if n.leaving.Load() {
		return HopAnswer{}, notTaken(errDraining.Message)
	}
	if err := n.RefuseByClock(); err != nil {
		return HopAnswer{}, notTaken(err.Error())
	}
	ctx, cancel := context.WithDeadline(context.Background(), hop.Over)
	defer cancel()
	span := n.cfg.Tracer.Continue(hop.Trace, tracing.Start{Kind: tracing.Server, Name: "hop run"})
	defer span.End()
	ref := hop.License.Ref()
	n.placement.received(ref, hop.From)
	calls := make([]*call, len(hop.Commands))
	for i, cmd := range hop.Commands {
		calls[i] = &call{cmd: cmd, deadline: hop.Over, hopped: true}
		calls[i].mustWait()
		if span != nil {
			calls[i].traced = &traced{span: span, since: time.Now()}
		}
	}
	who := n.shareOf(ref, nil)
	if err := n.admission.enterHop(who, len(calls)); err != nil {
		return HopAnswer{}, notTaken(err.Error())
	}
	reply := HopAnswer{Answers: make([]Answer, len(calls))}
	served := 0
	defer func() { n.admission.leaveHop(who, len(calls), served) }()
	var err error
	if reply.Busy, err = n.postHopped(ref, calls); err != nil {
		return HopAnswer{}, notTaken(err.Error())
	}
	// The last call first: once it is answered, the others mostly are, so this goroutine does not wake for each.
	for i, c := range slices.Backward(calls) {
		result, err := n.await(ctx, c)
		reply.Answers[i] = Answer{result, err}
		if err == nil || wasServed(err) {
			served++
		}
	}
	n.cfg.Metrics.HopCommandsRun.Add(float64(len(calls)))
	reply.YieldsTo = n.placement.ownerFor(ref, served > 0)
	return reply, nil
}

func notTaken(why string) error { return errors.Join(ErrNotTaken, errors.New(why)) }

// postHopped puts calls that came by a hop into their record's mailbox, all of them or none. It reports whether the
// mailbox had other calls.
func (n *Node) postHopped(ref licensing.Ref, calls []*call) (busy bool, err error) {
	s := n.shardOf(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if box, running := s.boxes[ref]; running {
		return true, n.queue(box, calls...)
	}
	return false, n.open(&mailbox{ref: ref, shard: s}, calls...)
}
