package service_test

import (
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestReplayThatCantBeRead fails the reads of a replay: the service replays nothing, and does not say that stored
// licenses were not made.
func TestReplayThatCantBeRead(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	db := &storetest.Faulty{Store: nodetest.OpenStore(t)}
	away := false
	db.OnLoad = func(wants []store.Want) error {
		if away && wants[0].Ref.Kind == licensing.KindOrder {
			return licensing.ErrUnavailable
		}
		return nil
	}
	db.OnReadLicenses = func([]licensing.LicenseKey) error {
		if away {
			return licensing.ErrUnavailable
		}
		return nil
	}
	n := nodetest.New(t, db)
	grant := service.Grant{ProductID: "pro", Quantity: 2, Once: nodetest.Once("g", "r")}
	_, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("o", "r"))
	nodetest.WantError(t, err, nil)
	_, _, err = n.Grant(nodetest.Context(t), owner, grant)
	nodetest.WantError(t, err, nil)

	away = true
	_, replayed, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("o", "r"))
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	if replayed {
		t.Error("an unreadable order is returned as the result of the first request")
	}
	_, replayed, err = n.Grant(nodetest.Context(t), owner, grant)
	nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
	if replayed {
		t.Error("unreadable licenses are returned as the result of the first request")
	}
	away = false
	_, replayed, err = n.Grant(nodetest.Context(t), owner, grant)
	nodetest.WantError(t, err, nil)
	if !replayed {
		t.Error("the grant is not replayed")
	}
}

// TestReplayReadsManyAtATime bounds the number of reads of a replay: with one read for each license, the replay of a
// large grant would take longer than a request may.
func TestReplayReadsManyAtATime(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	db := &storetest.Faulty{Store: nodetest.OpenStore(t)}
	reads := 0
	db.OnReadLicenses = func([]licensing.LicenseKey) error { reads++; return nil }
	n := nodetest.New(t, db)
	grant := service.Grant{ProductID: "pro", Quantity: 1000, Once: nodetest.Once("k", "r")}
	first, _, err := n.Grant(nodetest.Context(t), owner, grant)
	nodetest.WantError(t, err, nil)
	if reads != 0 {
		t.Errorf("the licenses that were just made were read %d times", reads)
	}
	second, replayed, err := n.Grant(nodetest.Context(t), owner, grant)
	if err != nil || !replayed || len(second) != grant.Quantity {
		t.Fatalf("%d licenses, replayed %v, %v", len(second), replayed, err)
	}
	for i := range second {
		if second[i].License.Key != first[i].License.Key {
			t.Fatalf("license %d is %s, and was %s", i, second[i].License.Key, first[i].License.Key)
		}
	}
	if want := (grant.Quantity + store.MaxReadLicenses - 1) / store.MaxReadLicenses; reads != want {
		t.Errorf("the replay took %d reads, want %d", reads, want)
	}
}

// TestStaleRequest sends a request that would be refused by now: the service refuses the request under a new key, and
// completes and replays it under the old key.
func TestStaleRequest(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	stale := &licensing.Error{Reason: licensing.ReasonInvalidField}
	const quantity = 2 * store.MaxNewLicenses
	commits := 0
	n := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t), OnCommit: func(store.Change) storetest.Fault {
		if commits++; commits == 2 {
			return storetest.Fault{Skip: true, Say: licensing.ErrOutcomeUnknown}
		}
		return storetest.Fault{}
	}})
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	grant := service.Grant{ProductID: "pro", Quantity: quantity, ExpiresAt: ends, Once: nodetest.Once("k", "r")}
	_, _, err := n.Grant(nodetest.Context(t), owner, grant)
	nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)

	grant.Stale = stale
	granted, replayed, err := n.Grant(nodetest.Context(t), owner, grant)
	if err != nil || replayed || len(granted) != quantity {
		t.Errorf("going on: %d licenses, replayed %v, %v", len(granted), replayed, err)
	}
	granted, replayed, err = n.Grant(nodetest.Context(t), owner, grant)
	if err != nil || !replayed || len(granted) != quantity || !granted[0].License.ExpiresAt.Equal(ends) {
		t.Errorf("again: %d licenses, replayed %v, %v", len(granted), replayed, err)
	}
	made := commits
	for _, never := range []*node.Once{nodetest.Once("another", "r"), nodetest.Once("k", "another request")} {
		grant.Once = never
		_, _, err = n.Grant(nodetest.Context(t), owner, grant)
		nodetest.WantError(t, err, stale)
	}
	if commits != made {
		t.Error("a refused request has written")
	}
}

// TestInProgress repeats a request while the first request waits for its commit.
func TestInProgress(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	waits, goOn := make(chan bool), make(chan bool)
	first := true
	n := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t), OnCommit: func(store.Change) storetest.Fault {
		if first {
			first = false
			close(waits)
			<-goOn
		}
		return storetest.Fault{}
	}})
	done := make(chan error)
	go func() {
		_, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("k", "r"))
		done <- err
	}()
	<-waits
	_, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("k", "r"))
	nodetest.WantError(t, err, licensing.ErrRequestInProgress)
	_, _, err = n.Grant(nodetest.Context(t), owner,
		service.Grant{ProductID: "pro", Quantity: 1, Once: nodetest.Once("k", "g")})
	nodetest.WantError(t, err, licensing.ErrRequestInProgress)
	_, _, err = n.CreateOrder(nodetest.Context(t), nodetest.NewOwner(licensing.Test), nodetest.OrderOnce("k", "r"))
	nodetest.WantError(t, err, nil)
	close(goOn)
	nodetest.WantError(t, <-done, nil)
	_, replayed, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("k", "r"))
	if err != nil || !replayed {
		t.Errorf("afterwards: replayed %v, %v", replayed, err)
	}
}
