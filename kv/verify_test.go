package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"licet"
	"licet/metrics"
	"licet/node"
)

// lab is an etcd of a test's own, with a store on it and a node before that.
type lab struct {
	t       *testing.T
	store   *Store
	client  *clientv3.Client // to write raw keys with
	node    *node.Node
	check   licet.KeyCheck
	metrics *metrics.Metrics
}

// labEnd is when the license ends that does.
var labEnd = time.Date(2099, 1, 2, 3, 4, 5, 678e6, time.UTC)

const labBuyer = "Ada@example.com"

var labOwner = licet.Owner{AccountID: "acct_lab", Mode: licet.Test}

func newLab(t *testing.T) *lab {
	t.Helper()
	return labOn(t, startEmbedded(t, t.TempDir()).Endpoints())
}

func labOn(t *testing.T, endpoints []string) *lab {
	t.Helper()
	l := &lab{t: t, metrics: instruments()}
	ctx := testContext(t, 10*time.Second)
	var err error
	if l.store, err = Open(ctx, Config{Endpoints: endpoints, Metrics: l.metrics, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.store.Close() })
	l.client = l.store.client
	entropy := &seededEntropy{stream: mathrand.NewChaCha8([32]byte{labSeed})}
	if l.check, err = l.store.KeyCheck(ctx, entropy); err != nil {
		t.Fatal(err)
	}
	l.node = l.nodeWith(entropy, time.Now)
	return l
}

func (l *lab) nodeWith(entropy io.Reader, clock func() time.Time) *node.Node {
	return node.New(node.Config{
		Store: l.store, KeyCheck: l.check, Clock: clock, Entropy: entropy,
		Metrics: l.metrics, Log: zerolog.Nop(),
	})
}

// labSeed gives the licenses and orders that fill makes ids of which one order
// stands on an upper level of its two listings.
const labSeed = 36

// seededEntropy gives the same bytes in every run: who stands on which level of a
// listing follows from ids.
type seededEntropy struct {
	mu     sync.Mutex
	stream *mathrand.ChaCha8
}

func (e *seededEntropy) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stream.Read(p)
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func (l *lab) ctx() context.Context { return testContext(l.t, time.Minute) }

func (l *lab) order(amount int64) licet.Order {
	l.t.Helper()
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner, node.NewOrder{ProductID: "pro", Amount: amount, Currency: "USD", BuyerEmail: labBuyer, Once: l.once(amount)})
	if err != nil {
		l.t.Fatal(err)
	}
	return order
}

func (l *lab) pay(order licet.Order) licet.Order {
	l.t.Helper()
	return must(l.node.PayOrder(l.ctx(), order, "sandbox_1"))(l.t).Order
}

