package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// trialLab is a lab with a product that may be tried, and a node whose time the test sets.
type trialLab struct {
	*lab
	node  *service.Service
	ahead atomic.Int64
}

func newTrialLab(t *testing.T) *trialLab {
	t.Helper()
	l := &trialLab{lab: newLab(t)}
	l.product()
	l.node = l.nodeWith(rand.Reader, func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) })
	return l
}

// healthy demands that verify finds nothing in the store.
func (l *trialLab) healthy(when string) {
	l.t.Helper()
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		l.t.Errorf("%s: verify finds %v", when, found)
	}
}

func (l *trialLab) start(device string) (licensing.Result, error) {
	return l.node.StartTrial(l.ctx(), labOwner,
		service.NewTrial{ProductID: "pro", Device: device, BuyerEmail: device + "@example.com", By: licensing.EndUser})
}

// sized compares what the node has added to the usage of the account with what a recount counts.
func (l *trialLab) sized(before map[licensing.Owner]licensing.Size) {
	l.t.Helper()
	revision := kvtest.Must(l.client.Get(l.ctx(), "x"))(l.t).Header.Revision
	want := before[labOwner]
	for _, change := range l.store.TakeGrowth() {
		if change.Owner == labOwner {
			want = want.Plus(change.Size)
		}
	}
	got := kvtest.Must(verify.Sizes(l.ctx(), l.store, revision, 0))(l.t)
	if got[labOwner] != want {
		l.t.Errorf("the account stores %+v, and its changes add up to %+v", got[labOwner], want)
	}
	before[labOwner] = want
}

// TestTrial starts a trial, upgrades another, and lets both be forgotten.
func TestTrial(t *testing.T) {
	t.Parallel()
	l := newTrialLab(t)
	sizes := map[licensing.Owner]licensing.Size{}
	l.sized(sizes)
	tried, paid := kvtest.Must(l.start("pc"))(t), kvtest.Must(l.start("mac"))(t)
	if !tried.Created || tried.License.Key == paid.License.Key || tried.License.CurrentDevices != 1 {
		t.Errorf("started %+v", tried)
	}
	if again := kvtest.Must(l.start("pc"))(t); again.Created || again.License.Key != tried.License.Key ||
		again.Device.ID != "pc" || again.Device.BoundAt.IsZero() {
		t.Errorf("again: %+v", again)
	}
	l.activate(tried.License.Key, "laptop")
	if _, _, err := l.node.ReissueLicense(l.ctx(), labOwner, service.Reissue{
		Target: licensing.Target{Key: tried.License.Key, Caller: labOwner}}); err != nil {
		t.Fatal(err)
	}
	l.healthy("started")
	order := func(product string, upgradeOf licensing.LicenseKey) (licensing.Order, error) {
		o, _, err := l.node.CreateOrder(l.ctx(), labOwner, service.NewOrder{ProductID: product, Amount: 100,
			Currency: "USD", UpgradeOf: upgradeOf})
		return o, err
	}
	first, second := kvtest.Must(order("pro", paid.License.Key))(t), kvtest.Must(order("pro", paid.License.Key))(t)
	for _, o := range []*licensing.Order{&first, &second} {
		for range 2 { // a provider may confirm a payment again
			*o = kvtest.Must(l.node.PayOrder(l.ctx(), *o, sandboxPayment(o.OrderNo)))(t).Order()
		}
	}
	if first.LicenseKey != paid.License.Key || second.LicenseKey == paid.License.Key || second.LicenseKey.IsZero() {
		t.Errorf("two orders of one trial have the licenses %v and %v", first.LicenseKey, second.LicenseKey)
	}
	if _, err := l.start("mac"); !errors.Is(err, licensing.ErrTrialUsed) {
		t.Errorf("after the upgrade: %v", err)
	}
	if _, err := order("pro", first.LicenseKey); licensing.ReasonOf(err) != licensing.ReasonInvalidField {
		t.Errorf("an order names a paid license: %v", err)
	}
	if _, err := order("other", tried.License.Key); licensing.ReasonOf(err) != licensing.ReasonInvalidField {
		t.Errorf("an order names a trial of another product: %v", err)
	}
	view := kvtest.Must(l.node.License(l.ctx(), labOwner, paid.License.Key, store.DevicePage{Limit: 10}))(t)
	if up := &view.License; up.IsTrial() || up.OrderNo != first.OrderNo || up.MaxDevices != 3 ||
		!up.ExpiresAt.IsZero() || len(view.Devices) != 1 || view.Metadata.BuyerEmail != "" {
		t.Errorf("upgraded to %+v", up)
	}
	l.healthy("upgraded")
	l.sized(sizes)

	l.ahead.Store(int64(licensing.TrialMemory + 20*24*time.Hour))
	for range 2 {
		l.sweepTrials()
	}
	l.healthy("swept")
	l.sized(sizes)
	if n := sizes[labOwner].Trials; n != 0 {
		t.Errorf("%d trials are left", n)
	}
	_, err := l.node.License(l.ctx(), labOwner, tried.License.Key, store.DevicePage{Limit: 1})
	if !errors.Is(err, licensing.ErrLicenseNotFound) {
		t.Errorf("the license of a trial that ended: %v", err)
	}
	if _, err := l.node.Activate(l.ctx(), licensing.Activate{Target: licensing.Target{Key: tried.License.Key},
		Device: "pc"}); !errors.Is(err, licensing.ErrLicenseNotFound) {
		t.Errorf("its activation: %v", err)
	}
	kvtest.Must(l.node.License(l.ctx(), labOwner, paid.License.Key, store.DevicePage{Limit: 1}))(t)
	if late, err := l.start("mac"); err != nil || !late.Created {
		t.Errorf("a trial after the memory: %+v, %v", late, err)
	}
	l.healthy("started again")
}

