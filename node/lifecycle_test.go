package node_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// ending is the end of the licenses of these tests at first.
var ending = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 30)

// endingLicense grants a license that has an end.
func endingLicense(t *testing.T, n *service.Service, owner licensing.Owner) licensing.LicenseKey {
	t.Helper()
	granted, _, err := n.Grant(nodetest.Context(t), owner,
		service.Grant{ProductID: "pro", Quantity: 1, ExpiresAt: ending})
	if err != nil {
		t.Fatal(err)
	}
	return granted[0].License.Key
}

// extend asks for ten days more, once.
func extend(owner licensing.Owner, key licensing.LicenseKey, idempotencyKey string) service.LicenseChange {
	return service.LicenseChange{
		Key: key,
		Command: licensing.RenewLicense{Target: licensing.Target{Key: key, Caller: owner},
			Extend: licensing.Period{Days: 10}},
		Once: nodetest.Once(idempotencyKey, "extend "+key.String()),
	}
}

// TestFortyExtensionsExtendOnce sends the same extension to two nodes at the same
// time, while others use the license.
func TestFortyExtensionsExtendOnce(t *testing.T) {
	t.Parallel()
	owner := nodetest.NewOwner(licensing.Test)
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))}
	key := endingLicense(t, nodes[0], owner)
	var group sync.WaitGroup
	var fresh atomic.Int32
	for i := range 40 {
		group.Go(func() {
			for {
				view, replayed, err := nodes[i%2].ChangeLicense(nodetest.Context(t), owner, extend(owner, key, "k"))
				if errors.Is(err, licensing.ErrRequestInProgress) {
					time.Sleep(time.Millisecond) // the request in progress needs the processor
					continue
				}
				if err != nil {
					t.Errorf("extend: %v", err)
					return
				}
				if !replayed {
					fresh.Add(1)
				}
				if want := ending.AddDate(0, 0, 10); !view.License.ExpiresAt.Equal(want) {
					t.Errorf("answered the end %v, want %v", view.License.ExpiresAt, want)
				}
				return
			}
		})
		group.Go(func() {
			cmd := licensing.Activate{Target: licensing.Target{Key: key}, Device: fmt.Sprint("d", i%3)}
			if _, err := nodes[i%2].Activate(nodetest.Context(t), cmd); err != nil {
				t.Errorf("activate: %v", err)
			}
		})
	}
	group.Wait()
	if fresh.Load() != 1 {
		t.Errorf("%d answers are not replays, want 1", fresh.Load())
	}
}

// TestUnknownExtensionThenAgain loses the answer to an extension, which the store has made or not. The repeated request
// extends the license once.
func TestUnknownExtensionThenAgain(t *testing.T) {
	for _, made := range []bool{true, false} {
		plain := nodetest.OpenStore(t)
		owner := nodetest.NewOwner(licensing.Test)
		n := nodetest.New(t, plain)
		key := endingLicense(t, n, owner)
		failing := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(change store.Change) storetest.Fault {
			if len(change.Writes) != 2 {
				t.Errorf("the extension is a change of %d records, want the license and its claim", len(change.Writes))
			}
			return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
		}})
		_, _, err := failing.ChangeLicense(nodetest.Context(t), owner, extend(owner, key, "k"))
		nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
		for try := range 2 {
			view, replayed, err := n.ChangeLicense(nodetest.Context(t), owner, extend(owner, key, "k"))
			if err != nil || replayed != (made || try > 0) || !view.License.ExpiresAt.Equal(ending.AddDate(0, 0, 10)) {
				t.Errorf("made %v, try %d: %+v, replayed %v, %v", made, try, view, replayed, err)
			}
		}
		view, _, err := n.ChangeLicense(nodetest.Context(t), owner, extend(owner, key, "another"))
		if err != nil || !view.License.ExpiresAt.Equal(ending.AddDate(0, 0, 20)) {
			t.Errorf("under another key: %+v, %v", view, err)
		}
	}
}

// TestLicenseRefusalIsReplayed: the claim keeps a refusal, and no other failure.
func TestLicenseRefusalIsReplayed(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	key := endingLicense(t, n, owner)
	target := licensing.Target{Key: key, Caller: owner}
	change := func(key string, cmd licensing.Command) (bool, error) {
		t.Helper()
		in := service.LicenseChange{Key: target.Key, Command: cmd}
		if key != "" {
			in.Once = nodetest.Once(key, fmt.Sprintf("%T", cmd))
		}
		_, replayed, err := n.ChangeLicense(nodetest.Context(t), owner, in)
		return replayed, err
	}
	if _, err := change("", licensing.RevokeLicense{Target: target}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true, true} {
		replayed, err := change("k", licensing.SuspendLicense{Target: target})
		nodetest.WantError(t, err, &licensing.Error{Reason: licensing.ReasonInvalidLicenseState})
		if replayed != want {
			t.Errorf("replayed is %v, want %v", replayed, want)
		}
	}
	_, err := change("k", licensing.RevokeLicense{Target: target})
	nodetest.WantError(t, err, licensing.ErrIdempotencyKeyReused)

	absent := licensing.Target{Key: nodetest.LicenseKeys.Mint("LIC", owner, [keyring.LicenseKeyEntropy]byte{99}),
		Caller: owner}
	for range 2 {
		_, replayed, err := n.ChangeLicense(nodetest.Context(t), owner, service.LicenseChange{
			Key: absent.Key, Command: licensing.SuspendLicense{Target: absent}, Once: nodetest.Once("absent", "r"),
		})
		nodetest.WantError(t, err, licensing.ErrLicenseNotFound)
		if replayed {
			t.Error("the claim keeps the error of a license that does not exist")
		}
	}
}

