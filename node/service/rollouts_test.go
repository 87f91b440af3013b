package service_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// rolloutLab is a node, and an account with licenses of two products, on an etcd that no other test uses.
type rolloutLab struct {
	t     *testing.T
	owner licensing.Owner
	store store.Store
	clock *nodetest.Clock
	*service.Service
}

const rolledProduct = "pro"

// newRolloutLab makes licenses of two products, with up to three devices each.
func newRolloutLab(t *testing.T, licenses int) *rolloutLab {
	t.Helper()
	db := nodetest.OpenWith(t, nodetest.OwnEtcd(t))
	l := &rolloutLab{t: t, owner: nodetest.NewOwner(licensing.Live), store: db, clock: new(nodetest.Clock)}
	l.Service = l.node(db).Service
	for _, id := range []string{rolledProduct, "other"} {
		l.put(id, 3, `{"level":1}`)
	}
	l.grant(rolledProduct, licenses)
	l.grant("other", 5)
	return l
}

// node returns the lab as another node sees it. A rollout that no node runs is due after an hour.
func (l *rolloutLab) node(db store.Store, change ...func(*service.Config)) *rolloutLab {
	other := *l
	other.Service = nodetest.New(l.t, db, append(change, nodetest.WithClock(l.clock),
		func(cfg *service.Config) { cfg.SweepEvery = time.Hour })...)
	return &other
}

func (l *rolloutLab) put(id string, maxDevices int, entitlements string) {
	l.t.Helper()
	_, _, err := l.PutProduct(l.t.Context(), licensing.PutProduct{ID: id, Owner: l.owner,
		Terms:        licensing.Terms{KeyPrefix: "LIC", MaxDevices: maxDevices},
		Entitlements: licensing.Entitlements(entitlements)})
	nodetest.WantError(l.t, err, nil)
}

func (l *rolloutLab) grant(id string, count int) (keys []licensing.LicenseKey) {
	l.t.Helper()
	granted, _, err := l.Grant(l.t.Context(), l.owner, service.Grant{ProductID: id, Quantity: count})
	nodetest.WantError(l.t, err, nil)
	for i := range granted {
		keys = append(keys, granted[i].License.Key)
	}
	return keys
}

// begin begins a rollout of entitlements and device limits.
func (l *rolloutLab) begin(dryRun bool) licensing.Rollout {
	l.t.Helper()
	p, _, err := l.BeginRollout(l.t.Context(), l.owner, rolledProduct, licensing.BeginRollout{
		Applies: licensing.RolloutEntitlements | licensing.RolloutMaxDevices, DryRun: dryRun, By: "key_1"}, nil)
	nodetest.WantError(l.t, err, nil)
	return p.Rollout
}

// beginIdle begins the same rollout as begin, as a node that is killed right afterward.
func (l *rolloutLab) beginIdle() {
	l.beginIdleWith(licensing.RolloutEntitlements | licensing.RolloutMaxDevices)
}

// beginIdleWith does the same with some terms.
func (l *rolloutLab) beginIdleWith(applies licensing.RolloutTerms) {
	l.t.Helper()
	ref := licensing.ProductRef(l.owner, rolledProduct)
	loaded, err := l.store.Load(l.t.Context(), store.Want{Ref: ref})
	nodetest.WantError(l.t, err, nil)
	begin := licensing.BeginRollout{Lapse: time.Hour, Applies: applies}
	loaded[0].Record.ActsByTime = true
	_, err = licensing.Apply(&loaded[0].Record, begin, l.Now())
	nodetest.WantError(l.t, err, nil)
	l.commit(store.Write{Ref: ref, Token: loaded[0].Token, Record: loaded[0].Record})
}

func (l *rolloutLab) commit(w store.Write) {
	l.t.Helper()
	outcome, err := l.store.Commit(l.t.Context(), store.Change{Writes: []store.Write{w}})
	if nodetest.WantError(l.t, err, nil); !outcome.Landed {
		l.t.Fatalf("%+v is not stored", w.Ref)
	}
}

func (l *rolloutLab) rollout() licensing.Rollout {
	l.t.Helper()
	p, err := l.Product(l.t.Context(), l.owner, rolledProduct)
	nodetest.WantError(l.t, err, nil)
	return p.Rollout
}

