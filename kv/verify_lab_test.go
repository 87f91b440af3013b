package kv

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// lab is an etcd for one test, with a store on it and a node on the store.
type lab struct {
	t       *testing.T
	store   *Store
	client  *clientv3.Client // to write raw keys with
	node    *service.Service
	keys    keyring.LicenseKeys
	metrics *metrics.Metrics
	issued  int // how often issuing was called
}

// labEnd is the end of the one license of the lab that has an end.
var labEnd = time.Date(2099, 1, 2, 3, 4, 5, 678e6, time.UTC)

const labBuyer = "Ada@example.com"

var labOwner = licensing.Owner{AccountID: "acct_lab", Mode: licensing.Test}

// inLab returns a key in the slot of labOwner.
func inLab(path string) string { return keyspace.InSlot(licensing.SlotOf(labOwner), path) }

func newLab(t *testing.T) *lab {
	t.Helper()
	return labOn(t, embeddedtest.Start(t, t.TempDir()).Endpoints())
}

func labOn(t *testing.T, endpoints []string) *lab {
	t.Helper()
	l := &lab{t: t, metrics: kvtest.Metrics()}
	ctx := t.Context()
	var err error
	if l.store, err = Open(ctx, Config{Endpoints: endpoints, Metrics: l.metrics, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.store.Close() })
	l.client = l.store.etcd.Native
	entropy := &seededEntropy{stream: mathrand.NewChaCha8([32]byte{labSeed})}
	check := kvtest.Must(l.store.KeyCheck(ctx, entropy))(t)
	sealing := &seededEntropy{stream: mathrand.NewChaCha8([32]byte{})}
	l.keys = keyring.NewLicenseKeys(check, kvtest.Must(l.store.IDKey(ctx, kvtest.Ring(t), sealing))(t))
	if err := l.store.OpenEpoch(ctx); err != nil {
		t.Fatal(err)
	}
	l.node = l.nodeWith(entropy, time.Now)
	return l
}

func (l *lab) nodeWith(entropy io.Reader, clock func() time.Time) *service.Service {
	return service.New(service.Config{
		Config: node.Config{
			Records:     l.store,
			Queries:     l.store,
			LicenseKeys: l.keys,
			Clock:       clock,
			Metrics:     l.metrics,
			Log:         zerolog.Nop(),
		},
		Keys:    l.store,
		Sweeps:  l.store,
		Events:  l.store,
		Ring:    kvtest.Ring(l.t),
		Entropy: entropy,
	})
}

// labSeed is a seed with which fill makes one order that has an entry on an upper level of both its listings, and no
// other such entry.
const labSeed = 20

// filledLab returns a filled lab with exactly the entries on upper levels that labSeed promises, and these. On a busy
// machine a request of fill may be repeated, which takes more of the entropy: then other ids have such entries, and
// another lab is filled.
func filledLab(t *testing.T) (*lab, specimens, []string) {
	t.Helper()
	for range 4 {
		l := newLab(t)
		s := l.fill()
		var skips []string
		for _, kv := range kvtest.Must(l.client.Get(l.ctx(), inLab(keyspace.SkipFamily),
			clientv3.WithPrefix()))(t).Kvs {
			skips = append(skips, string(kv.Key))
		}
		if len(skips) == 2 {
			return l, s, skips
		}
		t.Logf("the entries on upper levels are %q", skips)
	}
	t.Fatal("no lab has the entries on upper levels that labSeed promises")
	return nil, specimens{}, nil
}

// seededEntropy returns the same bytes in every run: the level of a listing's entry follows from its id.
type seededEntropy struct {
	mu     sync.Mutex
	stream *mathrand.ChaCha8
}

func (e *seededEntropy) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stream.Read(p)
}

func (l *lab) ctx() context.Context { return l.t.Context() }

