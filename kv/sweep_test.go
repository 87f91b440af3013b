package kv

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

// TestSweepLeavesNoPlaceWithoutItsClaim sweeps one entry at a time: a claim that was stored again has two entries by
// age, and both are due.
func TestSweepLeavesNoPlaceWithoutItsClaim(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ref := licensing.ClaimRef(labOwner, rand.Text()[:keyspace.ClaimHashSize])
	var token store.Token
	for _, made := range []time.Time{kvtest.Time, kvtest.Time.Add(time.Hour)} {
		outcome, err := l.store.Commit(l.ctx(), store.Change{Writes: []store.Write{{
			Ref: ref, Token: token, Record: licensing.Record{Claim: &licensing.Claim{CreatedAt: made,
				Refusal: licensing.ErrPaymentNotConfigured}},
		}}})
		if err != nil || !outcome.Landed {
			t.Fatalf("%+v, %v", outcome, err)
		}
		token = loadOne(t, l.store, ref).Token
	}
	for _, left := range []bool{true, false} {
		if swept, err := l.store.sweepClaims(l.ctx(), kvtest.Time.Add(2*time.Hour), 1); err != nil || swept != 1 {
			t.Fatalf("swept %d, %v", swept, err)
		}
		if summary, found := l.verify(verify.Config{}); len(found) > 0 {
			t.Errorf("of %d keys verify found %v", summary.Keys, found)
		}
		if claim := loadOne(t, l.store, ref).Record.Claim; (claim != nil) != left {
			t.Errorf("the claim is %+v", claim)
		}
	}
}

// TestSweepSkipsUnreadableRecords: a damaged claim must not keep younger claims from being removed.
func TestSweepSkipsUnreadableRecords(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for i := range 3 {
		l.refuse(kvtest.Time.Add(time.Duration(i) * time.Minute))
	}
	first := kvtest.Must(l.client.Get(l.ctx(), inLab(keyspace.ClaimAges), clientv3.WithPrefix(),
		clientv3.WithLimit(1)))(t).Kvs[0]
	damaged := inLab("y/" + string(first.Key[len(inLab(keyspace.ClaimAges))+8:]))
	l.write(seed{damaged: bytesOf("?")})
	if swept, err := l.store.SweepClaims(l.ctx(), kvtest.Time.Add(time.Hour)); err != nil || swept != 2 {
		t.Errorf("swept %d, %v", swept, err)
	}
	if swept, err := l.store.SweepClaims(l.ctx(), kvtest.Time.Add(time.Hour)); !errors.Is(err, licensing.ErrInternal) ||
		swept != 0 {
		t.Errorf("swept %d, %v", swept, err)
	}
	if left := kvtest.Must(l.client.Get(l.ctx(), inLab("y/"), clientv3.WithPrefix()))(t).Kvs; len(left) != 1 ||
		string(left[0].Key) != damaged {
		t.Errorf("left are %v", left)
	}
}

// TestSweepPassesUnreadableClaims: claims that can't be read, more than one sweep removes, must not keep younger claims
// from being removed.
func TestSweepPassesUnreadableClaims(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const bad = 5
	damaged := seed{}
	for i := range bad + 3 {
		l.refuse(kvtest.Time.Add(time.Duration(i) * time.Minute))
	}
	places := kvtest.Must(l.client.Get(l.ctx(), inLab(keyspace.ClaimAges), clientv3.WithPrefix()))(t).Kvs
	for _, place := range places[:bad] {
		damaged[inLab("y/"+string(place.Key[len(inLab(keyspace.ClaimAges))+8:]))] = bytesOf("?")
	}
	l.write(damaged)
	for pass := range 2 { // a pass begins with the oldest claim again
		swept := 0
		for {
			n, err := l.store.sweepClaims(l.ctx(), kvtest.Time.Add(time.Hour), 2)
			if swept += n; err != nil && !errors.Is(err, licensing.ErrInternal) {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
		if want := []int{3, bad}[pass]; swept != want {
			t.Errorf("pass %d swept %d claims, want %d", pass, swept, want)
		}
		if n := kvtest.Counted(t, l.store.metrics.EventValuesUnreadable); n != bad {
			t.Errorf("%v values that can't be read are counted, want %d", n, bad)
		}
		l.write(mended(l, damaged))
	}
}

// mended returns the damaged claims repaired, as claims of refusals.
func mended(l *lab, damaged seed) seed {
	whole := seed{}
	for key := range damaged {
		whole[key] = layout.EncodeClaim(&licensing.Claim{CreatedAt: kvtest.Time,
			Refusal: licensing.ErrPaymentNotConfigured},
			nil)
	}
	return whole
}

// TestSweepMeetsANewClaim stores a claim again after a sweep has read that the claim is old, and before the sweep
// removes it.
func TestSweepMeetsANewClaim(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	owner := newLicense(t, 1).Owner
	ref := licensing.ClaimRef(owner, "0123456789abcdef")
	ctx := t.Context()
	old := kvtest.Time.Add(-licensing.ClaimLifetime)
	load := func() store.Snapshot {
		return kvtest.Must(s.Load(ctx, store.Want{Ref: ref}))(t)[0]
	}
	claim := func(by *Store, at time.Time) {
		t.Helper()
		outcome := kvtest.Must(by.Commit(ctx, store.Change{Writes: []store.Write{{
			Ref: ref, Token: load().Token, Record: licensing.Record{Claim: &licensing.Claim{CreatedAt: at,
				OrderNo: "ord_0"}},
		}}}))(t)
		if !outcome.Landed {
			t.Fatal("the claim was not made")
		}
	}
	claim(s, old)
	writes := 0
	s.etcd.Remote.(*kvtest.FaultyKV).Next = func() kvtest.Fault {
		if writes++; writes == 1 {
			claim(faultyStore(t, kvtest.Script()), kvtest.Time)
		}
		return kvtest.Fault{}
	}
	sweep := func(before time.Time) {
		t.Helper()
		kvtest.Must(s.SweepClaims(ctx, before))(t)
	}
	sweep(old.Add(time.Millisecond))
	if have := load().Record.Claim; writes != 1 || have == nil || !have.CreatedAt.Equal(kvtest.Time) {
		t.Fatalf("after %d writes the claim is %+v", writes, have)
	}
	sweep(old.Add(time.Millisecond)) // the old entry by age
	sweep(kvtest.Time.Add(time.Millisecond))
	if have := load().Record.Claim; have != nil {
		t.Errorf("in the end the claim is %+v", have)
	}
}
