package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

func TestFortyCreatesMakeOneOrder(t *testing.T) {
	t.Parallel()
	owner := nodetest.NewOwner(licensing.Test)
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))}
	var orders sync.Map
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			for {
				order, _, err := nodes[i%2].CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("k", "r"))
				if errors.Is(err, licensing.ErrRequestInProgress) {
					time.Sleep(time.Millisecond) // the request in progress needs the processor
					continue
				}
				if err != nil {
					t.Errorf("create: %v", err)
				}
				orders.Store(order.OrderNo, true)
				return
			}
		})
	}
	group.Wait()
	made := 0
	orders.Range(func(any, any) bool { made++; return true })
	if made != 1 {
		t.Errorf("%d orders, want 1", made)
	}
}

func TestReplay(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	ctx := nodetest.Context(t)
	first, replayed, err := n.CreateOrder(ctx, owner, nodetest.OrderOnce("k", "r"))
	if err != nil || replayed {
		t.Fatalf("first: replayed %v, %v", replayed, err)
	}
	if _, err := n.PayOrder(ctx, first, nodetest.SandboxPayment(first.OrderNo)); err != nil {
		t.Fatal(err)
	}
	again, replayed, err := n.CreateOrder(ctx, owner, nodetest.OrderOnce("k", "r"))
	if err != nil || !replayed || again.OrderNo != first.OrderNo || again.LicenseKey.IsZero() {
		t.Errorf("again: %+v, replayed %v, %v; want the order as it is now, paid", again, replayed, err)
	}
	_, _, err = n.CreateOrder(ctx, owner, nodetest.OrderOnce("k", "another request"))
	nodetest.WantError(t, err, licensing.ErrIdempotencyKeyReused)
	_, _, err = n.Grant(ctx, owner,
		service.Grant{ProductID: "pro", Quantity: 1, Once: nodetest.Once("k", "another route")})
	nodetest.WantError(t, err, licensing.ErrIdempotencyKeyReused)

	elsewhere := licensing.Owner{AccountID: nodetest.NewOwner(licensing.Test).AccountID, Mode: licensing.Test}
	other, replayed, err := n.CreateOrder(ctx, elsewhere, nodetest.OrderOnce("k", "r"))
	if err != nil || replayed || other.OrderNo == first.OrderNo {
		t.Errorf("the same key of another account: %+v, replayed %v, %v", other, replayed, err)
	}
	live := licensing.Owner{AccountID: owner.AccountID, Mode: licensing.Live}
	_, replayed, err = n.CreateOrder(ctx, live, nodetest.OrderOnce("k", "r"))
	nodetest.WantError(t, err, licensing.ErrProductNotFound) // live, nothing is made along
	if replayed {
		t.Error("the same key of the other mode is replayed")
	}
}

// TestRefusalIsReplayed: the claim keeps a refusal, even after the cause of the refusal is gone.
func TestRefusalIsReplayed(t *testing.T) {
	live := nodetest.NewOwner(licensing.Live)
	db := nodetest.OpenStore(t)
	product := &licensing.Product{ID: "pro", Owner: live, Terms: licensing.DefaultTerms(), CreatedAt: time.Now()}
	orderNo := licensing.NewOrderNo(live, "01JD4Q8X2M7R3N5T9V1W4Y6Z8A")
	if _, err := db.Commit(nodetest.Context(t), store.Change{Writes: []store.Write{
		{Ref: licensing.OrderRef(live, orderNo),
			Record: licensing.Record{Order: &licensing.Order{OrderNo: orderNo, Owner: live}}},
		{Ref: licensing.ProductRef(live, "pro"), Record: licensing.Record{Product: product}},
	}}); err != nil {
		t.Fatal(err)
	}
	poor := nodetest.New(t, db)
	rich := nodetest.New(t, db, func(c *service.Config) { c.Accepts = func(licensing.Order) error { return nil } })
	_, replayed, err := poor.CreateOrder(nodetest.Context(t), live, nodetest.OrderOnce("k", "r"))
	nodetest.WantError(t, err, licensing.ErrPaymentNotConfigured)
	if replayed {
		t.Error("the first refusal is marked as a replay")
	}
	_, replayed, err = rich.CreateOrder(nodetest.Context(t), live, nodetest.OrderOnce("k", "r"))
	nodetest.WantError(t, err, licensing.ErrPaymentNotConfigured)
	if !replayed {
		t.Error("the second refusal is not marked as a replay")
	}
	_, _, err = rich.CreateOrder(nodetest.Context(t), live, nodetest.OrderOnce("another", "r"))
	nodetest.WantError(t, err, nil)
}

