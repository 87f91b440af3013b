package node

import "licet/licensing"

// Budgets refuses growth of owners that store as much as they may.
type Budgets interface {
	// Refuse returns the refusal if an owner may not store more now, and nil if the owner may. It makes no request.
	Refuse(owner licensing.Owner) error
	// RefuseTrial is Refuse for a trial, which anyone may start: trials have a budget of their own below the owner's.
	RefuseTrial(owner licensing.Owner) error
}

// overBudget returns the refusal of a command that makes its owner store more than the owner's budget allows, and nil
// if the command may run on the record.
func (s *settler) overBudget(ref licensing.Ref, record *licensing.Record, growth licensing.Growth) error {
	switch {
	case !growth.Budgeted():
		return nil
	case ref.Kind == licensing.KindTrial:
		return s.refuseTrial(ref.Owner)
	case s.cfg.Budgets == nil:
		return nil
	}
	return s.cfg.Budgets.Refuse(ownerOf(ref, record))
}

// refuseTrial returns the refusal of a new trial of an owner, or counts the trial against the rate of trials.
func (s *settler) refuseTrial(owner licensing.Owner) error {
	if s.cfg.Budgets != nil {
		if err := s.cfg.Budgets.RefuseTrial(owner); err != nil {
			return err
		}
	}
	return s.trials.take(changer{owner: owner})
}
