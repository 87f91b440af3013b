package handlers

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"licet/licensing"
)

// productRoutes are the functions of the routes of products.
type productRoutes struct{ *Server }

// product is a product as responses show it.
type product struct {
	ProductID        string  `json:"product_id"`
	Name             *string `json:"name"`
	KeyPrefix        string  `json:"key_prefix"`
	MaxDevices       int     `json:"max_devices"`
	Validity         *string `json:"validity"`
	ValidityFrom     string  `json:"validity_from"`
	Grace            *string `json:"grace"`
	SelfService      bool    `json:"self_service_deactivation"`
	RemovalsPerMonth int     `json:"removals_per_month"`
	leaseTerms
	InactiveAfter *string         `json:"inactive_after"`
	DeviceMatch   *deviceMatch    `json:"device_match,omitempty"`
	Entitlements  json.RawMessage `json:"entitlements"`
	Trial         json.RawMessage `json:"trial"`
	Billing       *billing        `json:"billing,omitempty"`
	Receipt       bool            `json:"receipt"`
	ReceiptPeriod string          `json:"receipt_validity"`
	RevocationAge *string         `json:"revocation_max_age"`
	Metadata      json.RawMessage `json:"metadata"`
	CreatedAt     timestamp       `json:"created_at"`
	AccountID     string          `json:"account_id"`
	Mode          licensing.Mode  `json:"mode"`
}

// leaseTerms say how a product or a license treats devices.
type leaseTerms struct {
	DeviceMode      string `json:"device_mode"`
	LeaseSeconds    *int   `json:"lease_seconds"`
	MaxLeaseSeconds *int   `json:"max_lease_seconds"`
}

// The values of validity_from.
const (
	fromIssue      = "issue"
	fromActivation = "activation"
)

// The values of device_mode.
const (
	devicesBound  = "bound"
	devicesLeased = "leased"
)

func productAnswer(p *licensing.Product) product {
	t := &p.Terms
	answer := product{
		ProductID:        p.ID,
		Name:             orNull(p.Name),
		KeyPrefix:        t.KeyPrefix,
		MaxDevices:       t.MaxDevices,
		Validity:         orNull(t.Validity.String()),
		ValidityFrom:     fromIssue,
		Grace:            orNull(t.Grace.String()),
		SelfService:      t.SelfService.Allowed,
		RemovalsPerMonth: t.SelfService.RemovalsPerMonth,
		leaseTerms:       leaseTermsAnswer(t.Lease),
		InactiveAfter:    orNull(t.InactiveAfter.String()),
		DeviceMatch:      deviceMatchAnswer(t.Match),
		Receipt:          t.Receipts.Always,
		ReceiptPeriod:    periodText(t.Receipts.Validity()),
		RevocationAge:    orNull(periodText(time.Duration(t.Receipts.RevocationAgeSeconds) * time.Second)),
		Entitlements:     metadata(string(p.Entitlements)),
		Trial:            trialAnswer(p),
		Billing:          billingAnswer(p.Billing),
		Metadata:         metadata(p.Metadata),
		CreatedAt:        timestamp(p.CreatedAt),
		AccountID:        p.Owner.AccountID,
		Mode:             p.Owner.Mode,
	}
	if t.FromActivation {
		answer.ValidityFrom = fromActivation
	}
	return answer
}

func leaseTermsAnswer(t licensing.LeaseTerms) leaseTerms {
	if !t.Leased() {
		return leaseTerms{DeviceMode: devicesBound}
	}
	return leaseTerms{devicesLeased, new(licensing.WholeSeconds(t.Length)), new(licensing.WholeSeconds(t.Longest))}
}

// productPath names a product.
type productPath struct {
	ProductID text `path:"product_id" json:"-"`
}

// productDescription describes a product. What is missing gets the default of a new product.
type productDescription struct {
	productPath
	Name             text    `json:"name"`
	KeyPrefix        text    `json:"key_prefix"`
	MaxDevices       integer `json:"max_devices"`
	Validity         text    `json:"validity"`
	ValidityFrom     text    `json:"validity_from"`
	Grace            text    `json:"grace"`
	SelfService      flag    `json:"self_service_deactivation"`
	RemovalsPerMonth integer `json:"removals_per_month"`
	DeviceMode       text    `json:"device_mode"`
	LeaseSeconds     integer `json:"lease_seconds"`
	MaxLeaseSeconds  integer `json:"max_lease_seconds"`
	InactiveAfter    text    `json:"inactive_after"`
	DeviceMatch      object  `json:"device_match"`
	Receipt          flag    `json:"receipt"`
	ReceiptValidity  text    `json:"receipt_validity"`
	RevocationMaxAge text    `json:"revocation_max_age"`
	Entitlements     object  `json:"entitlements"`
	Trial            object  `json:"trial"`
	Billing          object  `json:"billing"`
	Metadata         object  `json:"metadata"`

	validity, grace, inactiveAfter licensing.Period
	match                          licensing.DeviceMatch
	receipts                       licensing.ReceiptTerms
	entitlements                   licensing.Entitlements
	trial                          licensing.TrialTerms
	trialEntitlements              licensing.Entitlements
	billing                        licensing.Billing
}

