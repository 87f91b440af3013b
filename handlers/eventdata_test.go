package handlers

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node/service"
	"licet/node/store"
)

// TestRenderEvent renders events of newer versions, and events that can't be rendered.
func TestRenderEvent(t *testing.T) {
	keys := keyring.NewLicenseKeys(keyring.NewKeyCheck([]byte("check key")), keyring.IDKey{})
	s := &Server{events: eventRenderer{renderer: &renderer{keys: keys},
		metrics: metrics.New(prometheus.NewRegistry(), "", "", ""), log: zerolog.Nop()}}
	at := time.Date(2030, 1, 2, 3, 4, 5, 678e6, time.UTC)
	render := func(e licensing.Event, metadata string) map[string]any {
		t.Helper()
		e.At, e.Sequence, e.Actor = at, 4, "key_1"
		body, err := s.RenderEvent(&service.EventView{RecordedEvent: store.RecordedEvent{ID: "evt_1", Revision: 7,
			Event: e}, Metadata: licensing.Metadata{Object: metadata}})
		var got map[string]any
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return got
	}
	key := keys.Mint("LIC", licensing.Owner{}, [keyring.LicenseKeyEntropy]byte{1})
	paused := licensing.Event{Type: "license.paused",
		License: &licensing.License{Key: key, ProductID: "pro"},
		Members: []licensing.EventMember{
			{Of: "license", Name: "pauses", JSON: "3"}, {Of: "license", Name: "product_id", JSON: `"other"`},
			{Name: "pause", JSON: `{"url":"a&b"}`}, {Of: "seat", Name: "row", JSON: "null"}, {Of: "seat", Name: "place",
				JSON: "[1]"},
		}}
	got := render(paused, `{"seat":1}`)
	data := got["data"].(map[string]any)
	license, pause, seat := data["license"].(map[string]any), data["pause"].(map[string]any),
		data["seat"].(map[string]any)
	if row, there := seat["row"]; got["type"] != "license.paused" || license["license_key"] != keys.Text(key) ||
		license["id"] != key.String() ||
		license["product_id"] != "pro" ||
		license["pauses"] != 3.0 || pause["url"] != "a&b" || !there || row != nil || len(seat["place"].([]any)) != 1 {
		t.Errorf("the event is rendered as %v", got)
	}
	// Metadata that is no JSON, and a bug: each affects this event alone.
	for name, bad := range map[string]struct {
		licensing.Event
		metadata string
	}{
		"metadata": {licensing.Event{Type: licensing.EventLicenseIssued, License: paused.License},
			`{"seat":`},
		"a member": {licensing.Event{Type: licensing.EventLicenseIssued,
			Members: []licensing.EventMember{{Of: "license", Name: "a", JSON: `{`}}}, ""},
		"metadata of an order": {licensing.Event{Type: licensing.EventOrderPaid,
			Order: &licensing.Order{Metadata: "no"}}, ""},
	} {
		got := render(bad.Event, bad.metadata)
		if got["type"] != "event.unreadable" || got["id"] != "evt_1" || got["sequence"] != 4.0 ||
			got["revision"] != 7.0 ||
			got["actor"] != "system" || got["timestamp"] != "2030-01-02T03:04:05.678Z" ||
			len(got["data"].(map[string]any)) != 0 {
			t.Errorf("%s: the event is rendered as %v", name, got)
		}
	}
	if got := render(licensing.Event{Type: licensing.EventUnreadable}, ""); len(got["data"].(map[string]any)) != 0 {
		t.Errorf("a placeholder is rendered as %v", got)
	}
}