func (l *lab) grant(maxDevices int, metadata string) licet.LicenseKey {
	l.t.Helper()
	granted, _, err := l.node.Grant(l.ctx(), labOwner, node.Grant{
		ProductID: "pro", Quantity: 1, MaxDevices: &maxDevices, Metadata: metadata, Once: l.once(int64(maxDevices)),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return granted[0].License.Key
}

// once gives an Idempotency-Key of its own to what is free or has one slot.
func (l *lab) once(n int64) *node.Once {
	if n > 1 {
		return nil
	}
	return &node.Once{Hash: rand.Text()[:claimHashLength]}
}

// product makes the product at a known time, from which follows on which levels
// of the listing it stands.
func (l *lab) product() {
	l.t.Helper()
	outcome, err := l.store.Commit(l.ctx(), node.Change{Writes: []node.Write{{
		Ref:    licet.ProductRef(labOwner, "pro"),
		Record: licet.Record{Product: &licet.Product{ID: "pro", Owner: labOwner, Terms: licet.DefaultTerms(), CreatedAt: testTime}},
	}}})
	if err != nil || !outcome.Landed {
		l.t.Fatalf("%+v, %v", outcome, err)
	}
}

// refuse stores a claim that remembers a refusal.
func (l *lab) refuse(made time.Time) {
	l.t.Helper()
	outcome, err := l.store.Commit(l.ctx(), node.Change{Writes: []node.Write{{
		Ref:    licet.ClaimRef(labOwner, rand.Text()[:claimHashLength]),
		Record: licet.Record{Claim: &licet.Claim{CreatedAt: made, Refusal: licet.ErrPaymentNotConfigured}},
	}}})
	if err != nil || !outcome.Landed {
		l.t.Fatalf("%+v, %v", outcome, err)
	}
}

func (l *lab) activate(key licet.LicenseKey, devices ...string) {
	l.t.Helper()
	for _, device := range devices {
		must(l.node.Activate(l.ctx(), licet.Activate{Target: licet.Target{Key: key}, Device: device}))(l.t)
	}
}

func (l *lab) remove(key licet.LicenseKey, device string) {
	l.t.Helper()
	must(l.node.RemoveDevice(l.ctx(), licet.RemoveDevice{Target: licet.Target{Key: key}, Device: device}))(l.t)
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
	paid, unpaid, canceled, sentBack, refunded licet.Order      // sentBack was paid after it was canceled
	owed                                       licet.Order      // its money is to go back
	inline, spilled, lowered, fresh, ending    licet.LicenseKey // fresh was granted once
	free                                       licet.Order      // made once
	own                                        licet.LicenseKey // changed once, with a product of its own
}

// fill makes a store by the traffic that makes a real one.
func (l *lab) fill() specimens {
	l.t.Helper()
	l.product()
	var s specimens
	s.unpaid = l.order(100)
	s.paid = l.pay(l.order(200))
	l.activate(s.paid.LicenseKey, "laptop")
	s.refunded = must(l.node.RecordRefund(l.ctx(), l.pay(l.order(300))))(l.t).Order
	s.canceled = must(l.node.CancelOrder(l.ctx(), l.order(400)))(l.t).Order
	s.sentBack = must(l.node.CancelOrder(l.ctx(), l.order(500)))(l.t).Order
	l.pay(s.sentBack)
	s.sentBack = must(l.node.RecordRefund(l.ctx(), s.sentBack))(l.t).Order
	s.free = l.order(0)
	s.owed = l.pay(l.order(600))
	s.owed, _, _ = l.node.ChangeOrder(l.ctx(), labOwner, s.owed.OrderNo, licet.RequestRefund{}, nil)

	s.inline = l.grant(3, `{"seat":1}`)
	l.activate(s.inline, deviceIDs(2)...)
	s.spilled = l.grant(0, `{"seat":2}`)
	l.activate(s.spilled, deviceIDs(20)...)
	l.remove(s.spilled, "device-7")
	s.fresh = l.grant(1, "")
	s.lowered = l.grant(5, "")
	l.activate(s.lowered, deviceIDs(4)...)
	must(l.node.Do(l.ctx(), licet.LicenseRef(s.lowered), licet.UpdateLicense{Target: licet.Target{Key: s.lowered}, MaxDevices: new(2)}))(l.t)

	s.own = l.lifeOf("own")
	s.ending = l.grant(6, "")
	must(l.node.Do(l.ctx(), licet.LicenseRef(s.ending), licet.RenewLicense{Target: licet.Target{Key: s.ending}, ExpiresAt: labEnd}))(l.t)

	l.refuse(testTime)
	var hash [32]byte
	_, _ = rand.Read(hash[:])
	key := licet.APIKey{ID: "key_lab", Hash: hash, Owner: labOwner, Scopes: []string{"*"}, SecretVersion: 1, MasterID: "m1", CreatedAt: testTime}
	if err := l.store.UseMaster(l.ctx(), must(licet.NewMasterKey("m1", [licet.MasterKeySize]byte{1}))(l.t)); err != nil {
		l.t.Fatal(err)
	}
	claim := node.Write{
		Ref:    licet.ClaimRef(labOwner, "claim of a key.."),
		Record: licet.Record{Claim: &licet.Claim{CreatedAt: testTime, APIKeyID: key.ID}},
	}
	if err := l.store.CreateAPIKey(l.ctx(), key, claim); err != nil {
		l.t.Fatal(err)
	}
	if err := l.store.NoteKeysUsed(l.ctx(), []node.KeyUse{{Hash: hash, At: testTime}}); err != nil {
		l.t.Fatal(err)
	}
	return s
}

// lifeOf describes a product, and makes a license of it that has been through what
// shops and end users do with one.
func (l *lab) lifeOf(product string) licet.LicenseKey {
	l.t.Helper()
	// At a known time, for the reason that product gives.
	then := l.nodeWith(rand.Reader, func() time.Time { return testTime })
	if _, created, err := then.PutProduct(l.ctx(), licet.PutProduct{ID: product, Owner: labOwner, Name: "The App", Metadata: `{"sku":7}`, Terms: licet.Terms{
		KeyPrefix: "OWN", MaxDevices: 2, SelfService: licet.SelfService{Allowed: true, RemovalsPerMonth: 1},
	}}); err != nil || !created {
		l.t.Fatal(created, err)
	}
	granted, _, err := l.node.Grant(l.ctx(), labOwner, node.Grant{ProductID: product, Quantity: 1})
	if err != nil {
		l.t.Fatal(err)
	}
	key := granted[0].License.Key
	target := licet.Target{Key: key, Caller: labOwner}
	l.activate(key, "d1", "d2")
	must(l.node.DeactivateDevice(l.ctx(), licet.DeactivateDevice{Target: target, Device: "d2"}))(l.t)
	for _, change := range []node.LicenseChange{
		{Key: key, Command: licet.UpdateLicense{Target: target, MaxDevices: new(5), Metadata: `{"seat":3}`}},
		{Key: key, Command: licet.RenewLicense{Target: target, ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)}},
		{Key: key, Command: licet.SuspendLicense{Target: target, Reason: "chargeback"}, Once: l.once(0)},
	} {
		if _, _, err := l.node.ChangeLicense(l.ctx(), labOwner, change); err != nil {
			l.t.Fatal(err)
		}
	}
	return key
}

// verify verifies and gives what was found, and demands that it can.
func (l *lab) verify(cfg VerifyConfig) (VerifySummary, []Violation) {
	l.t.Helper()
	var found []Violation
	cfg.Report = func(v Violation) { found = append(found, v) }
	summary, err := l.store.Verify(l.ctx(), cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	if summary.Violations != int64(len(found)) {
		l.t.Errorf("%d violations are counted, and %d were reported", summary.Violations, len(found))
	}
	return summary, found
}

// readings are the ways to read a store: all must find the same.
func readings() map[string]func(*Store) (*Store, VerifyConfig) {
	paged := func(s *Store) *Store {
		return &Store{kv: withoutStreams{s.kv}, metrics: s.metrics, log: s.log, brokenLog: s.brokenLog}
	}
	return map[string]func(*Store) (*Store, VerifyConfig){
		"streamed":           func(s *Store) (*Store, VerifyConfig) { return s, VerifyConfig{} },
		"in pages":           func(s *Store) (*Store, VerifyConfig) { return paged(s), VerifyConfig{} },
		"in pages of 7 keys": func(s *Store) (*Store, VerifyConfig) { return paged(s), VerifyConfig{pageSize: 7} },
		"key by key":         func(s *Store) (*Store, VerifyConfig) { return paged(s), VerifyConfig{pageSize: 1} },
	}
}

// withoutStreams is an etcd before 3.7.
type withoutStreams struct{ clientv3.KV }

func (withoutStreams) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, "unknown method RangeStream")
}

