package handlers

import (
	"context"
	"fmt"

	"licet/licensing"
)

// accountRoutes are the functions of the routes of an account.
type accountRoutes struct{ *Server }

// account has the settings of an account in a mode, the provider that charges its orders, how much the account stores
// there, and its budget.
type account struct {
	AccountID         string                `json:"account_id"`
	Mode              licensing.Mode        `json:"mode"`
	ExternalKeys      licensing.KeyMatching `json:"external_keys"`
	ExternalKeysFixed bool                  `json:"external_keys_fixed"`
	ExpiringDays      []int                 `json:"expiring_days"`
	Provider          *string               `json:"payment_provider"`
	StoredBytes       int64                 `json:"stored_bytes"`
	StoredKeys        int64                 `json:"stored_keys"`
	LimitBytes        int64                 `json:"limit_bytes"`
	LimitKeys         int64                 `json:"limit_keys"`
	BudgetBytes       int64                 `json:"budget_bytes"`
	BudgetKeys        int64                 `json:"budget_keys"`
}

// getAccount shows the caller's account.
func (s accountRoutes) getAccount(ctx context.Context, c *call, _ noInput) (account, error) {
	return s.answer(ctx, c.owner(), func() (licensing.Settings, error) { return s.cfg.Node.Settings(ctx, c.owner()) })
}

// accountUpdate asks to change the settings of an account.
type accountUpdate struct {
	ExternalKeys text    `json:"external_keys"`
	ExpiringDays numbers `json:"expiring_days"`

	days *licensing.ExpiringDays
}

func (in *accountUpdate) check(c *checks) {
	c.oneOf("external_keys", in.ExternalKeys, string(licensing.MatchExact), string(licensing.MatchCompact))
	in.days = c.expiringDays("expiring_days", in.ExpiringDays)
}

func (c *rules) expiringDays(field string, in numbers) *licensing.ExpiringDays {
	const most, last = licensing.MaxExpiringDays, licensing.MaxExpiringDay
	if c.describe(field, Limits{MaxItems: most, Bounded: true, Minimum: 1, Maximum: last}) || !in.given {
		return nil
	}
	days, ok := licensing.NewExpiringDays(in.value)
	if !ok {
		c.add(field, fmt.Sprintf("must have at most %d numbers of days from 1 to %d, each once", most, last))
	}
	return &days
}

// updateAccount changes the settings of the caller's account.
func (s accountRoutes) updateAccount(ctx context.Context, c *call, in accountUpdate) (account, error) {
	return s.answer(ctx, c.owner(), func() (licensing.Settings, error) {
		return s.cfg.Node.ChangeSettings(ctx, licensing.ChangeSettings{
			Owner: c.owner(), ExternalKeys: licensing.KeyMatching(in.ExternalKeys.value), ExpiringDays: in.days,
		})
	})
}

// answer reads the usage of an account first: the error of a read says that nothing was changed.
func (s accountRoutes) answer(
	ctx context.Context, owner licensing.Owner, settingsOf func() (licensing.Settings, error),
) (account, error) {
	size, budget, err := s.cfg.Node.Usage(ctx, owner)
	if err != nil {
		return account{}, err
	}
	settings, err := settingsOf()
	if err != nil {
		return account{}, err
	}
	most := budget.Ordinary()
	return account{
		AccountID: owner.AccountID, Mode: owner.Mode,
		ExternalKeys: settings.Matching(), ExternalKeysFixed: settings.KeysFixed,
		ExpiringDays: settings.Expiring().Numbers(),
		Provider:     orNull(string(s.cfg.Desk.ProviderOf(owner))),
		StoredBytes:  max(size.Bytes, 0), StoredKeys: max(size.Keys, 0), LimitBytes: most.Bytes, LimitKeys: most.Keys,
		BudgetBytes: budget.Bytes, BudgetKeys: budget.Keys,
	}, nil
}
