package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"licet/internal/depth"
	"licet/kv/embedded"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// verify runs the verification, demands that it succeeds, and returns the findings.
func (l *lab) verify(cfg verify.Config) (verify.Summary, []verify.Violation) {
	l.t.Helper()
	var found []verify.Violation
	cfg.Report = func(v verify.Violation) { found = append(found, v) }
	summary, err := verify.Run(l.ctx(), l.store, cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	if summary.Violations != int64(len(found)) {
		l.t.Errorf("%d violations are counted, and %d were reported", summary.Violations, len(found))
	}
	return summary, found
}

// readings are the ways to read a store: verify must find the same in each way.
func readings() map[string]func(*Store) (*Store, verify.Config) {
	paged := func(s *Store) *Store {
		return storeOn(withoutStreams{s.etcd.KV})
	}
	return map[string]func(*Store) (*Store, verify.Config){
		"streamed":           func(s *Store) (*Store, verify.Config) { return s, verify.Config{} },
		"in pages":           func(s *Store) (*Store, verify.Config) { return paged(s), verify.Config{} },
		"in pages of 7 keys": func(s *Store) (*Store, verify.Config) { return paged(s), verify.Config{PageSize: 7} },
		"key by key":         func(s *Store) (*Store, verify.Config) { return paged(s), verify.Config{PageSize: 1} },
	}
}

// withoutStreams simulates an etcd before 3.7.
type withoutStreams struct{ clientv3.KV }

func (withoutStreams) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, "unknown method RangeStream")
}

func TestVerifyFindsNothingInHealthyStore(t *testing.T) {
	t.Parallel()
	l, _, _ := filledLab(t)
	l.write(seed{keyspace.NodeKey(store.Incarnation{7}): layout.EncodeNode(store.Registration{Address: "127.0.0.1:7070",
		PublicKey: [32]byte{1}}, kvtest.Time)})
	if _, err := l.client.Put(l.ctx(), "somebody/else", "x"); err != nil {
		t.Fatal(err)
	}
	want := []verify.FamilyCount{
		{Name: "api_key_index", Keys: 1}, {Name: "buyer", Keys: 11}, {Name: "catalog", Keys: 2},
		{Name: "listen_request", Keys: 0}, {Name: "backup", Keys: 0}, {Name: "books", Keys: 0},
		{Name: "check_key", Keys: 1},
		{Name: "epoch", Keys: 1}, {Name: "listener", Keys: 1}, {Name: "delivery_lease", Keys: 0},
		{Name: "id_key", Keys: 1}, {Name: "api_key_mark", Keys: 2}, {Name: "listen_fence", Keys: 1},
		{Name: "slot_map", Keys: 1}, {Name: "master_key", Keys: 2},
		{Name: "node", Keys: 1}, {Name: "provider_events", Keys: 0}, {Name: "receipts_mark", Keys: 1},
		{Name: "recount", Keys: 0}, {Name: "retired_master_key", Keys: 0},
		{Name: "slot", Keys: 2}, {Name: "swept_events", Keys: 0}, {Name: "event_mark", Keys: 0},
		{Name: "webhooks_mark", Keys: 1},
		{Name: "device", Keys: 19}, {Name: "event", Keys: 53}, {Name: "settings", Keys: 1}, {Name: "customer", Keys: 2},
		{Name: "owner", Keys: 2},
		{Name: "listing", Keys: 19}, {Name: "skip", Keys: 2}, {Name: "api_key", Keys: 1},
		{Name: "license", Keys: 19}, {Name: "metadata", Keys: 4}, {Name: "alias", Keys: 2}, {Name: "order", Keys: 11},
		{Name: "order_owner", Keys: 11}, {Name: "payment", Keys: 12},
		{Name: "payment_listing", Keys: 12}, {Name: "sale", Keys: 11},
		{Name: "product", Keys: 2}, {Name: "event_ledger", Keys: 0},
		{Name: "receipt_keys", Keys: 1}, {Name: "revocation", Keys: 1}, {Name: "usage", Keys: 0},
		{Name: "sandbox", Keys: 1},
		{Name: "terms", Keys: 1}, {Name: "trial", Keys: 1},
		{Name: "api_key_use", Keys: 1}, {Name: "delivery", Keys: 0},
		{Name: "webhooks", Keys: 2}, {Name: "checkout", Keys: 1}, {Name: "leases", Keys: 1}, {Name: "rollout", Keys: 1},
		{Name: "issue", Keys: 1},
		{Name: "license_end", Keys: 3}, {Name: "license_notice", Keys: 1}, {Name: "order_end", Keys: 1},
		{Name: "refund", Keys: 1}, {Name: "sandbox_renewal", Keys: 0},
		{Name: "trial_end", Keys: 0}, {Name: "deleted_webhook", Keys: 1},
		{Name: "claim", Keys: 6},
		{Name: "claim_age", Keys: 6},
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
			if diff := cmp.Diff(want, summary.Families); diff != "" || summary.Keys != 243 || summary.OtherKeys != 1 {
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
	if total := kvtest.Must(verify.CountKeys(l.ctx(), l.store))(t); total != 243 {
		t.Errorf("CountKeys returns %d", total)
	}
	if n := kvtest.Counted(t, l.metrics.InvariantViolations); n != 0 {
		t.Errorf("licet_invariant_violations_total is %v", n)
	}
}

// TestVerifyOrderForManyLicenses: the event of a payment shows how many licenses the payment itself has issued.
func TestVerifyOrderForManyLicenses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.product()
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner, service.NewOrder{ProductID: "pro", Amount: 800,
		Currency: "USD", Quantity: store.MaxNewLicenses + 1})
	if err != nil {
		t.Fatal(err)
	}
	if paid := l.pay(order); paid.LicensesIssued != order.Quantity {
		t.Fatalf("%d licenses of %d", paid.LicensesIssued, order.Quantity)
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Error(found)
	}
}

