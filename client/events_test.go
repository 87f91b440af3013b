package client_test

import (
	"encoding/json"
	"testing"

	"licet/client"
)

// TestNewerEvents reads an event whose type and members this client does not know, and a placeholder.
func TestNewerEvents(t *testing.T) {
	const newer = `{"id":"evt_1","type":"seat.taken","timestamp":"2030-01-02T03:04:05.678Z","sequence":2,"revision":7,"actor":"robot","data":{"seat":{"row":7},"license":{"license_key":"LIC-1","seats":3}},"cell":1}`
	const placeholder = `{"id":"evt_2","type":"event.unreadable","timestamp":null,"sequence":0,"revision":8,"actor":"system","data":{}}`
	var events []client.Event
	text := []byte("[" + newer + "," + placeholder + "]")
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatal(err)
	}
	clear(text) // an event keeps nothing of what it was read from
	if e := events[0]; e.Type != "seat.taken" || e.Data.License.LicenseKey != "LIC-1" || e.Sequence != 2 ||
		string(e.Raw) != newer {
		t.Errorf("the newer event is %+v", e)
	}
	if e := events[1]; e.Type != client.EventUnreadable || e.Revision != 8 || !e.Timestamp.IsZero() ||
		e.Data.License != nil || string(e.Raw) != placeholder {
		t.Errorf("the placeholder is %+v", e)
	}
}
