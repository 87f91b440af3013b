package licensing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/internal/depth"
	"licet/licensing"
)

// licenseEvents has the events of each command if the owner listens to activations, in the rows of licenseTable and two
// more rows. A word is the end of an event's type; "=" is no event.
const licenseEvents = `
from                     | suspend   | reinstate  | revoke  | renew   | extend  | update  | note same | expire  | redact | activate        | activate bound | rename | remove  | remove unbound | deactivate | deactivate unbound | validate | validate bound | seen
not_activated            | suspended | =          | revoked | renewed | renewed | updated | =         | =       | =      | activated bound | -              | -      | -       | =              | -          | =                  | =        | -              | -
activated                | suspended | =          | revoked | renewed | renewed | updated | =         | =       | =      | bound           | =              | =      | removed | =              | removed    | =                  | =        | =              | =
activated twice          | suspended | =          | revoked | renewed | renewed | updated | =         | =       | =      | bound           | =              | =      | removed | =              | removed    | =                  | =        | =              | =
activated, full          | suspended | =          | revoked | renewed | renewed | updated | =         | =       | =      | limit_reached   | =              | =      | removed | =              | removed    | =                  | =        | =              | =
suspended not_activated  | =         | reinstated | revoked | renewed | renewed | updated | =         | =       | =      | =               | -              | -      | -       | =              | -          | =                  | =        | -              | -
suspended activated      | =         | reinstated | revoked | renewed | renewed | updated | =         | =       | =      | =               | =              | =      | removed | =              | removed    | =                  | =        | =              | =
suspended expired        | =         | reinstated | revoked | renewed | renewed | updated | =         | expired | =      | =               | =              | =      | removed | =              | removed    | =                  | =        | =              | =
expired not_activated    | suspended | =          | revoked | renewed | renewed | updated | =         | expired | =      | =               | -              | -      | -       | =              | -          | =                  | =        | -              | -
expired activated        | suspended | =          | revoked | renewed | renewed | updated | =         | expired | =      | =               | =              | =      | removed | =              | removed    | =                  | =        | =              | =
expired, recorded        | suspended | =          | revoked | renewed | renewed | updated | =         | =       | =      | =               | =              | =      | removed | =              | removed    | =                  | =        | =              | =
revoked not_activated    | =         | =          | =       | =       | =       | updated | =         | =       | =      | =               | -              | -      | -       | =              | -          | =                  | =        | -              | -
revoked activated        | =         | =          | =       | =       | =       | updated | =         | =       | =      | =               | =              | =      | removed | =              | removed    | =                  | =        | =              | =
revoked everything       | =         | =          | =       | =       | =       | updated | =         | =       | =      | =               | =              | =      | removed | =              | removed    | =                  | =        | =              | =
`

// byKey is the actor of the commands in these tests.
const byKey licensing.Actor = "key_1"

