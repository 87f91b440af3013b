package peer

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// filled is a value of a type in which nothing is zero, so that whatever a codec
// forgets shows.
func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	number := 0
	fill(t, reflect.ValueOf(&v).Elem(), &number)
	return v
}

func fill(t *testing.T, v reflect.Value, number *int) {
	t.Helper()
	*number++
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.UnixMilli(1_700_000_000_000 + int64(*number)).UTC()
		return
	case **licensing.Product, **licensing.Endpoint, **licensing.ReceiptKeys, **licensing.Plan:
		return // the result of no command that hops
	case *licensing.LicenseKey:
		*at = licensing.LicenseID{byte(*number)}.Key("LIC")
		return
	case *licensing.TrialName:
		*at = licensing.TrialName{byte(*number)}
		return
	case *licensing.Components:
		*at = "\x04disk\x01\x02\x03\x04\x05\x06\x07\x08"
		return
	case *netip.Addr:
		return // an end user's network, which only the node counts that the end user has called
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() { // commands that hop return nothing in others
				fill(t, v.Field(i), number)
			}
		}
	case reflect.String:
		v.SetString(string(rune('a'+*number%26)) + "-text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*number))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*number))
	default:
		t.Fatalf("no value is known for a %v", v.Type())
	}
}

func newTestCodec(t *testing.T) codec {
	t.Helper()
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequest(t *testing.T) {
	c := newTestCodec(t)
	activate, remove := filled[licensing.Activate](t), filled[licensing.RemoveDevice](t)
	id := licensing.LicenseID{1, 2, 3, 15: 8}
	activate.Key, remove.Key = id.Key("ACME"), id.Key("LIC") // as two clients have written the key of the license
	want := node.Hop{From: store.Incarnation{4, 5}, License: id, Commands: []licensing.Command{activate, remove,
		licensing.Activate{Target: licensing.Target{Key: id.Key("LIC")}, Device: "d"}}}
	body, err := c.request(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.readRequest(body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	if _, err := c.request(node.Hop{Commands: []licensing.Command{licensing.Seen{}}}); err == nil {
		t.Error("a command of another kind was written")
	}
}

func TestBadRequests(t *testing.T) {
	c := newTestCodec(t)
	encode := func(v any) []byte {
		b, err := c.encode.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	with := func(commands ...command) request {
		return request{From: make([]byte, 8), License: make([]byte, len(licensing.LicenseID{})), Commands: commands}
	}
	if _, err := c.readRequest(encode(with(command{Kind: activate, Prefix: "LIC", Device: "d"}))); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"nothing":        nil,
		"no message":     {0xff},
		"another one":    encode([]string{"a"}),
		"unknown kind":   encode(with(command{Kind: 9, Prefix: "LIC", Device: "d"})),
		"without device": encode(with(command{Kind: activate, Prefix: "LIC"})),
		"a bad prefix":   encode(with(command{Kind: activate, Prefix: "l-", Device: "d"})),
		"no license":     encode(request{From: make([]byte, 8)}),
		"a short id":     encode(request{From: make([]byte, 8), License: make([]byte, 15)}),
		"more behind it": append(encode(with()), 0),
	} {
		if hop, err := c.readRequest(body); err == nil {
			t.Errorf("%s: %+v", name, hop)
		}
	}
}

func TestReply(t *testing.T) {
	c := newTestCodec(t)
	result := filled[licensing.Result](t)
	result.RefundDue, result.Created, result.Invalid = false, false, "" // messages do not carry these
	result.License.SetEnd = time.Time{}
	result.License.Sequence, result.License.LimitReportedAt = 0, time.Time{}
	result.License.LeaseClock, result.License.LeasesUntil = time.Time{}, time.Time{}
	result.License.SeenFrom, result.License.InactiveAfter = time.Time{}, licensing.Period{}
	result.License.Match, result.License.Changes = licensing.DeviceMatch{}, licensing.Removals{}
	result.License.Receipts, result.License.ReceiptsUntil = licensing.ReceiptTerms{}, 0
	result.License.Revocations = licensing.RevocationCount{}
	result.License.Notice, result.Device.Components = licensing.Notice{}, ""
	other := result
	other.License.MaxDevices = 0
	fewer := result
	fewer.License.CurrentDevices--
	refusal := filledError(t)
	hop := node.Hop{License: result.License.Key.ID()}
	want := node.HopAnswer{YieldsTo: store.Incarnation{4, 5}, Busy: true}
	for _, a := range []node.Answer{{Result: result}, {Result: fewer}, {Err: refusal}, {Result: other},
		{Result: result}, {Err: licensing.ErrOverloaded}} {
		want.Answers = append(want.Answers, a)
		hop.Commands = append(hop.Commands, licensing.Activate{
			Target: licensing.Target{Key: result.License.Key}, Device: result.Device.ID})
	}
	body, err := c.reply(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.readReply(body, hop)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(licensing.Result{})); diff != "" {
		t.Error(diff)
	}
	hop.Commands = hop.Commands[1:]
	if _, err := c.readReply(body, hop); err == nil {
		t.Error("an answer too many was taken")
	}
}

func filledError(t *testing.T) *licensing.Error {
	t.Helper()
	return &licensing.Error{
		Reason: licensing.ReasonDeviceLimitReached, Message: "a message",
		Fields:  []licensing.FieldProblem{{Field: "f", Problem: "p"}},
		Details: map[string]int{"max_devices": 3},
	}
}

// TestReplyHasEachLicenseOnce: a reply has a license once, even if each of its answers is an event of that license.
func TestReplyHasEachLicenseOnce(t *testing.T) {
	c := newTestCodec(t)
	var a node.HopAnswer
	for i := range 50 {
		l := filled[licensing.License](t)
		l.CurrentDevices, l.Sequence, l.LimitReportedAt = i, uint64(i), time.UnixMilli(int64(i))
		l.LeaseClock, l.LeasesUntil, l.SeenFrom = l.LimitReportedAt, l.LimitReportedAt, l.LimitReportedAt
		l.Changes.Count, l.Notice.Day = i, i
		a.Answers = append(a.Answers, node.Answer{Result: licensing.Result{License: l}})
	}
	body, err := c.reply(a)
	if err != nil {
		t.Fatal(err)
	}
	var r reply
	if err := c.decode.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Licenses) != 1 {
		t.Errorf("%d answers tell of the license %d times", len(a.Answers), len(r.Licenses))
	}
}

// TestUnknownErrors: an error that is not of the domain is a bug, and the message does not contain its text.
func TestUnknownErrors(t *testing.T) {
	c := newTestCodec(t)
	body, err := c.reply(node.HopAnswer{Answers: []node.Answer{{Err: errors.New("a secret")}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.readReply(body, node.Hop{Commands: []licensing.Command{licensing.Seen{}}})
	if err != nil || !errors.Is(got.Answers[0].Err, licensing.ErrInternal) {
		t.Errorf("%+v, %v", got, err)
	}
}
