package client

import "context"

// Usage is how much an account stores in one mode, and its budget. A limit or a budget of 0 is none.
type Usage struct {
	StoredBytes int64  `json:"stored_bytes"`
	StoredKeys  int64  `json:"stored_keys"`
	LimitBytes  int64  `json:"limit_bytes"` // ordinary growth ends here, with code 40309
	LimitKeys   int64  `json:"limit_keys"`
	BudgetBytes int64  `json:"budget_bytes"`
	BudgetKeys  int64  `json:"budget_keys"`
	AccountID   string `json:"account_id"`
	Mode        string `json:"mode"`
}

// Usage returns how much the account of the API key stores.
func (c *Client) Usage(ctx context.Context, options ...CallOption) (*Usage, error) {
	u := new(Usage)
	if err := c.do(ctx, "GET /v1/account/usage", nil, nil, nil, u, options); err != nil {
		return nil, err
	}
	return u, nil
}
