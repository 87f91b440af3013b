package webhook

import (
	"net/http"
	"testing"
	"time"
)

// FuzzReceive: a receiver accepts no request without a signature by the secret, and no signed request that is no
// event.
func FuzzReceive(f *testing.F) {
	f.Add("evt_1", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", []byte(eventBody))
	f.Add("evt_1", "1614265330", "v1,", []byte("{}"))
	f.Add("", "-1", " , ,, v1", []byte(`{"id":"","type":"a","data":{"device":null}}`))
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, body []byte) {
		at := time.Unix(vectorTime, 0)
		r := receiverAt(t, at, secretOf(1, 32))
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature}}
		if event, err := r.Receive(header, body); err == nil {
			t.Errorf("took %+v", event)
		}
		if event, err := r.Receive(signed(t, secretOf(1, 32), id, at, string(body)), body); err == nil &&
			(event.ID != id || event.Type == "") {
			t.Errorf("read %+v", event)
		}
	})
}