func TestVerifyFindsNothingInHealthyStore(t *testing.T) {
	l := newLab(t)
	l.fill()
	l.write(seed{nodeKey(incarnation{7}): encodeNode(node.Registration{Address: "127.0.0.1:7070", PublicKey: [32]byte{1}})})
	if _, err := l.client.Put(l.ctx(), "somebody/else", "x"); err != nil {
		t.Fatal(err)
	}
	want := []FamilyCount{
		{"api_key_index", 1}, {"buyer", 7}, {"catalog", 2}, {"device", 19}, {"listing", 10}, {"skip", 2}, {"api_key", 1}, {"license", 10}, {"metadata", 3},
		{"node", 1}, {"order", 7}, {"order_owner", 7}, {"product", 2}, {"check_key", 1}, {"api_key_mark", 1}, {"master_key", 1}, {"retired_master_key", 0}, {"api_key_use", 1},
		{"license_end", 2}, {"order_end", 1}, {"refund", 1}, {"claim", 6}, {"claim_age", 6},
	}
	for name, reading := range readings() {
		t.Run(name, func(t *testing.T) {
			store, cfg := reading(l.store)
			var progress []int64
			cfg.Progress = func(keys int64) { progress = append(progress, keys) }
			read := &lab{t: t, store: store}
			summary, found := read.verify(cfg)
			if len(found) > 0 {
				t.Errorf("found %v", found)
			}
			if diff := cmp.Diff(want, summary.Families); diff != "" || summary.Keys != 92 || summary.OtherKeys != 1 {
				t.Errorf("%d keys and %d others (-want +got):\n%s", summary.Keys, summary.OtherKeys, diff)
			}
			if summary.Revision == 0 || summary.Duration == 0 {
				t.Errorf("summary %+v", summary)
			}
			if len(progress) == 0 || !slices.IsSorted(progress) || progress[len(progress)-1] != summary.Keys {
				t.Errorf("progress %v", progress)
			}
		})
	}
	if total := must(l.store.CountKeys(l.ctx()))(t); total != 92 {
		t.Errorf("CountKeys says %d", total)
	}
	if n := counted(t, l.metrics.InvariantViolations); n != 0 {
		t.Errorf("licet_invariant_violations_total is %v", n)
	}
}

