package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// licenseRoutes are the functions of the routes of licenses.
type licenseRoutes struct{ *Server }

// license is a license as responses show it.
type license struct {
	licenseTerms
	licenseRules
	Devices     []device `json:"devices"`
	DevicesNext *string  `json:"devices_next_cursor"`
	licenseState
}

// licenseTerms and licenseState are a license without its devices.
type licenseTerms struct {
	ID             string           `json:"id"`
	LicenseKey     string           `json:"license_key"`
	ExternalKey    *string          `json:"external_key"`
	Status         licensing.Status `json:"status"`
	ProductID      string           `json:"product_id"`
	OrderNo        *string          `json:"order_no"`
	BuyerEmail     *string          `json:"buyer_email"`
	Reference      *string          `json:"customer_reference"`
	MaxDevices     int              `json:"max_devices"`
	CurrentDevices int              `json:"current_devices"`
	leaseTerms
	Entitlements json.RawMessage `json:"entitlements"`
	Trial        bool            `json:"trial"`
}

// licenseRules are the terms of a license that events do not show.
type licenseRules struct {
	EntitlementEnds json.RawMessage `json:"entitlement_ends"`
	Grace           *string         `json:"grace"`
	InactiveAfter   *string         `json:"inactive_after"`
	DeviceMatch     *deviceMatch    `json:"device_match,omitempty"`
}

type licenseState struct {
	ActivatedAt timestamp       `json:"activated_at"`
	ExpiresAt   timestamp       `json:"expires_at"`
	GraceEndsAt timestamp       `json:"grace_ends_at"`
	CreatedAt   timestamp       `json:"created_at"`
	AccountID   string          `json:"account_id"`
	Mode        licensing.Mode  `json:"mode"`
	Metadata    json.RawMessage `json:"metadata"`
	SuspendedAt timestamp       `json:"suspended_at"`
	RevokedAt   timestamp       `json:"revoked_at"`
	StateReason *string         `json:"state_reason"`
	Reissues    int             `json:"reissues"`
	ReissuedAt  timestamp       `json:"reissued_at"`
	// ReissueReason is the reason of the latest reissue.
	ReissueReason *string `json:"reissue_reason"`
}

// sortedDevices is the highest number of devices that come in the order of
// time. More devices come in the order of the listing, which stays as devices change.
const sortedDevices = 16

// getLicense looks a license up.
func (s licenseRoutes) getLicense(ctx context.Context, c *call, in licensePath) (license, error) {
	view, err := s.cfg.Node.License(ctx, c.owner(), in.key, store.DevicePage{Limit: store.ViewDevices})
	if err != nil {
		return license{}, err
	}
	return s.licenseAnswer(view, s.cfg.Node.Now(), s.cfg.Node.LeaseTime()), nil
}

// licenseAnswer is for a license as of now, with the leases that have not lapsed by leaseTime, see node.Node.LeaseTime.
func (r *renderer) licenseAnswer(view *store.LicenseView, now, leaseTime time.Time) license {
	view.HideLapsed(leaseTime)
	l := &view.License
	if l.CurrentDevices <= sortedDevices {
		slices.SortFunc(view.Devices, func(a, b licensing.Device) int {
			if byTime := a.BoundAt.Compare(b.BoundAt); byTime != 0 {
				return byTime
			}
			return strings.Compare(a.ID, b.ID)
		})
	}
	return license{
		licenseTerms: r.termsAnswer(view, now),
		licenseRules: rulesAnswer(view, now),
		Devices:      answers(view.Devices, deviceAnswer),
		DevicesNext:  cursorAnswer(view.Next),
		licenseState: stateAnswer(view),
	}
}

func (r *renderer) termsAnswer(view *store.LicenseView, now time.Time) licenseTerms {
	l := &view.License
	// verify reports an external key that does not open.
	external, _ := r.keys.OpenExternalKey(l.Key.ID(), view.Metadata.ExternalKey)
	return licenseTerms{
		ID:             l.Key.ID().String(),
		LicenseKey:     r.keys.Text(l.CurrentKey()),
		ExternalKey:    orNull(external),
		Status:         l.Status(now),
		ProductID:      l.ProductID,
		OrderNo:        orNull(l.OrderNo),
		BuyerEmail:     orNull(view.Metadata.BuyerEmail),
		Reference:      orNull(view.Metadata.Reference),
		MaxDevices:     l.MaxDevices,
		CurrentDevices: l.CurrentDevices,
		leaseTerms:     leaseTermsAnswer(l.Lease),
		Entitlements:   metadata(view.Entitled.At(l.TermsSince(), now)),
		Trial:          l.IsTrial(),
	}
}

