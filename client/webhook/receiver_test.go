package webhook

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// This test vector is in all reference libraries of Standard Webhooks. The example in the specification lacks its
// secret.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTime      = 1614265330
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

const eventBody = `{"id":"evt_1","type":"order.paid","timestamp":"2030-01-02T03:04:05.678Z","sequence":2,"revision":77,"actor":"provider","data":{"order":{"order_no":"ord_1"}}}`

func secretOf(fill byte, size int) string {
	key := make([]byte, size)
	for i := range key {
		key[i] = fill
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// receiverAt returns a receiver whose clock shows now.
func receiverAt(t *testing.T, now time.Time, secrets ...string) *Receiver {
	t.Helper()
	r, err := New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	r.now = func() time.Time { return now }
	return r
}

func signed(t *testing.T, secret, id string, at time.Time, body string) http.Header {
	t.Helper()
	header, err := Sign(secret, id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return header
}

func TestVerifyKnowsTheReferenceVector(t *testing.T) {
	at := time.Unix(vectorTime, 0)
	header := http.Header{}
	header.Set("webhook-id", vectorID)
	header.Set("webhook-timestamp", "1614265330")
	header.Set("webhook-signature", vectorSignature)
	if id, err := receiverAt(t, at, vectorSecret).verify(header, []byte(vectorBody)); err != nil || id != vectorID {
		t.Errorf("verify answers %q, %v", id, err)
	}
	if got := signed(t, vectorSecret, vectorID, at, vectorBody).Get("webhook-signature"); got != vectorSignature {
		t.Errorf("Sign makes %s, want %s", got, vectorSignature)
	}
}

func TestReceiveRefusesChangedMessages(t *testing.T) {
	at := time.Unix(vectorTime, 0)
	secret := secretOf(1, 32)
	r := receiverAt(t, at, secret)
	good := signed(t, secret, "evt_1", at, eventBody)
	if _, err := r.Receive(good, []byte(eventBody)); err != nil {
		t.Fatalf("what was not changed: %v", err)
	}
	signature := good.Get("webhook-signature")
	flipped := []byte(signature)
	flipped[len(flipped)/2] ^= 1

	f := func(what, name, value, body string, want error) {
		t.Helper()
		header := good.Clone()
		if name != "" {
			header.Set(name, value)
		}
		if event, err := r.Receive(header, []byte(body)); !errors.Is(err, want) || event != nil {
			t.Errorf("%s: got %v, %v, want %v", what, event, err, want)
		}
	}
	f("another body", "", "", strings.Replace(eventBody, "77", "78", 1), ErrSignature)
	f("no body", "", "", "", ErrSignature)
	f("a byte more", "", "", eventBody+"\n", ErrSignature)
	f("another id", "webhook-id", "evt_2", eventBody, ErrSignature)
	f("a point in the id", "webhook-id", "evt_1.5", eventBody, ErrHeaders)
	f("no id", "webhook-id", "", eventBody, ErrHeaders)
	f("another time", "webhook-timestamp", "1614265331", eventBody, ErrSignature)
	f("no time", "webhook-timestamp", "", eventBody, ErrHeaders)
	f("a time with a sign", "webhook-timestamp", "+1614265330", eventBody, ErrHeaders)
	f("a time with a fraction", "webhook-timestamp", "1614265330.0", eventBody, ErrHeaders)
	f("a time that is a date", "webhook-timestamp", "2021-02-25T15:02:10Z", eventBody, ErrHeaders)
	f("a time beyond 64 bits", "webhook-timestamp", "99999999999999999999", eventBody, ErrHeaders)
	f("no signature", "webhook-signature", "", eventBody, ErrHeaders)
	f("a signature of nothing", "webhook-signature", "v1,", eventBody, ErrSignature)
	f("a bit of the signature", "webhook-signature", string(flipped), eventBody, ErrSignature)
	f("its beginning", "webhook-signature", signature[:20], eventBody, ErrSignature)
	f("another version", "webhook-signature", "v2"+signature[2:], eventBody, ErrSignature)
	f("no version", "webhook-signature", signature[3:], eventBody, ErrSignature)
}

func TestReceiveTakesAnyOfSeveralSignatures(t *testing.T) {
	at := time.Unix(vectorTime, 0)
	before, after, foreign := secretOf(1, 24), secretOf(2, 64), secretOf(3, 32)
	by := func(secret string) string { return signed(t, secret, "evt_1", at, eventBody).Get("webhook-signature") }

	f := func(what string, want error, signatures []string, secrets ...string) {
		t.Helper()
		header := signed(t, before, "evt_1", at, eventBody)
		header.Set("webhook-signature", strings.Join(signatures, " "))
		if _, err := receiverAt(t, at, secrets...).Receive(header, []byte(eventBody)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	both := []string{by(after), by(before)}
	f("both sign, the receiver has the old secret", nil, both, before)
	f("both sign, the receiver has the new secret", nil, both, after)
	f("both sign, the receiver has both", nil, both, before, after)
	f("both sign, the receiver has another", ErrSignature, both, foreign)
	f("the new one signs, the receiver has both", nil, both[:1], before, after)
	f("the new one signs, the receiver has the old one", ErrSignature, both[:1], before)
	f("kinds that are not known stand before", nil, []string{"v1a,AAAA", "v9,x,y", "nonsense", by(before)}, before)
}

func TestReceiveGoesByTheClock(t *testing.T) {
	at := time.Unix(vectorTime, 0)
	secret := secretOf(1, 32)
	header := signed(t, secret, "evt_1", at, eventBody)
	f := func(away time.Duration, want error) {
		t.Helper()
		if _, err := receiverAt(t, at.Add(away), secret).Receive(header, []byte(eventBody)); !errors.Is(err, want) {
			t.Errorf("%v from the signature: %v, want %v", away, err, want)
		}
	}
	f(0, nil)
	f(5*time.Minute, nil)
	f(-5*time.Minute, nil)
	f(5*time.Minute+time.Millisecond, ErrTimestamp)
	f(-5*time.Minute-time.Millisecond, ErrTimestamp)
	f(24*time.Hour, ErrTimestamp)
	f(-50*365*24*time.Hour, ErrTimestamp)
}

func TestNewRefusesInvalidSecrets(t *testing.T) {
	f := func(what string, secrets ...string) {
		t.Helper()
		r, err := New(secrets...)
		if err == nil || r != nil {
			t.Errorf("%s: no error", what)
			return
		}
		for _, secret := range secrets {
			if len(secret) > 12 && strings.Contains(err.Error(), secret[6:]) {
				t.Errorf("%s: the error tells the secret: %v", what, err)
			}
		}
	}
	f("none")
	f("an empty one", "")
	f("only the prefix", secretPrefix)
	f("23 bytes", secretOf(1, 23))
	f("65 bytes", secretOf(1, 65))
	f("without the prefix", strings.TrimPrefix(secretOf(1, 32), secretPrefix))
	f("no base64", secretPrefix+strings.Repeat("?", 44))
	f("cut off", secretOf(1, 32)[:40])
	f("an API secret", "lks_test_"+strings.Repeat("a", 43))
	f("a good one and a bad one", secretOf(1, 32), "whsec_")
}

func TestReceiveReadsTheEvent(t *testing.T) {
	const body = `{"id":"evt_01","type":"device.bound","timestamp":"2030-01-02T03:04:05.678Z","sequence":3,"revision":41,"actor":"end_user","added_later":{"a":1},
"data":{"license":{"license_key":"LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1","status":"activated","product_id":"editor","order_no":null,"max_devices":3,"current_devices":1,
 "activated_at":"2030-01-02T03:04:05.678Z","expires_at":null,"created_at":"2030-01-01T00:00:00.000Z","account_id":"acct_1","mode":"test","metadata":{"seat":"7"},
 "suspended_at":null,"revoked_at":null,"state_reason":null},
"device":{"device_id":"laptop-1","device_name":null,"bound_at":"2030-01-02T03:04:05.678Z","last_seen_at":"2030-01-02T03:04:05.678Z"}}}`
	at := time.Unix(vectorTime, 0)
	secret := secretOf(1, 32)
	e, err := receiverAt(t, at, secret).Receive(signed(t, secret, "evt_01", at, body), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	moment := time.Date(2030, 1, 2, 3, 4, 5, 678e6, time.UTC)
	if e.ID != "evt_01" || e.Type != DeviceBound || !e.Timestamp.Equal(moment) || e.Sequence != 3 || e.Revision != 41 ||
		e.Actor != "end_user" {
		t.Errorf("got %+v", e)
	}
	l, d := e.Data.License, e.Data.Device
	if l == nil || d == nil || e.Data.Order != nil {
		t.Fatalf("got data %+v", e.Data)
	}
	if l.LicenseKey != "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1" || l.OrderNo != "" || l.MaxDevices != 3 ||
		l.CurrentDevices != 1 ||
		!l.ActivatedAt.Equal(moment) || !l.ExpiresAt.IsZero() || string(l.Metadata) != `{"seat":"7"}` {
		t.Errorf("got license %+v", l)
	}
	if d.DeviceID != "laptop-1" || d.DeviceName != "" || !d.BoundAt.Equal(moment) {
		t.Errorf("got device %+v", d)
	}
}

func TestReceiveRefusesSignedNonEvents(t *testing.T) {
	at := time.Unix(vectorTime, 0)
	secret := secretOf(1, 32)
	f := func(body string) {
		t.Helper()
		if e, err := receiverAt(t, at, secret).Receive(signed(t, secret, "evt_1", at, body),
			[]byte(body)); !errors.Is(err, ErrEvent) || e != nil {
			t.Errorf("%s: got %v, %v", body, e, err)
		}
	}
	f("")
	f("null")
	f("[]")
	f("{")
	f(vectorBody)
	f(`{"id":"evt_2","type":"order.paid"}`)
	f(`{"id":"evt_1"}`)
	f(eventBody + "{}")
	f(strings.Replace(eventBody, `"sequence":2`, `"sequence":"2"`, 1))
}