// await waits until the rollout is in a state.
func (l *rolloutLab) await(status licensing.RolloutStatus) licensing.Rollout {
	l.t.Helper()
	for giveUp := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if o := l.rollout(); o.Status() == status {
			return o
		} else if time.Now().After(giveUp) {
			l.t.Fatalf("the rollout is %+v, want it %s", o, status)
		}
	}
}

// terms counts the licenses of a product by their limit and their entitlements.
func (l *rolloutLab) terms(product string) map[string]int {
	l.t.Helper()
	found := make(map[string]int)
	for page := (store.Page{Limit: store.MaxListPage}); ; {
		list, err := l.ListLicenses(l.t.Context(), l.owner, service.LicenseFilter{ProductID: product}, page)
		nodetest.WantError(l.t, err, nil)
		for i := range list.Items {
			v := &list.Items[i]
			found[fmt.Sprint(v.License.MaxDevices, " ", v.Entitled.At(v.License.CreatedAt, l.Now()))]++
		}
		if page.Before = list.Next; page.Before == "" {
			return found
		}
	}
}

func (l *rolloutLab) want(what, product string, want map[string]int) {
	l.t.Helper()
	if got := l.terms(product); fmt.Sprint(got) != fmt.Sprint(want) {
		l.t.Errorf("%s: the licenses of %s have %v, want %v", what, product, got, want)
	}
}

// TestRollout changes the licenses that were issued before it began, and no others. A dry run before it counts the same
// licenses and changes none. No device is removed, and each change has its event.
func TestRollout(t *testing.T) {
	const before = 150
	l := newRolloutLab(t, before)
	full, half := l.grant(rolledProduct, 1)[0], l.grant(rolledProduct, 1)[0]
	for key, devices := range map[licensing.LicenseKey]int{full: 3, half: 2} {
		for i := range devices {
			_, err := nodetest.Activate(t.Context(), l.Service, key, fmt.Sprint("device-", i))
			nodetest.WantError(t, err, nil)
		}
	}
	l.put(rolledProduct, 2, `{"level":2}`)
	l.begin(true)
	want := licensing.RolloutCounts{Licenses: before + 2, Updated: before + 2, LimitsKept: 1}
	if o := l.await(licensing.RolloutDone); o.Counts != want || !o.DryRun {
		t.Errorf("the dry run counts %+v, want %+v", o.Counts, want)
	}
	l.want("after the dry run", rolledProduct, map[string]int{`3 {"level":1}`: before + 2})
	begun := l.begin(false)
	if o := l.await(licensing.RolloutDone); o.Counts != want || o.DryRun || o.EndedAt.Before(begun.StartedAt) {
		t.Errorf("the rollout counts %+v, want %+v", o.Counts, want)
	}
	l.want("after the rollout", rolledProduct, map[string]int{`2 {"level":2}`: before + 1, `3 {"level":2}`: 1})
	l.want("after the rollout", "other", map[string]int{`3 {"level":1}`: 5})
	for key, devices := range map[licensing.LicenseKey]int{full: 3, half: 2} {
		view, err := l.License(t.Context(), l.owner, key, store.DevicePage{Limit: 10})
		nodetest.WantError(t, err, nil)
		if len(view.Devices) != devices || view.License.CurrentDevices != devices {
			t.Errorf("%d devices are left of %d", len(view.Devices), devices)
		}
		history, err := l.LicenseEvents(t.Context(), l.owner, key, store.HistoryPage{Limit: 1})
		nodetest.WantError(t, err, nil)
		if e := history.Events[0]; e.Type != licensing.EventLicenseUpdated || e.Actor != "key_1" {
			t.Errorf("the latest event is %s of %s", e.Type, e.Actor)
		}
	}
	l.begin(false)
	want.Updated = 0
	if o := l.await(licensing.RolloutDone); o.Counts != want {
		t.Errorf("the second rollout counts %+v, want %+v", o.Counts, want)
	}
}

