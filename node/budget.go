package node

import "licet/licensing"

// Budgets refuses growth of owners that store as much as they may.
type Budgets interface {
	// Refuse returns the refusal if an owner may not store more now, and nil if the owner may. It makes no request.
	Refuse(owner licensing.Owner) error
}

// overBudget returns the refusal of a command that makes its owner store more than the owner's budget allows, and nil
// if the command may run on the record.
func (s *settler) overBudget(record *licensing.Record, cmd licensing.Command, growth licensing.Growth) error {
	if s.cfg.Budgets == nil || growth < licensing.OrdinaryGrowth {
		return nil
	}
	return s.cfg.Budgets.Refuse(growingOwner(record, cmd))
}

// growingOwner returns the owner of the record that a command makes grow.
func growingOwner(record *licensing.Record, cmd licensing.Command) licensing.Owner {
	if owner := ownerOf(record); owner != (licensing.Owner{}) {
		return owner
	}
	switch cmd := cmd.(type) {
	case licensing.PutProduct:
		return cmd.Owner
	case licensing.CreateEndpoint:
		return cmd.Owner
	}
	return licensing.Owner{}
}
