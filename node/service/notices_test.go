package service_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// TestNotices runs the sweeps of two nodes at the same time: each notice of a license is given once, at its time, also
// for a license that always has leases, and by the settings of the license's account. Its end, and that of its grace,
// are recorded then.
func TestNotices(t *testing.T) {
	clock := &nodetest.Clock{}
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db, nodetest.WithClock(clock))
	nodes := []*service.Service{n, nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))}
	ctx := nodetest.Context(t)
	usual, chosen, quiet := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test),
		nodetest.NewOwner(licensing.Test)
	for owner, days := range map[licensing.Owner]licensing.ExpiringDays{chosen: "\x03", quiet: ""} {
		_, err := n.ChangeSettings(ctx, licensing.ChangeSettings{Owner: owner, ExpiringDays: &days})
		nodetest.WantError(t, err, nil)
	}
	const month = 30 * 24 * time.Hour
	grant := func(owner licensing.Owner, lease time.Duration) licensing.Ref {
		t.Helper()
		_, _, err := n.PutProduct(ctx, licensing.PutProduct{ID: "app", Owner: owner, Terms: licensing.Terms{
			KeyPrefix: "LIC", MaxDevices: 3, Grace: licensing.Period{Days: 2},
			Lease: licensing.LeaseTerms{Length: lease, Longest: lease}}})
		nodetest.WantError(t, err, nil)
		granted, _, err := n.Grant(ctx, owner, service.Grant{ProductID: "app", Quantity: 1,
			ExpiresAt: clock.Now().Add(4 * month).Truncate(time.Millisecond)})
		nodetest.WantError(t, err, nil)
		return licensing.LicenseRef(granted[0].License.Key)
	}
	refs := []licensing.Ref{grant(usual, 0), grant(usual, licensing.MaxLease), grant(chosen, 0), grant(quiet, 0)}
	given := make([][]string, len(refs))
	last := make([]licensing.License, len(refs))
	sweep := func() {
		t.Helper()
		var group sync.WaitGroup
		for _, each := range nodes {
			group.Go(func() {
				nodetest.WantError(t, each.RemoveLapsedLeases(ctx), nil)
				for _, chore := range each.Chores() {
					nodetest.WantError(t, chore.Once(ctx), nil)
				}
			})
		}
		group.Wait()
		for i, ref := range refs {
			given[i] = nil
			for _, e := range nodetest.HistoryOf(t, db, ref) {
				if e.Type == licensing.EventLicenseExpiring {
					given[i] = append(given[i], e.Members[0].JSON)
				}
			}
			loaded, err := db.Load(ctx, store.Want{Ref: ref})
			nodetest.WantError(t, err, nil)
			last[i] = *loaded[0].Record.License
		}
	}
	want := func(when string, notices ...[]string) {
		t.Helper()
		sweep()
		if !slices.EqualFunc(given, notices, slices.Equal) {
			t.Errorf("%s: %q, want %q", when, given, notices)
		}
	}
	key := refs[1].LicenseID().Key("LIC")
	nodetest.MustActivate(t, n, key, "borrowed")
	want("at first", nil, nil, nil, nil)
	clock.Advance(month - time.Minute)
	nodetest.MustActivate(t, n, key, "borrowed")
	want("just before 90 days", nil, nil, nil, nil)
	clock.Advance(month + time.Minute)
	nodetest.MustActivate(t, n, key, "borrowed")
	want("60 days before", nil, nil, nil, nil)
	clock.Advance(month - time.Minute)
	want("just before 30 days", nil, nil, nil, nil)
	clock.Advance(2 * time.Minute)
	want("30 days before", []string{"30"}, []string{"30"}, nil, nil)
	want("again", []string{"30"}, []string{"30"}, nil, nil)
	clock.Advance(27 * 24 * time.Hour)
	want("3 days before", []string{"30", "7"}, []string{"30", "7"}, []string{"3"}, nil)
	clock.Advance(2 * 24 * time.Hour)
	want("1 day before", []string{"30", "7", "1"}, []string{"30", "7", "1"}, []string{"3"}, nil)
	clock.Advance(24*time.Hour + 5*time.Minute)
	want("after the end", []string{"30", "7", "1"}, []string{"30", "7", "1"}, []string{"3"}, nil)
	for i, l := range last {
		if !l.EndRecorded.Equal(l.ExpiresAt) || !l.GraceRecorded.IsZero() || !l.InGrace(clock.Now()) {
			t.Errorf("license %d after its end: %+v", i, l)
		}
	}
	clock.Advance(2 * 24 * time.Hour)
	sweep()
	for i, l := range last {
		if !l.GraceRecorded.Equal(l.GraceEndsAt()) || l.InGrace(l.ExpiresAt) {
			t.Errorf("license %d after its grace: %+v", i, l)
		}
	}
}

// TestLapsedLeasesBesideNotices: the lapsed leases of a license whose notice is overdue are removed in the pass that
// gives the notice. While the store is almost full and takes no notices, that pass removes them all the same.
func TestLapsedLeasesBesideNotices(t *testing.T) {
	for _, space := range []store.Space{store.SpaceFree, store.SpaceReserve} {
		clock := &nodetest.Clock{}
		tight := &tightStore{Store: nodetest.OpenStore(t)}
		n := nodetest.New(t, tight, nodetest.WithClock(clock))
		ctx, owner := nodetest.Context(t), nodetest.NewOwner(licensing.Test)
		const lease = 10 * time.Minute
		_, _, err := n.PutProduct(ctx, licensing.PutProduct{ID: "app", Owner: owner, Terms: licensing.Terms{
			KeyPrefix: "LIC", MaxDevices: 60, Lease: licensing.LeaseTerms{Length: lease, Longest: lease}}})
		nodetest.WantError(t, err, nil)
		granted, _, err := n.Grant(ctx, owner, service.Grant{ProductID: "app", Quantity: 1,
			ExpiresAt: clock.Now().Add(24*time.Hour + lease/2)}) // a notice is due before the leases end
		nodetest.WantError(t, err, nil)
		key := granted[0].License.Key
		for i := range 50 { // more than one swap removes
			nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
		}
		clock.Advance(lease + licensing.LeaseGuard)
		tight.set(space)
		wanted := map[store.Space]error{store.SpaceReserve: node.ErrNoRoom}[space]
		nodetest.WantError(t, n.GiveNotices(ctx), wanted)
		loaded, err := tight.Load(ctx, store.Want{Ref: licensing.LicenseRef(key)})
		nodetest.WantError(t, err, nil)
		if l := loaded[0].Record.License; l.CurrentDevices != 0 || l.NoticeDue(clock.Now()) != (wanted != nil) {
			t.Errorf("%v: %d leases are left, and the notice is due: %v", space, l.CurrentDevices,
				l.NoticeDue(clock.Now()))
		}
	}
}