func TestLicenseEvents(t *testing.T) {
	depth.NotRaced(t)
	rows := licenseStates()
	rows["activated, full"] = func() licensing.Record {
		return licensed(func(l *licensing.License) {
			l.SelfService.Allowed, l.MaxDevices, l.ExpiresAt = true, 1, noon.Add(day)
		}, "laptop")
	}
	rows["expired, recorded"] = func() licensing.Record {
		r := rows["expired activated"]()
		r.License.EndRecorded = r.License.ExpiresAt
		return r
	}
	asked := licensing.Target{Key: shopKey, By: byKey}
	columns := licenseColumns(asked)
	columns["activate"] = licensing.Activate{Target: asked, Device: "phone", Name: "My Phone", Named: true}
	columns["update"] = licensing.UpdateLicense{Target: asked, MaxDevices: new(9), Metadata: `{"a":2}`}
	columns["note same"] = licensing.UpdateLicense{Target: asked, Metadata: `{"a":1}`}
	columns["expire"] = licensing.ExpireLicense{Before: noon}
	columns["redact"] = licensing.RedactLicense{Target: asked}
	columns["rename"] = licensing.Activate{Target: asked, Device: "laptop", Name: "Tin", Named: true}
	columns["seen"] = licensing.Seen{Key: shopKey, Device: "laptop", At: noon}
	eachCell(t, licenseEvents, len(rows), len(columns), func(t *testing.T, row, column, cell string) {
		for _, listening := range []bool{true, false} {
			r := rows[row]()
			r.License.Sequence, r.License.StateReason = 41, "for Ann"
			r.Metadata = &licensing.Metadata{Object: `{"a":1}`}
			r.Listening = listening
			laptop := r.Devices["laptop"].Device
			var want []licensing.Event
			for word := range strings.FieldsSeq(strings.Trim(cell, "=")) {
				e := licensing.Event{Type: typeOf(t, word), At: noon, Sequence: 42 + uint64(len(want)), Actor: byKey}
				if e.Type.OfActivation() && !listening {
					continue
				}
				switch e.Type {
				case licensing.EventLicenseExpired:
					e.Actor = licensing.System
				case licensing.EventLicenseLimitReached:
					e.Device = &licensing.Device{ID: "phone", Name: "My Phone", Named: true}
				case licensing.EventLicenseActivated, licensing.EventDeviceBound:
					e.Device = &licensing.Device{ID: "phone", Name: "My Phone", Named: true, BoundAt: noon,
						LastSeenAt: noon}
				case licensing.EventDeviceRemoved:
					e.Device = &laptop
				}
				want = append(want, e)
			}
			_, err := run(t, &r, columns[column], noon)
			if full := cell == "limit_reached"; full != (reason(err) == licensing.ReasonDeviceLimitReached) {
				t.Errorf("answered %v", err)
			}
			for i := range want {
				as := *r.License
				as.Sequence = want[i].Sequence
				want[i].License = &as
			}
			if diff := cmp.Diff(want, r.Events); diff != "" {
				t.Errorf("events if the owner listens (%v) (-want +got):\n%s", listening, diff)
			}
		}
	})
}

// orderEvents says which event each command has, in the rows of orderTable and one more row, and the license in the
// event.
const orderEvents = `
from                      | paid        | expire  | cancel   | request | try | withdraw | recorded | redact
unpaid                    | paid issued | =       | canceled | =       | =   | =        | =        | =
expired by the clock      | paid issued | expired | =        | =       | =   | =        | =        | =
expired as recorded       | paid issued | =       | =        | =       | =   | =        | =        | =
expired, clock behind     | paid issued | =       | =        | =       | =   | =        | =        | =
canceled                  | =           | =       | =        | =       | =   | =        | =        | =
canceled, since run out   | =           | =       | =        | =       | =   | =        | =        | =
canceled, refund due      | =           | =       | =        | =       | =   | =        | refunded | =
paid                      | =           | =       | =        | =       | =   | =        | refunded | =
paid, refund due          | =           | =       | =        | =       | =   | =        | refunded | =
paid, since run out       | =           | =       | =        | =       | =   | =        | refunded | =
paid late                 | =           | =       | =        | =       | =   | =        | refunded | =
refunded                  | =           | =       | =        | =       | =   | =        | =        | =
refunded, was canceled    | =           | =       | =        | =       | =   | =        | =        | =
`

