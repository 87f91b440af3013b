package client

import "context"

// AccountService reads and changes the settings of the account and mode of the API key.
type AccountService struct{ client *Client }

// The ways to match external keys.
const (
	MatchExact   = "exact"
	MatchCompact = "compact" // ignores case, blanks and dashes
)

// Account has the settings of an account in a mode, how much the account stores there, and its budget. A limit or a
// budget of 0 means that there is none.
type Account struct {
	AccountID         string `json:"account_id"`
	Mode              string `json:"mode"`
	ExternalKeys      string `json:"external_keys"`       // MatchExact or MatchCompact
	ExternalKeysFixed bool   `json:"external_keys_fixed"` // true once the account has external keys
	// ExpiringDays say how many days before the end of a license the service records the event license.expiring.
	ExpiringDays []int `json:"expiring_days"`
	// PaymentProvider charges the orders: sandbox or stripe. Empty: there is none, you record your own payments.
	PaymentProvider string `json:"payment_provider"`
	StoredBytes     int64  `json:"stored_bytes"`
	StoredKeys      int64  `json:"stored_keys"`
	LimitBytes      int64  `json:"limit_bytes"` // ordinary growth ends here, with code 40309
	LimitKeys       int64  `json:"limit_keys"`
	BudgetBytes     int64  `json:"budget_bytes"`
	BudgetKeys      int64  `json:"budget_keys"`
}

// Get returns the account and mode of the API key.
func (s *AccountService) Get(ctx context.Context, options ...CallOption) (*Account, error) {
	a := new(Account)
	if err := s.client.do(ctx, "GET /v1/account", nil, nil, nil, a, options); err != nil {
		return nil, err
	}
	return a, nil
}

// AccountUpdate contains the changes of an account. An empty or nil field changes nothing.
type AccountUpdate struct {
	ExternalKeys string `json:"external_keys,omitempty"` // can't change once the account has external keys
	// ExpiringDays has at most five numbers of days from 1 to 60. An empty slice that is not nil turns the events off.
	ExpiringDays []int `json:"expiring_days,omitzero"`
}

// Update changes the settings of the account and mode of the API key.
func (s *AccountService) Update(ctx context.Context, update AccountUpdate, options ...CallOption) (*Account, error) {
	a := new(Account)
	if err := s.client.do(ctx, "PATCH /v1/account", nil, nil, update, a, options); err != nil {
		return nil, err
	}
	return a, nil
}