// TestClaimingTurnIsItsOwn posts commands with and without an Idempotency-Key into one mailbox, in turn: the node
// answers all of them, in their order.
func TestClaimingTurnIsItsOwn(t *testing.T) {
	plain := nodetest.OpenStore(t)
	owner := nodetest.NewOwner(licensing.Test)
	key := endingLicense(t, nodetest.New(t, plain), owner)
	started, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	n := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
		first.Do(func() { close(started); <-release })
		return storetest.Fault{}
	}})
	target := licensing.Target{Key: key, Caller: owner}
	ask := func(i int) error {
		var err error
		switch i % 3 {
		case 0:
			_, err = n.Activate(nodetest.Context(t),
				licensing.Activate{Target: licensing.Target{Key: key}, Device: "d1"})
		case 1:
			_, _, err = n.ChangeLicense(nodetest.Context(t), owner, extend(owner, key, fmt.Sprint(i)))
		default:
			_, _, err = n.ChangeLicense(nodetest.Context(t), owner, service.LicenseChange{Key: key,
				Command: licensing.UpdateLicense{Target: target, Metadata: fmt.Sprintf(`{"m%d":%d}`, i, i)}})
		}
		return err
	}
	var group sync.WaitGroup
	group.Go(func() {
		if err := ask(0); err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	<-started
	for i := 1; i < 30; i++ {
		group.Go(func() {
			if err := ask(i); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	n.AwaitQueued(licensing.LicenseRef(key), 29)
	close(release)
	group.Wait()
	view, err := n.License(nodetest.Context(t), owner, key, store.DevicePage{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if want := ending.AddDate(0, 0, 100); !view.License.ExpiresAt.Equal(want) || len(view.Devices) != 1 ||
		strings.Count(view.Metadata.Object, ":") != 10 {
		t.Errorf("after all: %+v, metadata %s; want the end %v", view.License, view.Metadata.Object, want)
	}
}

// TestMetadataLosesNothing merges members into one license's metadata on two nodes
// at the same time.
func TestMetadataLosesNothing(t *testing.T) {
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))}
	owner := nodetest.NewOwner(licensing.Test)
	key := endingLicense(t, nodes[0], owner)
	target := licensing.Target{Key: key, Caller: owner}
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			in := service.LicenseChange{Key: key,
				Command: licensing.UpdateLicense{Target: target, Metadata: fmt.Sprintf(`{"m%d":%d}`, i, i)}}
			for {
				_, _, err := nodes[i%2].ChangeLicense(nodetest.Context(t), owner, in)
				if errors.Is(err, licensing.ErrUnavailable) {
					continue // its swaps were lost too often
				}
				if err != nil {
					t.Errorf("update: %v", err)
				}
				return
			}
		})
		group.Go(func() {
			if _, err := nodetest.Activate(nodetest.Context(t), nodes[i%2], key, fmt.Sprint("d", i%3)); err != nil {
				t.Errorf("activate: %v", err)
			}
		})
	}
	group.Wait()
	view, err := nodes[0].License(nodetest.Context(t), owner, key, store.DevicePage{Limit: 10})
	if err != nil || strings.Count(view.Metadata.Object, ":") != 40 || len(view.Devices) != 3 {
		t.Errorf("%s, %d devices, %v", view.Metadata.Object, len(view.Devices), err)
	}
}

// TestOneProductIsCreatedOnce puts a product on two nodes at the same time: only one of them creates the product.
func TestOneProductIsCreatedOnce(t *testing.T) {
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))}
	owner := nodetest.NewOwner(licensing.Live)
	ctx := nodetest.Context(t)
	var made, gone atomic.Int32
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			_, created, err := nodes[i%2].PutProduct(ctx, licensing.PutProduct{
				ID: "pro", Owner: owner, Name: fmt.Sprint(i), Terms: licensing.DefaultTerms(),
			})
			if err != nil {
				t.Errorf("put: %v", err)
			}
			if created {
				made.Add(1)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("the product was created %d times", made.Load())
	}
	for i := range 20 {
		group.Go(func() {
			switch err := nodes[i%2].DeleteProduct(ctx, owner, "pro"); {
			case err == nil:
				gone.Add(1)
			case !errors.Is(err, licensing.ErrProductNotFound):
				t.Errorf("delete: %v", err)
			}
		})
	}
	group.Wait()
	if _, err := nodes[0].Product(ctx, owner, "pro"); gone.Load() != 1 ||
		!errors.Is(err, licensing.ErrProductNotFound) {
		t.Errorf("the product was removed %d times, and then: %v", gone.Load(), err)
	}
}