// TestUnknownThenAgain loses the answer to the creation of an order, which the store has made or not. The repeated
// request creates the order once.
func TestUnknownThenAgain(t *testing.T) {
	for _, made := range []bool{true, false} {
		plain := nodetest.OpenStore(t)
		owner := nodetest.NewOwner(licensing.Test)
		failing := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
			return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
		}})
		_, _, err := failing.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("k", "r"))
		nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
		n := nodetest.New(t, plain)
		first, replayed, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("k", "r"))
		if err != nil || replayed != made {
			t.Errorf("made %v: replayed %v, %v", made, replayed, err)
		}
		second, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("k", "r"))
		if err != nil || second.OrderNo != first.OrderNo {
			t.Errorf("two orders: %s and %s, %v", first.OrderNo, second.OrderNo, err)
		}
	}
}

// TestGrantGoesOn fails a grant in each of its transactions, which the store has applied or not, and repeats the
// request: the number of licenses is as requested, and each answer has the same licenses.
func TestGrantGoesOn(t *testing.T) {
	const quantity = 3*store.MaxNewLicenses - 5
	for failing := 1; failing <= 3; failing++ {
		for _, made := range []bool{true, false} {
			t.Run(fmt.Sprintf("transaction %d, made %v", failing, made), func(t *testing.T) {
				plain := nodetest.OpenStore(t)
				owner := nodetest.NewOwner(licensing.Test)
				grant := service.Grant{ProductID: "pro", Quantity: quantity, Metadata: `{"a":1}`,
					Once: nodetest.Once("k", "r")}
				commits, stored := 0, map[licensing.LicenseID]bool{}
				store := &storetest.Faulty{Store: plain, OnCommit: func(change store.Change) storetest.Fault {
					commits++
					fails := commits == failing
					if !fails || made {
						for _, w := range change.Writes {
							if w.Ref.Kind == licensing.KindLicense {
								stored[w.Ref.LicenseID()] = true
							}
						}
					}
					if fails {
						return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
					}
					return storetest.Fault{}
				}}
				n := nodetest.New(t, store)
				_, _, err := n.Grant(nodetest.Context(t), owner, grant)
				nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
				first, _, err := n.Grant(nodetest.Context(t), owner, grant)
				if err != nil || len(first) != quantity || len(stored) != quantity {
					t.Fatalf("%d licenses answered, %d stored, %v; want %d", len(first), len(stored), err, quantity)
				}
				if _, err := nodetest.Activate(nodetest.Context(t), n, first[0].License.Key, "laptop"); err != nil {
					t.Fatal(err)
				}
				second, replayed, err := n.Grant(nodetest.Context(t), owner, grant)
				if err != nil || !replayed || len(second) != quantity {
					t.Fatalf("again: %d licenses, replayed %v, %v", len(second), replayed, err)
				}
				for i := range second {
					if second[i].License.Key != first[i].License.Key || !stored[first[i].License.Key.ID()] ||
						second[i].Metadata.Object != `{"a":1}` {
						t.Fatalf("license %d: %+v, then %+v", i, first[i], second[i])
					}
				}
				// The owner reads the devices of so large a grant by license.
				if len(second[0].Devices) != 0 || second[0].Next == nil || second[0].License.CurrentDevices != 1 {
					t.Error("the replay does not show the license as it is now")
				}
				if len(stored) != quantity {
					t.Errorf("%d licenses are stored, want %d", len(stored), quantity)
				}
			})
		}
	}
}

