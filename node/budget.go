package node

import (
	"net/netip"

	"licet/licensing"
)

// Budgets refuses growth of owners that store as much as they may.
type Budgets interface {
	// Refuse returns the refusal if an owner may not store more now, and nil if the owner may. It makes no request.
	Refuse(owner licensing.Owner) error
	// RefuseTrial is Refuse for a trial, which anyone may start: trials have a budget of their own below the owner's.
	RefuseTrial(owner licensing.Owner) error
}

// overBudget returns the refusal of a call that makes its owner store more than the owner's budget allows, and nil if
// the call may run on the record.
func (s *runner) overBudget(
	ref licensing.Ref, record *licensing.Record, c *call, growth licensing.Growth,
) error {
	switch {
	case !growth.Budgeted():
		return nil
	case ref.Kind == licensing.KindTrial:
		return s.refuseTrial(ref.Owner, c)
	case s.cfg.Budgets == nil:
		return nil
	}
	return s.cfg.Budgets.Refuse(ownerOf(ref, record))
}

// refuseTrial returns the refusal of a call that starts a trial of an owner, or counts the call, once, against the
// rates of trials. The owner's end users share a rate, of which one network may use a part, and the owner has a rate of
// its own: so strangers stop no trials that the owner starts.
func (s *runner) refuseTrial(owner licensing.Owner, c *call) error {
	if s.cfg.Budgets != nil {
		if err := s.cfg.Budgets.RefuseTrial(owner); err != nil {
			return err
		}
	}
	start, starts := c.cmd.(licensing.StartTrial)
	if !starts || c.counted {
		return nil
	}
	who := changer{owner: owner, endUser: start.By == licensing.EndUser}
	from := changer{owner: owner, endUser: true, network: site(start.Network)}
	if who.endUser {
		if err := s.addressTrials.refuse(from); err != nil {
			return err
		}
	}
	if err := s.trials.take(who); err != nil {
		return err
	}
	if c.counted = true; who.endUser {
		s.addressTrials.count(from)
	}
	return nil
}

// site returns what the network of an end user counts as: with IPv6 its /48, which one customer of a provider may have.
func site(network netip.Addr) netip.Addr {
	if network.Is6() {
		return netip.PrefixFrom(network, 48).Masked().Addr()
	}
	return network
}
