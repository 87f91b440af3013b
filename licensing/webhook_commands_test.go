package licensing_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/licensing"
)

var ofPayments = []licensing.EventType{licensing.EventOrderPaid, licensing.EventOrderRefunded}

func newEndpoint(id string, types ...licensing.EventType) licensing.CreateEndpoint {
	return licensing.CreateEndpoint{Owner: shop, By: byKey, Endpoint: licensing.Endpoint{
		ID: id, URL: "https://shop.example/licet", Types: types, SecretVersion: 1, MasterID: "m1", Since: "pos_0",
	}}
}

// hooked returns the record of endpoints, made at noon.
func hooked(t testing.TB, made ...licensing.CreateEndpoint) licensing.Record {
	t.Helper()
	var r licensing.Record
	for _, c := range made {
		if _, err := licensing.Apply(&r, c, noon); err != nil {
			t.Fatal(err)
		}
	}
	r.Changed = false
	return r
}

func TestEndpointLife(t *testing.T) {
	var r licensing.Record
	at := noon
	var past []string // of all answers and records so far, which must stay as they were
	var held []any
	do := func(c licensing.Command, changes bool, want ...licensing.EventType) licensing.Endpoint {
		t.Helper()
		at = at.Add(time.Minute)
		r.Changed, r.Events = false, nil
		result, err := licensing.Apply(&r, c, at)
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		if types := typesOf(r.Events); r.Changed != changes || !slices.Equal(types, want) {
			t.Errorf("%T: changed %v, events %v", c, r.Changed, types)
		}
		for i, h := range held {
			if now := fmt.Sprintf("%+v", h); now != past[i] {
				t.Fatalf("%T has changed what was answered before, from\n%s to\n%s", c, past[i], now)
			}
		}
		for _, h := range []any{result.Endpoint, r.Webhooks} {
			held, past = append(held, h), append(past, fmt.Sprintf("%+v", h))
		}
		return *result.Endpoint
	}
	made := do(newEndpoint("we_1"), true)
	if made.CreatedAt != at || made.ResetAt != at || !made.Enabled() || made.URL == "" || r.Webhooks.Owner != shop {
		t.Errorf("made %+v", made)
	}
	if again := do(newEndpoint("we_1"), false); !cmp.Equal(again, made) {
		t.Errorf("made again %+v", again)
	}
	do(newEndpoint("we_2", ofPayments...), true)
	if u := do(licensing.UpdateEndpoint{ID: "we_1", Description: new("x"), Types: &ofPayments},
		true); u.ResetAt != made.ResetAt || u.Description != "x" || !slices.Equal(u.Types, ofPayments) {
		t.Errorf("updated %+v", u)
	}
	do(licensing.UpdateEndpoint{ID: "we_1", Description: new("x"), Types: &ofPayments, URL: &made.URL,
		Enabled: new(true)}, false)
	do(licensing.UpdateEndpoint{ID: "we_1"}, false)
	if u := do(licensing.UpdateEndpoint{ID: "we_1", Types: new([]licensing.EventType)}, true); u.Types != nil {
		t.Errorf("of all kinds %+v", u)
	}
	moved := do(licensing.UpdateEndpoint{ID: "we_1", URL: new("https://shop.example/2")}, true)
	if moved.ResetAt != at {
		t.Errorf("moved %+v", moved)
	}
	do(licensing.DisableEndpoint{ID: "we_1", ResetAt: made.ResetAt, Because: licensing.DisabledGone}, false)
	gone := do(licensing.DisableEndpoint{ID: "we_1", ResetAt: moved.ResetAt, Because: licensing.DisabledGone}, true,
		licensing.EventWebhookDisabled)
	if gone.Enabled() || gone.DisabledAt != at || gone.DisabledBecause != licensing.DisabledGone {
		t.Errorf("disabled %+v", gone)
	}
	if e := r.Events[0]; e.Actor != licensing.System || e.Sequence != 1 || e.At != at || e.Webhook.ID != "we_1" ||
		e.Webhook.MasterID+e.Webhook.Since != "" || e.Webhook.SecretVersion != 0 {
		t.Errorf("event %+v of %+v", e, e.Webhook)
	}
	do(licensing.DisableEndpoint{ID: "we_1", ResetAt: moved.ResetAt, Because: licensing.DisabledFailing}, false)
	if u := do(licensing.UpdateEndpoint{ID: "we_1", Enabled: new(false)},
		false); u.DisabledBecause != licensing.DisabledGone {
		t.Errorf("disabled again %+v", u)
	}
	enabled := do(licensing.UpdateEndpoint{ID: "we_1", Enabled: new(true)}, true)
	if !enabled.Enabled() || enabled.DisabledBecause != "" || enabled.ResetAt != at {
		t.Errorf("enabled %+v", enabled)
	}
	if u := do(licensing.UpdateEndpoint{ID: "we_1", Enabled: new(false)},
		true); u.DisabledBecause != licensing.DisabledByUser || u.DisabledAt != at {
		t.Errorf("disabled by the user %+v", u)
	}
	rotated := do(licensing.RotateEndpointSecret{ID: "we_1", MasterID: "m2", Overlap: time.Hour}, true)
	if rotated.SecretVersion != 2 || rotated.MasterID != "m2" ||
		rotated.Previous != (licensing.PreviousSecret{Version: 1, MasterID: "m1", Until: at.Add(time.Hour)}) {
		t.Errorf("rotated %+v", rotated)
	}
	if u := do(licensing.RotateEndpointSecret{ID: "we_1", MasterID: "m2"}, true); u.SecretVersion != 3 ||
		u.Previous != (licensing.PreviousSecret{}) {
		t.Errorf("rotated at once %+v", u)
	}
	if u := do(licensing.DeleteEndpoint{ID: "we_1"}, true); u.ID != "we_1" || len(r.Webhooks.Endpoints) != 1 {
		t.Errorf("deleted %+v of %+v", u, r.Webhooks)
	}
	do(licensing.DeleteEndpoint{ID: "we_2"}, true)
	if r.Webhooks == nil || len(r.Webhooks.Endpoints) != 0 || r.Webhooks.Sequence != 1 {
		t.Errorf("in the end there is %+v", r.Webhooks)
	}
}

