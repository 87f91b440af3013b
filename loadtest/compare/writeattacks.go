package main

import (
	"context"
	"fmt"
	"strings"

	"licet/client"
)

const (
	rivalOrders = 10   // of a buyer
	rivalFill   = 1000 // licenses of a grant
)

// pingPong makes as many events as one license can.
func (r *rival) pingPong(ctx context.Context) turnFunc {
	must(r.api.Webhooks.Create(ctx, client.NewWebhook{URL: r.sink.url}))
	r.undo = r.deleteEndpoints
	return func(ctx context.Context, c, _ int) error {
		device := fmt.Sprintf("rival-%d", c)
		if _, err := r.api.Activate(ctx,
			client.Activation{LicenseKey: string(r.license), DeviceID: device}); err != nil {
			return err
		}
		_, err := r.api.Licenses.RemoveDevice(ctx, string(r.license), device)
		return err
	}
}

// changeSettings makes a client change the settings of its account back and forth.
func (r *rival) changeSettings(context.Context) turnFunc {
	return func(ctx context.Context, _, turn int) error {
		matching := []string{client.MatchCompact, client.MatchExact}[turn%2]
		_, err := r.here.Account.Update(ctx, client.AccountUpdate{ExternalKeys: matching})
		return err
	}
}

// reissue makes a client give a license new keys, and activate a device by each. Each key is one more that nodes and
// etcd keep. A license gets few keys, so the client then grants another license.
func (r *rival) reissue(context.Context) turnFunc {
	var ids [fairRivals]string
	return func(ctx context.Context, c, _ int) error {
		if ids[c] == "" {
			made, err := r.here.Licenses.Grant(ctx, client.Grant{ProductID: "rival", Quantity: 1})
			if err != nil {
				return err
			}
			ids[c] = made[0].ID
		}
		license, err := r.here.Licenses.Reissue(ctx, ids[c], client.Reissue{})
		if client.HasReason(err, "reissue_limit") {
			ids[c] = ""
			return nil
		}
		if err != nil {
			return err
		}
		_, err = r.here.Activate(ctx, client.Activation{LicenseKey: license.LicenseKey, DeviceID: "rival"})
		return err
	}
}

// activateCold makes a client activate licenses that the measured node has not cached, without an API key. Each is
// activated once, unless the node is faster than expected.
func (r *rival) activateCold(ctx context.Context) turnFunc {
	licenses := must(grant(ctx, r.bench.seeder, r.key, r.cold, unlimited))
	return func(ctx context.Context, c, turn int) error {
		number := turn*fairRivals + c
		_, err := r.sendAs(ctx, "", "POST", "/v1/licenses/activate",
			fmt.Sprintf(`{"license_key":%q,"device_id":"cold-%d"}`, licenses.At(number%r.cold), number))
		return err
	}
}

// redact makes a client create orders of a buyer, and redact the buyer.
func (r *rival) redact(context.Context) turnFunc {
	return func(ctx context.Context, c, turn int) error {
		buyer := fmt.Sprintf("buyer-%d-%d@example.com", c, turn)
		for range rivalOrders {
			order := client.NewOrder{ProductID: "rival", Currency: "USD", Description: "of a buyer", BuyerEmail: buyer}
			if _, err := r.here.Orders.Create(ctx, order); err != nil {
				return err
			}
		}
		_, err := r.here.Redactions.RedactBuyer(ctx, buyer)
		return err
	}
}

// largeEvents makes a client change a license with much metadata, which each event repeats. So the events reach the
// limit of retention, and an endpoint gets them.
func (r *rival) largeEvents(ctx context.Context) turnFunc {
	must(r.patient.Webhooks.Create(ctx, client.NewWebhook{URL: r.sink.url}))
	r.undo = r.deleteEndpoints
	metadata := map[string]string{"a": strings.Repeat("x", rivalMetadata-len(`{"a":""}`))}
	licenses := must(r.patient.Licenses.Grant(ctx,
		client.Grant{ProductID: "rival", Quantity: fairRivals, Metadata: metadata}))
	return func(ctx context.Context, c, _ int) error {
		if _, err := r.here.Licenses.Suspend(ctx, licenses[c].LicenseKey, ""); err != nil &&
			!client.HasReason(err, "license_suspended") {
			return err
		}
		_, err := r.here.Licenses.Reinstate(ctx, licenses[c].LicenseKey, "")
		return err
	}
}

// fill makes a client grant as many licenses as fit into a request, toward the account's budget.
func (r *rival) fill(context.Context) turnFunc {
	grant := fmt.Sprintf(`{"product_id":"rival","quantity":%d}`, rivalFill)
	return func(ctx context.Context, _, _ int) error {
		_, err := r.send(ctx, "POST", "/v1/licenses", grant)
		return err
	}
}
