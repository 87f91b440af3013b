package handlers

import (
	"context"
	"slices"
	"strings"

	"licet/licensing"
)

// rollout is a rollout of a product's terms, as responses show it.
type rollout struct {
	ProductID  string                  `json:"product_id"`
	Terms      []string                `json:"terms"`
	DryRun     bool                    `json:"dry_run"`
	Status     licensing.RolloutStatus `json:"status"`
	Licenses   int                     `json:"licenses"`
	Updated    int                     `json:"updated"`
	LimitsKept int                     `json:"limits_kept"`
	Failed     int                     `json:"failed"`
	StartedAt  timestamp               `json:"started_at"`
	EndedAt    timestamp               `json:"ended_at"`
	AccountID  string                  `json:"account_id"`
	Mode       licensing.Mode          `json:"mode"`
}

// rolloutTerms lists the terms that a rollout can apply, by their members of a product: each name stands for one bit of
// licensing.RolloutTerms.
func rolloutTerms() []string {
	return []string{"entitlements", "max_devices", "self_service_deactivation", "removals_per_month", "inactive_after",
		"device_match", "grace", "receipt", "receipt_validity", "revocation_max_age", "lease_seconds",
		"max_lease_seconds"}
}

func rolloutAnswer(p *licensing.Product) rollout {
	o := &p.Rollout
	answer := rollout{
		ProductID:  p.ID,
		DryRun:     o.DryRun,
		Status:     o.Status(),
		Licenses:   o.Counts.Licenses,
		Updated:    o.Counts.Updated,
		LimitsKept: o.Counts.LimitsKept,
		Failed:     o.Counts.Failed,
		StartedAt:  timestamp(o.StartedAt),
		EndedAt:    timestamp(o.EndedAt),
		AccountID:  p.Owner.AccountID,
		Mode:       p.Owner.Mode,
	}
	for i, name := range rolloutTerms() {
		if o.Applies&(1<<i) != 0 {
			answer.Terms = append(answer.Terms, name)
		}
	}
	return answer
}

// newRollout asks to apply terms of a product to its earlier licenses.
type newRollout struct {
	existingProduct
	Terms          texts `json:"terms"`
	DryRun         flag  `json:"dry_run"`
	idempotencyKey `json:"-"`

	applies licensing.RolloutTerms
}

func (in *newRollout) check(c *checks) {
	in.existingProduct.check(c)
	in.applies = c.rolloutTerms("terms", in.Terms)
}

// rolloutTerms parses the names of terms.
func (c *checks) rolloutTerms(field string, in texts) (all licensing.RolloutTerms) {
	names := rolloutTerms()
	if c.describe(field, Limits{Required: true, MinItems: 1, Enum: names}) {
		return 0
	}
	if !in.given {
		c.add(field, problemRequired)
		return 0
	}
	for _, name := range in.value {
		term := licensing.RolloutTerms(1) << max(0, slices.Index(names, name))
		if !slices.Contains(names, name) || all&term != 0 {
			all = 0
			break
		}
		all |= term
	}
	if all == 0 {
		c.add(field, "must be one or more of these, each once: "+strings.Join(names, ", "))
	}
	return all
}

// beginRollout begins a rollout.
func (s productRoutes) beginRollout(ctx context.Context, c *call, in newRollout) (rollout, error) {
	p, replayed, err := s.cfg.Node.BeginRollout(ctx, c.owner(), in.ProductID.value, licensing.BeginRollout{
		Applies: in.applies, DryRun: in.DryRun.value, By: c.actor(),
	}, in.once)
	if c.replayed = replayed; err != nil {
		return rollout{}, err
	}
	return rolloutAnswer(&p), nil
}

// getRollout shows the latest rollout of a product.
func (s productRoutes) getRollout(ctx context.Context, c *call, in existingProduct) (rollout, error) {
	p, err := s.cfg.Node.Product(ctx, c.owner(), in.ProductID.value)
	switch {
	case err != nil:
		return rollout{}, err
	case p.Rollout.StartedAt.IsZero():
		return rollout{}, licensing.ErrRolloutNotFound
	}
	return rolloutAnswer(&p), nil
}

// cancelRollout ends a rollout.
func (s productRoutes) cancelRollout(ctx context.Context, c *call, in existingProduct) (rollout, error) {
	p, err := s.cfg.Node.CancelRollout(ctx, c.owner(), in.ProductID.value)
	if err != nil {
		return rollout{}, err
	}
	return rolloutAnswer(&p), nil
}
