package handlers

import (
	"context"

	"licet/licensing"
)

// accountRoutes are the functions of the routes of an account.
type accountRoutes struct{ *Server }

// accountUsage is how much an account stores in one mode, and its budget.
type accountUsage struct {
	StoredBytes int64          `json:"stored_bytes"`
	StoredKeys  int64          `json:"stored_keys"`
	LimitBytes  int64          `json:"limit_bytes"`
	LimitKeys   int64          `json:"limit_keys"`
	BudgetBytes int64          `json:"budget_bytes"`
	BudgetKeys  int64          `json:"budget_keys"`
	AccountID   string         `json:"account_id"`
	Mode        licensing.Mode `json:"mode"`
}

// getUsage answers how much the caller's account stores.
func (s accountRoutes) getUsage(ctx context.Context, c *call, _ noInput) (accountUsage, error) {
	size, budget, err := s.cfg.Node.Usage(ctx, c.owner())
	if err != nil {
		return accountUsage{}, err
	}
	most := budget.Ordinary()
	return accountUsage{
		StoredBytes: max(size.Bytes, 0), StoredKeys: max(size.Keys, 0), LimitBytes: most.Bytes, LimitKeys: most.Keys,
		BudgetBytes: budget.Bytes, BudgetKeys: budget.Keys, AccountID: c.owner().AccountID, Mode: c.owner().Mode,
	}, nil
}
