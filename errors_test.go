package licet_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"licet"
)

// TestReasonsAreFrozen spells the reasons out: they are the public contract.
func TestReasonsAreFrozen(t *testing.T) {
	for got, want := range map[licet.Reason]string{
		licet.ReasonInvalidLicenseKey:    "invalid_license_key",
		licet.ReasonLicenseRevoked:       "license_revoked",
		licet.ReasonLicenseSuspended:     "license_suspended",
		licet.ReasonLicenseExpired:       "license_expired",
		licet.ReasonProductMismatch:      "product_mismatch",
		licet.ReasonSelfServiceForbidden: "self_service_not_allowed",
		licet.NotBound:                   "device_not_bound",
		licet.ReasonLicenseNotFound:      "license_not_found",
		licet.ReasonDeviceNotFound:       "device_not_found",
		licet.ReasonOrderNotFound:        "order_not_found",
		licet.ReasonProductNotFound:      "product_not_found",
		licet.ReasonDeviceLimitReached:   "device_limit_reached",
		licet.ReasonInvalidOrderState:    "invalid_order_state",
		licet.ReasonInvalidLicenseState:  "invalid_license_state",
		licet.ReasonPaymentNotConfigured: "payment_not_configured",
		licet.ReasonWebhookNotFound:      "webhook_endpoint_not_found",
		licet.ReasonWebhookLimit:         "webhook_limit",
		licet.ReasonInvalidField:         "invalid_field",
		licet.ReasonInternal:             "internal",
		licet.ReasonProviderFailed:       "provider_failed",
		licet.ReasonUnavailable:          "unavailable",
		licet.ReasonOverloaded:           "overloaded",
		licet.ReasonOutcomeUnknown:       "outcome_unknown",
	} {
		if string(got) != want {
			t.Errorf("a reason became %q, it was published as %q", got, want)
		}
	}
	for got, want := range map[licet.Status]string{
		licet.NotActivated: "not_activated", licet.Activated: "activated", licet.Expired: "expired",
		licet.Revoked: "revoked", licet.Suspended: "suspended",
	} {
		if string(got) != want {
			t.Errorf("a license status became %q, it was published as %q", got, want)
		}
	}
	for got, want := range map[licet.OrderStatus]string{
		licet.OrderUnpaid: "unpaid", licet.OrderPaid: "paid", licet.OrderExpired: "expired",
		licet.OrderCanceled: "canceled", licet.OrderRefunded: "refunded",
	} {
		if string(got) != want {
			t.Errorf("an order status became %q, it was published as %q", got, want)
		}
	}
}

func sentinels() []*licet.Error {
	return []*licet.Error{
		licet.ErrInvalidLicenseKey, licet.ErrLicenseRevoked, licet.ErrLicenseSuspended,
		licet.ErrLicenseExpired, licet.ErrProductMismatch, licet.ErrSelfService, licet.ErrLicenseNotFound,
		licet.ErrOrderNotFound, licet.ErrProductNotFound, licet.ErrWebhookNotFound, licet.ErrPaymentNotConfigured,
		licet.ErrUnavailable, licet.ErrOverloaded, licet.ErrOutcomeUnknown, licet.ErrInternal,
	}
}

func TestErrorIs(t *testing.T) {
	for i, e := range sentinels() {
		for j, other := range sentinels() {
			if got := errors.Is(e, other); got != (i == j) {
				t.Errorf("errors.Is(%s, %s) = %v", e.Reason, other.Reason, got)
			}
		}
		elaborate := &licet.Error{
			Reason: e.Reason, Message: "in other words",
			Details: map[string]int{"n": 1}, Fields: []licet.FieldProblem{{Field: "f"}},
		}
		if !errors.Is(elaborate, e) || !errors.Is(e, elaborate) {
			t.Errorf("%s is not itself with other words", e.Reason)
		}
		if !errors.Is(fmt.Errorf("while testing: %w", e), e) {
			t.Errorf("%s is not found when wrapped", e.Reason)
		}
		plain := errors.New(e.Message)
		if errors.Is(e, plain) || errors.Is(plain, e) {
			t.Errorf("%s is taken for another type of error", e.Reason)
		}
	}
}