// TestTwoNodesOneGrant: two nodes work on one grant at the same time, and make its licenses once.
func TestTwoNodesOneGrant(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	grant := service.Grant{ProductID: "pro", Quantity: 5 * store.MaxNewLicenses, Once: nodetest.Once("k", "r")}
	var answers [4][]store.LicenseView
	var group sync.WaitGroup
	for i := range answers {
		n := nodetest.New(t, nodetest.OpenStore(t))
		group.Go(func() {
			var err error
			if answers[i], _, err = n.Grant(nodetest.Context(t), owner, grant); err != nil {
				t.Errorf("grant: %v", err)
			}
		})
	}
	group.Wait()
	for i := range answers {
		if len(answers[i]) != grant.Quantity {
			t.Fatalf("node %d answers %d licenses", i, len(answers[i]))
		}
		for j := range answers[i] {
			if answers[i][j].License.Key != answers[0][j].License.Key {
				t.Fatalf("nodes 0 and %d answer different licenses", i)
			}
		}
	}
}

// TestClaimsAge: the sweep forgets a claim after a day, and nothing else does: a node whose clock is days ahead does
// not execute a request again while its claim is stored.
func TestClaimsAge(t *testing.T) {
	db := nodetest.OpenStore(t)
	owner := nodetest.NewOwner(licensing.Test)
	ahead := time.Duration(0)
	n := nodetest.New(t, db, func(c *service.Config) {
		c.Clock = func() time.Time { return time.Now().Add(ahead) }
	})
	ctx := nodetest.Context(t)
	create := func() (string, bool) {
		t.Helper()
		order, replayed, err := n.CreateOrder(ctx, owner, nodetest.OrderOnce("k", "r"))
		if err != nil {
			t.Fatal(err)
		}
		return order.OrderNo, replayed
	}
	claims := func() int {
		t.Helper()
		loaded, err := db.Load(ctx, store.Want{Ref: licensing.ClaimRef(owner, nodetest.Once("k", "r").Hash)})
		if err != nil {
			t.Fatal(err)
		}
		if loaded[0].Record.Claim == nil {
			return 0
		}
		return 1
	}
	first, _ := create()
	ahead = 23 * time.Hour
	if err := n.SweepClaims(ctx); err != nil {
		t.Fatal(err)
	}
	if again, replayed := create(); again != first || !replayed {
		t.Error("the claim was forgotten within a day")
	}
	daysAhead := nodetest.New(t, db, func(c *service.Config) {
		c.Clock = func() time.Time { return time.Now().Add(9 * 24 * time.Hour) }
	})
	order, replayed, err := daysAhead.CreateOrder(ctx, owner, nodetest.OrderOnce("k", "r"))
	if err != nil || order.OrderNo != first || !replayed {
		t.Errorf("a node that is days ahead made %s, replayed %v: %v", order.OrderNo, replayed, err)
	}
	_, _, err = daysAhead.CreateOrder(ctx, owner, nodetest.OrderOnce("k", "another"))
	nodetest.WantError(t, err, licensing.ErrIdempotencyKeyReused)
	ahead = 25 * time.Hour
	if again, replayed := create(); again != first || !replayed {
		t.Error("the claim was forgotten before the sweep")
	}
	if err := n.SweepClaims(ctx); err != nil {
		t.Fatal(err)
	}
	second, replayed := create()
	if second == first || replayed {
		t.Error("the claim was remembered after a day and the sweep")
	}
	if err := n.SweepClaims(ctx); err != nil {
		t.Fatal(err)
	}
	if again, _ := create(); again != second {
		t.Error("the sweep removed a claim that was stored again since")
	}
	ahead = 50 * time.Hour
	if claims() != 1 {
		t.Fatal("the claim is gone before the sweep")
	}
	if err := n.SweepClaims(ctx); err != nil {
		t.Fatal(err)
	}
	if claims() != 0 {
		t.Error("the sweep left an old claim")
	}
}