// ownKeysOnly simulates an etcd in which the role of the store covers only the keys of the store.
type ownKeysOnly struct{ clientv3.KV }

func (o ownKeysOnly) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if !strings.HasPrefix(key, keyspace.Prefix) {
		return nil, rpctypes.ErrPermissionDenied
	}
	return o.KV.Get(ctx, key, opts...)
}

func TestVerifyNeedsOnlyOurKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.fill()
	store := storeOn(ownKeysOnly{l.store.etcd.KV})
	if _, found := (&lab{t: t, store: store}).verify(verify.Config{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestVerifyEmptyStore(t *testing.T) {
	t.Parallel()
	l := &lab{t: t, store: openStoreOn(t, embeddedtest.Start(t, t.TempDir()))}
	if summary, found := l.verify(verify.Config{}); len(found) > 0 || summary.Keys != 0 {
		t.Errorf("summary %+v, found %v", summary, found)
	}
}

func openStoreOn(t *testing.T, e *embedded.Server) *Store {
	t.Helper()
	s, err := Open(t.Context(),
		Config{Endpoints: e.Endpoints(), Metrics: kvtest.Metrics(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	s.moveEvery, s.etcd.CallTimeout = 0, patience
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestVerifyUnderLoad verifies while others write: verify reads everything at one revision, so it never reads a part of
// a change.
func TestVerifyUnderLoad(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.fill()
	spilling := l.grant(0, "")
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var wrote atomic.Int64
	// room limits the changes during one verification: without a limit, the store can grow faster than a slow machine
	// verifies it.
	room := make(chan struct{}, 40)
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-room:
				case <-ctx.Done():
					return
				}
				switch err := l.traffic(spilling, fmt.Sprintf("w%d-%d", w, i)); {
				case err == nil:
					wrote.Add(6)
				case !errors.Is(err, licensing.ErrUnavailable) && !errors.Is(err, licensing.ErrOutcomeUnknown):
					t.Errorf("the traffic: %v", err)
					return
				}
			}
		})
	}
	last, rounds := int64(0), 5
	if depth.Raced() {
		rounds = 2 // the store grows with each round, and the same goroutines meet
	}
	for round := 0; !t.Failed() && (round < rounds || wrote.Load() < 200); round++ {
		for _, name := range []string{"streamed", "in pages of 7 keys"} {
			reading := readings()[name]
			store, cfg := reading(l.store)
			for range cap(room) - len(room) {
				room <- struct{}{}
			}
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
	if n := kvtest.Counted(t, l.metrics.InvariantViolations); n != 0 {
		t.Errorf("licet_invariant_violations_total is %v", n)
	}
}

// TestVerifyWhileHistoryIsCompacted compacts the store under the reader.
func TestVerifyWhileHistoryIsCompacted(t *testing.T) {
	t.Parallel()
	l, _, _ := filledLab(t)
	paged := storeOn(withoutStreams{l.store.etcd.KV})
	run := func(times int) (verify.Summary, error) {
		compact := func(int64) {
			if times--; times < 0 {
				return
			}
			put := kvtest.Must(l.client.Put(l.ctx(), "somebody/else", "x"))(t)
			kvtest.Must(l.client.Compact(l.ctx(), put.Header.Revision))(t)
		}
		return verify.Run(l.ctx(), paged, verify.Config{Progress: compact, PageSize: 5})
	}
	if summary, err := run(1); err != nil || summary.Violations > 0 || summary.Keys != 242 {
		t.Errorf("compacted once: %+v, %v", summary, err)
	}
	if _, err := run(1000); !errors.Is(err, verify.ErrCompacted) {
		t.Errorf("compacted all the time: %v", err)
	}
	// A key of no form is found in the first family that is read.
	kvtest.Must(l.client.Put(l.ctx(), inLab("a/x"), "?"))(t)
	if summary, err := run(1); !errors.Is(err, verify.ErrCompacted) || summary.Violations == 0 {
		t.Errorf("compacted after a violation was reported: %+v, %v", summary, err)
	}
}

// TestVerifyGivesUp: verify ends with its context, and leaves no goroutine, which TestMain checks.
func TestVerifyGivesUp(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.fill()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := verify.Run(ctx, l.store, verify.Config{Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestEveryKindOfKeyIsVerified compares the table of families with the golden list of keys: a new kind of key needs a
// row there.
func TestEveryKindOfKeyIsVerified(t *testing.T) {
	text := string(kvtest.Must(os.ReadFile(filepath.Join("internal", "keyspace", "testdata", "keys.golden")))(t))
	for line := range strings.Lines(text) {
		what, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		key := kvtest.Must(strconv.Unquote(quoted))(t)
		path := strings.TrimPrefix(key, keyspace.Prefix)
		if _, below, ok := keyspace.CutSlot(key); ok {
			path = below
		}
		if !slices.ContainsFunc(verify.Prefixes(), func(p string) bool { return strings.HasPrefix(path, p) }) {
			t.Errorf("verify does not know the key of %s, %q", what, key)
		}
	}
	prefixes := verify.Prefixes()
	if !slices.IsSorted(prefixes) {
		t.Errorf("the families are not in the order of their prefixes: %q", prefixes)
	}
}
