package service_test

import (
	"fmt"
	"sync"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// TestLargeLookupsCountAsLists: a lookup of more than 16 devices waits for a place among the lists, also after a
// change. A lookup of fewer devices and a change itself need no place.
func TestLargeLookupsCountAsLists(t *testing.T) {
	const places = 4 // of one owner
	db := slowLists{Store: nodetest.OpenStore(t), began: make(chan struct{}, places), goOn: make(chan struct{})}
	n := nodetest.New(t, db)
	large, small := nodetest.Grant(t, n, 0), nodetest.Grant(t, n, 0)
	for i := range 17 {
		nodetest.MustActivate(t, n, large, fmt.Sprintf("device-%d", i))
	}
	var group sync.WaitGroup
	for range places {
		group.Go(func() {
			_, err := n.ListOrders(nodetest.Context(t), nodetest.Owner, service.OrderFilter{}, store.Page{Limit: 1})
			nodetest.WantError(t, err, nil)
		})
		<-db.began
	}
	look := func(key licensing.LicenseKey, devices int) {
		t.Helper()
		view, err := n.License(nodetest.Context(t), nodetest.Owner, key, store.DevicePage{Limit: devices})
		nodetest.WantError(t, err, nil)
		if want := min(devices, view.License.CurrentDevices); len(view.Devices) != want {
			t.Errorf("%d devices, want %d", len(view.Devices), want)
		}
	}
	look(large, 16)
	look(small, 1000)
	group.Go(func() { look(large, 1000) })
	n.AwaitListsWaiting(1)
	group.Go(func() {
		_, _, err := n.ChangeLicense(nodetest.Context(t), nodetest.Owner, service.LicenseChange{
			Key: large, Command: licensing.SuspendLicense{Target: licensing.Target{Key: large, Caller: nodetest.Owner}},
		})
		nodetest.WantError(t, err, nil)
	})
	n.AwaitListsWaiting(2)
	close(db.goOn)
	group.Wait()
}