func (l *lab) order(amount int64) licensing.Order {
	l.t.Helper()
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner,
		service.NewOrder{ProductID: "pro", Amount: amount, Currency: "USD", BuyerEmail: labBuyer, Once: l.once(amount)})
	if err != nil {
		l.t.Fatal(err)
	}
	return order
}

func (l *lab) pay(order licensing.Order) licensing.Order {
	l.t.Helper()
	reference := order.OrderNo[len(order.OrderNo)-16:] // the random part: it decides about levels of listings
	return kvtest.Must(l.node.PayOrder(l.ctx(), order, sandboxPayment(reference)))(l.t).Order()
}

func (l *lab) grant(maxDevices int, metadata string) licensing.LicenseKey {
	l.t.Helper()
	return l.grantExternal(maxDevices, metadata, "")
}

// grantExternal grants a license that has a key from elsewhere, unless external is empty.
func (l *lab) grantExternal(maxDevices int, metadata, external string) licensing.LicenseKey {
	l.t.Helper()
	return l.grantOne(service.Grant{MaxDevices: &maxDevices, Metadata: metadata, ExternalKey: external})
}

// grantOne grants one license.
func (l *lab) grantOne(in service.Grant) licensing.LicenseKey {
	l.t.Helper()
	in.ProductID, in.Quantity, in.Once = "pro", 1, l.once(int64(*in.MaxDevices))
	granted, _, err := l.node.Grant(l.ctx(), labOwner, in)
	if err != nil {
		l.t.Fatal(err)
	}
	return granted[0].License.Key
}

// once returns a new Idempotency-Key for a free order and for a license with one slot; nil otherwise.
func (l *lab) once(n int64) *node.Once {
	if n > 1 {
		return nil
	}
	return &node.Once{Hash: rand.Text()[:keyspace.ClaimHashSize]}
}

// labEntitlements are those of the product.
const labEntitlements = licensing.Entitlements(`{"export":true}`)

// product makes the product at a fixed time, which determines the levels of its entry in the listing. A rollout of its
// terms is under way.
func (l *lab) product() {
	l.t.Helper()
	terms := licensing.DefaultTerms()
	terms.Version = labEntitlements.Version()
	outcome, err := l.store.Commit(l.ctx(), store.Change{Writes: []store.Write{{
		Ref: licensing.ProductRef(labOwner, "pro"),
		Record: licensing.Record{
			Product: &licensing.Product{ID: "pro", Owner: labOwner, Terms: terms, Entitlements: labEntitlements,
				Trial:     licensing.TrialTerms{Validity: licensing.Period{Days: 14}, MaxDevices: 2},
				CreatedAt: kvtest.Time, Rollout: licensing.Rollout{Terms: terms, Applies: licensing.RolloutEntitlements,
					StartedAt: kvtest.Time, NextAt: labEnd}},
			NewTerms: []licensing.VersionedTerms{{Entitlements: labEntitlements}},
		},
	}}})
	if err != nil || !outcome.Landed {
		l.t.Fatalf("%+v, %v", outcome, err)
	}
}

// refuse stores a claim that remembers a refusal.
func (l *lab) refuse(made time.Time) {
	l.t.Helper()
	outcome, err := l.store.Commit(l.ctx(), store.Change{Writes: []store.Write{{
		Ref:    licensing.ClaimRef(labOwner, rand.Text()[:keyspace.ClaimHashSize]),
		Record: licensing.Record{Claim: &licensing.Claim{CreatedAt: made, Refusal: licensing.ErrPaymentNotConfigured}},
	}}})
	if err != nil || !outcome.Landed {
		l.t.Fatalf("%+v, %v", outcome, err)
	}
}

func (l *lab) activate(key licensing.LicenseKey, devices ...string) {
	l.t.Helper()
	for _, device := range devices {
		kvtest.Must(l.node.Activate(l.ctx(),
			licensing.Activate{Target: licensing.Target{Key: key}, Device: device}))(l.t)
	}
}

