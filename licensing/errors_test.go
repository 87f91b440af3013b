package licensing_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"licet/licensing"
)

// TestReasonsAreFrozen spells the reasons out: they are the public contract.
func TestReasonsAreFrozen(t *testing.T) {
	for got, want := range map[licensing.Reason]string{
		licensing.ReasonInvalidLicenseKey:    "invalid_license_key",
		licensing.ReasonLicenseRevoked:       "license_revoked",
		licensing.ReasonLicenseSuspended:     "license_suspended",
		licensing.ReasonLicenseExpired:       "license_expired",
		licensing.ReasonProductMismatch:      "product_mismatch",
		licensing.ReasonSelfServiceForbidden: "self_service_not_allowed",
		licensing.ReasonAccountBudgetReached: "account_budget_reached",
		licensing.NotBound:                   "device_not_bound",
		licensing.ReasonLicenseNotFound:      "license_not_found",
		licensing.ReasonDeviceNotFound:       "device_not_found",
		licensing.ReasonOrderNotFound:        "order_not_found",
		licensing.ReasonProductNotFound:      "product_not_found",
		licensing.ReasonDeviceLimitReached:   "device_limit_reached",
		licensing.ReasonInvalidOrderState:    "invalid_order_state",
		licensing.ReasonInvalidLicenseState:  "invalid_license_state",
		licensing.ReasonPaymentNotConfigured: "payment_not_configured",
		licensing.ReasonWebhookNotFound:      "webhook_endpoint_not_found",
		licensing.ReasonWebhookLimit:         "webhook_limit",
		licensing.ReasonAPIKeyLimit:          "api_key_limit",
		licensing.ReasonInvalidField:         "invalid_field",
		licensing.ReasonInternal:             "internal",
		licensing.ReasonProviderFailed:       "provider_failed",
		licensing.ReasonUnavailable:          "unavailable",
		licensing.ReasonOverloaded:           "overloaded",
		licensing.ReasonOutcomeUnknown:       "outcome_unknown",
	} {
		if string(got) != want {
			t.Errorf("a reason became %q, it was published as %q", got, want)
		}
	}
	for got, want := range map[licensing.Status]string{
		licensing.NotActivated: "not_activated", licensing.Activated: "activated", licensing.Expired: "expired",
		licensing.Revoked: "revoked", licensing.Suspended: "suspended",
	} {
		if string(got) != want {
			t.Errorf("a license status became %q, it was published as %q", got, want)
		}
	}
	for got, want := range map[licensing.OrderStatus]string{
		licensing.OrderUnpaid: "unpaid", licensing.OrderPaid: "paid", licensing.OrderExpired: "expired",
		licensing.OrderCanceled: "canceled", licensing.OrderRefunded: "refunded",
	} {
		if string(got) != want {
			t.Errorf("an order status became %q, it was published as %q", got, want)
		}
	}
}

func sentinels() []*licensing.Error {
	return []*licensing.Error{
		licensing.ErrInvalidLicenseKey, licensing.ErrLicenseRevoked, licensing.ErrLicenseSuspended,
		licensing.ErrLicenseExpired, licensing.ErrProductMismatch, licensing.ErrSelfService,
		licensing.ErrLicenseNotFound,
		licensing.ErrOrderNotFound, licensing.ErrProductNotFound, licensing.ErrWebhookNotFound,
		licensing.ErrPaymentNotConfigured,
		licensing.ErrUnavailable, licensing.ErrOverloaded, licensing.ErrOutcomeUnknown, licensing.ErrInternal,
	}
}

func TestErrorIs(t *testing.T) {
	for i, e := range sentinels() {
		for j, other := range sentinels() {
			if got := errors.Is(e, other); got != (i == j) {
				t.Errorf("errors.Is(%s, %s) = %v", e.Reason, other.Reason, got)
			}
		}
		elaborate := &licensing.Error{
			Reason: e.Reason, Message: "in other words",
			Details: map[string]int{"n": 1}, Fields: []licensing.FieldProblem{{Field: "f"}},
		}
		if !errors.Is(elaborate, e) || !errors.Is(e, elaborate) {
			t.Errorf("%s does not match an error with the same reason and another message", e.Reason)
		}
		if !errors.Is(fmt.Errorf("while testing: %w", e), e) {
			t.Errorf("errors.Is does not find %s in an error that wraps it", e.Reason)
		}
		plain := errors.New(e.Message)
		if errors.Is(e, plain) || errors.Is(plain, e) {
			t.Errorf("%s is taken for another type of error", e.Reason)
		}
	}
}

