package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"licet/licensing"
	"licet/node/service"
)

// The values of trial.per.
const (
	trialPerDevice = "device"
	trialPerEmail  = "email"
)

// trialTerms are the terms of trials of a product, in requests and in responses.
type trialTerms struct {
	Validity     string          `json:"validity"`
	MaxDevices   *int            `json:"max_devices,omitempty"`
	Entitlements json.RawMessage `json:"entitlements,omitempty"`
	Per          string          `json:"per"`
}

// trial checks the terms of trials of a product; an empty object offers none.
func (c *rules) trial(field string, in object) (terms licensing.TrialTerms, entitled licensing.Entitlements) {
	if c.describe(field, Limits{MaxProperties: 4}) || !in.given {
		return terms, ""
	}
	bad := func(format string, args ...any) { c.add(field, fmt.Sprintf(format, args...)) }
	var sent trialTerms
	decoder := json.NewDecoder(strings.NewReader(string(in.value)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sent); err != nil {
		bad("must have no other members than validity and per, both strings, max_devices, an integer, and " +
			"entitlements, an object")
		return terms, ""
	}
	if sent.Validity == "" && sent.Per == "" && sent.MaxDevices == nil && sent.Entitlements == nil {
		return terms, ""
	}
	terms.MaxDevices = 1
	var ok bool
	if terms.Validity, ok = licensing.ParsePeriod(sent.Validity); !ok || terms.Validity.IsZero() {
		bad("must have an ISO 8601 duration as validity, such as P14D")
	}
	if sent.MaxDevices != nil {
		terms.MaxDevices = *sent.MaxDevices
	}
	if terms.MaxDevices < 1 || terms.MaxDevices > licensing.MaxTrialDevices {
		bad("must have a max_devices of 1 to %d", licensing.MaxTrialDevices)
	}
	if terms.PerEmail = sent.Per == trialPerEmail; !terms.PerEmail && sent.Per != trialPerDevice {
		bad("must have device or email as per")
	}
	if terms.Entitled = sent.Entitlements != nil; terms.Entitled {
		object := object{given: true, value: compactObject(sent.Entitlements)}
		entitled = c.entitlements(field+".entitlements", object, false)
	}
	return terms, entitled
}

// trialAnswer shows the terms of trials of a product; an empty object: there are no trials.
func trialAnswer(p *licensing.Product) json.RawMessage {
	if !p.Trial.Offered() {
		return metadata("")
	}
	terms := trialTerms{Validity: p.Trial.Validity.String(), MaxDevices: &p.Trial.MaxDevices, Per: trialPerDevice}
	if p.Trial.PerEmail {
		terms.Per = trialPerEmail
	}
	if p.Trial.Entitled {
		terms.Entitlements = metadata(string(p.TrialEntitlements))
	}
	encoded, err := encode(terms)
	if err != nil {
		panic(err) // no text of a product fails to encode
	}
	return bytes.TrimSuffix(encoded, []byte("\n"))
}

// trialRequest asks for a trial of a product. Members that are unknown are skipped, as in activations.
type trialRequest struct {
	ProductID  text `json:"product_id"`
	AccountID  text `json:"account_id"`
	Mode       text `json:"mode"`
	DeviceID   text `json:"device_id"`
	DeviceName text `json:"device_name"`
	BuyerEmail text `json:"buyer_email"`
	leaseRequest
	receiptRequest
	DeviceComponents object `json:"device_components"`

	components licensing.Components
}

func (in *trialRequest) check(c *checks) {
	c.productID("product_id", in.ProductID)
	c.pin("account_id", in.AccountID)
	c.pin("mode", in.Mode)
	c.deviceID("device_id", in.DeviceID)
	c.line("device_name", in.DeviceName, maxDeviceName)
	c.email("buyer_email", in.BuyerEmail, false)
	in.leaseRequest.check(c)
	in.receiptRequest.check(c)
	in.components = c.components("device_components", in.DeviceComponents)
	if c.caller == nil && !in.AccountID.given && c.limits == nil {
		c.add("account_id", problemRequired)
	}
}

// startTrial issues a license for a trial, to the device that asks for it.
func (s endUserRoutes) startTrial(ctx context.Context, c *call, in trialRequest) (*activation, error) {
	owner := licensing.Owner{AccountID: in.AccountID.value, Mode: licensing.Mode(in.Mode.value)}
	switch {
	case c.key != nil && !c.key.Owner.Matches(owner):
		return nil, licensing.ErrProductNotFound
	case c.key != nil:
		owner = c.key.Owner
	case owner.Mode == "":
		owner.Mode = licensing.Live
	case owner.Mode != licensing.Live && owner.Mode != licensing.Test:
		return nil, licensing.ErrProductNotFound
	}
	if err := s.rates.trial(c); err != nil {
		return nil, err
	}
	ask := service.NewTrial{
		ProductID: in.ProductID.value, Device: in.DeviceID.value, DeviceName: in.DeviceName.value,
		Named: in.DeviceName.given, BuyerEmail: in.BuyerEmail.value, By: c.actor(),
		Lease: in.lease(), Receipt: in.ask(), Components: in.components,
	}
	if c.key == nil {
		ask.Network = s.rates.network(c)
	}
	result, err := s.cfg.Node.StartTrial(ctx, owner, ask)
	if errors.Is(err, service.ErrTrialNeedsKey) {
		return nil, errTrialNeedsKey
	}
	if err != nil {
		return nil, err
	}
	c.created, c.bound = result.Created, result.Bound
	return s.activated(ctx, &result, s.keys.Text(result.License.CurrentKey()), &in.receiptRequest)
}