func (l *lab) remove(key licensing.LicenseKey, device string) {
	l.t.Helper()
	kvtest.Must(l.node.RemoveDevice(l.ctx(),
		licensing.RemoveDevice{Target: licensing.Target{Key: key}, Device: device}))(l.t)
}

func deviceIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("device-%d", i)
	}
	return ids
}

// specimens are the records of a store in all their states.
type specimens struct {
	paid, unpaid, canceled, sentBack, refunded licensing.Order      // sentBack was paid after it was canceled
	owed                                       licensing.Order      // a refund is due
	disputed, lost                             licensing.Order      // the dispute is open, or the buyer has won it
	inline, spilled, lowered, fresh, ending    licensing.LicenseKey // fresh was granted once
	free                                       licensing.Order      // made once
	own                                        licensing.LicenseKey // changed once, with a product of its own
	external                                   licensing.LicenseKey // with the external key labExternal
	reissued                                   string               // the block of the second key of external
	floating                                   licensing.LicenseKey // two devices have leases, the first until labLease
	trial                                      licensing.License    // with one device
	outside                                    licensing.Order      // paid outside, as labPayment
	many                                       licensing.Order      // for four licenses, of which it has three
}

// labCustomer has a license that was granted.
var labCustomer = licensing.Customer{BuyerEmail: labBuyer, Reference: "C-1"}

// notice is what is due for the license lowered.
func (*specimens) notice() licensing.Due {
	return licensing.Due{Kind: licensing.DueLicenseNotice, At: labEnd.AddDate(0, 0, -7)}
}

// labExternal is the external key of a license of the lab.
const labExternal = "OLD-1"

// labAlias is the key of the alias of labExternal.
func (l *lab) labAlias() string { return keyspace.AliasKey(l.keys.AliasOf(labOwner, labExternal)) }

// dispute records a dispute of 300 of an order's payment.
func (l *lab) dispute(o licensing.Order, id string, state licensing.PaymentState) licensing.Order {
	l.t.Helper()
	err := l.node.NoteDispute(l.ctx(), o, licensing.NoteDispute{Dispute: licensing.Payment{
		Provider: o.PaidThrough(), Reference: id, State: state, Amount: 300, Currency: o.Currency,
	}}, true)
	if err != nil {
		l.t.Fatal(err)
	}
	return kvtest.Must(l.node.Order(l.ctx(), o.Owner, o.OrderNo))(l.t)
}