// TestRolloutLeavesLaterLicenses: a license that is issued while the rollout is under way keeps its terms.
func TestRolloutLeavesLaterLicenses(t *testing.T) {
	l := newRolloutLab(t, 70)
	l.put(rolledProduct, 5, `{"level":2}`)
	l.beginIdle()
	l.clock.Advance(time.Millisecond)
	l.put(rolledProduct, 4, `{"level":3}`)
	l.grant(rolledProduct, 1)
	l.clock.Advance(time.Hour)
	nodetest.WantError(t, l.ContinueRollouts(t.Context()), nil)
	if o := l.await(licensing.RolloutDone); o.Counts != (licensing.RolloutCounts{Licenses: 70, Updated: 70}) {
		t.Errorf("the rollout counts %+v", o.Counts)
	}
	l.want("at the end", rolledProduct, map[string]int{`5 {"level":2}`: 70, `4 {"level":3}`: 1})
}

// planChanging is a store in which the first license of each page of a rollout gets another product, right after the
// page was listed.
type planChanging struct {
	store.Store
	change func(licensing.LicenseKey)
}

func (s planChanging) ListLicenses(
	ctx context.Context, owner licensing.Owner, of licensing.Customer, page store.Page,
	keep func(*store.LicenseView) bool,
) (store.List[store.LicenseView], error) {
	list, err := s.Store.ListLicenses(ctx, owner, of, page, keep)
	if len(list.Items) > 0 {
		s.change(list.Items[0].License.Key)
	}
	return list, err
}

// TestRolloutLeavesOtherProducts: a license that gets another product after the rollout has listed it keeps the terms
// of that product.
func TestRolloutLeavesOtherProducts(t *testing.T) {
	l := newRolloutLab(t, 10)
	l.put(rolledProduct, 5, `{"level":2}`)
	basic, err := l.Product(t.Context(), l.owner, "other")
	nodetest.WantError(t, err, nil)
	n := l.node(planChanging{l.store, func(key licensing.LicenseKey) {
		ref := licensing.LicenseRef(key)
		loaded, err := l.store.Load(t.Context(), store.Want{Ref: ref})
		if nodetest.WantError(t, err, nil); loaded[0].Record.License.ProductID == "other" {
			return
		}
		_, err = licensing.Apply(&loaded[0].Record, licensing.ExtendLicense{Plan: &licensing.Plan{
			ProductID: "other", Terms: basic.Terms}}, l.Now())
		nodetest.WantError(t, err, nil)
		l.commit(store.Write{Ref: ref, Token: loaded[0].Token, Record: loaded[0].Record})
	}})
	n.begin(false)
	if o := l.await(licensing.RolloutDone); o.Counts != (licensing.RolloutCounts{Licenses: 10, Updated: 9}) {
		t.Errorf("the rollout counts %+v", o.Counts)
	}
	l.want("at the end", rolledProduct, map[string]int{`5 {"level":2}`: 9})
	l.want("at the end", "other", map[string]int{`3 {"level":1}`: 6})
}

// TestCanceledRollout ends at the next page.
func TestCanceledRollout(t *testing.T) {
	const all = 200
	var l *rolloutLab
	var pages atomic.Int32
	l = newRolloutLab(t, all)
	l.put(rolledProduct, 5, `{"level":2}`)
	n := l.node(&storetest.Faulty{Store: l.store, OnCommit: func(c store.Change) storetest.Fault {
		p := c.Writes[0].Record.Product
		if p != nil && p.Rollout.Cursor != "" && p.Rollout.UnderWay() && pages.Add(1) == 1 {
			// Another node cancels the rollout before the first page is stored.
			if _, err := l.CancelRollout(t.Context(), l.owner, rolledProduct); err != nil {
				t.Error(err)
			}
		}
		return storetest.Fault{}
	}})
	n.begin(false)
	o := l.await(licensing.RolloutCanceled)
	nodetest.WantError(t, n.Drain(t.Context()), nil)
	if got := l.rollout(); got != o || pages.Load() != 1 {
		t.Errorf("after its end it is %+v, before %+v; %d pages", got, o, pages.Load())
	}
	want := map[string]int{`5 {"level":2}`: 64, `3 {"level":1}`: all - 64}
	l.want("canceled after a page", rolledProduct, want)
	l.clock.Advance(time.Hour)
	nodetest.WantError(t, l.ContinueRollouts(t.Context()), nil)
	l.want("after a sweep", rolledProduct, want)
}