func rulesAnswer(view *store.LicenseView, now time.Time) licenseRules {
	l := &view.License
	return licenseRules{
		EntitlementEnds: metadata(view.Entitled.EndsAt(l.TermsSince(), now)),
		Grace:           orNull(l.Grace.String()),
		InactiveAfter:   orNull(l.InactiveAfter.String()),
		DeviceMatch:     deviceMatchAnswer(l.Match),
	}
}

func stateAnswer(view *store.LicenseView) licenseState {
	l := &view.License
	answer := licenseState{
		ActivatedAt: timestamp(l.ActivatedAt),
		ExpiresAt:   timestamp(l.ExpiresAt),
		GraceEndsAt: timestamp(l.GraceEndsAt()),
		CreatedAt:   timestamp(l.CreatedAt),
		AccountID:   l.Owner.AccountID,
		Mode:        l.Owner.Mode,
		Metadata:    metadata(view.Metadata.Object),
		SuspendedAt: timestamp(l.SuspendedAt),
		RevokedAt:   timestamp(l.RevokedAt),
		StateReason: orNull(l.StateReason),
		Reissues:    l.Reissues.Count(),
	}
	if answer.Reissues > 0 {
		answer.ReissuedAt = timestamp(l.Reissues.At(answer.Reissues - 1))
		answer.ReissueReason = orNull(view.Metadata.ReissueReason)
	}
	return answer
}

// grant asks for licenses without an order.
type grant struct {
	ProductID      text    `json:"product_id"`
	Quantity       integer `json:"quantity"`
	MaxDevices     integer `json:"max_devices"`
	ExpiresAt      text    `json:"expires_at"`
	Metadata       object  `json:"metadata"`
	Entitlements   object  `json:"entitlements"`
	ExternalKey    text    `json:"external_key"`
	BuyerEmail     text    `json:"buyer_email"`
	Reference      text    `json:"customer_reference"`
	idempotencyKey `json:"-"`

	expires      time.Time
	external     string
	entitlements licensing.Entitlements
}

func (in *grant) check(c *checks) {
	c.productID("product_id", in.ProductID)
	c.integer("quantity", in.Quantity, true, 1, licensing.MaxQuantity)
	c.integer("max_devices", in.MaxDevices, false, 0, maxMaxDevices)
	if in.ExternalKey.given {
		in.expires = c.timestamp("expires_at", in.ExpiresAt) // at the other service, it may have expired
	} else {
		in.expires = c.future("expires_at", in.ExpiresAt)
	}
	c.metadata("metadata", in.Metadata)
	in.entitlements = c.ownEntitlements("entitlements", in.Entitlements)
	in.external = c.externalKey("external_key", in.ExternalKey)
	c.email("buyer_email", in.BuyerEmail, false)
	c.customerReference("customer_reference", in.Reference)
	if in.ExternalKey.given && in.Quantity.given && in.Quantity.value != 1 {
		c.add("quantity", "must be 1 if external_key is set: external_key names one license")
	}
	most := maxGrantMetadata / max(int(in.Quantity.value), 1)
	if len(in.Metadata.value)+len(in.entitlements) > most {
		field := "metadata"
		if !in.Metadata.given {
			field = "entitlements"
		}
		c.add(field, fmt.Sprintf("must have at most %d bytes as compact JSON for this quantity, metadata and "+
			"entitlements together, %d bytes for all licenses: grant fewer licenses at a time", most, maxGrantMetadata))
	}
}

// maxGrantMetadata bounds the metadata and the own entitlements of all licenses of a grant, in bytes.
const maxGrantMetadata = 1 << 20

// grantedLicenses are the licenses of a grant.
type grantedLicenses struct {
	Licenses []license `json:"licenses"`
}