func (in *productDescription) check(c *checks) {
	c.productID("product_id", in.ProductID)
	c.line("name", in.Name, maxProductName)
	c.keyPrefix("key_prefix", in.KeyPrefix)
	c.integer("max_devices", in.MaxDevices, false, 0, maxMaxDevices)
	in.validity = c.period("validity", in.Validity)
	c.oneOf("validity_from", in.ValidityFrom, fromIssue, fromActivation)
	in.grace = c.period("grace", in.Grace)
	if problem := licensing.GraceProblem(in.grace); problem != "" {
		c.add("grace", problem)
	}
	c.integer("removals_per_month", in.RemovalsPerMonth, false, 0, maxRemovals)
	in.checkLeases(c)
	in.checkDeviceTerms(c)
	in.receipts = receiptTerms(in.Receipt.value, c.receiptPeriod("receipt_validity", in.ReceiptValidity),
		c.receiptPeriod("revocation_max_age", in.RevocationMaxAge))
	in.entitlements = c.entitlements("entitlements", in.Entitlements, false)
	in.trial, in.trialEntitlements = c.trial("trial", in.Trial)
	if in.billing = c.billing("billing", in.Billing); in.billing.Recurs() && in.Validity.given {
		c.add("validity", "can't be combined with billing: each payment sets the end of the license")
	}
	c.metadata("metadata", in.Metadata)
}

func (in *productDescription) checkLeases(c *checks) {
	c.oneOf("device_mode", in.DeviceMode, devicesBound, devicesLeased)
	c.integer("lease_seconds", in.LeaseSeconds, false, leastLease, mostLease)
	c.integer("max_lease_seconds", in.MaxLeaseSeconds, false, leastLease, mostLease)
	const unlessLeased = "must be left out unless device_mode is leased"
	terms := in.terms()
	switch leased := in.DeviceMode.value == devicesLeased; {
	case leased && !in.LeaseSeconds.given:
		c.add("lease_seconds", "is required if device_mode is leased")
	case !leased && in.LeaseSeconds.given:
		c.add("lease_seconds", unlessLeased)
	case !leased && in.MaxLeaseSeconds.given:
		c.add("max_lease_seconds", unlessLeased)
	case terms.Lease.Longest < terms.Lease.Length:
		c.add("max_lease_seconds", "must be at least lease_seconds")
	}
	if problem := terms.Lease.DevicesProblem(terms.MaxDevices); problem != "" {
		c.add("max_devices", problem)
	}
}

func (c *rules) keyPrefix(field string, in text) {
	if !c.describe(field, Limits{Pattern: patternKeyPrefix}) && in.given && !licensing.ValidKeyPrefix(in.value) {
		c.add(field, "must be 2 to 8 of the characters A-Z 0-9")
	}
}

func (in *productDescription) terms() licensing.Terms {
	terms := licensing.DefaultTerms()
	if in.KeyPrefix.given {
		terms.KeyPrefix = in.KeyPrefix.value
	}
	if in.MaxDevices.given {
		terms.MaxDevices = int(in.MaxDevices.value)
	}
	terms.Validity, terms.Grace = in.validity, in.grace
	terms.InactiveAfter, terms.Match = in.inactiveAfter, in.match
	terms.FromActivation = in.ValidityFrom.value == fromActivation
	terms.SelfService = licensing.SelfService{
		Allowed:          in.SelfService.value,
		RemovalsPerMonth: int(in.RemovalsPerMonth.value),
	}
	terms.Receipts = in.receipts
	if in.DeviceMode.value == devicesLeased {
		length := time.Duration(in.LeaseSeconds.value) * time.Second
		terms.Lease = licensing.LeaseTerms{Length: length, Longest: length}
		if in.MaxLeaseSeconds.given {
			terms.Lease.Longest = time.Duration(in.MaxLeaseSeconds.value) * time.Second
		}
	}
	return terms
}

// putProduct creates a product, or replaces its description.
func (s productRoutes) putProduct(ctx context.Context, c *call, in productDescription) (product, error) {
	p, created, err := s.cfg.Node.PutProduct(ctx, licensing.PutProduct{
		ID:           in.ProductID.value,
		Owner:        c.owner(),
		Name:         in.Name.value,
		Terms:        in.terms(),
		Entitlements: in.entitlements,
		Trial:        in.trial, TrialEntitlements: in.trialEntitlements,
		Billing:  in.billing,
		Metadata: string(in.Metadata.value),
	})
	if err != nil {
		return product{}, err
	}
	c.created = created
	return productAnswer(&p), nil
}

// existingProduct names a product that must exist.
type existingProduct struct{ productPath }

// check refuses ids that no product can have, without a look into the store.
func (in *existingProduct) check(c *checks) {
	if !validProductID(in.ProductID.value) {
		c.refuse(licensing.ErrProductNotFound)
	}
}

// getProduct looks a product up.
func (s productRoutes) getProduct(ctx context.Context, c *call, in existingProduct) (product, error) {
	p, err := s.cfg.Node.Product(ctx, c.owner(), in.ProductID.value)
	if err != nil {
		return product{}, err
	}
	return productAnswer(&p), nil
}

type productDeletion struct {
	ProductID string `json:"product_id"`
	Deleted   bool   `json:"deleted"`
}

// deleteProduct removes a product.
func (s productRoutes) deleteProduct(ctx context.Context, c *call, in existingProduct) (productDeletion, error) {
	if err := s.cfg.Node.DeleteProduct(ctx, c.owner(), in.ProductID.value); err != nil {
		return productDeletion{}, err
	}
	return productDeletion{in.ProductID.value, true}, nil
}

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
func (c *rules) rolloutTerms(field string, in texts) (all licensing.RolloutTerms) {
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
