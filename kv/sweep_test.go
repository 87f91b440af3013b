package kv

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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

// TestSweepGoesOnBehindWhatItCantRead: one damaged claim must not keep all that
// are younger.
func TestSweepGoesOnBehindWhatItCantRead(t *testing.T) {
	l := newLab(t)
	for i := range 3 {
		l.refuse(testTime.Add(time.Duration(i) * time.Minute))
	}
	first := must(l.client.Get(l.ctx(), claimAgePrefix, clientv3.WithPrefix(), clientv3.WithLimit(1)))(t).Kvs[0]
	damaged := layout + "y/" + string(first.Key[len(claimAgePrefix)+8:])
	l.write(seed{damaged: bytesOf("?")})
	if swept, err := l.store.SweepClaims(l.ctx(), testTime.Add(time.Hour), node.MaxSweep); err != nil || swept != 2 {
		t.Errorf("swept %d, %v", swept, err)
	}
	if swept, err := l.store.SweepClaims(l.ctx(), testTime.Add(time.Hour), node.MaxSweep); !errors.Is(err, licet.ErrInternal) || swept != 0 {
		t.Errorf("swept %d, %v", swept, err)
	}
	if left := must(l.client.Get(l.ctx(), layout+"y/", clientv3.WithPrefix()))(t).Kvs; len(left) != 1 || string(left[0].Key) != damaged {
		t.Errorf("left are %v", left)
	}
}
