package fakestripe

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
)

// The test numbers of cards, and what the fake does with each.
const (
	CardPays           = "4242424242424242"
	CardDeclined       = "4000000000000002"
	CardNoFunds        = "4000000000009995"
	CardDisputed       = "4000000000000259" // pays, and the buyer disputes the payment
	CardRefundFails    = "4000000000005126" // pays; a refund succeeds, and fails later
	CardRefundPending  = "4000000000007726" // pays; a refund is pending, and succeeds later
	CardAuthentication = "4000002760003184" // the buyer must authenticate; see Authenticate
	// BankPays and BankFails are accounts at a bank, whose payments take days.
	BankPays  = "AT611904300234573201"
	BankFails = "AT861904300235473202"
)

// How long what happens by itself takes, by the fake's clock.
const (
	bankTakes    = 3 * 24 * time.Hour
	refundTakes  = 24 * time.Hour
	disputeTakes = time.Hour
	captureTakes = 30 * time.Second
)

// Errors of a buyer.
var (
	ErrNotOpen  = errors.New("this checkout is closed: no buyer can pay here any more")
	ErrDeclined = errors.New("the card is declined")
	// ErrAuthenticate means that the buyer must authenticate; see Fake.Authenticate.
	ErrAuthenticate = errors.New("the bank wants the buyer to authenticate")
)

// Pay pays in an open session with a card or from a bank account. After ErrDeclined the buyer may try again.
func (f *Fake) Pay(sessionID, with string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	session := f.openSession(sessionID)
	if session == nil {
		return ErrNotOpen
	}
	if session.text("mode") == "subscription" {
		if with == CardDeclined || with == CardNoFunds {
			return ErrDeclined // Stripe makes the subscription once the buyer has paid
		}
		f.subscribe(session, with)
		f.complete(session, !takesDays(with))
		return nil
	}
	intent := f.intentOf(session)
	switch with {
	case CardDeclined:
		f.decline(intent, sdk.ErrorCodeCardDeclined, "generic_decline")
		return ErrDeclined
	case CardNoFunds:
		f.decline(intent, sdk.ErrorCodeCardDeclined, "insufficient_funds")
		return ErrDeclined
	case CardAuthentication:
		intent["status"] = string(sdk.PaymentIntentStatusRequiresAction)
		return ErrAuthenticate
	case BankPays, BankFails:
		intent["status"] = string(sdk.PaymentIntentStatusProcessing)
		f.complete(session, false)
		f.after(bankTakes, func() { f.endPayment(session, intent, with == BankPays) })
		return nil
	}
	f.charge(intent, with)
	f.complete(session, true)
	return nil
}

// Authenticate ends the authentication of a buyer: right reports whether the authentication succeeds.
func (f *Fake) Authenticate(sessionID string, right bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	session := f.openSession(sessionID)
	if session == nil {
		return ErrNotOpen
	}
	intent := f.intentOf(session)
	if intent.text("status") != string(sdk.PaymentIntentStatusRequiresAction) {
		return ErrNotOpen
	}
	if !right {
		f.decline(intent, sdk.ErrorCodePaymentIntentAuthenticationFailure, "")
		return ErrDeclined
	}
	f.charge(intent, CardPays)
	f.complete(session, true)
	return nil
}

// openSession returns a session in which the buyer can pay; nil if the buyer can't.
func (f *Fake) openSession(id string) object {
	f.catchUp()
	session := f.objects[id]
	if session == nil || session.text("status") != "open" {
		return nil
	}
	return session
}

// endPayment ends a payment from a bank account.
func (f *Fake) endPayment(session, intent object, pays bool) {
	if !pays {
		intent["status"] = string(sdk.PaymentIntentStatusRequiresPaymentMethod)
		f.emit("payment_intent.payment_failed", intent)
		f.emit("checkout.session.async_payment_failed", session)
		return
	}
	f.charge(intent, BankPays)
	session["payment_status"] = "paid"
	f.emit("checkout.session.async_payment_succeeded", session)
}

// servePage is the page where buyers pay: GET returns the session, and a form with a card pays.
func (f *Fake) servePage(w http.ResponseWriter, r *http.Request, id string) {
	f.mu.Lock()
	f.catchUp()
	session := f.objects[id]
	var shown object
	if session != nil && session.text("object") == "checkout.session" {
		shown = session.clone()
	}
	f.mu.Unlock()
	if shown == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(shown)
		return
	}
	var err error
	switch answer := r.PostFormValue("authenticate"); {
	case answer != "":
		err = f.Authenticate(id, answer == "yes")
	case r.PostFormValue("action") == "cancel":
		http.Redirect(w, r, shown.text("cancel_url"), http.StatusSeeOther)
		return
	default:
		err = f.Pay(id, r.PostFormValue("card"))
	}
	switch {
	case err == nil:
		http.Redirect(w, r, shown.text("success_url"), http.StatusSeeOther)
	case errors.Is(err, ErrNotOpen):
		http.Error(w, err.Error(), http.StatusGone)
	default:
		http.Error(w, err.Error(), http.StatusPaymentRequired)
	}
}