// fill makes the content of a store with real requests.
func (l *lab) fill() specimens {
	l.t.Helper()
	l.product()
	var s specimens
	s.unpaid = l.order(100)
	s.paid = l.pay(l.order(200))
	l.activate(s.paid.LicenseKey, "laptop")
	s.refunded = kvtest.Must(l.node.RecordRefund(l.ctx(), l.pay(l.order(300)), service.MadeRefund{}))(l.t).Order()
	s.canceled = kvtest.Must(l.node.CancelOrder(l.ctx(), l.order(400)))(l.t).Order()
	s.sentBack = kvtest.Must(l.node.CancelOrder(l.ctx(), l.order(500)))(l.t).Order()
	l.pay(s.sentBack)
	s.sentBack = kvtest.Must(l.node.RecordRefund(l.ctx(), s.sentBack, service.MadeRefund{}))(l.t).Order()
	s.free = l.order(0)
	s.owed = l.pay(l.order(600))
	s.owed, _, _ = l.node.ChangeOrder(l.ctx(), labOwner, s.owed.OrderNo, licensing.RequestRefund{}, nil)
	s.disputed = l.dispute(l.pay(l.order(700)), "du_open", licensing.PaymentOpen)
	s.lost = l.dispute(l.pay(l.order(800)), "du_lost", licensing.PaymentLost)

	kvtest.Must(l.store.IDKey(l.ctx(), kvtest.Ring(l.t), rand.Reader))(l.t)
	s.inline = l.grant(3, `{"seat":1}`)
	l.activate(s.inline, deviceIDs(2)...)
	s.external = l.grantExternal(7, `{"seat":3}`, labExternal)
	reissued, _, err := l.node.ReissueLicense(l.ctx(), labOwner, service.Reissue{
		Target: licensing.Target{Key: s.external, Caller: labOwner},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	s.reissued = reissued.License.CurrentKey().By()
	s.spilled = l.grantOne(service.Grant{MaxDevices: new(0), Metadata: `{"seat":2}`, Customer: labCustomer})
	l.activate(s.spilled, deviceIDs(20)...)
	kvtest.Must(l.node.Activate(l.ctx(), licensing.Activate{Target: licensing.Target{Key: s.spilled},
		Device: "device-7", Receipt: licensing.AskReceipt(true, false, 0)}))(l.t)
	l.remove(s.spilled, "device-7") // which voids the receipt
	s.fresh = l.grant(1, "")
	s.lowered = l.grant(5, "")
	l.activate(s.lowered, deviceIDs(4)...)
	kvtest.Must(l.node.Do(l.ctx(), licensing.LicenseRef(s.lowered),
		licensing.UpdateLicense{Target: licensing.Target{Key: s.lowered}, MaxDevices: new(2)}))(l.t)

	l.endSoon(s.lowered)
	s.floating = l.lease("one", "another")
	s.own = l.lifeOf("own")
	s.ending = l.grant(6, "")
	kvtest.Must(l.node.Do(l.ctx(), licensing.LicenseRef(s.ending),
		licensing.RenewLicense{Target: licensing.Target{Key: s.ending}, ExpiresAt: labEnd}))(l.t)

	l.refuse(kvtest.Time)
	hash := keyring.HashAPIKey("lk_test_" + licensing.SlotOf(labOwner).String() + rand.Text())
	key := licensing.APIKey{ID: "key_0elab", Hash: hash, Owner: labOwner, Scopes: []string{"*"}, SecretVersion: 1,
		MasterID: "m1", CreatedAt: kvtest.Time}
	claim := store.Write{
		Ref:    licensing.ClaimRef(labOwner, "claim of a key.."),
		Record: licensing.Record{Claim: &licensing.Claim{CreatedAt: kvtest.Time, APIKeyID: key.ID}},
	}
	if err := l.store.CreateAPIKey(l.ctx(), key, claim); err != nil {
		l.t.Fatal(err)
	}
	if err := l.store.NoteKeysUsed(l.ctx(), []store.KeyUse{{Hash: hash, At: kvtest.Time}}); err != nil {
		l.t.Fatal(err)
	}
	l.webhooks()
	kvtest.Must(l.node.Do(l.ctx(), licensing.ReceiptKeysRef(labOwner), licensing.MakeReceiptKeys{Owner: labOwner,
		Root: licensing.SealedRoot{MasterID: "m1"}}))(l.t)
	s.trial = l.startTrial(l.node, "pc").License
	s.outside, _, err = l.node.RecordPayment(l.ctx(), labOwner, l.order(700).OrderNo,
		service.OutsidePayment{Reference: labPayment, By: "key_0elab"})
	if err != nil {
		l.t.Fatal(err)
	}
	s.many = l.issuing()
	s.unpaid = l.decline(s.unpaid)
	return s
}

// checkout makes an order whose buyer has pressed Pay.
func (l *lab) checkout() {
	l.t.Helper()
	if _, err := l.node.ChangeCheckout(l.ctx(), l.order(100),
		licensing.StartCheckout{Provider: licensing.ProviderStripe}); err != nil {
		l.t.Fatal(err)
	}
}

// subscribe makes an order with a subscription in the sandbox.
func (l *lab) subscribe() {
	l.t.Helper()
	_, _, err := l.node.PutProduct(l.ctx(), licensing.PutProduct{ID: "cloud", Owner: labOwner,
		Terms: licensing.DefaultTerms(), Billing: licensing.Billing{Interval: licensing.Period{Months: 1}}})
	if err != nil {
		l.t.Fatal(err)
	}
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner, service.NewOrder{ProductID: "cloud", Amount: 800,
		Currency: "USD", BuyerEmail: labBuyer})
	if err != nil {
		l.t.Fatal(err)
	}
	kvtest.Must(l.node.PayOrder(l.ctx(), order, licensing.Payment{Provider: licensing.ProviderSandbox,
		Reference: "sandbox_" + order.OrderNo, Subscription: "sandbox_" + order.OrderNo + "-sub"}))(l.t)
}

// decline lets the sandbox decline a payment of an order.
func (l *lab) decline(o licensing.Order) licensing.Order {
	l.t.Helper()
	start := licensing.StartCheckout{Provider: licensing.ProviderSandbox}
	o = kvtest.Must(l.node.ChangeCheckout(l.ctx(), o, start))(l.t)
	play := licensing.PlayCheckout{Attempt: 1, Outcome: licensing.SandboxFailed}
	kvtest.Must(l.node.PlayInSandbox(l.ctx(), o, play))(l.t)
	return kvtest.Must(l.node.ChangeCheckout(l.ctx(), o, licensing.NoteAnswer{Attempt: 1, Over: true}))(l.t)
}

// issuing makes an order for four licenses, as a node leaves it that is killed after it has issued three.
func (l *lab) issuing() licensing.Order {
	l.t.Helper()
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner, service.NewOrder{ProductID: "pro", Amount: 800,
		Currency: "USD", BuyerEmail: labBuyer, Quantity: 4})
	if err != nil {
		l.t.Fatal(err)
	}
	seed := licensing.KeySeed{1} // so that fill has no further entry on an upper level, see labSeed
	if l.issued++; l.issued > 1 {
		_, _ = rand.Read(seed[:])
	}
	key := func(i int) licensing.LicenseKey { return l.keys.SeededKey(seed, order.Terms.KeyPrefix, labOwner, i) }
	ref := licensing.OrderRef(labOwner, order.OrderNo)
	paying := kvtest.Must(l.store.Load(l.ctx(), store.Want{Ref: ref}))(l.t)[0]
	pay := licensing.PayOrder{Payment: order.OrderNo[len(order.OrderNo)-16:], Terms: order.Terms, Key: key(0),
		Seed: seed, More: []licensing.LicenseKey{key(1), key(2)}}
	kvtest.Must(licensing.Apply(&paying.Record, pay, order.CreatedAt))(l.t)
	var paid licensing.Record
	kvtest.Must(licensing.Apply(&paid, licensing.AddPayment{Order: *paying.Record.Order,
		Provider: licensing.ProviderSandbox, Payment: pay.Payment}, order.CreatedAt))(l.t)
	outcome := kvtest.Must(l.store.Commit(l.ctx(), store.Change{
		Writes: []store.Write{{Ref: ref, Token: paying.Token, Record: paying.Record},
			{Ref: licensing.PaymentRef(labOwner, licensing.ProviderSandbox, pay.Payment), Record: paid}}}))(l.t)
	if !outcome.Landed {
		l.t.Fatal("the payment did not land")
	}
	return *paying.Record.Order
}