func TestErrorMessages(t *testing.T) {
	errs := slices.Clone(sentinels())
	revoked := licensed(func(l *licet.License) { l.RevokedAt = noon })
	full := licensed(func(l *licet.License) { l.MaxDevices = 1 }, "laptop")
	perpetual := licensed(nil)
	usedUp := licensed(func(l *licet.License) {
		l.SelfService = licet.SelfService{Allowed: true, RemovalsPerMonth: 1}
		l.Removals = licet.Removals{Month: 12*9999 + 11, Count: 1}
	}, "laptop")
	noted := licensed(nil)
	noted.Metadata = &licet.Metadata{}
	manyHooks := licet.Record{Webhooks: &licet.Webhooks{Endpoints: make([]licet.Endpoint, licet.MaxEndpoints)}}
	unpaid := licet.Record{Order: &licet.Order{ExpiresAt: noon.Add(day)}}
	for _, c := range []struct {
		record  licet.Record
		command licet.Command
	}{
		{revoked, licet.SuspendLicense{Target: ours}},
		{revoked, licet.ReinstateLicense{Target: ours}},
		{revoked, licet.RenewLicense{Target: ours, ExpiresAt: noon.Add(day)}},
		{full, licet.Activate{Target: ours, Device: "phone"}},
		{perpetual, licet.RenewLicense{Target: ours, ExpiresAt: noon}},
		{usedUp, licet.DeactivateDevice{Target: ours, Device: "laptop"}},
		{noted, licet.UpdateLicense{Target: ours, Metadata: `[]`}},
		{perpetual, licet.RenewLicense{Target: ours, Extend: licet.Period{Days: 1}}},
		{unpaid, licet.RefundOrder{}},
		{manyHooks, newEndpoint("we_99")},
		{licet.Record{}, newEndpoint("we_1", "order.lost")},
	} {
		_, err := licet.Apply(&c.record, c.command, noon)
		var e *licet.Error
		if !errors.As(err, &e) {
			t.Fatalf("%T answered %v", c.command, err)
		}
		errs = append(errs, e)
	}
	for _, e := range errs {
		if text := e.Error(); text == "" || text != e.Message || strings.HasSuffix(text, ".") || text[0] < 'a' || text[0] > 'z' {
			t.Errorf("%s says %q, want one lower-case sentence without a period", e.Reason, text)
		}
		if strings.Contains(e.Error(), string(shopKey)) {
			t.Errorf("%s names the license key: %q", e.Reason, e.Error())
		}
	}
}

// TestReasonOf judges errors by their outermost Error: an outcome that is unknown stays so
// whatever it wraps.
func TestReasonOf(t *testing.T) {
	f := func(err error, reason licet.Reason, notExecuted bool) {
		t.Helper()
		if got := licet.ReasonOf(err); got != reason {
			t.Errorf("the reason of %v is %q, want %q", err, got, reason)
		}
		if got := licet.NotExecuted(err); got != notExecuted {
			t.Errorf("%v was not executed: %v, want %v", err, got, notExecuted)
		}
	}
	wrap := func(errs ...error) error { return fmt.Errorf("store: %w: %w", errs[0], errs[1]) }
	f(nil, "", false)
	f(errors.New("plain"), licet.ReasonInternal, false)
	f(licet.ErrUnavailable, licet.ReasonUnavailable, true)
	f(licet.ErrOverloaded, licet.ReasonOverloaded, true)
	f(licet.ErrOutcomeUnknown, licet.ReasonOutcomeUnknown, false)
	f(licet.ErrLicenseNotFound, licet.ReasonLicenseNotFound, false)
	f(wrap(licet.ErrUnavailable, errors.New("no leader")), licet.ReasonUnavailable, true)
	f(wrap(licet.ErrOutcomeUnknown, licet.ErrOverloaded), licet.ReasonOutcomeUnknown, false)
	f(wrap(licet.ErrOutcomeUnknown, wrap(licet.ErrUnavailable, errors.New("the store is full"))), licet.ReasonOutcomeUnknown, false)
	f(wrap(errors.New("plain"), licet.ErrOverloaded), licet.ReasonOverloaded, true)
}
