package client

import (
	"context"
	"time"
)

// RolloutService applies terms of a product to earlier licenses.
type RolloutService struct{ client *Client }

// Terms of a product that a rollout can apply to earlier licenses.
const (
	RolloutEntitlements     = "entitlements"
	RolloutMaxDevices       = "max_devices"
	RolloutSelfService      = "self_service_deactivation"
	RolloutRemovalsPerMonth = "removals_per_month"
	RolloutInactiveAfter    = "inactive_after"
	RolloutDeviceMatch      = "device_match"
	RolloutGrace            = "grace"
	RolloutReceipt          = "receipt"
	RolloutReceiptValidity  = "receipt_validity"
	RolloutRevocationMaxAge = "revocation_max_age"
	RolloutLeaseSeconds     = "lease_seconds"
	RolloutMaxLeaseSeconds  = "max_lease_seconds"
)

// NewRollout describes a rollout.
type NewRollout struct {
	Terms  []string `json:"terms"`             // such as RolloutEntitlements
	DryRun bool     `json:"dry_run,omitempty"` // only count
}

// The states of rollouts.
const (
	RolloutRunning  = "running"
	RolloutPaused   = "paused" // the account has reached its storage budget; the rollout tries again by itself
	RolloutDone     = "done"
	RolloutCanceled = "canceled"
)

// Rollout is the latest rollout of a product. The counts are those up to now.
type Rollout struct {
	ProductID  string    `json:"product_id"`
	Terms      []string  `json:"terms"`
	DryRun     bool      `json:"dry_run"`
	Status     string    `json:"status"`
	Licenses   int       `json:"licenses"`    // that were issued before the rollout began
	Updated    int       `json:"updated"`     // changed, or in a dry run to be changed
	LimitsKept int       `json:"limits_kept"` // keep their max_devices, since more devices are bound
	Failed     int       `json:"failed"`      // could not be changed
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"` // zero: the rollout is under way
	AccountID  string    `json:"account_id"`
	Mode       string    `json:"mode"`
}

// Begin applies terms that a product has now to the licenses that were issued before. It returns at once, and
// Get shows the progress. Repeating the call while the rollout is under way returns the same rollout.
func (s *RolloutService) Begin(
	ctx context.Context, productID string, rollout NewRollout, options ...CallOption,
) (*Rollout, error) {
	return s.rollout(ctx, "POST /v1/products/{product_id}/rollout", productID, rollout, options)
}

// Get returns the latest rollout of a product.
func (s *RolloutService) Get(ctx context.Context, productID string, options ...CallOption) (*Rollout, error) {
	return s.rollout(ctx, "GET /v1/products/{product_id}/rollout", productID, nil, options)
}

// Cancel ends the rollout of a product. Licenses that have the terms keep them.
func (s *RolloutService) Cancel(ctx context.Context, productID string, options ...CallOption) (*Rollout, error) {
	return s.rollout(ctx, "DELETE /v1/products/{product_id}/rollout", productID, nil, options)
}

func (s *RolloutService) rollout(
	ctx context.Context, route, productID string, in any, options []CallOption,
) (*Rollout, error) {
	r := new(Rollout)
	if err := s.client.do(ctx, route, []string{productID}, nil, in, r, options); err != nil {
		return nil, err
	}
	return r, nil
}