// labPayment is the reference of the payment of an order that was paid outside.
const labPayment = "INV-1"

// labPaymentKey is the key of its record.
func labPaymentKey() string {
	return keyspace.PaymentKey(licensing.PaymentRef(labOwner, licensing.ProviderOutside, labPayment))
}

// startTrial starts a trial of the product by a device.
func (l *lab) startTrial(node *service.Service, device string) licensing.Result {
	l.t.Helper()
	return kvtest.Must(node.StartTrial(l.ctx(), labOwner,
		service.NewTrial{ProductID: "pro", Device: device, By: licensing.EndUser}))(l.t)
}

// endSoon lets a license end at labEnd, with a notice a week before.
func (l *lab) endSoon(key licensing.LicenseKey) {
	l.t.Helper()
	for _, cmd := range []licensing.Command{
		licensing.RenewLicense{Target: licensing.Target{Key: key}, ExpiresAt: labEnd},
		licensing.GiveNotice{Now: labEnd.AddDate(0, 0, -10), Days: "\x07"},
	} {
		kvtest.Must(l.node.Do(l.ctx(), licensing.LicenseRef(key), cmd))(l.t)
	}
}

// labLease is when the first lease of the lab ends.
var labLease = kvtest.Time.Add(10 * time.Minute)

// lease makes a license with leases of ten minutes, and gives devices leases at known times, each a minute later.
func (l *lab) lease(devices ...string) licensing.LicenseKey {
	l.t.Helper()
	var entropy [keyring.LicenseKeyEntropy]byte
	_, _ = rand.Read(entropy[:])
	terms := licensing.Terms{KeyPrefix: "LIC", MaxDevices: 3,
		Lease: licensing.LeaseTerms{Length: 10 * time.Minute, Longest: time.Hour}}
	made := terms.Issue(l.keys.Mint("LIC", labOwner, entropy), labOwner, "pro", "", kvtest.Time)
	ref := licensing.LicenseRef(made.Key)
	put := func(snapshot store.Snapshot) {
		l.t.Helper()
		outcome, err := l.store.Commit(l.ctx(),
			store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
		if err != nil || !outcome.Landed {
			l.t.Fatalf("%+v, %v", outcome, err)
		}
	}
	put(store.Snapshot{Record: licensing.NewLicense(made, nil, "")})
	for i, device := range devices {
		snapshot := loadOne(l.t, l.store, ref, device)
		snapshot.Record.ActsByTime = true
		kvtest.Must(licensing.Apply(&snapshot.Record,
			licensing.Activate{Target: licensing.Target{Key: made.Key}, Device: device},
			kvtest.Time.Add(time.Duration(i)*time.Minute)))(l.t)
		put(snapshot)
	}
	return made.Key
}

// labListener is an owner that listens to activations.
var labListener = licensing.Owner{AccountID: "acct_listener", Mode: licensing.Live}

// webhooks makes endpoints of all kinds: the lab's owner has one and a disabled one, and had a third; another owner
// listens.
func (l *lab) webhooks() {
	l.t.Helper()
	if err := l.store.UseMaster(l.ctx(),
		kvtest.Must(keyring.NewMasterKey("m2", [keyring.MasterKeySize]byte{2}))(l.t)); err != nil {
		l.t.Fatal(err)
	}
	orders := []licensing.EventType{licensing.EventOrderPaid}
	l.hook(labOwner, licensing.CreateEndpoint{Owner: labOwner, Endpoint: labEndpoint("we_0egood", orders...)})
	l.hook(labOwner, licensing.CreateEndpoint{Owner: labOwner, Endpoint: labEndpoint("we_0egone", orders...)})
	l.hook(labOwner, licensing.CreateEndpoint{Owner: labOwner, Endpoint: labEndpoint("we_0edeleted", orders...)})
	l.hook(labOwner, licensing.DisableEndpoint{ID: "we_0egone", ResetAt: kvtest.Time, Because: licensing.DisabledGone})
	l.hook(labOwner, licensing.DeleteEndpoint{ID: "we_0edeleted"})
	l.hook(labListener, licensing.CreateEndpoint{Owner: labListener,
		Endpoint: labEndpoint(licensing.NewEndpointID(labListener, "all"))})
}

func labEndpoint(id string, types ...licensing.EventType) licensing.Endpoint {
	return licensing.Endpoint{ID: id, URL: "https://shop.example/licet", Types: types, SecretVersion: 1, MasterID: "m2",
		Since: "pos_0"}
}

// hook runs a command on an owner's endpoints, at a known time.
func (l *lab) hook(owner licensing.Owner, cmd licensing.Command) {
	l.t.Helper()
	ref := licensing.WebhooksRef(owner)
	snapshot := loadOne(l.t, l.store, ref)
	kvtest.Must(licensing.Apply(&snapshot.Record, cmd, kvtest.Time))(l.t)
	outcome, err := l.store.Commit(l.ctx(),
		store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
	if err != nil || !outcome.Landed {
		l.t.Fatalf("%T: %+v, %v", cmd, outcome, err)
	}
}

// lifeOf puts a product, and makes a license of it with all kinds of changes by shops and end users.
func (l *lab) lifeOf(product string) licensing.LicenseKey {
	l.t.Helper()
	// At a fixed time, for the same reason as in product.
	then := l.nodeWith(rand.Reader, func() time.Time { return kvtest.Time })
	if _, created, err := then.PutProduct(l.ctx(), licensing.PutProduct{ID: product, Owner: labOwner, Name: "The App",
		Metadata: `{"sku":7}`, Terms: licensing.Terms{
			KeyPrefix: "OWN", MaxDevices: 2, SelfService: licensing.SelfService{Allowed: true, RemovalsPerMonth: 1},
		}}); err != nil || !created {
		l.t.Fatal(created, err)
	}
	granted, _, err := l.node.Grant(l.ctx(), labOwner, service.Grant{ProductID: product, Quantity: 1})
	if err != nil {
		l.t.Fatal(err)
	}
	key := granted[0].License.Key
	target := licensing.Target{Key: key, Caller: labOwner}
	l.activate(key, "d1", "d2")
	kvtest.Must(l.node.DeactivateDevice(l.ctx(), licensing.DeactivateDevice{Target: target, Device: "d2"}))(l.t)
	for _, change := range []service.LicenseChange{
		{Key: key, Command: licensing.UpdateLicense{Target: target, MaxDevices: new(5), Metadata: `{"seat":3}`}},
		{Key: key, Command: licensing.RenewLicense{Target: target,
			ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)}},
		{Key: key, Command: licensing.SuspendLicense{Target: target, Reason: "chargeback"}, Once: l.once(0)},
	} {
		if _, _, err := l.node.ChangeLicense(l.ctx(), labOwner, change); err != nil {
			l.t.Fatal(err)
		}
	}
	return key
}

// traffic makes six changes, on records of its own and on one license that
// others change too. On a busy machine etcd may be too slow for one of them.
func (l *lab) traffic(shared licensing.LicenseKey, device string) error {
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner,
		service.NewOrder{ProductID: "pro", Amount: 7, Currency: "USD"})
	if err != nil {
		return err
	}
	if _, err := l.node.PayOrder(l.ctx(), order, sandboxPayment(order.OrderNo[len(order.OrderNo)-16:])); err != nil {
		return err
	}
	limit := 2
	granted, _, err := l.node.Grant(l.ctx(), labOwner,
		service.Grant{ProductID: "pro", Quantity: 1, MaxDevices: &limit, Metadata: `{"a":1}`})
	if err != nil {
		return err
	}
	own := licensing.Target{Key: granted[0].License.Key}
	if _, err := l.node.Activate(l.ctx(), licensing.Activate{Target: own, Device: device}); err != nil {
		return err
	}
	if _, err := l.node.RemoveDevice(l.ctx(), licensing.RemoveDevice{Target: own, Device: device}); err != nil {
		return err
	}
	_, err = l.node.Activate(l.ctx(), licensing.Activate{Target: licensing.Target{Key: shared}, Device: device})
	return err
}

// value reads one raw key, which must be there.
func (l *lab) value(key string) []byte {
	l.t.Helper()
	response := kvtest.Must(l.client.Get(l.ctx(), key))(l.t)
	if len(response.Kvs) == 0 {
		l.t.Fatalf("there is no key %q", key)
	}
	return response.Kvs[0].Value
}
