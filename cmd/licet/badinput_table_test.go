package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// badRoute is what one route is sent in TestBadInput. What it lists is only what
// a route's own members mean: types, required members, what comes twice, media
// types, credentials and Idempotency-Keys are tried of every route alike.
type badRoute struct {
	path     map[string]string // good values of the path's variables
	query    map[string]string // good values of the required parameters
	good     map[string]string // good members of the body, as JSON
	required []string          // of those
	apart    []string          // members that must not be sent along with others
	refused  int               // the code for a good request: the sandbox does not offer what it asks for
	bad      []badInput
}

// badInput is one input, with values that all get the same error.
type badInput struct {
	where  string // body, query or path
	name   string
	code   int
	values []string // members as JSON, query values to be encoded, path segments as sent
}

func badBody(name string, values ...string) badInput {
	return badInput{where: "body", name: name, code: 42200, values: values}
}

func badQuery(name string, values ...string) badInput {
	return badInput{where: "query", name: name, code: 42200, values: values}
}

func badPath(name string, code int, values ...string) badInput {
	return badInput{where: "path", name: name, code: code, values: values}
}

// badThings are what TestBadInput asks for: each is there, and is not to change.
type badThings struct {
	account                             string
	license, doomed, absentKey          string // license keys
	unpaid, paid, canceled, absentOrder string // order numbers
	keyID, doomedKey                    string
	request                             string // of a device without network, in JSON
	release                             string // of a device, in JSON
	endpoint, doomedEndpoint            string // of webhooks
	event, theirEvent                   string // ids
	token                               string // of the pay page of the order unpaid
	theirLicense, theirOrder, theirKey  string // another account's
	outside                             string // an unpaid order
	subscribed                          string // an order with a subscription
	theirEndpoint                       string
	cursors                             map[string]string // of the first page of each listing
	// of another account's orders, of filtered ones, of devices
	theirCursor, filteredCursor, deviceEnd string
}