// TestRolloutGoesOnAtAnotherNode: a node can't go on in the middle of a page. Another node continues the rollout, once
// it is due.
func TestRolloutGoesOnAtAnotherNode(t *testing.T) {
	const all = 200
	var changed atomic.Int32
	l := newRolloutLab(t, all)
	l.put(rolledProduct, 5, `{"level":2}`)
	n := l.node(&storetest.Faulty{Store: l.store, OnCommit: func(c store.Change) storetest.Fault {
		if c.Writes[0].Record.License != nil && changed.Add(1) > 100 {
			return storetest.Fault{Skip: true, Say: licensing.ErrUnavailable}
		}
		return storetest.Fault{}
	}})
	begun := n.begin(false)
	for changed.Load() <= 100 {
		time.Sleep(time.Millisecond)
	}
	nodetest.WantError(t, n.Drain(t.Context()), nil)
	nodetest.WantError(t, l.ContinueRollouts(t.Context()), nil)
	if o := l.rollout(); !o.UnderWay() || o.Counts.Licenses != 64 {
		t.Fatalf("the rollout did not stop: %+v", o)
	}
	l.clock.Advance(time.Hour)
	nodetest.WantError(t, l.ContinueRollouts(t.Context()), nil)
	if o := l.await(licensing.RolloutDone); o.Counts.Licenses != all || o.Counts.Updated > all ||
		o.Counts.Updated < all-64 || !o.StartedAt.Equal(begun.StartedAt) {
		t.Errorf("the rollout is %+v", o)
	}
	l.want("at the end", rolledProduct, map[string]int{`5 {"level":2}`: all})
}

// TestRolloutOfNewerNode: a node leaves a rollout of terms that it does not know to newer nodes. If it did the pages,
// the licenses would never get these terms.
func TestRolloutOfNewerNode(t *testing.T) {
	l := newRolloutLab(t, 3)
	l.put(rolledProduct, 5, `{"level":2}`)
	l.beginIdleWith(licensing.RolloutMaxDevices | 1<<14)
	begun := l.rollout()
	l.clock.Advance(time.Hour)
	nodetest.WantError(t, l.ContinueRollouts(t.Context()), nil)
	l.AwaitRolloutsAtRest()
	if o := l.rollout(); o != begun {
		t.Errorf("the rollout is %+v, was %+v", o, begun)
	}
	l.want("afterward", rolledProduct, map[string]int{`3 {"level":1}`: 3})
}

// TestRolloutWaitsForBudget: a rollout that lets more devices be bound waits until its account stores less than its
// budget, and then ends.
func TestRolloutWaitsForBudget(t *testing.T) {
	const all = 70
	l := newRolloutLab(t, all)
	l.put(rolledProduct, 5, `{"level":2}`)
	stores := func(bytes int64) {
		t.Helper()
		ref := licensing.UsageRef(l.owner)
		loaded, err := l.store.Load(t.Context(), store.Want{Ref: ref})
		nodetest.WantError(t, err, nil)
		l.commit(store.Write{Ref: ref, Token: loaded[0].Token,
			Record: licensing.Record{Usage: &licensing.Usage{Owner: l.owner, Size: licensing.Size{Bytes: bytes}}}})
	}
	stores(2 << 20)
	l.beginIdle()
	n := l.node(l.store, func(cfg *service.Config) { cfg.Budget = licensing.Budget{Bytes: 1 << 20} })
	step := func() {
		t.Helper()
		l.clock.Advance(5 * time.Hour)
		nodetest.WantError(t, n.ContinueRollouts(t.Context()), nil)
	}
	step()
	if o := l.await(licensing.RolloutPaused); o.Counts != (licensing.RolloutCounts{}) || o.Cursor != "" {
		t.Errorf("the rollout is %+v", o)
	}
	stores(0)
	if err := n.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	n = l.node(l.store, func(cfg *service.Config) { cfg.Budget = licensing.Budget{Bytes: 1 << 20} })
	step()
	if o := l.await(licensing.RolloutDone); o.Counts != (licensing.RolloutCounts{Licenses: all, Updated: all}) {
		t.Errorf("the rollout is %+v", o)
	}
}