// TestEndpointResetsGoForward: each reset has a later time than the reset before, whatever the clock says.
func TestEndpointResetsGoForward(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, 0, time.Millisecond} {
		r := hooked(t, newEndpoint("we_1"))
		last := r.Webhooks.Endpoints[0].ResetAt
		for i := range 3 {
			result, err := licensing.Apply(&r,
				licensing.UpdateEndpoint{ID: "we_1", URL: new(fmt.Sprint("https://shop.example/", i))}, noon.Add(step))
			if err != nil || !result.Endpoint.ResetAt.After(last) {
				t.Errorf("%v: reset at %v after %v, %v", step, result.Endpoint.ResetAt, last, err)
			}
			last = result.Endpoint.ResetAt
			if _, err := licensing.Apply(&r, licensing.DisableEndpoint{ID: "we_1", ResetAt: noon,
				Because: licensing.DisabledGone}, noon); err != nil || !r.Webhooks.Endpoints[0].Enabled() {
				t.Errorf("%v: an earlier failure disabled the endpoint after its reset", step)
			}
		}
	}
}

func TestEndpointRefusals(t *testing.T) {
	full := make([]licensing.CreateEndpoint, licensing.MaxEndpoints)
	for i := range full {
		full[i] = newEndpoint(fmt.Sprint("we_", i), ofPayments...)
	}
	update := func(types ...licensing.EventType) licensing.UpdateEndpoint {
		return licensing.UpdateEndpoint{ID: "we_1", Types: &types}
	}
	for _, c := range []struct {
		name    string
		record  licensing.Record
		command licensing.Command
		want    licensing.Reason
	}{
		{"one more than there may be", hooked(t, full...), newEndpoint("we_99"), licensing.ReasonWebhookLimit},
		{"no kinds", licensing.Record{}, newEndpoint("we_1", []licensing.EventType{}...), licensing.ReasonInvalidField},
		{"a kind that there is not", licensing.Record{}, newEndpoint("we_1", "order.lost"),
			licensing.ReasonInvalidField},
		{"a kind twice", licensing.Record{}, newEndpoint("we_1", licensing.EventOrderPaid, licensing.EventOrderPaid),
			licensing.ReasonInvalidField},
		{"a change to no kinds", hooked(t, full...),
			licensing.UpdateEndpoint{ID: "we_1", Types: &[]licensing.EventType{}}, licensing.ReasonInvalidField},
		{"a change to a kind twice", hooked(t, full...), update(licensing.EventOrderPaid, licensing.EventOrderPaid),
			licensing.ReasonInvalidField},
		{"a change of nothing", hooked(t, full...), licensing.UpdateEndpoint{ID: "we_99", URL: new("x")},
			licensing.ReasonWebhookNotFound},
		{"a change where nothing is", licensing.Record{}, licensing.UpdateEndpoint{ID: "we_1"},
			licensing.ReasonWebhookNotFound},
		{"a removal of nothing", hooked(t, full...), licensing.DeleteEndpoint{ID: "we_99"},
			licensing.ReasonWebhookNotFound},
		{"a removal where nothing is", licensing.Record{}, licensing.DeleteEndpoint{ID: "we_1"},
			licensing.ReasonWebhookNotFound},
		{"a rotation of nothing", hooked(t, full...), licensing.RotateEndpointSecret{ID: "we_99"},
			licensing.ReasonWebhookNotFound},
		{"disabling nothing", licensing.Record{}, licensing.DisableEndpoint{ID: "we_1"},
			licensing.ReasonWebhookNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.record.Clone()
			_, err := licensing.Apply(&c.record, c.command, noon)
			var refusal *licensing.Error
			if !errors.As(err, &refusal) || refusal.Reason != c.want || c.command.DeviceID() != "" {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(before, c.record); diff != "" {
				t.Errorf("the record is changed:\n%s", diff)
			}
		})
	}
}