// TestValidationIsLinearizable changes a license at one node. Another node, which remembers the license as it was,
// answers at once with the license as it is.
func TestValidationIsLinearizable(t *testing.T) {
	here, there := nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))
	ctx := nodetest.Context(t)
	key := nodetest.Grant(t, here, 3)
	target := licensing.Target{Key: key}
	check := func(want licensing.Reason) {
		t.Helper()
		result, err := there.ValidateLicense(ctx, licensing.ValidateLicense{Target: target, Device: "d1"})
		if err != nil || result.Invalid != want {
			t.Fatalf("answered %q, %v; want %q", result.Invalid, err, want)
		}
	}
	do := func(cmd licensing.Command) {
		t.Helper()
		if _, err := here.Do(ctx, licensing.LicenseRef(key), cmd); err != nil {
			t.Fatal(err)
		}
	}
	check(licensing.NotBound)
	do(licensing.Activate{Target: target, Device: "d1"})
	check("")
	do(licensing.SuspendLicense{Target: target})
	check(licensing.ReasonLicenseSuspended)
	do(licensing.ReinstateLicense{Target: target})
	check("")
	do(licensing.RemoveDevice{Target: target, Device: "d1"})
	check(licensing.NotBound)
	do(licensing.RevokeLicense{Target: target})
	check(licensing.ReasonLicenseRevoked)
}

// TestValidationIsSeen: the node stores in the background when a device was validated.
func TestValidationIsSeen(t *testing.T) {
	var ahead atomic.Int64
	n := nodetest.New(t, nodetest.OpenStore(t), func(c *service.Config) {
		c.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	key := nodetest.Grant(t, n, 3)
	if _, err := nodetest.Activate(nodetest.Context(t), n, key, "d1"); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(time.Hour))
	result, err := n.ValidateLicense(nodetest.Context(t),
		licensing.ValidateLicense{Target: licensing.Target{Key: key}, Device: "d1"})
	if err != nil || result.Invalid != "" {
		t.Fatal(result.Invalid, err)
	}
	n.StoreSeen()
	view, err := n.License(nodetest.Context(t), nodetest.Owner, key, store.DevicePage{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if seen := view.Devices[0].LastSeenAt; !seen.Equal(result.Device.LastSeenAt) || time.Until(seen) < 50*time.Minute {
		t.Errorf("seen at %v, answered %v", seen, result.Device.LastSeenAt)
	}
}

// TestDeactivationCapAcrossNodes removes devices at two nodes at the same time: the cap of the month holds for both
// nodes together.
func TestDeactivationCapAcrossNodes(t *testing.T) {
	const most, devices = 3, 20
	now := time.Now()
	month := func(c *service.Config) { c.Clock = func() time.Time { return now } } // does not end during the test
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t), month),
		nodetest.New(t, nodetest.OpenStore(t), month)}
	owner := nodetest.NewOwner(licensing.Test)
	ctx := nodetest.Context(t)
	if _, _, err := nodes[0].PutProduct(ctx, licensing.PutProduct{ID: "pro", Owner: owner, Terms: licensing.Terms{
		KeyPrefix: "PRO", SelfService: licensing.SelfService{Allowed: true, RemovalsPerMonth: most},
	}}); err != nil {
		t.Fatal(err)
	}
	key := endingLicense(t, nodes[0], owner)
	for i := range devices { // more than fit in the license's record
		if _, err := nodetest.Activate(ctx, nodes[0], key, fmt.Sprint("d", i)); err != nil {
			t.Fatal(err)
		}
	}
	var removed, refused atomic.Int32
	var group sync.WaitGroup
	for i := range devices {
		group.Go(func() {
			cmd := licensing.DeactivateDevice{Target: licensing.Target{Key: key}, Device: fmt.Sprint("d", i)}
			switch result, err := nodes[i%2].DeactivateDevice(ctx, cmd); {
			case err == nil && result.Removed:
				removed.Add(1)
			case errors.Is(err, licensing.ErrSelfService):
				refused.Add(1)
			default:
				t.Errorf("answered %+v, %v", result, err)
			}
		})
	}
	group.Wait()
	view, err := nodes[0].License(ctx, owner, key, store.DevicePage{Limit: devices})
	if err != nil || removed.Load() != most || refused.Load() != devices-most || len(view.Devices) != devices-most {
		t.Errorf("%d removed, %d refused, %d left, %v", removed.Load(), refused.Load(), len(view.Devices), err)
	}
}