// grantLicenses issues licenses without an order.
func (s licenseRoutes) grantLicenses(ctx context.Context, c *call, in grant) (grantedLicenses, error) {
	quantity := int(in.Quantity.value)
	size := grantedLicense + len(in.Metadata.value) + len(in.entitlements) + len(in.BuyerEmail.value) +
		len(in.Reference.value)
	if err := s.responses.reserve(c, quantity*size); err != nil {
		return grantedLicenses{}, err
	}
	s.rates.charge(c) // before the change: many large grants may come at once
	granted, replayed, err := s.cfg.Node.Grant(ctx, c.owner(), service.Grant{
		ProductID:    in.ProductID.value,
		Quantity:     quantity,
		MaxDevices:   maxDevices(in.MaxDevices),
		ExpiresAt:    in.expires,
		Metadata:     string(in.Metadata.value),
		Entitlements: in.entitlements,
		ExternalKey:  in.external,
		Customer:     licensing.Customer{BuyerEmail: in.BuyerEmail.value, Reference: in.Reference.value},
		By:           c.actor(),
		Once:         in.once,
		Stale:        in.stale,
	})
	c.replayed = replayed
	if err != nil {
		return grantedLicenses{}, err
	}
	now, leaseTime := s.cfg.Node.Now(), s.cfg.Node.LeaseTime()
	return grantedLicenses{answers(granted,
		func(view *store.LicenseView) license { return s.licenseAnswer(view, now, leaseTime) })}, nil
}

// metadata checks an object whose members belong to the client.
func (c *rules) metadata(field string, in object) {
	if !c.describe(field, Limits{MaxProperties: licensing.MaxMetadataMembers, MaxNameLength: maxMetadataName}) {
		c.members(field, in, func(members, _ int) bool { return members <= licensing.MaxMetadataMembers })
	}
}

// metadataPatch checks a merge patch for metadata. Members that are null remove members, and so
// don't count. The patched metadata may have less room left.
func (c *rules) metadataPatch(field string, in object) {
	if !c.describe(field, Limits{MaxNameLength: maxMetadataName}) {
		c.members(field, in, func(members, nulls int) bool { return members-nulls <= licensing.MaxMetadataMembers })
	}
}

func (c *rules) members(field string, in object, fit func(members, nulls int) bool) {
	if !in.given {
		return
	}
	if len(in.value) > licensing.MaxMetadataBytes {
		c.add(field, fmt.Sprintf("must have at most %d bytes as compact JSON", licensing.MaxMetadataBytes))
		return
	}
	names, nulls, err := memberNames(string(in.value))
	if err != nil {
		c.add(field, "must be an object")
		return
	}
	if !fit(len(names), nulls) {
		c.add(field, fmt.Sprintf("must have at most %d members", licensing.MaxMetadataMembers))
		return
	}
	for _, name := range names {
		if name == "" || utf8.RuneCountInString(name) > maxMetadataName {
			c.add(field, fmt.Sprintf("must have member names of 1 to %d characters", maxMetadataName))
			return
		}
	}
}

// memberNames lists the names of a JSON object's members, and counts the members that are null.
func memberNames(compact string) (names []string, nulls int, err error) {
	decoder := jsontext.NewDecoder(strings.NewReader(compact))
	if _, err := decoder.ReadToken(); err != nil {
		return nil, 0, err
	}
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, 0, err
		}
		names = append(names, name.String())
		if decoder.PeekKind() == 'n' {
			nulls++
		}
		if err := decoder.SkipValue(); err != nil {
			return nil, 0, err
		}
	}
	return names, nulls, nil
}

// entitlements checks entitlements of a product, or, with nulls, of a license.
func (c *rules) entitlements(field string, in object, nulls bool) licensing.Entitlements {
	if c.describe(field, Limits{MaxProperties: licensing.MaxEntitlements}) || !in.given {
		return ""
	}
	parsed, err := licensing.ParseEntitlements(field, string(in.value), nulls)
	var refused *licensing.Error
	if errors.As(err, &refused) {
		for _, f := range refused.Fields {
			c.add(f.Field, f.Problem)
		}
	}
	return parsed
}

// ownEntitlements checks a license's own entitlements, or changes of them.
func (c *rules) ownEntitlements(field string, in object) licensing.Entitlements {
	own := c.entitlements(field, in, true)
	if problem := own.OwnProblem(); problem != "" {
		c.add(field, problem)
	}
	return own
}
