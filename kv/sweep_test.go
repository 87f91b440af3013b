package kv

import (
	"crypto/rand"
	"testing"
	"time"

	"licet"
	"licet/node"
)

// TestSweepLeavesNoPlaceWithoutItsClaim sweeps one place at a time: a claim
// that was made anew has two, and both are due.
func TestSweepLeavesNoPlaceWithoutItsClaim(t *testing.T) {
	l := newLab(t)
	ref := licet.ClaimRef(labOwner, rand.Text()[:claimHashLength])
	var token node.Token
	for _, made := range []time.Time{testTime, testTime.Add(time.Hour)} {
		outcome, err := l.store.Commit(l.ctx(), node.Change{Writes: []node.Write{{
			Ref: ref, Token: token, Record: licet.Record{Claim: &licet.Claim{CreatedAt: made, Refusal: licet.ErrPaymentNotConfigured}},
		}}})
		if err != nil || !outcome.Landed {
			t.Fatalf("%+v, %v", outcome, err)
		}
		token = loadOne(t, l.store, ref).Token
	}
	for _, left := range []bool{true, false} {
		if swept, err := l.store.SweepClaims(l.ctx(), testTime.Add(2*time.Hour), 1); err != nil || swept != 1 {
			t.Fatalf("swept %d, %v", swept, err)
		}
		if summary, found := l.verify(VerifyConfig{}); len(found) > 0 {
			t.Errorf("of %d keys verify found %v", summary.Keys, found)
		}
		if claim := loadOne(t, l.store, ref).Record.Claim; (claim != nil) != left {
			t.Errorf("the claim is %+v", claim)
		}
	}
}