func TestOrderEvents(t *testing.T) {
	rows := orderStates()
	rows["paid, refund due"] = append(slices.Clone(rows["paid"]),
		func(o *licensing.Order) { o.RefundDue, o.RefundBy = true, "key_2" })
	columns := map[string]licensing.Command{
		"paid": payment, "expire": licensing.ExpireOrder{Before: noon}, "cancel": licensing.CancelOrder{By: byKey},
		"request": licensing.RequestRefund{By: byKey}, "try": licensing.TryRefund{},
		"withdraw": licensing.WithdrawRefund{}, "recorded": licensing.RefundOrder{},
	}
	eachCell(t, orderEvents, len(rows), len(columns)+1, func(t *testing.T, row, column, cell string) {
		r := ordered(func(o *licensing.Order) {
			for _, fact := range rows[row] {
				fact(o)
			}
			o.Sequence = 6
		})
		cmd := columns[column]
		if column == "redact" {
			cmd = licensing.RedactOrder{BuyerEmail: r.Order.BuyerEmail, LicenseKey: r.Order.LicenseKey,
				Sequence: r.Order.Sequence, LicensesIssued: r.Order.LicensesIssued}
		}
		actor := map[string]licensing.Actor{
			"paid": licensing.Provider, "expire": licensing.System, "cancel": byKey, "recorded": r.Order.RefundBy,
		}[column]
		if actor == "" {
			actor = licensing.System
		}
		_, _ = run(t, &r, cmd, noon)
		var want []licensing.Event
		switch cell {
		case "=":
		case "paid issued":
			want = []licensing.Event{
				{Type: licensing.EventOrderPaid, At: noon, Sequence: 7, Actor: actor, Order: r.Order},
				{Type: licensing.EventLicenseIssued, At: noon, Sequence: 1, Actor: actor, License: r.Issued[0]},
			}
		default:
			want = []licensing.Event{{Type: licensing.EventType("order." + cell), At: noon, Sequence: 7, Actor: actor,
				Order: r.Order}}
		}
		if diff := cmp.Diff(want, r.Events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestFreeOrderEvents: the changes of one transaction have events in their order, each with the facts right after its
// change.
func TestFreeOrderEvents(t *testing.T) {
	o := ordered(nil).Order
	created := *o
	r := licensing.NewOrder(o, byKey)
	if _, err := licensing.Apply(&r, licensing.PayOrder{By: byKey, Terms: o.Terms, Key: shopKey},
		created.CreatedAt); err != nil {
		t.Fatal(err)
	}
	created.Sequence = 1
	want := []licensing.Event{
		{Type: licensing.EventOrderCreated, At: created.CreatedAt, Sequence: 1, Actor: byKey, Order: &created},
		{Type: licensing.EventOrderPaid, At: created.CreatedAt, Sequence: 2, Actor: byKey, Order: r.Order},
		{Type: licensing.EventLicenseIssued, At: created.CreatedAt, Sequence: 1, Actor: byKey, License: r.Issued[0]},
	}
	if diff := cmp.Diff(want, r.Events); diff != "" || !r.Changed {
		t.Errorf("changed %v, events (-want +got):\n%s", r.Changed, diff)
	}
}

func TestGrantEvents(t *testing.T) {
	l := licensing.DefaultTerms().Issue(shopKey, shop, app, "", noon)
	note := &licensing.Metadata{Object: `{"a":1}`, Changed: true}
	r := licensing.NewLicense(l, note, byKey)
	want := []licensing.Event{{Type: licensing.EventLicenseIssued, At: noon, Sequence: 1, Actor: byKey, License: l}}
	if diff := cmp.Diff(want, r.Events); diff != "" || !r.Changed || r.Metadata != note || r.License != l {
		t.Errorf("%+v, events (-want +got):\n%s", r, diff)
	}
}

// TestRefundActor: the event of a refund names the actor that requested the refund, however late any node records it,
// and of two requests the request that took effect.
func TestRefundActor(t *testing.T) {
	paid := func() licensing.Record {
		r := ordered(nil)
		must(t, &r, payment, noon)
		return r
	}
	f := func(want licensing.Actor, r licensing.Record, commands ...licensing.Command) {
		t.Helper()
		for _, c := range append(commands, licensing.TryRefund{}, licensing.RefundOrder{}) {
			must(t, &r, c, noon.Add(time.Minute))
		}
		if len(r.Events) != 1 || r.Events[0].Type != licensing.EventOrderRefunded || r.Events[0].Actor != want ||
			r.Order.RefundBy != want {
			t.Errorf("%v: events %+v, of %+v", commands, r.Events, r.Order)
		}
	}
	f("key_1", paid(), licensing.RequestRefund{By: "key_1"})
	f("key_1", paid(), licensing.RequestRefund{By: "key_1"}, licensing.RequestRefund{By: "key_2"})
	f("key_2", paid(), licensing.RequestRefund{By: "key_1"}, licensing.WithdrawRefund{},
		licensing.RequestRefund{By: "key_2"})
	f(licensing.Provider, ordered(nil), licensing.CancelOrder{By: "key_1"}, payment)
}

// TestActorOfTheService: the service is the actor of a change without a request.
func TestActorOfTheService(t *testing.T) {
	r := licensed(nil)
	must(t, &r, licensing.RevokeLicense{Target: ours}, noon)
	if len(r.Events) != 1 || r.Events[0].Actor != licensing.System {
		t.Errorf("events %+v", r.Events)
	}
}

// TestLimitEventOncePerMinute: each refusal is answered, but only one a minute has an event. If clocks differ, only
// the clock that is ahead records events.
func TestLimitEventOncePerMinute(t *testing.T) {
	r := licensed(func(l *licensing.License) { l.MaxDevices = 1 }, "laptop")
	r.Listening = true
	ask := func(at time.Duration, device string, recorded bool) {
		t.Helper()
		refuses(t, &r, licensing.Activate{Target: ours, Device: device}, noon.Add(at),
			licensing.ReasonDeviceLimitReached)
		if (len(r.Events) == 1) != recorded || r.Changed != recorded {
			t.Errorf("after %v: changed %v, events %+v", at, r.Changed, r.Events)
		}
	}
	ask(0, "phone", true)
	ask(0, "phone", false)
	ask(time.Second, "tablet", false)
	ask(time.Minute-time.Millisecond, "phone", false)
	ask(time.Minute, "tablet", true)
	ask(-time.Hour, "tablet", false) // a clock far behind
	ask(time.Minute+time.Second, "phone", false)
	ask(2*time.Minute-time.Millisecond, "phone", false)
	ask(2*time.Minute, "phone", true)
	r.Listening = false
	ask(time.Hour, "phone", false)
	r.Listening = true
	ask(time.Hour, "phone", true)
	must(t, &r, licensing.RemoveDevice{Target: ours, Device: "laptop"}, noon.Add(time.Hour))
	must(t, &r, licensing.Activate{Target: ours, Device: "phone"}, noon.Add(time.Hour))
	ask(time.Hour, "laptop", false) // the event is about the license, whichever device asks
}

func TestEventTypes(t *testing.T) {
	types := licensing.EventTypes()
	if len(types) != 30 || len(types) != len(slices.Compact(slices.Sorted(slices.Values(types)))) {
		t.Errorf("the types are %v", types)
	}
	for _, e := range types {
		activation := slices.Contains([]licensing.EventType{"license.activated", "license.limit_reached",
			"device.bound", "device.removed", "device.lease_lapsed",
			"device.changed"}, e)
		if e.OfActivation() != activation {
			t.Errorf("%s is of activations: %v", e, e.OfActivation())
		}
	}
}

// typeOf finds the type of a license's event by its last word.
func typeOf(t *testing.T, word string) licensing.EventType {
	t.Helper()
	for _, e := range licensing.EventTypes() {
		if kind, last, _ := strings.Cut(string(e), "."); last == word && kind != "order" {
			return e
		}
	}
	t.Fatalf("no event is called %q", word)
	return ""
}

// checkEvents checks what must hold for the events of every command: each event follows the record's previous event,
// has the current time and an actor, and the last event has the record's state.
func checkEvents(t rapid.TB, c licensing.Command, before, r *licensing.Record, now time.Time) {
	t.Helper()
	var license, order, issued uint64
	if before.License != nil {
		license = before.License.Sequence
	}
	if before.Order != nil {
		order = before.Order.Sequence
	}
	var last [3]*licensing.Event
	for i := range r.Events {
		e := &r.Events[i]
		next, place := &license, 0
		switch {
		case e.Order != nil:
			next, place = &order, 1
		case r.Order != nil:
			issued = 0 // each license that is issued has one event
			next, place = &issued, 2
			if !slices.ContainsFunc(r.Issued, func(l *licensing.License) bool {
				return withoutReceipts(*l) == withoutReceipts(*e.License)
			}) {
				t.Fatalf("%T recorded %+v of a license that it has not issued", c, e)
			}
		}
		*next++
		last[place] = e
		as := uint64(0)
		if e.Order != nil {
			as = e.Order.Sequence
		} else {
			as = e.License.Sequence
		}
		if e.Sequence != *next || as != e.Sequence || !e.At.Equal(now) || e.Actor == "" ||
			(e.License == nil) == (e.Order == nil) {
			t.Fatalf("%T recorded %+v, as number %d of %T at %v", c, e, *next, c, now)
		}
	}
	if len(r.Events) > 0 && !r.Changed {
		t.Fatalf("%T recorded %+v of a record that has not Changed", c, r.Events)
	}
	if last[0] != nil && withoutReceipts(*last[0].License) != withoutReceipts(*r.License) ||
		last[1] != nil && *last[1].Order != *r.Order {
		t.Fatalf("%T recorded %+v last, which the record is not", c, r.Events)
	}
	if r.License != nil && r.License.Sequence != license || r.Order != nil && r.Order.Sequence != order {
		t.Fatalf("%T recorded %d events, and the record has another latest event: %+v", c, len(r.Events), r)
	}
}

// withoutReceipts returns a license without what only receipts show: Apply sets it after the events.
func withoutReceipts(l licensing.License) licensing.License {
	l.Revision, l.ReceiptsUntil = 0, 0
	return l
}
