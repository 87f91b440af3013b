package handlers

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// license is the answer of a lookup.
type license struct {
	licenseTerms
	Devices     []device `json:"devices"`
	DevicesNext *string  `json:"devices_next_cursor"`
	licenseState
}

// licenseTerms and licenseState are all that is told of a license but its devices.
type licenseTerms struct {
	LicenseKey     licensing.LicenseKey `json:"license_key"`
	Status         licensing.Status     `json:"status"`
	ProductID      string               `json:"product_id"`
	OrderNo        *string              `json:"order_no"`
	MaxDevices     int                  `json:"max_devices"`
	CurrentDevices int                  `json:"current_devices"`
}

type licenseState struct {
	ActivatedAt timestamp       `json:"activated_at"`
	ExpiresAt   timestamp       `json:"expires_at"`
	CreatedAt   timestamp       `json:"created_at"`
	AccountID   string          `json:"account_id"`
	Mode        licensing.Mode  `json:"mode"`
	Metadata    json.RawMessage `json:"metadata"`
	SuspendedAt timestamp       `json:"suspended_at"`
	RevokedAt   timestamp       `json:"revoked_at"`
	StateReason *string         `json:"state_reason"`
}

// sortedDevices is up to how many are put in order of time. Above, they
// come in the order of the listing, which does not change as devices do.
const sortedDevices = 16

// getLicense looks a license up.
func (s *Server) getLicense(r *request) (any, error) {
	key, err := s.cfg.Node.ParseLicenseKey(r.value("license_key"))
	if err != nil {
		return nil, err
	}
	view, err := s.cfg.Node.License(r.ctx, r.callerOwner(), key, store.DevicePage{Limit: store.ViewDevices})
	if err != nil {
		return nil, err
	}
	return licenseAnswer(view, s.cfg.Node.Now()), nil
}

func licenseAnswer(view *store.LicenseView, now time.Time) license {
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
		licenseTerms: termsAnswer(l, now),
		Devices:      deviceAnswers(view.Devices),
		DevicesNext:  cursorAnswer(view.Next),
		licenseState: stateAnswer(l, view.Metadata),
	}
}

func termsAnswer(l *licensing.License, now time.Time) licenseTerms {
	return licenseTerms{
		LicenseKey:     l.Key,
		Status:         l.Status(now),
		ProductID:      l.ProductID,
		OrderNo:        optional(l.OrderNo),
		MaxDevices:     l.MaxDevices,
		CurrentDevices: l.CurrentDevices,
	}
}

func stateAnswer(l *licensing.License, extra string) licenseState {
	return licenseState{
		ActivatedAt: timestamp(l.ActivatedAt),
		ExpiresAt:   timestamp(l.ExpiresAt),
		CreatedAt:   timestamp(l.CreatedAt),
		AccountID:   l.Owner.AccountID,
		Mode:        l.Owner.Mode,
		Metadata:    metadata(extra),
		SuspendedAt: timestamp(l.SuspendedAt),
		RevokedAt:   timestamp(l.RevokedAt),
		StateReason: optional(l.StateReason),
	}
}

// grantLicenses issues licenses that no order stands behind.
func (s *Server) grantLicenses(r *request) (any, error) {
	var bad, late problems
	grant, err := readGrant(r.body(), &bad)
	if err != nil {
		return nil, err
	}
	late.future("expires_at", grant.ExpiresAt, s.cfg.Node.Now())
	grant.By = r.actor()
	grant.Once, grant.Stale = bad.onceInTime(r, late)
	if err := bad.err(); err != nil {
		return nil, err
	}
	granted, replayed, err := s.cfg.Node.Grant(r.ctx, r.caller.Owner, grant)
	r.replayed = replayed
	if err != nil {
		return nil, err
	}
	now := s.cfg.Node.Now()
	licenses := make([]license, len(granted))
	for i := range granted {
		licenses[i] = licenseAnswer(&granted[i], now)
	}
	return struct {
		Licenses []license `json:"licenses"`
	}{licenses}, nil
}

// readGrant reads the body of a grant, and notes what is bad about it.
func readGrant(body []byte, bad *problems) (service.Grant, error) {
	var product, expires text
	var quantity, devices integer
	var extra object
	err := decodeObject(body, true,
		textMember("product_id", &product),
		integerMember("quantity", &quantity),
		integerMember("max_devices", &devices),
		textMember("expires_at", &expires),
		objectMember("metadata", &extra),
	)
	if err != nil {
		return service.Grant{}, err
	}
	bad.productID("product_id", product)
	bad.integer("quantity", quantity, true, 1, maxQuantity)
	bad.integer("max_devices", devices, false, 0, maxMaxDevices)
	grant := service.Grant{
		ProductID: product.value,
		Quantity:  int(quantity.value),
		ExpiresAt: bad.moment("expires_at", expires),
		Metadata:  extra.value,
	}
	bad.metadata("metadata", extra)
	if devices.given {
		most := int(devices.value)
		grant.MaxDevices = &most
	}
	return grant, nil
}
