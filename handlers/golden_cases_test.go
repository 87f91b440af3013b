package handlers_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"licet/handlers/limits"
	"licet/licensing"
)

// goldenCases covers every route and every error code that HTTP clients can get. setup prepares the
// service and returns the request.
var goldenCases = []struct {
	name    string
	options []option
	setup   func(s *fixture) wire
}{
	{"activate", nil, func(s *fixture) wire {
		return activation(s.license(), `"device_id":"mac-00:1b","device_name":"Anna's laptop"`)
	}},
	{"activate_without_name_pinned", nil, func(s *fixture) wire {
		return activation(s.license(),
			`"device_id":"d1","product_id":"editor","account_id":"acct_acme","mode":"test","from":"the future"`)
	}},
	{"activate_expiring", nil, func(s *fixture) wire {
		granted := s.send("POST", "/v1/licenses", keyAll,
			`{"product_id":"editor","quantity":1,"expires_at":"2031-01-01T00:00:00Z"}`).must(s.t, 0)
		return activation(granted.data["licenses"].([]any)[0].(map[string]any)["license_key"].(string),
			`"device_id":"d1"`)
	}},
	{"trial", nil, func(s *fixture) wire {
		s.tried("editor", `{"validity":"P14D","per":"device"}`)
		return wire{method: "POST", path: "/v1/trials",
			body: `{"product_id":"editor","account_id":"acct_acme","mode":"test","device_id":"laptop-1"}`}
	}},
	{"40307", nil, func(s *fixture) wire {
		s.tried("editor", `{"validity":"P14D","per":"email"}`)
		s.trial(keyAll, `"device_id":"laptop-1","buyer_email":"anna@example.com"`).must(s.t, 0)
		return wire{method: "POST", path: "/v1/trials", key: keyAll,
			body: `{"product_id":"editor","device_id":"laptop-2","buyer_email":"anna@example.com"}`}
	}},
	{"40308", nil, func(s *fixture) wire {
		s.product("editor", "").must(s.t, 0)
		return wire{method: "POST", path: "/v1/trials",
			body: `{"product_id":"editor","account_id":"acct_acme","mode":"test","device_id":"laptop-1"}`}
	}},
	{"40000_not_json", nil, func(*fixture) wire { return activationBody(`{"license_key":`) }},
	{"40000_wrong_type", nil,
		func(*fixture) wire { return newOrder(`{"product_id":"editor","amount":1.0,"currency":"USD"}`) }},
	{"40000_unknown_member", nil, func(*fixture) wire {
		return newOrder(`{"product_id":"editor","amount":1,"currency":"USD","colour":"red"}`)
	}},
	{"40000_duplicate_member", nil, func(*fixture) wire {
		return newOrder(`{"product_id":"editor","amount":1,"currency":"USD","metadata":{"a":{"b":1,"b":2}}}`)
	}},
	{"40001", nil, func(*fixture) wire {
		return activation("LIC-00000-00000-00000-00000-00000", `"device_id":"d1"`)
	}},
	{"40100", nil, func(*fixture) wire { return wire{method: "GET", path: "/v1/orders/x"} }},
	{"40100_open", nil, func(s *fixture) wire {
		w := activation(s.license(), `"device_id":"d1"`)
		w.key = testKey("unknown")
		return w
	}},
	{"40101", []option{withRing}, func(s *fixture) wire {
		s.addSigners()
		d := s.signedOrder()
		d.secret = "another"
		return d.sign()
	}},
	{"40102", []option{withRing}, func(s *fixture) wire {
		s.addSigners()
		return wire{method: "GET", path: "/v1/orders/x", key: keyDemands}
	}},
	{"order_signed", []option{withRing}, func(s *fixture) wire {
		s.addSigners()
		return s.signedOrder().sign()
	}},
	{"40300", nil, func(*fixture) wire {
		return wire{method: "POST", path: "/v1/orders", key: keyReadOnly, body: `{}`}
	}},
	{"40301", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "revoke", "").must(s.t, 0)
		return activation(key, `"device_id":"d1"`)
	}},
	{"40302", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "suspend", "").must(s.t, 0)
		return activation(key, `"device_id":"d1"`)
	}},
	{"40303", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "renew", `{"expires_at":"2030-01-02T04:04:05.678Z"}`).must(s.t, 0)
		s.clock.advance(time.Hour)
		return activation(key, `"device_id":"d1"`)
	}},
	{"40304", nil, func(s *fixture) wire {
		return activation(s.license(), `"device_id":"d1","product_id":"viewer"`)
	}},
	{"40305", nil, func(s *fixture) wire { return deactivation(s.license(), `"device_id":"d1"`) }},
	{"40305_used_up", nil, func(s *fixture) wire {
		s.product("editor", `"self_service_deactivation":true,"removals_per_month":1`).must(s.t, 0)
		key := s.license()
		s.activate(key, "d1").must(s.t, 0)
		s.activate(key, "d2").must(s.t, 0)
		s.sendWire(deactivation(key, `"device_id":"d1"`)).must(s.t, 0)
		return deactivation(key, `"device_id":"d2"`)
	}},
	{"40309", budgeted, func(s *fixture) wire {
		s.stores(licensing.Size{Bytes: 8_000, Keys: 12})
		return wire{method: "POST", path: "/v1/licenses", key: keyAll,
			body: `{"product_id":"editor","quantity":1}`}.once("a-grant")
	}},
	{"released", nil, func(s *fixture) wire {
		s.product("editor", `"self_service_deactivation":true`).must(s.t, 0)
		return wire{method: "POST", path: "/v1/receipts/release",
			body: `{"release":` + quoted(s.release(s.license(), "lab-7")) + `}`}
	}},
	{"receipt_file", nil, func(s *fixture) wire {
		return wire{method: "POST", path: "/v1/receipts",
			body: `{"request":` + quoted(request(s.t, s.license(), "lab-7")) +
				`,"lease_seconds":86400,"receipt_seconds":86400}`}
	}},
	{"receipt_files", nil, func(s *fixture) wire {
		key, revoked := s.license(), s.license()
		s.change(revoked, "revoke", "").must(s.t, 0)
		return wire{method: "POST", path: "/v1/receipts/batch", body: `{"requests":[` +
			quoted(request(s.t, key, "lab-7")) + "," + quoted(request(s.t, revoked, "lab-8")) + `]}`}
	}},
	{"jwks", nil, func(s *fixture) wire {
		s.receiptKeys()
		return wire{method: "GET", path: keySetPath}
	}},
	{"revocations", nil, func(s *fixture) wire {
		key := s.license()
		s.activateFor(key, "laptop-1", `,"receipt":true`).must(s.t, 0)
		s.change(key, "suspend", "").must(s.t, 0)
		return wire{method: "GET", path: revocationsPath}
	}},
	{"receipt_keys", nil, func(*fixture) wire {
		return wire{method: "PUT", path: "/v1/receipt_keys", key: keyAll}
	}},
	{"receipt_keys_rotated", nil, func(s *fixture) wire {
		s.receiptKeys()
		s.clock.advance(time.Hour)
		return wire{method: "PUT", path: "/v1/receipt_keys/next", key: keyAll}
	}},
	{"account", budgeted, func(s *fixture) wire {
		s.stores(licensing.Size{Bytes: 4_321, Keys: 12})
		return wire{method: "GET", path: "/v1/account", key: keyAll}
	}},
	{"account_empty", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/v1/account", key: keyAll}
	}},
	{"account_updated", nil, func(*fixture) wire {
		return wire{method: "PATCH", path: "/v1/account", key: keyAll, body: `{"external_keys":"compact"}`}
	}},
	{"40910", nil, func(s *fixture) wire {
		s.sendWire(externalGrant("OLD-1", 1)).must(s.t, 0)
		return wire{method: "PATCH", path: "/v1/account", key: keyAll, body: `{"external_keys":"compact"}`}
	}},
	{"40911", nil, func(s *fixture) wire {
		s.rollout(licensing.Rollout{Applies: licensing.RolloutEntitlements})
		return newRollout(`{"terms":["max_devices"]}`)
	}},
	{"license_reissued", nil, func(s *fixture) wire {
		return changing(s.license(), "reissue", `{"overlap":"P7D","reason":"leaked"}`)
	}},
	{"40306", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "reissue", "").must(s.t, 0)
		return activation(key, `"device_id":"d1"`)
	}},
	{"40908", nil, func(s *fixture) wire {
		key := s.license()
		for range licensing.MaxReissues {
			s.change(key, "reissue", "").must(s.t, 0)
		}
		return changing(key, "reissue", "")
	}},
	{"40907", nil, func(s *fixture) wire {
		s.sendWire(externalGrant("OLD-1", 1)).must(s.t, 0)
		return externalGrant("OLD-1", 1)
	}},
	{"grant_external_key", nil, func(*fixture) wire { return externalGrant("OLD-1", 1) }},
	{"grant_external_keys", nil, func(*fixture) wire { return externalGrant("OLD-1", 2) }},
	{"activate_external_key", nil, func(s *fixture) wire {
		s.sendWire(externalGrant("OLD-1", 1)).must(s.t, 0)
		return activation("OLD-1", `"device_id":"d1","account_id":"acct_acme","mode":"test"`)
	}},
	{"40001_no_external_keys", nil, func(s *fixture) wire {
		return activation("OLD-1", `"device_id":"d1","account_id":"acct_acme","mode":"test"`)
	}},
	{"40401_external_key", nil, func(s *fixture) wire {
		s.sendWire(externalGrant("OLD-1", 1)).must(s.t, 0)
		return activation("OLD-2", `"device_id":"d1","account_id":"acct_acme","mode":"test"`)
	}},
	{"licenses_external_key", nil, func(s *fixture) wire {
		s.sendWire(externalGrant("OLD-1", 1)).must(s.t, 0)
		return wire{method: "GET", path: "/v1/licenses?external_key=OLD-1", key: keyAll}
	}},
	{"40400", nil, func(*fixture) wire { return wire{method: "GET", path: "/v1/nothing"} }},
	{"40401", nil, func(s *fixture) wire {
		return activation(s.license(), `"device_id":"d1","account_id":"acct_other"`)
	}},
	{"40401_prefix", nil, func(s *fixture) wire {
		_, body, _ := strings.Cut(s.license(), "-")
		return activation("OTHER-"+body, `"device_id":"d1"`)
	}},
	{"40403", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/v1/orders/ord_0000000000000000000000000000", key: keyAll}
	}},
	{"40404", nil, func(*fixture) wire {
		return wire{method: "POST", path: "/v1/orders", key: keyLive,
			body: `{"product_id":"editor","amount":1,"currency":"USD"}`}
	}},
	{"40404_product", nil,
		func(*fixture) wire { return wire{method: "GET", path: "/v1/products/editor", key: keyAll} }},
	{"40408", nil, func(s *fixture) wire {
		s.product("editor", "").must(s.t, 0)
		return wire{method: "GET", path: "/v1/products/editor/rollout", key: keyAll}
	}},
	{"40500", nil, func(*fixture) wire { return wire{method: "PUT", path: "/v1/orders"} }},
	{"40901", nil, func(s *fixture) wire {
		key := s.license()
		for _, id := range []string{"d1", "d2", "d3"} {
			s.activate(key, id).must(s.t, 0)
		}
		return activation(key, `"device_id":"d4"`)
	}},
	{"40903", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "revoke", "").must(s.t, 0)
		return changing(key, "suspend", "")
	}},
	{"40903_replayed", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "revoke", "").must(s.t, 0)
		w := changing(key, "renew", `{"expires_at":"2031-01-01T00:00:00Z"}`).once("k1")
		s.sendWire(w)
		return w
	}},
	{"40904", nil, func(s *fixture) wire {
		s.store.put(licensing.Record{Product: &licensing.Product{ID: "editor", Terms: licensing.DefaultTerms()}},
			licensing.ProductRef(licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live}, "editor"))
		return wire{method: "POST", path: "/v1/orders", key: keyLive,
			body: `{"product_id":"editor","amount":1,"currency":"USD"}`}
	}},
	{"40904_replayed", nil, func(s *fixture) wire {
		s.store.put(licensing.Record{Product: &licensing.Product{ID: "editor", Terms: licensing.DefaultTerms()}},
			licensing.ProductRef(licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live}, "editor"))
		w := wire{method: "POST", path: "/v1/orders", key: keyLive,
			body: `{"product_id":"editor","amount":1,"currency":"USD"}`}.once("k1")
		s.sendWire(w)
		return w
	}},
	{"42201", nil, func(s *fixture) wire {
		s.sendWire(newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`).once("k1"))
		return newOrder(`{"product_id":"editor","amount":2,"currency":"USD"}`).once("k1")
	}},
	{"42200_idempotency_key", nil, func(*fixture) wire {
		return newOrder(`{"product_id":"editor","amount":-1,"currency":"USD"}`).once(strings.Repeat("k", 256))
	}},
	{"order_replayed", nil, func(s *fixture) wire {
		w := newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`).once("k1")
		made := s.sendWire(w)
		s.clock.advance(time.Minute)
		s.pay(made)
		return w
	}},
	{"grant_replayed", nil, func(s *fixture) wire {
		w := wire{method: "POST", path: "/v1/licenses", key: keyAll,
			body: `{"product_id":"editor","quantity":1}`}.once("k1")
		granted := s.sendWire(w)
		s.clock.advance(time.Minute)
		s.activate(granted.grantedKey(), "d1").must(s.t, 0)
		return w
	}},
	{"41300", nil, func(*fixture) wire { return newOrder(`{"a":"` + strings.Repeat("x", 64<<10) + `"}`) }},
	{"41400", nil, func(*fixture) wire { return wire{method: "GET", path: "/v1/" + strings.Repeat("x", 4<<10)} }},
	{"41500", nil, func(*fixture) wire {
		w := newOrder(`amount=1`)
		w.headers = []string{"Content-Type", "-", "Content-Type", "application/x-www-form-urlencoded"}
		return w
	}},
	{"42200_activate", nil, func(*fixture) wire {
		return activationBody(`{"license_key":null,"device_id":"","device_name":"a\u0007","mode":""}`)
	}},
	{"42200_order", nil, func(*fixture) wire {
		return newOrder(`{"product_id":"a b","amount":-1,"currency":"XXX","description":"\u0000","buyer_email":"Anna <a@example.com>","metadata":{"":1},"success_url":"http://example.com"}`)
	}},
	{"42200_order_missing", nil, func(*fixture) wire { return newOrder(`{}`) }},
	{"42200_grant", nil, func(*fixture) wire {
		return wire{method: "POST", path: "/v1/licenses", key: keyAll,
			body: `{"quantity":1001,"max_devices":-1,"expires_at":"2020-01-01T00:00:00Z"}`}
	}},
	{"42200_devices", nil, func(s *fixture) wire {
		return wire{method: "GET", path: "/v1/licenses/" + s.license() + "/devices?limit=0&cursor=x", key: keyAll}
	}},
	{"42200_licenses", nil, func(*fixture) wire {
		return wire{method: "GET",
			path: "/v1/licenses?product_id=a%20b&status=unpaid&order_no=ord_1&buyer_email=anna&limit=101&cursor=x",
			key:  keyAll}
	}},
	{"42200_orders", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/v1/orders?product_id=&status=activated&buyer_email=&limit=0&cursor=",
			key: keyAll}
	}},
	{"42200_products", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/v1/products?limit=1&limit=1&cursor=%zz", key: keyAll}
	}},
	{"42200_keys", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/v1/keys?limit=x&cursor=AgAAAAAAAAAAAA", key: keyAll}
	}},
	{"42900_address", limited(limits.Config{Address: limits.Rate{Count: 1, Per: time.Minute}}), func(s *fixture) wire {
		s.sendWire(guess())
		return guess()
	}},
	{"42900_account", limited(limits.Config{Account: limits.Rate{Count: 2, Per: 2 * time.Second}}),
		func(s *fixture) wire {
			w := s.lookup(s.order("5"))
			s.sendWire(w)
			return w
		}},
	{"42900_license", limited(limits.Config{Account: limits.Rate{Count: 500, Per: time.Second},
		License: limits.Rate{Count: 1, Per: time.Hour}}), func(s *fixture) wire {
		w := activation(s.license(), `"device_id":"d1"`)
		s.sendWire(w)
		w.key = keyAll
		return w
	}},
	{"42900_authentication", limited(limits.Config{Authentication: limits.Rate{Count: 1, Per: time.Minute}}),
		func(s *fixture) wire {
			w := wire{method: "GET", path: "/v1/products", key: keyRevoked}
			s.sendWire(w)
			return w
		}},
	{"counted_authentication", limited(limits.Config{Authentication: limits.Rate{Count: 300, Per: time.Minute}}),
		func(*fixture) wire { return wire{method: "GET", path: "/v1/products", key: keyRevoked} }},
	{"counted_address", limited(limits.Config{Address: limits.Rate{Count: 60, Per: time.Minute}}),
		func(*fixture) wire { return guess() }},
	{"counted_account", limited(limits.Config{Account: limits.Rate{Count: 500, Per: time.Second}}),
		func(s *fixture) wire {
			return s.lookup(s.order("5"))
		}},
	{"42200_renew", nil, func(s *fixture) wire { return changing(s.license(), "renew", `{}`) }},
	{"42200_extend_perpetual", nil,
		func(s *fixture) wire { return changing(s.license(), "renew", `{"extend":"P1M"}`) }},
	{"42200_product", nil, func(*fixture) wire {
		return wire{method: "PUT", path: "/v1/products/a%20b", key: keyAll,
			body: `{"name":"a\u0007","key_prefix":"lic","max_devices":-1,"validity":"1Y","validity_from":"now","removals_per_month":-1,"metadata":{"":1}}`}
	}},
	{"43100", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/livez", headers: []string{"X-Long", strings.Repeat("x", 12<<10)}}
	}},
	{"50000", nil, func(s *fixture) wire {
		s.store.onRead(func() { panic("an internal detail") })
		return wire{method: "GET", path: "/v1/orders/x", key: keyAll}
	}},
	{"50300", nil, func(s *fixture) wire {
		w := activation(s.license(), `"device_id":"d1"`)
		s.store.breakWith(licensing.ErrUnavailable, nil)
		return w
	}},
	{"50301", nil, func(s *fixture) wire {
		w := activation(s.license(), `"device_id":"d1"`)
		s.store.breakWith(licensing.ErrOverloaded, nil)
		return w
	}},
	{"50400_activate", nil, func(s *fixture) wire {
		w := activation(s.license(), `"device_id":"d1"`)
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		return w
	}},
	{"50400_remove", nil, func(s *fixture) wire {
		key := s.license()
		s.activate(key, "d1").must(s.t, 0)
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		return wire{method: "DELETE", path: "/v1/licenses/" + key + "/devices/d1", key: keyAll}
	}},
	{"50400_suspend", nil, func(s *fixture) wire {
		key := s.license()
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		return changing(key, "suspend", "")
	}},
	{"50400_grant", nil, func(s *fixture) wire {
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		return wire{method: "POST", path: "/v1/licenses", key: keyAll, body: `{"product_id":"editor","quantity":1}`}
	}},
	{"50400_order", nil, func(s *fixture) wire {
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		return newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`)
	}},
	{"grant", nil, func(*fixture) wire {
		return wire{method: "POST", path: "/v1/licenses", key: keyAll,
			body: `{"product_id":"editor","quantity":2,"max_devices":0,"expires_at":"2031-01-01T01:00:00.1239+01:00","metadata":{"batch" : 7}}`}
	}},
	{"product_put", nil, func(*fixture) wire {
		return wire{method: "PUT", path: "/v1/products/editor", key: keyAll,
			body: `{"name":"Editor & friends","key_prefix":"ED","max_devices":5,"validity":"P1Y","validity_from":"activation","self_service_deactivation":true,"removals_per_month":2,"metadata":{"sku" : 7}}`}
	}},
	{"product_put_again", nil, func(s *fixture) wire {
		s.product("editor", `"name":"Editor","validity":"P1Y"`).must(s.t, 0)
		s.clock.advance(time.Hour)
		return wire{method: "PUT", path: "/v1/products/editor", key: keyAll, body: `{}`}
	}},
	{"product_get", nil, func(s *fixture) wire {
		s.product("editor", `"name":"Editor","max_devices":0,"validity":"P2W"`).must(s.t, 0)
		return wire{method: "GET", path: "/v1/products/editor", key: keyAll}
	}},
	{"rollout_begun", nil, func(s *fixture) wire {
		s.product("editor", `"max_devices":5,"entitlements":{"export":true}`).must(s.t, 0)
		return newRollout(`{"terms":["entitlements","max_devices"]}`)
	}},
	{"rollout_replayed", nil, func(s *fixture) wire {
		s.product("editor", "").must(s.t, 0)
		w := newRollout(`{"terms":["entitlements"]}`).once("k1")
		s.sendWire(w)
		s.rollout(licensing.Rollout{Applies: licensing.RolloutEntitlements, EndedAt: s.clock.Now()})
		return w
	}},
	{"rollout_done", nil, func(s *fixture) wire {
		s.rollout(licensing.Rollout{Applies: licensing.RolloutEntitlements | licensing.RolloutMaxDevices, DryRun: true,
			EndedAt: s.clock.Now(), Counts: licensing.RolloutCounts{Licenses: 640, Updated: 600, LimitsKept: 12}})
		return wire{method: "GET", path: "/v1/products/editor/rollout", key: keyAll}
	}},
	{"rollout_paused", nil, func(s *fixture) wire {
		s.rollout(licensing.Rollout{Applies: licensing.RolloutSelfService | licensing.RolloutRemovals,
			OverBudget: true})
		return wire{method: "GET", path: "/v1/products/editor/rollout", key: keyAll}
	}},
	{"rollout_canceled", nil, func(s *fixture) wire {
		s.rollout(licensing.Rollout{Applies: licensing.RolloutMaxDevices,
			Counts: licensing.RolloutCounts{Licenses: 128, Updated: 128}})
		return wire{method: "DELETE", path: "/v1/products/editor/rollout", key: keyAll}
	}},
	{"product_delete", nil, func(s *fixture) wire {
		s.product("editor", `"name":"Editor"`).must(s.t, 0)
		return wire{method: "DELETE", path: "/v1/products/editor", key: keyAll}
	}},
	{"license_suspended", nil,
		func(s *fixture) wire { return changing(s.license(), "suspend", `{"reason":"chargeback"}`) }},
	{"license_reinstated", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "suspend", `{"reason":"chargeback"}`).must(s.t, 0)
		return changing(key, "reinstate", "")
	}},
	{"license_revoked", nil,
		func(s *fixture) wire { return changing(s.license(), "revoke", `{"reason":"shared in a forum"}`) }},
	{"license_renewed", nil, func(s *fixture) wire {
		return changing(s.license(), "renew", `{"expires_at":"2031-01-01T01:00:00+01:00"}`)
	}},
	{"license_extended", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "renew", `{"expires_at":"2030-01-31T00:00:00Z"}`).must(s.t, 0)
		return changing(key, "renew", `{"extend":"P1M"}`).once("k1")
	}},
	{"license_extended_replayed", nil, func(s *fixture) wire {
		key := s.license()
		s.change(key, "renew", `{"expires_at":"2030-01-31T00:00:00Z"}`).must(s.t, 0)
		w := changing(key, "renew", `{"extend":"P1M"}`).once("k1")
		s.sendWire(w)
		s.activate(key, "d1").must(s.t, 0)
		return w
	}},
	{"license_updated", nil, func(s *fixture) wire {
		granted := s.send("POST", "/v1/licenses", keyAll,
			`{"product_id":"editor","quantity":1,"metadata":{"a":1,"b":{"x":2.50}}}`).must(s.t, 0)
		return wire{method: "PATCH", path: "/v1/licenses/" + granted.grantedKey(), key: keyAll,
			body: `{"max_devices":7,"metadata":{"a":null,"c":"<ü>"}}`}
	}},
	{"validate", nil, func(s *fixture) wire {
		key := s.license()
		s.activate(key, "d1").must(s.t, 0)
		return validation(key, `"device_id":"d1","product_id":"editor","account_id":"acct_acme","mode":"test"`)
	}},
	{"validate_unknown_member", nil, func(s *fixture) wire {
		key := s.license()
		s.activate(key, "d1").must(s.t, 0)
		return validation(key, `"device_id":"d1","from":"the future"`)
	}},
	{"validate_not_bound", nil, func(s *fixture) wire { return validation(s.license(), `"device_id":"d1"`) }},
	{"validate_revoked", nil, func(s *fixture) wire {
		key := s.license()
		s.activate(key, "d1").must(s.t, 0)
		s.change(key, "revoke", "").must(s.t, 0)
		return validation(key, `"device_id":"d1"`)
	}},
	{"deactivate", nil, func(s *fixture) wire {
		s.product("editor", `"self_service_deactivation":true`).must(s.t, 0)
		key := s.license()
		s.activate(key, "d1").must(s.t, 0)
		return deactivation(key, `"device_id":"d1"`)
	}},
	{"license_new", nil, func(s *fixture) wire {
		return wire{method: "GET", path: "/v1/licenses/" + s.license(), key: keyAll}
	}},
	{"license_with_devices", nil, func(s *fixture) wire {
		key := s.license()
		for _, id := range []string{"zulu", "alpha", "mike"} {
			s.clock.advance(time.Second)
			s.activate(key, id).must(s.t, 0)
		}
		return wire{method: "GET", path: "/v1/licenses/" + key, key: keyReadOnly}
	}},
	{"devices_page", nil, func(s *fixture) wire {
		key := s.license()
		s.activate(key, "d1").must(s.t, 0)
		s.activate(key, "d2").must(s.t, 0)
		return wire{method: "GET", path: "/v1/licenses/" + key + "/devices?limit=1", key: keyAll}
	}},
	{"device_removed", nil, func(s *fixture) wire {
		key := s.license()
		s.activate(key, "d/1").must(s.t, 0)
		return wire{method: "DELETE", path: "/v1/licenses/" + strings.ToLower(key) + "/devices/d%2F1", key: keyAll}
	}},
	{"device_not_bound", nil, func(s *fixture) wire {
		return wire{method: "DELETE", path: "/v1/licenses/" + s.license() + "/devices/%2E%2E", key: keyAll}
	}},
	{"order_minimal", nil,
		func(*fixture) wire { return newOrder(`{"product_id":"editor","amount":1,"currency":"jpy"}`) }},
	{"order_full", nil, func(*fixture) wire {
		return newOrder(`{"product_id":"editor","amount":4900,"currency":"USD","description":"Editor & friends <1 year>","buyer_email":"anna@example.com","metadata":{ "cart" : [1, 2.50, {"ünï":"\u00e9"}] },"success_url":"https://shop.example.com/done?a=1&b=2"}`)
	}},
	{"order_free", nil, func(*fixture) wire { return newOrder(`{"product_id":"editor","amount":0,"currency":"EUR"}`) }},
	{"order_get_unpaid", nil, func(s *fixture) wire { return s.lookup(s.order("5")) }},
	{"order_get_paid", nil, func(s *fixture) wire {
		made := s.order("5")
		s.clock.advance(time.Minute)
		s.pay(made)
		return s.lookup(made)
	}},
	{"order_get_paid_late", nil, func(s *fixture) wire {
		made := s.order("5")
		s.clock.advance(48 * time.Hour)
		s.pay(made)
		return s.lookup(made)
	}},
	{"order_get_expired", nil, func(s *fixture) wire {
		made := s.order("5")
		s.clock.advance(24 * time.Hour)
		return s.lookup(made)
	}},
	{"order_get_canceled", nil, func(s *fixture) wire {
		made := s.order("5")
		s.cancel(made)
		return s.lookup(made)
	}},
	{"order_get_refunded", nil, func(s *fixture) wire {
		made := s.order("5")
		s.cancel(made)
		s.clock.advance(time.Minute)
		s.pay(made)
		return s.lookup(made)
	}},
	{"key_created", nil, func(*fixture) wire {
		return newKey(`{"name":"Anna's shop","scopes":["orders","licenses:read"],"expires_at":"2031-01-01T00:00:00Z","require_signature":true}`)
	}},
	{"key_replayed", nil, func(s *fixture) wire {
		w := newKey(`{"name":"shop","scopes":["*"]}`).once("k1")
		s.sendWire(w)
		s.clock.advance(time.Minute)
		return w
	}},
	{"key_get", nil, func(s *fixture) wire {
		s.send("GET", "/v1/orders/x", keyAll, "")
		s.storeKeyUses()
		return wire{method: "GET", path: "/v1/keys/" + keyID(keyAll), key: keyAll}
	}},
	{"key_revoked", nil, func(s *fixture) wire {
		return wire{method: "DELETE", path: "/v1/keys/" + keyID(keyAll), key: keyAll}
	}},
	{"key_rotated", nil, func(*fixture) wire {
		return wire{method: "POST", path: "/v1/keys/" + keyID(keyAll) + "/rotate", key: keyAll}
	}},
	{"key_rotated_at_once", nil, func(*fixture) wire { return rotation(keyAll, `{"overlap":"PT0S"}`) }},
	{"key_rotated_replayed", nil, func(s *fixture) wire {
		w := rotation(keyAll, `{"overlap":"P1D"}`).once("k1")
		s.sendWire(w)
		s.clock.advance(12 * time.Hour)
		return w
	}},
	{"40407", nil,
		func(*fixture) wire { return wire{method: "GET", path: "/v1/keys/" + keyID(keyOther), key: keyAll} }},
	{"40407_rotate_revoked", nil, func(*fixture) wire { return rotation(keyRevoked, "") }},
	{"42200_key", nil, func(*fixture) wire {
		return newKey(`{"name":"a\u0007","scopes":["orders","everything"],"expires_at":"2020-01-01T00:00:00Z"}`)
	}},
	{"42200_key_missing", nil, func(*fixture) wire { return newKey(`{}`) }},
	{"42200_key_beyond", nil, func(*fixture) wire {
		w := newKey(`{"name":"shop","scopes":["keys:read","licenses","*","orders:read"]}`)
		w.key = keyKeys
		return w
	}},
	{"42200_rotate", nil, func(*fixture) wire { return rotation(keyAll, `{"overlap":"P31D"}`) }},
	{"50400_key", nil, func(s *fixture) wire {
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		return newKey(`{"name":"shop","scopes":["*"]}`)
	}},
	{"order_cancel", nil, func(s *fixture) wire {
		made := s.order("5")
		s.clock.advance(time.Minute)
		return wire{method: "POST", path: "/v1/orders/" + made.text("order_no") + "/cancel", key: keyAll,
			body: `{"reason":"The buyer changed her mind."}`}
	}},
	{"order_cancel_replayed", nil, func(s *fixture) wire {
		w := wire{method: "POST", path: "/v1/orders/" + s.order("5").text("order_no") + "/cancel",
			key: keyAll}.once("k1")
		s.sendWire(w)
		return w
	}},
	{"order_refund", nil, func(s *fixture) wire {
		made := s.bring("paid")
		s.clock.advance(time.Minute)
		return wire{method: "POST", path: "/v1/orders/" + made.text("order_no") + "/refund", key: keyAll,
			body: `{"reason":"It does not run."}`}
	}},
	{"order_refund_part", nil, func(s *fixture) wire {
		made := s.bring("paid")
		s.clock.advance(time.Minute)
		return wire{method: "POST", path: "/v1/orders/" + made.text("order_no") + "/refund", key: keyAll,
			body: `{"amount":2,"reason":"Paid too much."}`}
	}},
	{"42200_refund_part", nil, func(s *fixture) wire {
		return wire{method: "POST", path: "/v1/orders/" + s.bring("paid").text("order_no") + "/refund", key: keyAll,
			body: `{"amount":6}`}
	}},
	{"40902_refund_part", nil, func(s *fixture) wire {
		made := s.bring("paid")
		s.withProvider(&counter{says: errors.New("no answer")})
		s.changeOrder(made, "refund", "").must(s.t, 50200)
		return wire{method: "POST", path: "/v1/orders/" + made.text("order_no") + "/refund", key: keyAll,
			body: `{"amount":1}`}
	}},
	{"order_sandbox_payment", nil, func(s *fixture) wire {
		made := s.order("5")
		s.clock.advance(time.Minute)
		return wire{method: "PUT", path: "/v1/orders/" + made.text("order_no") + "/sandbox_payment", key: keyAll}
	}},
	{"order_sandbox_pay_later", nil, func(s *fixture) wire {
		return wire{method: "PUT", path: "/v1/orders/" + s.order("5").text("order_no") + "/sandbox", key: keyAll,
			body: `{"action":"pay_later"}`}
	}},
	{"subscription_cancel", nil, func(s *fixture) wire {
		return wire{method: "POST", path: s.subscribed() + "/subscription/cancel", key: keyAll}
	}},
	{"subscription_resume", nil, func(s *fixture) wire {
		path := s.subscribed() + "/subscription/"
		s.send("POST", path+"cancel", keyAll, "").must(s.t, 0)
		return wire{method: "POST", path: path + "resume", key: keyAll}
	}},
	{"subscription_portal", nil, func(s *fixture) wire {
		path := s.subscribed() + "/subscription/portal"
		s.withProvider(&counter{})
		return wire{method: "POST", path: path, key: keyAll}
	}},
	{"subscription_change", nil, func(s *fixture) wire {
		path := s.subscribed()
		s.product("team", `"billing":{"interval":"P1M"},"max_devices":25`).must(s.t, 0)
		return wire{method: "POST", path: path + "/subscription/change", key: keyAll,
			body: `{"product_id":"team","amount":3000}`}
	}},
	{"42200_interval", nil, func(s *fixture) wire {
		path := s.subscribed()
		s.product("yearly", `"billing":{"interval":"P1Y"}`).must(s.t, 0)
		return wire{method: "POST", path: path + "/subscription/change", key: keyAll,
			body: `{"product_id":"yearly","amount":3000,"at":"now"}`}
	}},
	{"40902_subscription", nil, func(s *fixture) wire {
		return wire{method: "POST", path: "/v1/orders/" + s.bring("paid").text("order_no") + "/subscription/resume",
			key: keyAll}
	}},
	{"42200_subscription", nil, func(s *fixture) wire {
		return wire{method: "POST", path: s.subscribed() + "/subscription/cancel", key: keyAll, body: `{"at":"soon"}`}
	}},
	{"order_outside", nil, func(s *fixture) wire {
		s.send("PUT", "/v1/products/editor", keyLive, "{}").must(s.t, 0)
		return wire{method: "POST", path: "/v1/orders", key: keyLive,
			body: `{"product_id":"editor","amount":4900,"currency":"USD","payment_provider":"outside"}`}
	}},
	{"order_payment", nil, func(s *fixture) wire {
		made := s.order("4900")
		s.clock.advance(72 * time.Hour)
		return wire{method: "POST", path: "/v1/orders/" + made.text("order_no") + "/payments", key: keyAll,
			body: `{"reference":"INV-2031-0042","amount":4900,"paid_at":"2030-01-04T12:00:00+01:00"}`}
	}},
	{"report_sales", nil, func(s *fixture) wire {
		for i, body := range []string{
			`{"product_id":"editor","amount":4900,"currency":"USD"}`,
			`{"product_id":"editor","amount":9900,"currency":"EUR"}`,
			`{"product_id":"viewer","amount":900,"currency":"USD"}`,
			`{"product_id":"editor","amount":100,"currency":"USD"}`,
		} {
			made := s.sendWire(newOrder(body)).must(s.t, 0)
			s.payOutside(made, fmt.Sprintf("INV-%d", i)).must(s.t, 0)
			s.clock.advance(20 * 24 * time.Hour)
		}
		return wire{method: "GET", path: "/v1/reports/sales?from=2030-01-01&to=2031-01-01&by=month&product_id=editor",
			key: keyReadOnly}
	}},
	{"42200_report_sales", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/v1/reports/sales?from=2030-01-01&to=2032-01-01", key: keyAll}
	}},
	{"42200_payment", nil, func(s *fixture) wire {
		s.payOutside(s.order("4900"), "INV-1").must(s.t, 0)
		return s.paymentOf(s.order("4900"), "INV-1")
	}},
	{"payments_page", nil, func(s *fixture) wire {
		made := s.order("4900")
		s.clock.advance(time.Minute)
		s.payOutside(made, "INV-2031-0042").must(s.t, 0)
		return wire{method: "GET", path: "/v1/orders/" + made.text("order_no") + "/payments", key: keyReadOnly}
	}},
	{"order_refund_due", nil, func(s *fixture) wire {
		made := s.bring("paid")
		s.withProvider(&counter{says: errors.New("no answer")})
		s.changeOrder(made, "refund", "").must(s.t, 50200)
		return s.lookup(made)
	}},
	{"40902", nil, func(s *fixture) wire {
		return wire{method: "POST", path: "/v1/orders/" + s.bring("paid").text("order_no") + "/cancel", key: keyAll}
	}},
	{"40902_replayed", nil, func(s *fixture) wire {
		w := wire{method: "POST", path: "/v1/orders/" + s.bring("unpaid").text("order_no") + "/refund",
			key: keyAll}.once("k1")
		s.sendWire(w)
		return w
	}},
	{"42200_refund", nil, func(s *fixture) wire {
		return wire{method: "POST", path: "/v1/orders/" + s.bring("paid").text("order_no") + "/refund", key: keyAll,
			body: `{"reason":"\u0007"}`}
	}},
	{"50200", nil, func(s *fixture) wire {
		made := s.bring("paid")
		s.withProvider(&counter{says: errors.New("no answer")})
		return wire{method: "POST", path: "/v1/orders/" + made.text("order_no") + "/refund", key: keyAll}
	}},
	{"50400_refund", nil, func(s *fixture) wire {
		made := s.bring("paid")
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		return wire{method: "POST", path: "/v1/orders/" + made.text("order_no") + "/refund", key: keyAll}
	}},
	{"licenses_page", nil, func(s *fixture) wire {
		s.activate(s.license(), "d1").must(s.t, 0)
		s.clock.advance(time.Second)
		key := s.send("POST", "/v1/licenses", keyAll,
			`{"product_id":"viewer","quantity":1,"max_devices":0,"metadata":{"seat":1}}`).must(s.t, 0).grantedKey()
		for _, id := range []string{"zulu", "alpha"} {
			s.clock.advance(time.Second)
			s.activate(key, id).must(s.t, 0)
		}
		s.clock.advance(time.Second)
		s.license()
		return wire{method: "GET", path: "/v1/licenses?limit=2", key: keyReadOnly}
	}},
	{"licenses_none", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/v1/licenses?status=suspended&product_id=editor", key: keyAll}
	}},
	{"licenses_many_devices", nil, func(s *fixture) wire {
		key := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"viewer","quantity":1,"max_devices":0}`).must(s.t,
			0).grantedKey()
		for i := range 17 {
			s.activate(key, "d"+strconv.Itoa(i)).must(s.t, 0)
		}
		return wire{method: "GET", path: "/v1/licenses", key: keyAll}
	}},
	{"orders_page", nil, func(s *fixture) wire {
		s.order("7")
		s.clock.advance(time.Second)
		paid := s.order("5")
		s.pay(paid)
		s.clock.advance(time.Second)
		s.order("6")
		return wire{method: "GET", path: "/v1/orders?limit=2", key: keyReadOnly}
	}},
	{"products_page", nil, func(s *fixture) wire {
		s.order("7")
		owner := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
		for id, terms := range map[string]licensing.Terms{
			"yearly": {KeyPrefix: "YEAR", MaxDevices: 0, Validity: licensing.Period{Years: 1}},
			"trial": {KeyPrefix: "TRY", MaxDevices: 1, Validity: licensing.Period{Months: 1, Days: 2,
				Clock: 3*time.Hour + 4*time.Minute + 5*time.Second}, FromActivation: true},
		} {
			s.store.put(licensing.Record{Product: &licensing.Product{ID: id, Owner: owner, Terms: terms,
				CreatedAt: s.clock.Now().Add(time.Minute)}}, licensing.ProductRef(owner, id))
		}
		return wire{method: "GET", path: "/v1/products", key: keyAll}
	}},
	{"keys_page", nil, func(s *fixture) wire {
		s.store.addKey(testKey("full"), licensing.APIKey{
			ID: "key_test_shop", Owner: licensing.Owner{AccountID: "acct_acme",
				Mode: licensing.Test}, Name: "shop", Scopes: []string{"orders", "licenses:read"},
			CreatedAt: s.clock.Now(), ExpiresAt: s.clock.Now().Add(time.Hour),
			Previous: licensing.PreviousSecret{Version: 1, MasterID: "m", Until: s.clock.Now().Add(time.Minute)},
		})
		s.send("GET", "/v1/orders/x", testKey("full"), "").must(s.t, 40403)
		s.storeKeyUses()
		return wire{method: "GET", path: "/v1/keys?limit=5", key: keyAll}
	}},
	{"redaction", nil, func(s *fixture) wire {
		s.annas("0")
		s.annas("5")
		return redacting(redactAnna)
	}},
	{"redaction_replayed", nil, func(s *fixture) wire {
		s.annas("5")
		w := redacting(redactAnna).once("k1")
		s.sendWire(w)
		return w
	}},
	{"redaction_nothing", nil, func(*fixture) wire { return redacting(redactAnna) }},
	{"redacted_order", nil, func(s *fixture) wire {
		made := s.annas("0")
		s.sendWire(redacting(redactAnna)).must(s.t, 0)
		return s.lookup(made)
	}},
	{"40300_redaction", nil, func(*fixture) wire { return redacting(redactAnna).with(keyKeys) }},
	{"42200_redaction", nil, func(*fixture) wire { return redacting(`{"buyer_email":"anna"}`) }},
	{"50400_redaction", nil, func(s *fixture) wire {
		s.annas("5")
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		return redacting(redactAnna)
	}},
	{"events", nil, func(s *fixture) wire {
		s.eventful()
		return wire{method: "GET", path: "/v1/events?limit=100", key: keyAll}
	}},
	{"events_of_types", nil, func(s *fixture) wire {
		s.eventful()
		return wire{method: "GET", path: "/v1/events?types=order.paid,device.removed&limit=1", key: keyAll}
	}},
	{"events_now", nil, func(s *fixture) wire {
		s.eventful()
		return wire{method: "GET", path: "/v1/events?after=now", key: keyAll}
	}},
	{"event", nil, func(s *fixture) wire {
		s.eventful()
		return wire{method: "GET", path: "/v1/events/evt_00000000000000000000000002", key: keyAll}
	}},
	{"license_events", nil, func(s *fixture) wire {
		key := s.eventful()
		return wire{method: "GET", path: "/v1/licenses/" + key + "/events?limit=2", key: keyReadOnly}
	}},
	{"order_events", nil, func(s *fixture) wire {
		s.eventful()
		order := s.send("GET", "/v1/orders", keyAll, "").data["orders"].([]any)[0].(map[string]any)["order_no"].(string)
		return wire{method: "GET", path: "/v1/orders/" + order + "/events", key: keyReadOnly}
	}},
	{"40300_events", nil, func(*fixture) wire { return wire{method: "GET", path: "/v1/events", key: keyReadOnly} }},
	{"40406", nil, func(*fixture) wire { return wire{method: "GET", path: "/v1/events/evt_x", key: keyAll} }},
	{"41000", nil, func(s *fixture) wire {
		s.store.breakWith(licensing.ErrCursorExpired, nil)
		return wire{method: "GET", path: "/v1/events?cursor=pos_0", key: keyAll}
	}},
	{"42200_events", nil, func(*fixture) wire {
		return wire{method: "GET", path: "/v1/events?after=x&types=order&limit=0&wait=26", key: keyAll}
	}},
	{"42200_events_after", nil,
		func(*fixture) wire { return wire{method: "GET", path: "/v1/events?after=evt_x", key: keyAll} }},
	{"webhook_create", nil, func(*fixture) wire {
		return newWebhook(`{"url":"https://shop.example.com/licet","description":"Mails to buyers","event_types":["order.paid","license.revoked"]}`)
	}},
	{"webhook_create_replayed", nil, func(s *fixture) wire {
		w := newWebhook(`{"url":"https://shop.example.com/licet"}`).once("hook-1")
		s.sendWire(w).must(s.t, 0)
		return w
	}},
	{"webhooks", nil, func(s *fixture) wire {
		s.webhook("http://127.0.0.1:1/first")
		s.failing(s.webhook("https://shop.example.com/second"))
		return wire{method: "GET", path: "/v1/webhook_endpoints", key: keyAll}
	}},
	{"webhooks_page", nil, func(s *fixture) wire {
		s.webhook("https://shop.example.com/first")
		s.webhook("https://shop.example.com/second")
		return wire{method: "GET", path: "/v1/webhook_endpoints?limit=1", key: keyAll}
	}},
	{"webhook", nil, func(s *fixture) wire {
		id := s.webhook("https://shop.example.com/licet")
		s.failing(id)
		return wire{method: "GET", path: webhookPath(id, ""), key: keyAll}
	}},
	{"webhook_update", nil, func(s *fixture) wire {
		return wire{method: "PATCH", path: webhookPath(s.webhook("https://shop.example.com/licet"), ""), key: keyAll,
			body: `{"url":"http://localhost:9000/licet","description":"here","event_types":["device.bound"],"status":"disabled"}`}
	}},
	{"webhook_delete", nil, func(s *fixture) wire {
		return wire{method: "DELETE", path: webhookPath(s.webhook("https://shop.example.com/licet"), ""), key: keyAll}
	}},
	{"webhook_rotate", nil, func(s *fixture) wire {
		return wire{method: "POST", path: webhookPath(s.webhook("https://shop.example.com/licet"), "/rotate"),
			key: keyAll, body: `{"overlap":"PT1H"}`}
	}},
	{"webhook_test_refused", nil, func(s *fixture) wire {
		return wire{method: "POST", path: webhookPath(s.webhook("http://127.0.0.1:1/licet"), "/test"), key: keyAll}
	}},
	{"webhook_deliveries", nil, func(s *fixture) wire {
		id := s.webhook("https://shop.example.com/licet")
		s.failing(id)
		return wire{method: "GET", path: webhookPath(id, "/deliveries"), key: keyAll}
	}},
	{"webhook_deliveries_page", nil, func(s *fixture) wire {
		id := s.webhook("https://shop.example.com/licet")
		s.failing(id)
		return wire{method: "GET", path: webhookPath(id, "/deliveries?status=pending&limit=1"), key: keyAll}
	}},
	{"webhook_replay_event", nil, func(s *fixture) wire {
		s.eventful()
		return s.replay(`{"event_id":"evt_00000000000000000000000002"}`)
	}},
	{"webhook_replay_span", nil, func(s *fixture) wire {
		s.eventful()
		return s.replay(`{"since":"evt_00000000000000000000000001","until":"evt_00000000000000000000000003"}`)
	}},
	{"webhook_replay_dead", nil, func(s *fixture) wire { return s.replay(`{"dead":true}`) }},
	{"40406_replay", nil, func(s *fixture) wire { return s.replay(`{"event_id":"evt_00000000000000000000000002"}`) }},
	{"40300_webhooks", nil,
		func(*fixture) wire { return wire{method: "GET", path: "/v1/webhook_endpoints", key: keyReadOnly} }},
	{"40405", nil, func(*fixture) wire { return wire{method: "GET", path: webhookPath("we_x", ""), key: keyAll} }},
	{"40905", nil, func(s *fixture) wire {
		for range licensing.MaxEndpoints {
			s.webhook("https://shop.example.com/licet")
		}
		return newWebhook(`{"url":"https://shop.example.com/licet"}`)
	}},
	{"40906", nil, func(s *fixture) wire {
		w := s.replay(`{"dead":true}`)
		for range maxMemReplays {
			s.sendWire(w).must(s.t, 0)
		}
		return w
	}},
	{"40909", maxAPIKeys(1), func(*fixture) wire { return newKey(`{"name":"shop","scopes":["orders"]}`).once("k") }},
	{"42200_webhook", nil, func(*fixture) wire {
		return newWebhook(`{"url":"http://shop.example.com/licet","description":"a\nb","event_types":["order.paid","order.paid"]}`).once("")
	}},
	{"42200_webhook_update", nil, func(s *fixture) wire {
		return wire{method: "PATCH", path: webhookPath(s.webhook("https://shop.example.com/licet"), ""), key: keyAll,
			body: `{"url":"https://127.0.0.1.example.com:444/","event_types":["*","order.paid"],"status":"on"}`}
	}},
	{"42200_replay", nil,
		func(s *fixture) wire { return s.replay(`{"event_id":"","since":"","until":"","dead":false}`) }},
	{"40300_keys", nil, func(*fixture) wire { return wire{method: "GET", path: "/v1/keys", key: keyReadOnly} }},
	{"50300_licenses", nil, func(s *fixture) wire {
		s.store.breakWith(licensing.ErrUnavailable, nil)
		return wire{method: "GET", path: "/v1/licenses", key: keyAll}
	}},
	{"preflight", nil, func(*fixture) wire {
		return wire{method: "OPTIONS", path: "/v1/licenses/activate",
			headers: []string{"Origin", "https://app.example.com", "Access-Control-Request-Method", "POST"}}
	}},
	{"livez", nil, func(*fixture) wire { return wire{method: "GET", path: "/livez"} }},
	{"readyz", nil, func(*fixture) wire { return wire{method: "GET", path: "/readyz"} }},
	{"readyz_draining", nil, func(s *fixture) wire {
		s.node.StopIntake()
		return wire{method: "GET", path: "/readyz"}
	}},
}