// TestRevokedTrialMakesRoom: a sweep deletes a trial an hour after its revocation, and the device may start another
// one. A license that was upgraded before its revocation stays.
func TestRevokedTrialMakesRoom(t *testing.T) {
	t.Parallel()
	l := newTrialLab(t)
	sizes := map[licensing.Owner]licensing.Size{}
	l.sized(sizes)
	revoked, paid := kvtest.Must(l.start("pc"))(t), kvtest.Must(l.start("mac"))(t)
	kept := kvtest.Must(l.start("tab"))(t)
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner, service.NewOrder{ProductID: "pro", Amount: 100,
		Currency: "USD", UpgradeOf: paid.License.Key})
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Must(l.node.PayOrder(l.ctx(), order, sandboxPayment(order.OrderNo)))(t)
	for _, key := range []licensing.LicenseKey{revoked.License.Key, paid.License.Key} {
		target := licensing.Target{Key: key, Caller: labOwner}
		if _, _, err := l.node.ChangeLicense(l.ctx(), labOwner, service.LicenseChange{Key: key,
			Command: licensing.RevokeLicense{Target: target}}); err != nil {
			t.Fatal(err)
		}
	}
	l.healthy("revoked")
	l.sweepTrials()
	if again, err := l.start("pc"); err != nil || again.Created {
		t.Errorf("the device of the revoked trial, before it is due: %+v, %v", again, err)
	}
	l.ahead.Store(int64(licensing.RevokedTrialMemory + time.Minute))
	l.sweepTrials()
	l.healthy("swept")
	l.sized(sizes)
	if n := sizes[labOwner].Trials; n != 2 {
		t.Errorf("%d trials are left, want those of mac and tab", n)
	}
	for key, want := range map[licensing.LicenseKey]error{revoked.License.Key: licensing.ErrLicenseNotFound,
		paid.License.Key: nil, kept.License.Key: nil} {
		_, err := l.node.License(l.ctx(), labOwner, key, store.DevicePage{Limit: 1})
		if !errors.Is(err, want) {
			t.Errorf("the license %s: %v, want %v", key, err, want)
		}
	}
	if again, err := l.start("pc"); err != nil || !again.Created {
		t.Errorf("the device of the revoked trial: %+v, %v", again, err)
	}
	l.healthy("started again")
}

// sweepTrials records the ends of licenses and forgets trials.
func (l *trialLab) sweepTrials() {
	l.t.Helper()
	for _, sweep := range []func(context.Context) error{l.node.RecordLicenseEnds, l.node.SweepTrials} {
		if err := sweep(l.ctx()); err != nil {
			l.t.Fatal(err)
		}
	}
}

// TestTrialOfAddress: one address, two devices.
func TestTrialOfAddress(t *testing.T) {
	t.Parallel()
	l := newTrialLab(t)
	terms := licensing.TrialTerms{Validity: licensing.Period{Days: 7}, MaxDevices: 1, PerEmail: true}
	if _, _, err := l.node.PutProduct(l.ctx(), licensing.PutProduct{ID: "mail", Owner: labOwner,
		Terms: licensing.DefaultTerms(), Trial: terms}); err != nil {
		t.Fatal(err)
	}
	start := func(device, email string, by licensing.Actor) (licensing.Result, error) {
		return l.node.StartTrial(l.ctx(), labOwner,
			service.NewTrial{ProductID: "mail", Device: device, BuyerEmail: email, By: by})
	}
	if _, err := start("pc", "ada@example.com", licensing.EndUser); !errors.Is(err, service.ErrTrialNeedsKey) {
		t.Errorf("without an API key: %v", err)
	}
	if _, err := start("pc", "", "key_1"); licensing.ReasonOf(err) != licensing.ReasonInvalidField {
		t.Errorf("without an address: %v", err)
	}
	made := make(chan bool)
	for _, device := range []string{"pc", "mac"} { // they race
		go func() {
			result, err := start(device, "Ada@example.com", "key_1")
			if err != nil && !errors.Is(err, licensing.ErrTrialUsed) {
				t.Errorf("%s: %v", device, err)
			}
			made <- result.Created
		}()
	}
	if one, other := <-made, <-made; one == other {
		t.Errorf("both devices or none have started a trial: %v", one)
	}
	l.healthy("raced")
}

// sandboxPayment is a payment of the sandbox with a reference.
func sandboxPayment(reference string) licensing.Payment {
	return licensing.Payment{Provider: licensing.ProviderSandbox, Reference: reference}
}