// TestClaimOutlivesItsCaller has a caller give up while its change is being stored. Until the change is stored, its
// Idempotency-Key is taken, also for another order.
func TestClaimOutlivesItsCaller(t *testing.T) {
	plain := nodetest.OpenStore(t)
	owner := nodetest.NewOwner(licensing.Test)
	setup := nodetest.New(t, plain)
	var orders [2]licensing.Order
	for i := range orders {
		order, _, err := setup.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
		nodetest.WantError(t, err, nil)
		orders[i] = order
	}
	storing, goOn := make(chan struct{}), make(chan struct{})
	n := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
		storing <- struct{}{}
		<-goOn
		return storetest.Fault{}
	}})
	cancel := func(ctx context.Context, order licensing.Order, once *node.Once) error {
		_, _, err := n.ChangeOrder(ctx, owner, order.OrderNo, licensing.CancelOrder{}, once)
		return err
	}
	var group sync.WaitGroup
	group.Go(func() {
		if err := cancel(nodetest.Context(t), orders[0], nil); err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	<-storing
	ctx, giveUp := context.WithCancel(nodetest.Context(t))
	defer giveUp()
	answered := make(chan error, 1)
	go func() { answered <- cancel(ctx, orders[0], nodetest.Once("k", "r")) }()
	n.AwaitQueued(licensing.OrderRef(owner, orders[0].OrderNo), 1)
	goOn <- struct{}{}
	<-storing
	giveUp()
	select {
	case <-answered:
		goOn <- struct{}{}
		t.Fatal("the request was answered while its change was being stored")
	case <-time.After(20 * time.Millisecond): // much longer than giving up takes
	}
	nodetest.WantError(t, cancel(nodetest.Context(t), orders[1], nodetest.Once("k", "another")),
		licensing.ErrRequestInProgress)
	goOn <- struct{}{}
	nodetest.WantError(t, <-answered, nil)
	group.Wait()
	nodetest.WantError(t, cancel(nodetest.Context(t), orders[1], nodetest.Once("k", "another")),
		licensing.ErrIdempotencyKeyReused)
}

// TestClaimGoesOnFromTheRival lets another node write an order before each of the first swaps of a request with an
// Idempotency-Key, of the order alone or of several records. The request goes on from what the other node has written,
// without another read of its claim, and is made once.
func TestClaimGoesOnFromTheRival(t *testing.T) {
	const rivals = 20
	for _, several := range []bool{false, true} {
		ctx, plain := nodetest.Context(t), nodetest.OpenStore(t)
		rival := nodetest.New(t, plain)
		order, _, err := rival.CreateOrder(ctx, nodetest.NewOwner(licensing.Test), nodetest.NewOrder(100))
		nodetest.WantError(t, err, nil)
		commits, reads := 0, 0
		n := nodetest.New(t, &storetest.Faulty{
			Store: plain,
			OnLoad: func(wants []store.Want) error {
				if wants[len(wants)-1].Ref.Kind == licensing.KindClaim {
					reads++
				}
				return nil
			},
			OnCommit: func(store.Change) storetest.Fault {
				if commits++; commits <= rivals {
					order, err = rival.ChangeCheckout(ctx, order, licensing.StartCheckout{After: order.Attempt})
					nodetest.WantError(t, err, nil)
				}
				return storetest.Fault{}
			},
		})
		once, before := nodetest.Once("k", "r"), 0
		ask := func() (licensing.Order, bool, error) {
			return n.ChangeOrder(ctx, order.Owner, order.OrderNo, licensing.CancelOrder{}, once)
		}
		if several {
			before = 1 // then the node reads the product
			ask = func() (licensing.Order, bool, error) {
				return n.RecordPayment(ctx, order.Owner, order.OrderNo,
					service.OutsidePayment{Reference: "INV-1", Once: once})
			}
		}
		for _, again := range []bool{false, true} {
			done, replayed, err := ask()
			if err != nil || replayed != again || done.Attempt != rivals {
				t.Errorf("several records: %v; %+v, replayed %v, %v", several, done, replayed, err)
			}
			if !again && (reads != before+1 || commits != rivals+1) {
				t.Errorf("several records: %v; %d reads of the claim, %d swaps", several, reads, commits)
			}
		}
	}
}