// ownKeysOnly is an etcd whose role for us covers nothing but our keys.
type ownKeysOnly struct{ clientv3.KV }

func (o ownKeysOnly) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if !strings.HasPrefix(key, layout) {
		return nil, rpctypes.ErrPermissionDenied
	}
	return o.KV.Get(ctx, key, opts...)
}

func TestVerifyNeedsOnlyOurKeys(t *testing.T) {
	l := newLab(t)
	l.fill()
	store := &Store{kv: ownKeysOnly{l.store.kv}, metrics: l.metrics, log: l.store.log, brokenLog: l.store.brokenLog}
	if _, found := (&lab{t: t, store: store}).verify(VerifyConfig{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestVerifyEmptyStore(t *testing.T) {
	l := &lab{t: t, store: openStoreOn(t, startEmbedded(t, t.TempDir()))}
	if summary, found := l.verify(VerifyConfig{}); len(found) > 0 || summary.Keys != 0 {
		t.Errorf("summary %+v, found %v", summary, found)
	}
}

func openStoreOn(t *testing.T, e *Embedded) *Store {
	t.Helper()
	s, err := Open(testContext(t, 10*time.Second), Config{Endpoints: e.Endpoints(), Metrics: instruments(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// traffic makes six changes, on records of its own and on one license that
// others change too. On a busy machine etcd may be too slow for one of them.
func (l *lab) traffic(shared licet.LicenseKey, device string) error {
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner, node.NewOrder{ProductID: "pro", Amount: 7, Currency: "USD"})
	if err != nil {
		return err
	}
	if _, err := l.node.PayOrder(l.ctx(), order, "sandbox_1"); err != nil {
		return err
	}
	limit := 2
	granted, _, err := l.node.Grant(l.ctx(), labOwner, node.Grant{ProductID: "pro", Quantity: 1, MaxDevices: &limit, Metadata: `{"a":1}`})
	if err != nil {
		return err
	}
	own := licet.Target{Key: granted[0].License.Key}
	if _, err := l.node.Activate(l.ctx(), licet.Activate{Target: own, Device: device}); err != nil {
		return err
	}
	if _, err := l.node.RemoveDevice(l.ctx(), licet.RemoveDevice{Target: own, Device: device}); err != nil {
		return err
	}
	_, err = l.node.Activate(l.ctx(), licet.Activate{Target: licet.Target{Key: shared}, Device: device})
	return err
}

// TestVerifyUnderLoad verifies while others write: all is read at one revision,
// so that nothing is seen half done.
func TestVerifyUnderLoad(t *testing.T) {
	l := newLab(t)
	l.fill()
	spilling := l.grant(0, "")
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var wrote atomic.Int64
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				switch err := l.traffic(spilling, fmt.Sprintf("w%d-%d", w, i)); {
				case err == nil:
					wrote.Add(6)
				case !errors.Is(err, licet.ErrUnavailable) && !errors.Is(err, licet.ErrOutcomeUnknown):
					t.Errorf("the traffic: %v", err)
					return
				}
			}
		})
	}
	last := int64(0)
	for round := 0; !t.Failed() && (round < 5 || wrote.Load() < 200); round++ {
		for _, name := range []string{"streamed", "in pages of 7 keys"} {
			reading := readings()[name]
			store, cfg := reading(l.store)
			summary, found := (&lab{t: t, store: store}).verify(cfg)
			if len(found) > 0 {
				t.Fatalf("%s: found %v", name, found)
			}
			if summary.Revision < last {
				t.Errorf("revision %d after %d", summary.Revision, last)
			}
			last = summary.Revision
		}
	}
	cancel()
	writers.Wait()
	if n := counted(t, l.metrics.InvariantViolations); n != 0 {
		t.Errorf("licet_invariant_violations_total is %v", n)
	}
}

// TestVerifyWhileHistoryIsCompacted compacts the store under the reader.
func TestVerifyWhileHistoryIsCompacted(t *testing.T) {
	l := newLab(t)
	s := l.fill()
	paged := &Store{kv: withoutStreams{l.store.kv}, metrics: l.metrics, log: zerolog.Nop(), brokenLog: zerolog.Nop()}
	verify := func(times int) (VerifySummary, error) {
		compact := func(int64) {
			if times--; times < 0 {
				return
			}
			put := must(l.client.Put(l.ctx(), "somebody/else", "x"))(t)
			must(l.client.Compact(l.ctx(), put.Header.Revision))(t)
		}
		return paged.Verify(l.ctx(), VerifyConfig{Progress: compact, pageSize: 5})
	}
	if summary, err := verify(1); err != nil || summary.Violations > 0 || summary.Keys != 91 {
		t.Errorf("compacted once: %+v, %v", summary, err)
	}
	if _, err := verify(1000); !errors.Is(err, ErrCompacted) {
		t.Errorf("compacted all the time: %v", err)
	}
	// A device in no license is found in the first family that is read.
	stray := deviceKey(s.fresh.ID(), "stray")
	must(l.client.Put(l.ctx(), stray, "?"))(t)
	must(l.client.Put(l.ctx(), layout+"A/x", "?"))(t)
	if summary, err := verify(1); !errors.Is(err, ErrCompacted) || summary.Violations == 0 {
		t.Errorf("compacted after a violation was reported: %+v, %v", summary, err)
	}
}

// TestVerifyGivesUp with its context, and leaves nothing running: TestMain
// looks for goroutines.
func TestVerifyGivesUp(t *testing.T) {
	l := newLab(t)
	l.fill()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := l.store.Verify(ctx, VerifyConfig{Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// value reads one raw key, which must be there.
func (l *lab) value(key string) []byte {
	l.t.Helper()
	response := must(l.client.Get(l.ctx(), key))(l.t)
	if len(response.Kvs) == 0 {
		l.t.Fatalf("there is no key %q", key)
	}
	return response.Kvs[0].Value
}

// TestEveryKindOfKeyIsVerified holds the table of families to the golden list
// of keys: a new kind of key needs a row there.
func TestEveryKindOfKeyIsVerified(t *testing.T) {
	text := string(must(os.ReadFile(filepath.Join("testdata", "keys.golden")))(t))
	for line := range strings.Lines(text) {
		what, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		key := must(strconv.Unquote(quoted))(t)
		if !slices.ContainsFunc(families(), func(f family) bool { return strings.HasPrefix(key, layout+f.prefix) }) {
			t.Errorf("verify does not know the key of %s, %q", what, key)
		}
	}
	prefixes := make([]string, 0, len(families()))
	for _, f := range families() {
		prefixes = append(prefixes, f.prefix)
	}
	if !slices.IsSorted(prefixes) {
		t.Errorf("the families are not in the order of their prefixes: %q", prefixes)
	}
}