func TestListening(t *testing.T) {
	f := func(want bool, endpoints ...licensing.Endpoint) {
		t.Helper()
		if got := (&licensing.Webhooks{Endpoints: endpoints}).Listening(); got != want {
			t.Errorf("%+v listen: %v", endpoints, got)
		}
	}
	f(false)
	f(true, licensing.Endpoint{})
	f(false, licensing.Endpoint{DisabledAt: noon})
	f(false, licensing.Endpoint{Types: ofPayments},
		licensing.Endpoint{DisabledAt: noon, Types: []licensing.EventType{licensing.EventDeviceBound}})
	f(true, licensing.Endpoint{Types: ofPayments},
		licensing.Endpoint{Types: []licensing.EventType{licensing.EventOrderPaid, licensing.EventLicenseLimitReached}})
	f(false, licensing.Endpoint{Types: []licensing.EventType{licensing.EventWebhookDisabled}})
	if (*licensing.Webhooks)(nil).Listening() || (*licensing.Webhooks)(nil).Find("we_1") != nil {
		t.Error("a nil Webhooks listens or finds an endpoint")
	}
	some := licensing.Endpoint{Types: ofPayments}
	if all := (&licensing.Endpoint{}); !all.Wants(licensing.EventDeviceBound) ||
		some.Wants(licensing.EventDeviceBound) || !some.Wants(licensing.EventOrderPaid) {
		t.Error("Wants ignores the types of the endpoint")
	}
}

func TestValidEndpointID(t *testing.T) {
	for id, want := range map[string]bool{
		licensing.NewEndpointID(shop, "01JD4Q8X2M7R3N5T9V1W4Y6Z8A"): true,
		"we_0": true, "we_": false, "we": false, "we_A": false, "key_0": false, "we_0/": false, "we_\x00": false,
		"we_" + string(make([]byte, 61)): false,
	} {
		if licensing.ValidEndpointID(id) != want {
			t.Errorf("%q is valid: %v", id, !want)
		}
	}
}

// TestEndpointsInAnyOrder runs commands at random: the number of endpoints stays bounded, ids are unique, events are
// numbered, and each event has the state of its endpoint.
func TestEndpointsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r licensing.Record
		now := noon
		sequence := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			now = now.Add(drawClockStep(t))
			id := fmt.Sprint("we_", rapid.IntRange(0, 20).Draw(t, "id"))
			var c licensing.Command
			switch rapid.IntRange(0, 6).Draw(t, "command") {
			case 0, 1, 2:
				c = newEndpoint(id, rapid.SampledFrom([][]licensing.EventType{nil, ofPayments}).Draw(t, "types")...)
			case 3:
				c = licensing.UpdateEndpoint{ID: id, Enabled: new(rapid.Bool().Draw(t, "enabled"))}
			case 4:
				c = licensing.DeleteEndpoint{ID: id}
			case 5:
				c = licensing.RotateEndpointSecret{ID: id, MasterID: "m2", Overlap: time.Hour}
			case 6:
				disable := licensing.DisableEndpoint{ID: id, Because: licensing.DisabledFailing}
				if e := r.Webhooks.Find(id); e != nil && rapid.Bool().Draw(t, "seen") {
					disable.ResetAt = e.ResetAt
				}
				c = disable
			}
			before := r.Clone()
			r.Events, r.Changed = nil, false
			_, err := licensing.Apply(&r, c, now)
			before.Events, before.Changed = nil, false
			if same := cmp.Equal(before, r); same == r.Changed || err != nil && r.Changed {
				t.Fatalf("%+v: changed %v, and it is the same: %v (%v)", c, r.Changed, same, err)
			}
			for _, e := range r.Events {
				sequence++
				if at := r.Webhooks.Find(id); e.Sequence != sequence || e.At != now || at.Enabled() ||
					at.DisabledAt != e.Webhook.DisabledAt {
					t.Fatalf("event %+v", e)
				}
			}
			if r.Webhooks == nil {
				continue
			}
			ids := map[string]bool{}
			for _, e := range r.Webhooks.Endpoints {
				ids[e.ID] = true
			}
			if n := len(r.Webhooks.Endpoints); n > licensing.MaxEndpoints || n != len(ids) ||
				r.Webhooks.Sequence != sequence {
				t.Fatalf("there are %d endpoints of %d ids, and %d events", n, len(ids), r.Webhooks.Sequence)
			}
		}
	})
}