func TestErrorMessages(t *testing.T) {
	errs := slices.Clone(sentinels())
	revoked := licensed(func(l *licensing.License) { l.RevokedAt = noon })
	full := licensed(func(l *licensing.License) { l.MaxDevices = 1 }, "laptop")
	perpetual := licensed(nil)
	usedUp := licensed(func(l *licensing.License) {
		l.SelfService = licensing.SelfService{Allowed: true, RemovalsPerMonth: 1}
		l.Removals = licensing.Removals{Month: 12*9999 + 11, Count: 1}
	}, "laptop")
	noted := licensed(nil)
	noted.Metadata = &licensing.Metadata{}
	manyHooks := licensing.Record{Webhooks: &licensing.Webhooks{Endpoints: make([]licensing.Endpoint,
		licensing.MaxEndpoints)}}
	unpaid := licensing.Record{Order: &licensing.Order{ExpiresAt: noon.Add(day)}}
	for _, c := range []struct {
		record  licensing.Record
		command licensing.Command
	}{
		{revoked, licensing.SuspendLicense{Target: ours}},
		{revoked, licensing.ReinstateLicense{Target: ours}},
		{revoked, licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(day)}},
		{full, licensing.Activate{Target: ours, Device: "phone"}},
		{perpetual, licensing.RenewLicense{Target: ours, ExpiresAt: noon}},
		{usedUp, licensing.DeactivateDevice{Target: ours, Device: "laptop"}},
		{noted, licensing.UpdateLicense{Target: ours, Metadata: `[]`}},
		{perpetual, licensing.RenewLicense{Target: ours, Extend: licensing.Period{Days: 1}}},
		{unpaid, licensing.RefundOrder{}},
		{manyHooks, newEndpoint("we_99")},
		{licensing.Record{}, newEndpoint("we_1", "order.lost")},
	} {
		_, err := licensing.Apply(&c.record, c.command, noon)
		var e *licensing.Error
		if !errors.As(err, &e) {
			t.Fatalf("%T answered %v", c.command, err)
		}
		errs = append(errs, e)
	}
	for _, e := range errs {
		if text := e.Error(); text == "" || text != e.Message || strings.HasSuffix(text, ".") || text[0] < 'a' ||
			text[0] > 'z' {
			t.Errorf("%s says %q, want one lower-case sentence without a period", e.Reason, text)
		}
		if strings.Contains(e.Error(), shopKey.String()) {
			t.Errorf("%s names the license key: %q", e.Reason, e.Error())
		}
	}
}

// TestReasonOf classifies errors by their outermost Error: an outcome that is unknown stays so
// whatever it wraps.
func TestReasonOf(t *testing.T) {
	f := func(err error, reason licensing.Reason, notExecuted bool) {
		t.Helper()
		if got := licensing.ReasonOf(err); got != reason {
			t.Errorf("the reason of %v is %q, want %q", err, got, reason)
		}
		if got := licensing.NotExecuted(err); got != notExecuted {
			t.Errorf("%v was not executed: %v, want %v", err, got, notExecuted)
		}
	}
	wrap := func(errs ...error) error { return fmt.Errorf("store: %w: %w", errs[0], errs[1]) }
	f(nil, "", false)
	f(errors.New("plain"), licensing.ReasonInternal, false)
	f(licensing.ErrUnavailable, licensing.ReasonUnavailable, true)
	f(licensing.ErrOverloaded, licensing.ReasonOverloaded, true)
	f(licensing.ErrOutcomeUnknown, licensing.ReasonOutcomeUnknown, false)
	f(licensing.ErrLicenseNotFound, licensing.ReasonLicenseNotFound, false)
	f(wrap(licensing.ErrUnavailable, errors.New("no leader")), licensing.ReasonUnavailable, true)
	f(wrap(licensing.ErrOutcomeUnknown, licensing.ErrOverloaded), licensing.ReasonOutcomeUnknown, false)
	f(wrap(licensing.ErrOutcomeUnknown, wrap(licensing.ErrUnavailable, errors.New("the store is full"))),
		licensing.ReasonOutcomeUnknown, false)
	f(wrap(errors.New("plain"), licensing.ErrOverloaded), licensing.ReasonOverloaded, true)
}
