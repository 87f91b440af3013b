package node

import "licet/licensing"

// Budgets refuses growth of owners that store as much as they may.
type Budgets interface {
	// Refuse returns the refusal if an owner may not store more now, and nil if the owner may. It makes no request.
	Refuse(owner licensing.Owner) error
}

// overBudget returns the refusal of a command that makes its owner store more than the owner's budget allows, and nil
// if the command may run on the record.
func (s *settler) overBudget(ref licensing.Ref, record *licensing.Record, growth licensing.Growth) error {
	if s.cfg.Budgets == nil || !growth.Budgeted() {
		return nil
	}
	return s.cfg.Budgets.Refuse(ownerOf(ref, record))
}
