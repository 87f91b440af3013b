package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"licet/client"
)

// attack is one way for an account to use up what others need.
type attack struct {
	name string
	// open prepares the rival account, and sets undo if the preparation must be undone. It returns the attack that each
	// of the rival's clients repeats.
	open    func(r *rival, ctx context.Context) turnFunc
	refused bool // the attack is made to be refused: a refusal counts as getting through
	control bool // no attack; see controls
}

// gotThrough reports whether a turn of the attack did what it is made for.
func (a *attack) gotThrough(err error) bool {
	var refusal statusError
	return err == nil || a.refused && errors.As(err, &refusal)
}

// attacks returns every attack. Each is a check of the row fair.
func attacks() []attack {
	return []attack{
		{name: "changes an endpoint's event types", open: (*rival).flipTypes},
		{name: "creates and deletes endpoints", open: (*rival).churnEndpoints},
		{name: "creates and revokes API keys", open: (*rival).churnKeys},
		{name: "changes its account's settings", open: (*rival).changeSettings},
		{name: "reissues license keys and uses each", open: (*rival).reissue},
		{name: "binds and removes a device, with its events recorded", open: (*rival).pingPong},
		{name: "reads none of its large lookups", open: (*rival).readNothing},
		{name: "grants licenses with 1 MiB of metadata", open: (*rival).grantMetadata},
		{name: "guesses API keys and payment links", open: (*rival).guess, refused: true},
		{name: "guesses external keys of the other account", open: (*rival).guessExternal, refused: true},
		{name: "opens connections and uses none", open: (*rival).hoardConnections},
		{name: "binds new devices and renames them", open: (*rival).addDevices},
		{name: "exports its licenses and events over 100 connections", open: (*rival).exportAll},
		{name: "waits for events on 75 connections, and makes some", open: (*rival).waitForEvents},
		{name: "begins large requests and completes none", open: (*rival).neverComplete},
		{name: "looks up a foreign license with 1,000 devices", open: (*rival).lookUpForeign},
		{name: "activates licenses that no node has cached", open: (*rival).activateCold},
		{name: "creates orders and redacts their buyers", open: (*rival).redact},
		{
			name: "suspends and reinstates licenses, with large events at the limit of retention",
			open: (*rival).largeEvents,
		},
		{name: "grants 1,000 licenses at a time", open: (*rival).fill},
	}
}

// fairRow has a check for each attack.
func fairRow() row {
	r := row{id: "fair", figure: "one account's new devices ÷ undisturbed, while another account"}
	for _, a := range attacks() {
		r.checks = append(r.checks, check{name: a.name, atLeast: true, must: 0.7, aim: 0.85})
	}
	return r
}

// measured returns the attacks and the controls.
func measured() []attack { return append(attacks(), controls()...) }

// controls returns what any account may do. The loss of the measured account meanwhile is no attack's: it is the price
// of a neighbor on the same cores and the same disk. The row fair shows these losses for information.
func controls() []attack {
	return []attack{
		{name: "activates devices of its own", open: (*rival).activateHere, control: true},
		{name: "activates devices of its own at another node", open: (*rival).activateElsewhere, control: true},
		{name: "sends small requests above its rate", open: (*rival).exceedRate, control: true},
	}
}

// activateHere makes a client activate devices at the measured node.
func (r *rival) activateHere(ctx context.Context) turnFunc {
	return r.activateOwn(ctx, r.here)
}

// activateElsewhere makes a client activate devices at another node.
func (r *rival) activateElsewhere(ctx context.Context) turnFunc {
	return r.activateOwn(ctx, r.api)
}

// activateOwn makes a client bind new devices to a license of its own, as the measured account does over more
// connections.
func (r *rival) activateOwn(ctx context.Context, api *client.Client) turnFunc {
	licenses := must(grant(ctx, r.bench.seeder, r.key, fairRivals, unlimited))
	return func(ctx context.Context, c, turn int) error {
		_, err := api.Activate(ctx,
			client.Activation{LicenseKey: string(licenses.At(c)), DeviceID: fmt.Sprint("own-", turn)})
		return err
	}
}

// exceedRate makes a client send requests that need nothing of the store, many at the same time. The node refuses
// those above the rate of the account.
func (r *rival) exceedRate(context.Context) turnFunc {
	return together(func(ctx context.Context, _, _ int) error {
		_, err := r.send(ctx, "GET", "/v1/licenses/x", "")
		if errors.Is(err, statusError(http.StatusBadRequest)) {
			return nil // the node has checked the license key
		}
		return err
	})
}
