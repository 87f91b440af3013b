package handlers_test

import (
	"testing"
	"time"

	"licet/licensing"
	"licet/receipt"
)

// TestRevocationsAcrossMidnight: the entry of a receipt that ends just before midnight stays in the list for as long as
// a program whose clock is behind accepts the receipt.
func TestRevocationsAcrossMidnight(t *testing.T) {
	t.Parallel()
	if licensing.ReceiptLeeway != receipt.Leeway {
		t.Errorf("licenses count with a leeway of %v, programs with %v", licensing.ReceiptLeeway, receipt.Leeway)
	}
	s := newService(t) // at 03:04:05
	s.product("editor", `"receipt_validity":"PT20H54M","self_service_deactivation":true`).must(t, 0)
	key := s.license()
	document := s.activateFor(key, "pc", `,"receipt":true`).text("receipt")
	s.clock.advance(20 * time.Hour)
	s.sendWire(deactivation(key, `"device_id":"pc"`)).must(t, 0)
	for _, after := range []time.Duration{0, 57 * time.Minute} { // until 00:01:05
		s.clock.advance(after)
		if err := s.node.SweepRevocations(t.Context()); err != nil {
			t.Fatal(err)
		}
		behind := s.clock.Now().Add(-licensing.ReceiptLeeway)
		if why := s.revokedAt(behind, document, "pc", &receipt.Seen{}); why != receipt.Voided {
			t.Errorf("at %v, a program whose clock is at %v refuses the receipt as %q", s.clock.Now(), behind, why)
		}
	}
	s.clock.advance(24 * time.Hour)
	if list := s.peekList(s.send("GET", revocationsPath, "", "").body); len(list.Entries) != 0 {
		t.Errorf("a day later, the list has %d bytes", len(list.Entries))
	}
}