// badTable says of each route what it refuses.
func badTable(t *testing.T, x *badThings) map[string]badRoute {
	t.Helper()
	long := func(n int) string { return `"` + strings.Repeat("ü", n) + `"` }
	object := func(n int) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"m%d":null`, i))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	// What the kinds of members have in common.
	texts := func(name string, most int) badInput {
		return badBody(name, long(most+1), `"a\u0000b"`, `"\u007f"`, `"\u0085"`)
	}
	reason := badBody("reason", long(1001), `"a\u0000b"`, `"\u001b[1m"`)
	limits := badBody("max_devices", "-1", "1000001", "9223372036854775808", "-99999999999999999999")
	leases := func(name string) badInput {
		return badBody(name, "-1", "0", "29", "2592001", "9223372036854775808")
	}
	device := badBody("device_id", `""`, long(256), `"a\u0000b"`, `"a\nb"`, `"\u0085"`)
	pins := func(name string) badInput { return badBody(name, `""`, long(256)) }
	product := badBody("product_id", `""`, `"a/b"`, `"é"`, `" a"`, `"a\u0000"`, `"`+strings.Repeat("x", 65)+`"`)
	moment := badBody("expires_at", `""`, `"tomorrow"`, `"2090-01-01"`, `"2090-01-01T00:00:00"`,
		`"2090-02-30T00:00:00Z"`, `"2020-01-01T00:00:00Z"`,
		`"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-01:00"`, `"2090-01-01T00:00:00,5Z"`, `"2090-01-01T1:00:00Z"`,
		`"3786912000"`)
	periods := func(name string) badInput {
		return badBody(name, `""`, `"P"`, `"PT"`, `"1M"`, `"P0D"`, `"PT0S"`, `"-P1M"`, `"P-1M"`, `"P1.5M"`, `"p1m"`,
			`"P1M "`, `"P1001Y"`, `"P12001M"`,
			`"P99999999999999999999D"`, `"PT878401H"`, `"P1DT"`, `"P1D1Y"`, `"P1H"`)
	}
	metadata := badBody("metadata", object(51), `{"":1}`, `{"`+strings.Repeat("ü", 41)+`":1}`,
		`{"a":"`+strings.Repeat("x", 16<<10)+`"}`)
	reference := badBody("customer_reference", `""`, `"a\nb"`, `"a\u0000b"`, long(65))
	// Of members that are null a patch takes away, and so there may be more.
	patch := badBody("metadata", strings.ReplaceAll(object(51), "null", "1"), `{"":null}`,
		`{"`+strings.Repeat("ü", 41)+`":1}`, `{"a":"`+strings.Repeat("x", 16<<10)+`"}`)

	entitled := func(more ...string) badInput {
		return badBody("entitlements", append(more, `{"A":true}`, `{"":1}`, `{"a b":1}`,
			`{"`+strings.Repeat("x", 65)+`":1}`, `{"a":false}`, `{"a":1.5}`, `{"a":9007199254740992}`, `{"a":[]}`,
			`{"a":"`+strings.Repeat("ü", 256)+`"}`, `{"a":{}}`, `{"a":{"value":true,"until":1}}`,
			`{"a":{"value":true,"validity":"1Y"}}`, `{"a":{"value":true,"expires_at":"tomorrow"}}`)...)
	}

	badKeys := []string{"x", "LIC", x.license[:len(x.license)-1], x.license + "0", "%00", "%F0%28",
		strings.ReplaceAll(x.license, "-", ""), strings.Repeat("A", 300)}
	licenseKey := badBody("license_key", `"x"`, `""`, `"`+x.license+`0"`, long(100), `"\u0000"`)
	licenseKey.code = 40001
	absent := badBody("license_key", `"`+x.absentKey+`"`, `" `+strings.ToLower(x.absentKey)+` "`)
	absent.code = 40401
	license := []badInput{badPath("license_key", 40001, badKeys...),
		badPath("license_key", 40401, x.absentKey, x.theirLicense)}
	order := badPath("order_no", 40403, "x", "%00", "%FF", "ord_", x.absentOrder, x.theirOrder, x.unpaid+"x",
		x.unpaid+"%2Fcancel", strings.Repeat("o", 300))
	key := badPath("key_id", 40407, "x", "%00", "%FF", "key_", "key_none", x.theirKey, x.keyID+"x",
		strings.ToUpper(x.keyID), strings.Repeat("k", 300))

	endpoint := badPath("endpoint_id", 40405, "x", "%00", "%FF", "we_", "we_none", x.theirEndpoint, x.endpoint+"x",
		strings.ToUpper(x.endpoint), strings.Repeat("w", 300))
	endpointURL := badBody("url", `""`, `"/x"`, `"//example.com"`, `"http://example.com"`, `"ftp://example.com"`,
		`"https://"`, `"https://a:b@example.com"`, `"https://a@127.0.0.1/"`,
		`"https://example.com/ x"`, `"https://example.com/ü"`, `"https://example.com/\r\nX: y"`,
		`"https://example.com/#f"`, `"https://example.com:8443/"`, `"https://10.0.0.1/"`,
		`"https://169.254.169.254/latest"`, `"https://[::ffff:10.0.0.1]/"`, `"https://[fe80::1%25eth0]/"`,
		`"https://2130706433/"`, `"https://0x7f.1/"`, `"https://example.com/`+strings.Repeat("x", 2048)+`"`)
	kinds := badBody("event_types", `[]`, `[""]`, `["order"]`, `["Order.Paid"]`, `["order.paid","order.paid"]`,
		`["*","order.paid"]`, `["*","*"]`, `["webhook.ping"]`)
	atEndpoint := map[string]string{"endpoint_id": x.endpoint}
	overlap := badBody("overlap", `""`, `"P"`, `"PT"`, `"24h"`, `"P1M"`, `"P1Y"`, `"PT-1H"`, `"PT0.5H"`, `"P30DT1S"`,
		`"P1DT"`, `"pt1h"`, `"P9999999W"`, `"PT99999999999999999999S"`)
	noEvent := func(name string) badInput {
		in := badBody(name, `"x"`, `"evt_"`, `"now"`, `"`+x.theirEvent+`"`, `"`+x.event+`0"`, `"\u0000"`)
		in.code = 40406
		return in
	}

	words := []string{"", "x", " ", "\x00", "\xff"}
	page := func(name string, most int) []badInput {
		cursors := append([]string{"", "x", "=", x.deviceEnd[:len(x.deviceEnd)-1], x.cursors[name] + "A",
			x.cursors[name] + "\n", strings.Repeat("A", 600)}, x.theirCursor, x.filteredCursor)
		for listing, cursor := range x.cursors {
			if listing != name {
				cursors = append(cursors, cursor)
			}
		}
		if name != "devices" {
			cursors = append(cursors, x.deviceEnd)
		}
		return []badInput{badQuery("limit", "", "0", "-1", "+1", "1.0", "1e1", "x", fmt.Sprint(most+1), "4294967297",
			"18446744073709551617", " 1"), badQuery("cursor", cursors...)}
	}
	email := badBody("buyer_email", `""`, `"a"`, `"@example.com"`, `"a@"`, `"a@b"`, `"A <a@example.com>"`,
		`"a@example.com,b@example.com"`, `" a@example.com"`,
		`"a\n@example.com"`, `"a@[127.0.0.1]"`, `"`+strings.Repeat("a", 243)+`@example.com"`)
	productFilter := badQuery("product_id", "", "a/b", "é", strings.Repeat("x", 65))
	moments := func(name string) badInput {
		return badQuery(name, "", "now", "2031", "2031-02-30", "2031-01-01T00:00:00", "2031-01-01 00:00:00Z",
			"20310101", "1893456000", "0001-01-01", "\x00")
	}
	buyerFilter := badQuery("buyer_email", "", "a", "@", "a@b", "A <a@example.com>", "a@example.com b@example.com",
		"\x00@example.com")

	open := map[string]string{"license_key": `"` + x.license + `"`, "device_id": `"bad"`}
	needed := []string{"license_key", "device_id"}
	at := map[string]string{"license_key": x.license}
	why := map[string]string{"reason": `"why"`}
	asksReceipt := []badInput{badBody("receipt"), // a boolean has no bad value that is one
		badBody("receipt_seconds", "59", "7776001", "-1"), pins("nonce"),
		badBody("device_key", `""`, `"x"`, `"`+strings.Repeat("A", 44)+`"`)}
	components := badBody("device_components", object(9), `{"":"`+strings.Repeat("ab", 32)+`"}`, `{"disk":1}`,
		`{"disk":null}`, `{"disk":"ab"}`, `{"Disk":"`+strings.Repeat("ab", 32)+`"}`)
	return map[string]badRoute{
		"POST /v1/licenses/activate": {
			good: open, required: needed,
			bad: append([]badInput{licenseKey, absent, device, texts("device_name", 255), pins("product_id"),
				pins("account_id"), pins("mode"), leases("lease_seconds"),
				components}, asksReceipt...),
		},
		"POST /v1/licenses/validate": {
			good: open, required: needed,
			bad: append([]badInput{licenseKey, absent, device, pins("product_id"), pins("account_id"), pins("mode"),
				leases("lease_seconds")}, asksReceipt...),
		},
		"POST /v1/licenses/deactivate": {
			good: open, required: needed,
			bad: []badInput{licenseKey, absent, device, pins("account_id"), pins("mode")},
		},
		"POST /v1/receipts": {good: map[string]string{"request": x.request}, required: []string{"request"},
			bad: []badInput{badBody("request", `""`, `"x"`, `"-----BEGIN LICET REQUEST-----\nAAAA\n-----END LICET `+
				`REQUEST-----\n"`), leases("lease_seconds"), badBody("receipt_seconds", "59", "7776001", "-1")}},
		"POST /v1/receipts/batch": {good: map[string]string{"requests": `[` + x.request + `]`},
			required: []string{"requests"}, bad: []badInput{badBody("requests", `[]`,
				`["x"`+strings.Repeat(`,"x"`, 50)+`]`), leases("lease_seconds"),
				badBody("receipt_seconds", "59", "7776001", "-1")}},
		"POST /v1/receipts/release": {good: map[string]string{"release": x.release}, required: []string{"release"},
			bad: []badInput{badBody("release", `""`, `"x"`, `"-----BEGIN LICET RELEASE-----\nAAAA\n-----END LICET `+
				`RELEASE-----\n"`)}},
		"POST /v1/trials": {
			good: map[string]string{"product_id": `"editor"`, "device_id": `"bad"`, "account_id": `"` + x.account + `"`,
				"mode": `"test"`},
			required: []string{"product_id", "device_id"},
			bad: append([]badInput{product, device, texts("device_name", 255), pins("account_id"), pins("mode"),
				email, leases("lease_seconds"), components}, asksReceipt...),
		},
		"POST /v1/licenses": {
			good: map[string]string{"product_id": `"editor"`, "quantity": "1"}, required: []string{"product_id",
				"quantity"},
			bad: []badInput{product, badBody("quantity", "0", "-1", "1001", "9223372036854775808"), limits, moment,
				metadata, entitled(), badBody("external_key", `""`, `" "`, `"a\nb"`, `"a\u0000b"`, `"\u202e"`,
					`"`+x.license+`"`, long(1025)), email, reference},
		},
		"GET /v1/licenses": {bad: append(page("licenses", 100), productFilter, buyerFilter,
			badQuery("status", append(words, "Activated", "paid", "activated,revoked")...),
			badQuery("order_no", append(words, "ord_", x.unpaid+"0", strings.ToLower(x.unpaid))...),
			badQuery("customer_reference", "", "a\nb", "\x00", "\xff", strings.Repeat("x", 65)),
			badQuery("external_key", "", " ", "a\nb", "\x00", "\xff", x.license, strings.Repeat("x", 1025)))},
		"GET /v1/licenses/{license_key}": {path: at, bad: license},
		"PATCH /v1/licenses/{license_key}": {
			path: at, good: map[string]string{"max_devices": "7"},
			bad: append([]badInput{limits, patch, entitled(), email, reference}, license...),
		},
		"POST /v1/licenses/{license_key}/reissue": {
			path: at, good: why, bad: append([]badInput{reason, overlap}, license...),
		},
		"POST /v1/licenses/{license_key}/suspend":   {path: at, good: why, bad: append([]badInput{reason}, license...)},
		"POST /v1/licenses/{license_key}/reinstate": {path: at, good: why, bad: append([]badInput{reason}, license...)},
		"POST /v1/licenses/{license_key}/revoke": {
			path: map[string]string{"license_key": x.doomed}, good: why, bad: append([]badInput{reason}, license...),
		},
		"POST /v1/licenses/{license_key}/renew": {
			path: at, good: map[string]string{"expires_at": `"2090-01-01T00:00:00Z"`}, apart: []string{"extend"},
			bad: append([]badInput{moment, periods("extend")}, license...),
		},
		"GET /v1/licenses/{license_key}/devices": {path: at, bad: append(page("devices", 1000), license...)},
		"GET /v1/licenses/{license_key}/events":  {path: at, bad: append(page("license events", 100), license...)},
		"GET /v1/orders/{order_no}/events": {path: map[string]string{"order_no": x.paid},
			bad: append(page("order events", 100), order)},
		"GET /v1/orders/{order_no}/payments": {path: map[string]string{"order_no": x.paid},
			bad: append(page("payments", 100), order)},
		"GET /v1/events": {bad: []badInput{
			page("", 100)[0], badQuery("wait", "", "-1", "+1", "26", "1.5", "1s", "x", "18446744073709551617"),
			badQuery("types", append(words, "order", "order.*", "*", "order.paid,", ",order.paid",
				"order.paid,order.paid", "order.paid, order.created", "Order.Paid")...),
			badQuery("after", append(words, "evt_", "Now", x.theirEvent, x.event+"0", x.event[:len(x.event)-1],
				strings.ToLower(x.event), x.cursors["orders"], "pos_", strings.Repeat("A", 600))...),
			badQuery("cursor", append(words, "evt_", "pos_", "now", x.theirEvent, x.theirCursor,
				x.cursors["license events"], x.event+"0", strings.Repeat("A", 600))...),
		}},
		"GET /v1/events/{event_id}": {path: map[string]string{"event_id": x.event}, bad: []badInput{
			badPath("event_id", 40406, "x", "%00", "%FF", "evt_", "now", x.theirEvent, x.event+"0",
				x.event[:len(x.event)-1], strings.ToLower(x.event), strings.Repeat("e", 300)),
		}},
		"DELETE /v1/licenses/{license_key}/devices/{device_id}": {
			path: map[string]string{"license_key": x.license, "device_id": "bound"},
			bad: append([]badInput{badPath("device_id", 42200, "%00", "a%0Ab", "%FF", "%C2%85", strings.Repeat("x",
				256))}, license...),
		},
		"GET /v1/products": {bad: page("products", 100)},
		"PUT /v1/products/{product_id}": {
			path: map[string]string{"product_id": "editor"}, good: map[string]string{"name": `"Editor"`},
			bad: []badInput{
				badPath("product_id", 42200, "%00", "a%2Fb", "%C3%A9", "%20a", "%FF", strings.Repeat("x", 65)),
				texts("name", 255), badBody("key_prefix", `""`, `"A"`, `"edit"`, `"ED-IT"`, `"ABCDEFGHI"`, `"ÄÖ"`),
				limits, periods("validity"), periods("grace"), badBody("grace", `"P2Y"`),
				badBody("validity_from", `""`, `"Issue"`, `"now"`),
				badBody("removals_per_month", "-1", "1000001", "9223372036854775808"), metadata,
				entitled(`{"a":null}`), leases("lease_seconds"), leases("max_lease_seconds"),
				badBody("device_mode", `""`, `"Leased"`, `"floating"`),
				badBody("trial", `{"validity":"P1D"}`, `{"per":"device"}`, `{"validity":"","per":"device"}`,
					`{"validity":"P1D","per":"Device"}`, `{"validity":"P1D","per":"device","max_devices":0}`,
					`{"validity":"P1D","per":"device","max_devices":17}`, `{"validity":"P1D","per":"email","days":1}`),
				badBody("billing", `{"interval":""}`, `{"interval":"PT9S"}`, `{"interval":"P37M"}`,
					`{"interval":"P1M","grace":"P2Y"}`, `{"interval":"P1M","days":1}`),
				badBody("receipt"), badBody("receipt_validity", `""`, `"7"`, `"PT59S"`, `"P91D"`, `"P1M"`),
				badBody("revocation_max_age", `""`, `"7"`, `"PT59S"`, `"P91D"`, `"P1M"`),
				badBody("inactive_after", `""`, `"30"`, `"PT1H"`, `"P0D"`),
				badBody("device_match", `{}`, `{"at_least":0}`, `{"at_least":9}`, `{"at_least":1.5}`,
					`{"at_least":1,"changes_per_month":-1}`, `{"at_least":1,"more":1}`),
				badBody("self_service_deactivation"), // a boolean has no bad value that is one
			},
		},
		"GET /v1/products/{product_id}": {path: map[string]string{"product_id": "editor"},
			bad: []badInput{badPath("product_id", 40404, "none", "%00", "a%2Fb", "%FF", "theirs",
				strings.Repeat("x", 65))}},
		"DELETE /v1/products/{product_id}": {path: map[string]string{"product_id": "spare"},
			bad: []badInput{badPath("product_id", 40404, "none", "%00", "a%2Fb", "%FF", "theirs",
				strings.Repeat("x", 65))}},
		"POST /v1/products/{product_id}/rollout": {
			path: map[string]string{"product_id": "editor"},
			good: map[string]string{"terms": `["entitlements"]`}, required: []string{"terms"},
			bad: []badInput{
				badPath("product_id", 40404, "none", "%00", "a%2Fb", "%FF", "theirs", strings.Repeat("x", 65)),
				badBody("terms", `[]`, `[""]`, `["validity"]`, `["max_devices","max_devices"]`, `["Entitlements"]`),
				badBody("dry_run"), // a boolean has no bad value that is one
			},
		},
		"GET /v1/products/{product_id}/rollout": {path: map[string]string{"product_id": "editor"},
			bad: []badInput{badPath("product_id", 40404, "none", "%00", "a%2Fb", "%FF", "theirs",
				strings.Repeat("x", 65))}},
		"DELETE /v1/products/{product_id}/rollout": {path: map[string]string{"product_id": "editor"},
			bad: []badInput{badPath("product_id", 40404, "none", "%00", "a%2Fb", "%FF", "theirs",
				strings.Repeat("x", 65))}},
		"POST /v1/orders": {
			good:     map[string]string{"product_id": `"editor"`, "amount": "1", "currency": `"USD"`},
			required: []string{"product_id", "amount", "currency"},
			bad: []badInput{
				product, badBody("amount", "-1", "1000000000001", "9223372036854775808", "-9223372036854775809"),
				badBody("currency", `""`, `"US"`, `"EURO"`, `"XYZ"`, `" USD"`, `"U\u0000D"`),
				badBody("description", long(1001), `"a\u0000"`, `"a\u009b"`),
				badBody("quantity", "0", "-1", "1001", "9223372036854775808"),
				email, metadata, badBody("payment_provider", `""`, `"sandbox"`, `"Outside"`),
				badBody("upgrade_of", `""`, `"x"`, `"`+x.license+`0"`, `"\u0000"`),
				badBody("success_url", `""`, `"/x"`, `"//example.com"`, `"http://example.com"`,
					`"javascript:alert(1)"`, `"https://"`, `"https://a:b@example.com"`,
					`"https://example.com/#x"`, `"https://example.com:8443/"`, `"https://10.0.0.1/"`,
					`"https://example.com/ x"`, `"https://example.com/ü"`, `"https://example.com/\r\nX: y"`,
					`"https://example.com/`+strings.Repeat("x", 2000)+`"`),
			},
		},
		"GET /v1/orders": {bad: append(page("orders", 100), productFilter, buyerFilter,
			badQuery("payment_provider", "", "Outside", "bank"),
			badQuery("reference", "", "a\nb", "\x00", "\xff", strings.Repeat("x", 256)),
			moments("created_from"), moments("created_to"), moments("paid_from"), moments("paid_to"),
			moments("refunded_from"), moments("refunded_to"),
			badQuery("status", append(words, "Paid", "activated", "paid,unpaid")...))},
		"GET /v1/reports/sales": {query: map[string]string{"from": "2031-01-01", "to": "2031-02-01"}, bad: []badInput{
			productFilter, badQuery("by", "", "Day", "week"), moments("from"), moments("to"),
			badQuery("to", "2031-01-01", "2032-01-03"),
		}},
		"GET /v1/orders/{order_no}": {path: map[string]string{"order_no": x.paid}, bad: []badInput{order}},
		"POST /v1/orders/{order_no}/cancel": {path: map[string]string{"order_no": x.canceled}, good: why,
			bad: []badInput{reason, order}},
		"POST /v1/orders/{order_no}/payments": {
			path: map[string]string{"order_no": x.outside}, good: map[string]string{"reference": `"INV-1"`},
			required: []string{"reference"},
			bad: []badInput{
				badBody("reference", `""`, long(256), `"a\u0000"`, `"a\n"`),
				badBody("amount", "-1", "0", "2", "1000000000001"),
				badBody("paid_at", `""`, `"now"`, `"1999-12-31T23:59:59Z"`, `"9999-01-01T00:00:00Z"`), order,
			},
		},
		"POST /v1/orders/{order_no}/refund": {path: map[string]string{"order_no": x.paid}, good: why,
			bad: []badInput{badBody("amount", "-1", "0", "1000000000001"),
				badBody("invoice", `""`, long(256), `"a\u0000"`, `"a\n"`, `"in_1"`), reason, order}},
		"POST /v1/orders/{order_no}/subscription/cancel": {path: map[string]string{"order_no": x.subscribed},
			bad: []badInput{badBody("at", `""`, `"Now"`, `"later"`), order}},
		"POST /v1/orders/{order_no}/subscription/resume": {path: map[string]string{"order_no": x.subscribed},
			bad: []badInput{order}},
		"POST /v1/orders/{order_no}/subscription/change": {path: map[string]string{"order_no": x.subscribed},
			good: map[string]string{"amount": "1"}, required: []string{"amount"},
			bad: []badInput{product, badBody("amount", "-1", "0", "1000000000001", "9223372036854775808"), limits,
				badBody("at", `""`, `"Now"`, `"later"`), order}},
		"POST /v1/orders/{order_no}/subscription/portal": {path: map[string]string{"order_no": x.subscribed},
			bad: []badInput{order}, refused: 40904},
		"PUT /v1/orders/{order_no}/sandbox_payment": {path: map[string]string{"order_no": x.paid},
			bad: []badInput{order}},
		"PUT /v1/orders/{order_no}/sandbox": {path: map[string]string{"order_no": x.unpaid},
			good: map[string]string{"action": `"decline"`}, required: []string{"action"},
			bad: []badInput{badBody("action", `""`, `"Pay"`, `"refund"`), order}},
		"POST /v1/redactions": {
			good: map[string]string{"buyer_email": `"nobody@example.com"`}, required: []string{"buyer_email"},
			bad: []badInput{email, badBody("customer_reference", `""`, `"a\nb"`, `"C-1"`, long(65))},
		},
		"POST /v1/webhook_endpoints": {
			good: map[string]string{"url": `"https://shop.example.com/licet"`}, required: []string{"url"},
			bad: []badInput{endpointURL, kinds, texts("description", 255)},
		},
		"GET /v1/webhook_endpoints":               {bad: page("webhook_endpoints", 100)},
		"GET /v1/webhook_endpoints/{endpoint_id}": {path: atEndpoint, bad: []badInput{endpoint}},
		"PATCH /v1/webhook_endpoints/{endpoint_id}": {
			path: atEndpoint, good: map[string]string{"status": `"disabled"`},
			bad: []badInput{endpointURL, kinds, texts("description", 255), badBody("status", `""`, `"on"`, `"Enabled"`),
				endpoint},
		},
		"DELETE /v1/webhook_endpoints/{endpoint_id}": {path: map[string]string{"endpoint_id": x.doomedEndpoint},
			bad: []badInput{endpoint}},
		"POST /v1/webhook_endpoints/{endpoint_id}/rotate": {
			path: atEndpoint, good: map[string]string{"overlap": `"PT1H"`}, bad: []badInput{overlap, endpoint},
		},
		"POST /v1/webhook_endpoints/{endpoint_id}/test": {path: atEndpoint, bad: []badInput{endpoint}},
		"GET /v1/webhook_endpoints/{endpoint_id}/deliveries": {
			path: atEndpoint, bad: append(page("deliveries", 100),
				badQuery("status", append(words, "Pending", "failed", "pending,dead")...), endpoint),
		},
		"POST /v1/webhook_endpoints/{endpoint_id}/replay": {
			path: atEndpoint, good: map[string]string{"until": `"` + x.event + `"`}, apart: []string{"event_id",
				"dead"},
			bad: []badInput{
				badBody("event_id", `""`, long(513)), badBody("since", `""`, long(513)), badBody("until", `""`,
					long(513)), badBody("dead", "false"),
				noEvent("event_id"), noEvent("since"), noEvent("until"), endpoint,
			},
		},
		"POST /v1/keys": {
			good:     map[string]string{"name": `"shop"`, "scopes": `["orders"]`, "require_signature": "true"},
			required: []string{"name", "scopes"},
			bad: []badInput{
				badBody("name", `""`, long(256), `"a\u0000b"`, `"a\nb"`), moment, badBody("require_signature"),
				badBody("scopes", `[]`, `[""]`, `["Orders"]`, `["orders:write"]`, `["*:read"]`, `["orders:read:read"]`,
					`["orders","all"]`, `["orders"`+strings.Repeat(`,"orders"`, 32)+`]`),
			},
		},
		"GET /v1/keys":          {bad: page("keys", 100)},
		"GET /v1/keys/{key_id}": {path: map[string]string{"key_id": x.keyID}, bad: []badInput{key}},
		"POST /v1/keys/{key_id}/rotate": {
			path: map[string]string{"key_id": x.keyID}, good: map[string]string{"overlap": `"PT1H"`},
			bad: []badInput{overlap, key},
		},
		"DELETE /v1/keys/{key_id}": {path: map[string]string{"key_id": x.doomedKey}, bad: []badInput{key}},
		"GET /pay/{order_no}/{token}": {
			path: map[string]string{"order_no": x.unpaid, "token": x.token},
			bad: []badInput{badPath("order_no", 40403, "x", "%00", x.absentOrder, x.paid),
				badPath("token", 40403, "x", "%00", strings.Repeat("0", 32), strings.ToUpper(x.token)+"0")},
		},
		"POST /pay/{order_no}/{token}": {
			path: map[string]string{"order_no": x.unpaid,
				"token": x.token}, good: map[string]string{"action": "cancel"},
			bad: []badInput{
				badPath("order_no", 40403, "x", "%00", x.absentOrder, x.paid), badPath("token", 40403, "x", "%00",
					strings.Repeat("0", 32)),
				{where: "body", name: "action", code: 40000, values: []string{"", "Pay", "refund", "pay&action=cancel",
					"pay&action=pay", "%zz", url.QueryEscape("pay\x00")}},
			},
		},
		"PUT /v1/receipt_keys":      {},
		"PUT /v1/receipt_keys/next": {},
		"GET /v1/accounts/{account_id}/{mode}/jwks.json": {
			path: map[string]string{"account_id": x.account, "mode": "test"},
			bad: []badInput{badPath("account_id", 40400, "x", "%00", "acct_absent", "acct_"),
				badPath("mode", 40400, "x", "%00", "Test", "live")},
		},
		"GET /v1/accounts/{account_id}/{mode}/revocations": {
			path: map[string]string{"account_id": x.account, "mode": "test"},
			bad: []badInput{badPath("account_id", 40400, "x", "%00", "acct_absent", "acct_"),
				badPath("mode", 40400, "x", "%00", "Test", "live"),
				badQuery("after", "", "x", "-1", "1.5", "9007199254740992", "99999999999999999999")},
		},
		"GET /v1/account": {},
		"PATCH /v1/account": {
			good: map[string]string{"external_keys": `"exact"`},
			bad: []badInput{badBody("external_keys", `""`, `"Exact"`, `"none"`),
				badBody("expiring_days", "[0]", "[61]", "[-1]", "[7,7]", "[1,2,3,4,5,6]", "[9223372036854775808]")},
		},
		"GET /openapi.yaml":   {},
		"GET /openapi.json":   {},
		"GET /favicon.ico":    {},
		"GET /robots.txt":     {},
		"GET /docs":           {},
		"GET /docs/errors":    {},
		"GET /docs/viewer.js": {},
		"GET /":               {},
		"GET /livez":          {},
		"GET /readyz":         {},
	}
}
